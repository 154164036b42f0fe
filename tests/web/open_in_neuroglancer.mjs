// Opens neuroglancer's page in Chromium and prints as JSON the grey values that it shows, once they no longer change, and what
// the page complained of. Run by tests/oct/test_viewers.py.
//   node open_in_neuroglancer.mjs URL
import path from "node:path";
import { pathToFileURL } from "node:url";

const packages = path.join(process.env.CINGULUM_TEST_NODE_PACKAGES, "node_modules");
const { chromium } = await import(pathToFileURL(path.join(packages, "playwright-core/index.mjs")).href);
const browser = await chromium.launch({ executablePath: process.env.CINGULUM_TEST_CHROMIUM ?? "/usr/bin/chromium", headless: true,
  args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"] });
const page = await browser.newPage({ viewport: { width: 900, height: 700 } });
const complaints = [];
page.on("pageerror", (error) => complaints.push(error.message));
page.on("response", (response) => {
  // A file that is not there is how Zarr tells that a chunk or a format is not.
  if (response.status() >= 400 && response.status() !== 404) complaints.push(`${response.status()} ${response.url()}`);
});
await page.goto(process.argv[2], { waitUntil: "commit" });

// The part of the page below its bars and beside its buttons, until it shows something that stays.
let picture = "";
for (let still = 0, tries = 0; still < 3 && tries < 60; ++tries) {
  await page.waitForTimeout(1000);
  const now = (await page.screenshot({ clip: { x: 40, y: 80, width: 800, height: 600 } })).toString("base64");
  still = now === picture && now.length > 40000 ? still + 1 : 0;  // a plane takes far more bytes than an empty page
  picture = now;
}
const shown = await page.evaluate(async (encoded) => {
  const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${encoded}`)).blob());
  const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
  return { rows: bitmap.height, columns: bitmap.width, grey: Array.from({ length: data.length / 4 }, (_, i) => data[4 * i]) };
}, picture);
console.log(JSON.stringify({ ...shown, complaints }));
await browser.close();
