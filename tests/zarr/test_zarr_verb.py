"""`cingulum zarr`: copies equal to what zarr-python reads, the same bytes on any number of threads, damage found and named,
and what is refused.

CINGULUM names the program.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import zarr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)
from suite import run_program as run  # noqa: E402


def tree(path):
    """All bytes of a file or folder."""
    if path.is_file():
        return path.read_bytes()
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


class WithFolder(suite.WithFolder):
    def setUp(self):
        super().setUp()
        self.values = np.random.default_rng(1).normal(100, 20, (37, 70, 91)).astype(np.float32)
        self.source = self.folder / "a.zarr"
        array = zarr.create_array(str(self.source), shape=self.values.shape, chunks=(16, 24, 32), dtype="float32",
                                  dimension_names=["z", "y", "x"], attributes={"a": [1, "b"]}, fill_value=7)
        array[:] = self.values

    def refused(self, text, *words, code=None):
        result = run(*words)
        self.assertIn(result.returncode, (1, 2) if code is None else (code,), result.stderr)
        self.assertIn(text, result.stderr)
        return result

    def report(self, path):
        return json.loads(self.done("zarr", "info", "--json", path).stdout)["files"][0]

    @staticmethod
    def opened(path):
        if path.suffix == ".zip":
            return zarr.open(zarr.storage.ZipStore(str(path), mode="r"), mode="r")
        return zarr.open(str(path), mode="r")


class Copies(WithFolder):
    def test_every_layout_reads_the_same_in_zarr_python(self):
        layouts = [[], ["--chunks", "16"], ["--chunks", "10,20,30", "--shards", "20,40,60"], ["--shards", "none"],
                   ["--format", "2"], ["--format", "2", "--codec", "blosc-lz4"], ["--codec", "zstd:5"], ["--codec", "gzip"],
                   ["--codec", "blosc-zstd:3", "--shards", "none"], ["--format", "2", "--codec", "none"],
                   ["--codec", "zstd", "--memory", "1"]]
        for number, words in enumerate(layouts):
            for ending in ("", ".zip"):
                with self.subTest(" ".join(words) + ending):
                    path = self.folder / f"copy{number}.zarr{ending}"
                    self.done("zarr", "copy", self.source, path, *words)
                    found = self.opened(path)
                    np.testing.assert_array_equal(found[:], self.values)
                    self.assertEqual(found.fill_value, 7)
                    attributes = dict(found.attrs)
                    if found.metadata.zarr_format == 2:
                        self.assertEqual(attributes.pop("_ARRAY_DIMENSIONS"), ["z", "y", "x"])
                    else:
                        self.assertEqual(found.metadata.dimension_names, ("z", "y", "x"))
                    self.assertEqual(attributes, {"a": [1, "b"]})

    def test_names_of_dimensions_come_back_from_v2(self):
        self.done("zarr", "copy", self.source, self.folder / "b.zarr", "--format", "2")
        self.done("zarr", "copy", self.folder / "b.zarr", self.folder / "c.zarr")
        found = self.opened(self.folder / "c.zarr")
        self.assertEqual(found.metadata.dimension_names, ("z", "y", "x"))
        self.assertEqual(dict(found.attrs), {"a": [1, "b"]})

    def test_the_bytes_do_not_depend_on_threads_memory_or_time(self):
        for ending in ("", ".zip"):
            for words in (["--pyramid", "3", "--chunks", "16", "--codec", "zstd"], ["--shards", "none", "--chunks", "8"]):
                with self.subTest(f"{words}{ending}"):
                    found = []
                    for threads in (1, 2, 8):
                        path = self.folder / f"out.zarr{ending}"
                        self.done("zarr", "copy", self.source, path, "--threads", threads, "--force", *words)
                        found.append(tree(path))
                    self.assertEqual(found[0], found[1])
                    self.assertEqual(found[0], found[2])

    def test_levels_do_not_depend_on_the_memory(self):
        for memory in ("1", "64K", "1G"):
            self.done("zarr", "copy", self.source, self.folder / f"{memory}.zarr", "--pyramid", "3", "--chunks", "16",
                      "--shards", "none", "--memory", memory)
        self.assertEqual(tree(self.folder / "1.zarr"), tree(self.folder / "64K.zarr"))
        self.assertEqual(tree(self.folder / "1.zarr"), tree(self.folder / "1G.zarr"))

    def test_a_part_is_that_part(self):
        self.done("zarr", "copy", self.source, self.folder / "b.zarr", "--crop", "3:20,:,5")
        np.testing.assert_array_equal(self.opened(self.folder / "b.zarr")[:], self.values[3:20, :, 5:6])

    def test_a_whole_hierarchy_with_files_beside_it(self):
        group = zarr.create_group(str(self.folder / "g.zarr"), attributes={"x": 1})
        group.create_array("deep/er/array", shape=(5,), dtype="i2")[:] = [1, 2, 3, 4, 5]
        (self.folder / "g.zarr" / "deep" / "note.txt").write_text("hello", encoding="utf-8")
        for ending in ("", ".zip"):
            path = self.folder / f"h.zarr{ending}"
            self.done("zarr", "copy", self.folder / "g.zarr", path)
            copy = self.opened(path)
            self.assertEqual(dict(copy.attrs), {"x": 1})
            np.testing.assert_array_equal(copy["deep/er/array"][:], [1, 2, 3, 4, 5])
        self.assertEqual((self.folder / "h.zarr" / "deep" / "note.txt").read_text(encoding="utf-8"), "hello")
        self.done("zarr", "copy", self.folder / "h.zarr.zip", self.folder / "i.zarr", "--path", "deep/er/array")
        np.testing.assert_array_equal(self.opened(self.folder / "i.zarr")[:], [1, 2, 3, 4, 5])

    def test_scalars_and_empty_arrays(self):
        for name, shape in (("scalar", ()), ("empty", (0, 4))):
            path = self.folder / f"{name}.zarr"
            zarr.create_array(str(path), shape=shape, dtype="f8", **({"chunks": (2, 2)} if shape else {}))[...] = 3.5
            self.done("zarr", "copy", path, self.folder / f"{name}2.zarr")
            np.testing.assert_array_equal(self.opened(self.folder / f"{name}2.zarr")[...], np.full(shape, 3.5))
            self.done("zarr", "verify", self.folder / f"{name}2.zarr")

    def test_missing_chunks_are_told_and_refused_where_asked(self):
        path = self.folder / "holes.zarr"
        zarr.create_array(str(path), shape=(40, 40), chunks=(10, 10), dtype="u2", fill_value=9)[:10, :10] = 1
        result = self.done("zarr", "copy", path, self.folder / "b.zarr")
        self.assertIn("15 of 16 chunks are not stored", result.stderr)
        self.assertEqual(self.opened(self.folder / "b.zarr")[39, 39], 9)
        self.refused("", "zarr", "copy", path, self.folder / "c.zarr", "--complete", code=1)
        self.assertFalse((self.folder / "c.zarr").exists())
        self.assertIn("15 missing", self.done("zarr", "verify", path).stdout)
        self.refused("", "zarr", "verify", path, "--complete", "--quiet", code=1)
        self.assertEqual(self.report(path)["arrays"][0]["missing_chunks"], 15)

    def test_what_is_refused_leaves_nothing(self):
        out = self.folder / "out.zarr"
        for text, words in {
                "multiples of the chunks": ["--chunks", "10", "--shards", "15"], "the array has 3 dimensions": ["--chunks", "1,2"],
                "--codec": ["--codec", "zap"], "--crop": ["--crop", "1:99,:,:"], "--pyramid": ["--pyramid", "0"],
                "--ome-version": ["--format", "2", "--ome-version", "0.5"], "no shards": ["--format", "2", "--shards", "8"],
                "--scale": ["--scale", "1,2"]}.items():
            with self.subTest(text):
                self.refused(text, "zarr", "copy", self.source, out, *words)
                self.assertEqual([path.name for path in self.folder.iterdir()], ["a.zarr"])
        self.done("zarr", "copy", self.source, out)
        before = tree(out)
        self.refused("exists", "zarr", "copy", self.source, out)
        self.assertEqual(tree(out), before)
        (self.folder / "folder").mkdir()
        (self.folder / "folder" / "letter.txt").write_text("dear", encoding="utf-8")
        self.refused("", "zarr", "copy", self.source, self.folder / "folder", "--force")
        self.assertTrue((self.folder / "folder" / "letter.txt").exists())


class Damage(WithFolder):
    def test_each_damaged_chunk_is_named(self):
        path = self.folder / "b.zarr"
        self.done("zarr", "copy", self.source, path, "--chunks", "16", "--shards", "none")
        self.done("zarr", "verify", path)
        for name in ("c/0/1/2", "c/2/0/0"):
            file = path / name
            content = bytearray(file.read_bytes())
            content[100] ^= 4
            file.write_bytes(content)
        (self.folder / "b.zarr.json").unlink()
        result = run("zarr", "verify", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("c/0/1/2", result.stdout)
        self.assertIn("c/2/0/0", result.stdout)
        self.assertEqual(result.stdout.count("DAMAGED"), 2)
        self.assertIn("crc32c", result.stdout)
        quiet = run("verify", path, "--quiet")
        self.assertEqual(quiet.returncode, 1)
        self.assertNotEqual(quiet.stderr, "")
        self.assertEqual(run("info", "--verify", path).returncode, 1)
        self.assertEqual(json.loads(run("zarr", "verify", "--json", path).stdout)["files"][0]["damaged_chunks"], 2)

    def test_a_damaged_index_of_a_shard_does_not_hide_other_shards(self):
        path = self.folder / "b.zarr"
        self.done("zarr", "copy", self.source, path, "--chunks", "8", "--shards", "32")
        shards = sorted(file for file in (path / "c").rglob("*") if file.is_file())
        for file in (shards[0], shards[-1]):
            content = bytearray(file.read_bytes())
            content[-10] ^= 1
            file.write_bytes(content)
        result = run("zarr", "verify", path)
        self.assertEqual(result.returncode, 1)
        for file in (shards[0], shards[-1]):
            self.assertIn(str(file.relative_to(path)), result.stdout)

    def test_every_edit_is_found_by_the_sidecar(self):
        path = self.folder / "b.zarr"
        self.done("zarr", "copy", self.source, path, "--format", "2", "--codec", "none")
        self.assertIn("sidecar XXH3-128 verified", self.done("verify", path).stdout)
        file = next(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
        content = bytearray(file.read_bytes())
        content[7] ^= 1
        file.write_bytes(content)
        result = run("zarr", "verify", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("it is not the file that was written", result.stdout)

    def test_no_checksum_is_said(self):
        self.assertIn("no checksum", self.done("zarr", "verify", self.source).stdout)
        self.refused("no checksum", "zarr", "verify", self.source, "--require", code=1)
        self.assertEqual(self.report(self.source)["arrays"][0]["checksums"], [])

    def test_archives_are_verified_by_their_own_checksums(self):
        path = self.folder / "b.zarr.zip"
        self.done("zarr", "copy", self.source, path)
        self.assertIn("zip CRC-32", self.done("zarr", "verify", path).stdout)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        (self.folder / "b.zarr.zip.json").unlink()
        self.assertEqual(run("zarr", "verify", path).returncode, 1)
        path.write_bytes(content[:len(content) // 2])
        self.assertEqual(run("verify", path).returncode, 1)

    def test_what_is_no_zarr_is_said(self):
        (self.folder / "empty").mkdir()
        for verb in (["zarr", "info"], ["zarr", "verify"], ["info"]):
            result = run(*verb, self.folder / "empty")
            self.assertEqual(result.returncode, 1, verb)
            self.assertIn("arr", result.stdout + result.stderr)
        self.refused("no such file", "zarr", "info", self.folder / "nothing.zarr", code=2)


class Reports(WithFolder):
    def test_facts_of_an_array(self):
        facts = self.report(self.source)["arrays"][0]
        self.assertEqual(facts["shape"], [37, 70, 91])
        self.assertEqual(facts["chunks"], [16, 24, 32])
        self.assertIsNone(facts["shards"])
        self.assertEqual(facts["type"], "float32")
        self.assertEqual(facts["fill_value"], 7)
        self.assertEqual(facts["dimension_names"], ["z", "y", "x"])
        self.assertEqual(facts["chunk_count"], 27)
        self.assertEqual(facts["stored_bytes"],
                         sum(file.stat().st_size for file in (self.source / "c").rglob("*") if file.is_file()))
        sharded = self.folder / "b.zarr"
        self.done("zarr", "copy", self.source, sharded, "--chunks", "8", "--shards", "32")
        facts = self.report(sharded)["arrays"][0]
        self.assertEqual((facts["chunks"], facts["shards"]), ([8, 8, 8], [32, 32, 32]))
        self.assertEqual(facts["checksums"], ["crc32c"])

    def test_consolidated_metadata_are_believed_where_they_agree(self):
        path = self.folder / "g.zarr"
        for version in (2, 3):
            with self.subTest(version):
                shutil.rmtree(path, ignore_errors=True)
                group = zarr.create_group(str(path), zarr_format=version)
                group.create_array("one", shape=(4,), dtype="i2")
                zarr.consolidate_metadata(str(path))
                self.assertEqual(self.report(path)["warnings"], [])
                zarr.open_group(str(path), mode="a", use_consolidated=False)["one"].attrs["changed"] = 1
                zarr.open_group(str(path), mode="a", use_consolidated=False).create_array("two", shape=(4,), dtype="i2")
                # zarr-python forgets what it had consolidated when it writes the group anew.
                warnings = " ".join(self.report(path)["warnings"])
                self.assertIn("differ from", warnings)
                self.assertIn("do not name", warnings)
                self.assertEqual({array["path"] for array in self.report(path)["arrays"]}, {"one", "two"})


if __name__ == "__main__":
    suite.main()
