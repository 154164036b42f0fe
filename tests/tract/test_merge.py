"""Parts of a run (`track --seed-range`, `--part`) and `cingulum merge`: the bytes and the sidecar of the undivided run for
every getter and format, whatever the parts, and sets that are not the parts of one run refused by name."""
import itertools
import json
import pathlib
import random
import shutil
import sys
import unittest

from tracking import LONG, Folder, run, track

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.phantom = cls.folder.phantom("phantom", "--preset", "crossing", "--voxel-size", "2.5")
        cls.data = [cls.phantom / "dwi.nii.gz", "--mask", cls.phantom / "mask.nii.gz", "--bvec-frame", "fsl",
                    "--fa-threshold", "0.25", "--cache-dir", cls.folder / "cache", "--device", "cpu"]
        cls.number = itertools.count()

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def file(self, name, ending="trx"):
        return self.folder / f"{name}-{next(self.number)}.{ending}"

    def sidecar(self, path):
        return json.loads(path.with_name(path.name + ".json").read_text())

    def parts_of(self, words, ranges, ending="trx"):
        parts = []
        for first, last in ranges:
            part = self.file("part", ending)
            track(*words, "--seed-range", f"{first}:{last}", "--out", part)
            parts.append(part)
        return parts

    def check_merged(self, parts, whole, ending="trx", message=""):
        merged = self.file("merged", ending)
        run("merge", *parts, "--out", merged, "--quiet", "--progress", "none")
        if whole.is_dir():
            names = sorted(p.relative_to(whole) for p in whole.rglob("*") if p.is_file())
            self.assertEqual(sorted(p.relative_to(merged) for p in merged.rglob("*") if p.is_file()), names)
            for name in names:
                self.assertEqual((merged / name).read_bytes(), (whole / name).read_bytes(), f"{message}: {name}")
        else:
            self.assertEqual(merged.read_bytes(), whole.read_bytes(), message)
        ours, theirs = self.sidecar(merged), self.sidecar(whole)
        for facts in (ours, theirs):
            del facts["run"], facts["file"]
        self.assertEqual(list(ours), list(theirs), message)
        self.assertEqual(ours, theirs, message)
        self.assertEqual(run("verify", "--require", merged).returncode, 0)
        return merged


