// Reads arrays with zarrita, the reader of pages in a browser: prints a line of JSON for every path given, with shape,
// type, attributes of the group above it and the SHA-256 of the elements in row-major order. Given to Node as text, in
// the folder whose packages it takes.
//   node --input-type=module -e TEXT FOLDER PATH...        (PATH "" is the root)
import { createHash } from "node:crypto";
import * as zarr from "zarrita";
import FileSystemStore from "@zarrita/storage/fs";

const [folder, ...paths] = process.argv.slice(1);
const root = zarr.root(new FileSystemStore(folder));
for (const name of paths) {
  const array = await zarr.open(name ? root.resolve(name) : root, { kind: "array" });
  const { data, shape } = await zarr.get(array);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  let group = {};
  if (name) group = (await zarr.open(root, { kind: "group" })).attrs;
  const digest = createHash("sha256").update(bytes).digest("hex");
  console.log(JSON.stringify({ path: name, shape, type: array.dtype, attributes: group, digest }));
}