class Merged(Parts):
    def test_every_getter_and_format(self):
        cases = [("prob", "trx", ["--save-seeds"]), ("prob", "trk", []), ("det", "tck", []), ("ptt", "trx", ["--float16"]),
                 ("boot", "trx", ["--linearise", "0.1mm"]), ("closest", "trx", ["--deflate", "--save-seeds"]),
                 ("tensor", "trx.d", ["--float16", "--save-seeds"]), ("tensor", "tck", ["--float64"]),
                 ("prob", "trk", ["--linearise", "0.2mm", "--min-length", "20"]),
                 ("det", "trx", ["--save-seeds", "--seed-sphere", "0,0,0,12"])]
        for getter, ending, layout in cases:
            words = [*self.data, "--dg", getter, "--nseeds", 150, *layout]
            whole = self.file("whole", ending)
            track(*words, "--out", whole)
            self.assertGreater(self.sidecar(whole)["result"]["kept"], 20, getter)
            parts = self.parts_of(words, [(40, 41), (0, 40), (120, 150), (41, 120)], ending)
            self.check_merged(parts, whole, ending, f"{getter} {ending} {layout}")

    def test_any_number_of_parts_in_any_order(self):
        words = [*self.data, "--dg", "tensor", "--nseeds", 101, "--save-seeds"]
        whole = self.file("whole")
        track(*words, "--out", whole)
        order = random.Random(3)
        for count in (1, 2, 7, 64 if LONG else 13):
            parts = []
            for i in range(1, count + 1):
                part = self.file("share")
                track(*words, "--part", f"{i}/{count}", "--out", part)
                facts = self.sidecar(part)["part"]
                self.assertEqual((facts["first"], facts["last"], facts["of"]),
                                 ((i - 1) * 101 // count, i * 101 // count, 101))
                parts.append(part)
            order.shuffle(parts)
            self.check_merged(parts, whole, message=f"{count} parts")
        # More parts than seeds, and ranges without any.
        few = [*self.data, "--dg", "tensor", "--nseeds", 3]
        track(*few, "--out", whole, "--force")
        parts = []
        for i in range(1, 6):
            parts.append(self.file("share"))
            track(*few, "--part", f"{i}/5", "--out", parts[-1])
        self.check_merged([*parts, *self.parts_of(few, [(0, 0), (3, 3)])], whole)

    def test_no_streamline_at_all(self):
        words = [*self.data, "--dg", "tensor", "--nseeds", 20, "--min-length", 499]
        for ending in ("trx", "trk", "tck"):
            whole = self.file("whole", ending)
            track(*words, "--out", whole)
            self.assertEqual(self.sidecar(whole)["result"]["kept"], 0)
            self.check_merged(self.parts_of(words, [(0, 7), (7, 20)], ending), whole, ending)

    def test_other_devices_threads_and_chunks(self):
        words = [*self.data[:-2], "--dg", "prob", "--nseeds", 90]  # without --device
        whole = self.file("whole")
        track(*words, "--device", "cpu", "--out", whole)
        parts = []
        for i, other in enumerate((["--threads", 1, "--device", "cpu"], ["--device", "cpu,cpu", "--chunk-size", 3],
                                   ["--device", "cpu", "--chunk-size", 100, "--threads", 2]), 1):
            parts.append(self.file("part"))
            track(*words, *other, "--part", f"{i}/3", "--out", parts[-1])
        self.check_merged(parts, whole)

    def test_select_takes_the_first_in_the_order_of_the_seeds(self):
        rules = ["--dg", "prob", "--min-length", 30, "--max-seeds", 400]
        for select, ranges in ((40, [(0, 12), (12, 60), (60, 400)]), (1, [(0, 3), (3, 400)]),
                               (100000, [(0, 200), (200, 400)])):
            words = [*self.data, *rules, "--select", select, "--save-seeds"]
            whole = self.file("whole")
            track(*words, "--out", whole)
            self.check_merged(self.parts_of(words, ranges), whole, message=f"select {select}")
        # Every place at which a run can end, among parts of a few seeds each.
        base = [*self.data, *rules, "--select"]
        parts, seeds = [], [0, 5, 6, 20, 33, 60, 90]
        for select in range(1, 25, 1 if LONG else 4):
            words = [*base, select]
            whole = self.file("whole", "tck")
            track(*words, "--out", whole)
            parts = self.parts_of(words, list(zip(seeds, seeds[1:])), "tck")
            self.check_merged(parts, whole, "tck", f"select {select}")
        # What lies beyond the end is not needed.
        self.check_merged(parts[:3] if self.sidecar(whole)["result"]["seeds"] <= 20 else parts, whole, "tck")

    def test_a_part_is_repeated_from_its_sidecar(self):
        words = [*self.data, "--dg", "prob", "--nseeds", 50]
        part, again = self.parts_of(words, [(10, 35)])[0], self.file("again")
        track("--from", str(part) + ".json", "--out", again)
        self.assertEqual(again.read_bytes(), part.read_bytes())
        self.assertEqual(self.sidecar(again)["part"], self.sidecar(part)["part"])
        other = self.file("other")
        track("--from", str(part) + ".json", "--seed-range", "0:10", "--out", other)
        self.assertEqual(self.sidecar(other)["part"]["last"], 10)


class Refused(Parts):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.words = [*cls.data, "--dg", "tensor", "--nseeds", 60]
        cls.good = [cls.folder / f"good{i}.trx" for i in range(4)]
        for i, part in enumerate(cls.good):
            track(*cls.words, "--part", f"{i + 1}/4", "--out", part)

    def refused(self, parts, *said, out=None, code=1):
        out = out or self.file("no")
        done = run("merge", *parts, "--out", out, "--quiet", check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        for text in said:
            self.assertIn(text, done.stderr)
        self.assertFalse(out.exists(), said)
        self.assertEqual([p for p in self.folder.path.iterdir() if p.name.startswith(out.name)], [], said)

    def copy_of(self, part, name=None):
        copy = self.file("copy") if name is None else self.folder / name
        shutil.copyfile(part, copy)
        shutil.copyfile(str(part) + ".json", str(copy) + ".json")
        return copy

    def changed(self, part, change):
        copy = self.copy_of(part)
        facts = self.sidecar(copy)
        change(facts)
        copy.with_name(copy.name + ".json").write_text(json.dumps(facts))
        return copy

    def test_every_set_that_is_not_the_parts_once(self):
        refused = 0
        for size in range(1, 5):
            for chosen in itertools.combinations_with_replacement(range(4), size):
                if chosen == (0, 1, 2, 3):
                    continue
                done = run("merge", *(self.good[i] for i in chosen), "--out", self.folder / "never.trx", check=False)
                self.assertEqual(done.returncode, 1, chosen)
                expected, following = None, 0
                for i in chosen:
                    if expected is None and i != following:
                        expected = "in common" if i < following else f"the seeds {15 * following}:{15 * i} are missing"
                    following = i + 1
                self.assertIn(expected or f"the seeds {15 * following}:60 are missing", done.stderr)
                self.assertFalse((self.folder / "never.trx").exists())
                refused += 1
        self.assertEqual(refused, 4 + 10 + 20 + 34)

    def test_another_run(self):
        others = {
            "--nseeds": [*self.data, "--dg", "tensor", "--nseeds", 61], "--seed": [*self.words, "--seed", 3],
            "--step-size": [*self.words, "--step-size", 0.4], "--dg": [*self.data, "--dg", "det", "--nseeds", 60],
            "--save-seeds": [*self.words, "--save-seeds"], "--float16": [*self.words, "--float16"],
            "--min-length": [*self.words, "--min-length", 3]}
        for option, words in others.items():
            part = self.file("other")
            track(*words, "--part", "4/4", "--out", part)
            self.refused([*self.good[:3], part], part.name, "another run", f"{option} is")
        # Other data under the same options.
        phantom = self.folder.phantom("other-phantom", "--preset", "crossing", "--voxel-size", "2.5", "--seed", 9)
        part = self.file("other")
        track(phantom / "dwi.nii.gz", *self.words[1:], "--part", "4/4", "--out", part)
        self.refused([*self.good[:3], part], part.name, "its input", "dwi.nii.gz")
        # The same data under another name are the same run.
        moved = self.folder / "moved"
        shutil.copytree(self.phantom, moved)
        words = [moved / "dwi.nii.gz", "--mask", moved / "mask.nii.gz", *self.words[3:]]
        part = self.file("moved")
        track(*words, "--part", "4/4", "--out", part)
        whole = self.file("whole")
        track(*self.words, "--out", whole)
        self.check_merged([*self.good[:3], part], whole)

    def test_what_is_not_a_whole_part(self):
        whole = self.file("whole")
        track(*self.words, "--out", whole)
        self.refused([*self.good[:3], whole], whole.name, "of a whole run")
        bare = self.file("bare")
        shutil.copyfile(self.good[3], bare)
        self.refused([*self.good[:3], bare], bare.name, "has no sidecar")
        self.refused([*self.good[:3], self.folder / "absent.trx"], "absent.trx")
        partial = self.changed(self.good[3], lambda facts: facts["result"].update(partial=True))
        self.refused([*self.good[:3], partial], partial.name, "was stopped")
        version = self.changed(self.good[3], lambda facts: facts["run"].update(version="0.0.1"))
        self.refused([*self.good[:3], version], version.name, "0.0.1")
        foreign = self.changed(self.good[3], lambda facts: facts.update(made_by="cingulum convert"))
        self.refused([*self.good[:3], foreign], foreign.name, "not one of `cingulum track`")
        tck = self.file("other", "tck")
        track(*self.words, "--part", "4/4", "--out", tck)
        self.refused([*self.good[:3], tck], tck.name, "TCK")
        self.refused(self.good, "convert", out=self.file("no", "tck"), code=2)

    def test_damaged_files_and_sidecars(self):
        content = bytearray(self.good[1].read_bytes())
        place = random.Random(5)
        for _ in range(60):
            damaged = self.copy_of(self.good[1])
            flipped = bytearray(content)
            flipped[place.randrange(len(content))] ^= 1 << place.randrange(8)
            damaged.write_bytes(flipped)
            self.refused([self.good[0], damaged, *self.good[2:]], damaged.name)
            damaged.unlink()
        for size in (0, 1, 100, len(content) // 2, len(content) - 1):
            damaged = self.copy_of(self.good[1])
            damaged.write_bytes(content[:size])
            self.refused([self.good[0], damaged, *self.good[2:]], damaged.name)
        # Every member of a sidecar taken away or of another kind.
        facts = self.sidecar(self.good[1])
        for member in facts:
            if member in ("file", "bytes", "phantom", "run"):
                continue
            self.refused([self.good[0], self.changed(self.good[1], lambda f, m=member: f.pop(m)), *self.good[2:]], "copy-")
        for group in ("part", "result"):
            for member, value in facts[group].items():
                if member in ("points_written", "mean_length_mm", "median_length_mm", "smallest_length_mm",
                              "largest_length_mm"):
                    continue
                for wrong in (None, -1, "x", [], 2.5):
                    if wrong == value:
                        continue
                    part = self.changed(self.good[1], lambda f, g=group, m=member, w=wrong: f[g].update({m: w}))
                    self.refused([self.good[0], part, *self.good[2:]], part.name)
        for key, wrong in (("first", 16), ("last", 29), ("last", 61), ("of", 59)):
            part = self.changed(self.good[1], lambda f, k=key, w=wrong: f["part"].update({k: w}))
            self.refused([self.good[0], part, *self.good[2:]])

    def test_options_of_parts(self):
        for words, said in ((["--seed-range", "5"], "A:B"), (["--seed-range", "9:3"], "A:B"),
                            (["--seed-range", "0:61"], "has 60 seeds"), (["--seed-range", "-1:3"], "A:B"),
                            (["--seed-range", "1:2:3"], "A:B"), (["--part", "0/4"], "I/N"), (["--part", "5/4"], "I/N"),
                            (["--part", "1"], "I/N"), (["--part", "1/0"], "I/N"), (["--part", "a/b"], "I/N"),
                            (["--part", "1/2", "--seed-range", "0:3"], "exclude each other")):
            out = self.file("no")
            done = track(*self.words, *words, "--out", out, check=False)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(said, done.stderr)
            self.assertFalse(out.exists())
        endless = [*self.data, "--dg", "tensor", "--select", 5, "--part", "1/2", "--out", self.file("no")]
        self.assertIn("--max-seeds", track(*endless, check=False).stderr)

    def test_an_output_that_is_there_stays(self):
        out = self.file("there")
        out.write_bytes(b"mine")
        done = run("merge", *self.good, "--out", out, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(out.read_bytes(), b"mine")
        run("merge", *self.good, "--out", out, "--force", "--quiet")
        self.assertGreater(len(out.read_bytes()), 1000)


if __name__ == "__main__":
    suite.main()
