"""The study of defaults (tools/track-study): its design covers what is stated, its criterion does the arithmetic that was
worked by hand, a killed study loses one run at most and goes on, and its tables hold the numbers of the results."""
import collections
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import nibabel as nib
import numpy as np

from tracking import Folder, PROGRAM, read_lines, run, track

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tools")]
sys.dont_write_bytecode = True
import suite  # noqa: E402
from study import criterion, design, images, peers, real, results, tables  # noqa: E402
from study.program import Program, scored_run  # noqa: E402

TOOL = ROOT / "tools/track-study"


class Design(unittest.TestCase):
    def setUp(self):
        self.groups = collections.defaultdict(list)
        for condition in design.conditions():
            self.groups[condition.group].append(condition)

    def test_every_pair_of_levels_occurs_once_in_each_small_group(self):
        factors = (lambda c: c.snr, lambda c: c.voxel_mm, lambda c: (c.b_value, c.directions))
        for group in ("single", "crossing", "narrow"):
            for first, second in itertools.combinations(factors, 2):
                pairs = {(first(c), second(c)) for c in self.groups[group]}
                self.assertEqual((len(pairs), len(self.groups[group])), (16, 16), group)
            for preset, factor in itertools.product(design.GROUPS[group], factors):
                levels = [factor(c) for c in self.groups[group] if c.preset == preset]
                self.assertEqual((len(levels), len(set(levels))), (4, 4), preset)

    def test_it_spans_what_is_stated(self):
        conditions = design.conditions()
        self.assertEqual((min(c.snr for c in conditions), max(c.snr for c in conditions)), (10, 30))
        self.assertEqual((min(c.voxel_mm for c in conditions), max(c.voxel_mm for c in conditions)), (1, 2.5))
        self.assertEqual((min(c.b_value for c in conditions), max(c.b_value for c in conditions)), (1000, 3000))
        self.assertEqual({c.key for c in conditions}, {1, 2, 3, 4, 5})
        self.assertEqual({c.preset for c in conditions}, set(itertools.chain(*design.GROUPS.values())))
        for presets in self.groups.values():
            few_and_low = [c for c in presets if (c.b_value, c.directions) == (1000, 30)]
            self.assertGreaterEqual(len(few_and_low), len(presets) / 4)
        self.assertEqual(len({c.name for c in conditions}), len(conditions))

    def test_a_stage_has_conditions_of_every_group_and_the_next_has_them_too(self):
        before = set()
        for stage in design.STAGES:
            conditions = set(design.stage_conditions(stage))
            self.assertEqual({c.group for c in conditions}, set(design.GROUPS))
            self.assertLess(before, conditions)
            before = conditions

    def test_snr_of_the_coarse_stage_differs_between_groups(self):
        self.assertGreaterEqual(len({c.snr for c in design.stage_conditions("coarse")}), 3)

    def test_bundles_are_those_of_the_phantoms(self):
        with tempfile.TemporaryDirectory() as folder:
            for preset, count in design.BUNDLES.items():
                if preset == "brain":
                    continue
                run("phantom", "--preset", preset, "--voxel-size", "4", "--directions", 6, "--b-values", 1000, "--quiet",
                    "--subsamples", 1, "--truth-fibres", 1, "--out", f"{folder}/{preset}")
                self.assertEqual(len(json.loads(pathlib.Path(folder, preset, "phantom.json").read_text())["bundles"]),
                                 count, preset)

    def test_every_option_exists(self):
        text = run("track", "--help").stdout
        for getter in design.GETTERS:
            for options in (*design.ANCHORS[getter], *design.REFERENCES[getter], design.AXES[getter]):
                for option in options:
                    self.assertIn(f"  --{option} " if not set(design.FLAG) == set(design.AXES[getter].get(option, ()))
                                  else f"  --{option}", text.replace("\n", " \n"), getter)

    def test_draws_are_balanced_and_repeat(self):
        for getter in design.GETTERS:
            drawn = design.sampled(getter)
            self.assertEqual(drawn, design.sampled(getter))
            for option, levels in design.AXES[getter].items():
                counts = collections.Counter(options.get(option) for options in drawn)
                self.assertEqual(set(counts), set(levels))
                if option != "ptt-substeps":  # fewer where arcs would be too short
                    self.assertLessEqual(max(counts.values()) - min(counts.values()), 1)

    def test_arcs_of_ptt_are_not_shorter_than_those_of_its_author(self):
        candidates = design.first_candidates("ptt")
        around = [other for options in candidates for other in design.neighbours("ptt", options)]
        arcs = [float(options["step-size"]) / int(options["ptt-substeps"]) for options in candidates + around]
        self.assertAlmostEqual(min(arcs), 0.025)

    def test_limits_hold(self):
        self.assertTrue(design.is_within({"fa-threshold": "0.2"}, {"fa-threshold": 0.2}))
        self.assertFalse(design.is_within({"fa-threshold": "0.25", "max-angle": "10"}, {"fa-threshold": 0.2}))
        self.assertFalse(design.is_within({"ptt-min-radius": "2vox"}, {"ptt-min-radius": 1}))
        self.assertTrue(design.is_within({"max-angle": "60"}, {"fa-threshold": 0.2}))

    def test_anchors_lie_on_the_axes(self):
        for getter in design.GETTERS:
            for options in design.ANCHORS[getter]:
                for option, levels in design.AXES[getter].items():
                    self.assertIn(options.get(option), levels, (getter, option))
                self.assertLessEqual(set(options), set(design.AXES[getter]))

    def test_neighbours_differ_by_one_level_of_one_option(self):
        options = {"max-angle": "20", "step-size": "0.1", "fa-threshold": "0.2", "rk4": ""}
        found = {design.candidate_name(other) for other in design.neighbours("tensor", options)}
        self.assertEqual(found, {
            "--fa-threshold 0.2 --max-angle 15 --rk4 --step-size 0.1",
            "--fa-threshold 0.2 --max-angle 30 --rk4 --step-size 0.1",
            "--fa-threshold 0.2 --max-angle 20 --rk4 --step-size 0.2",
            "--fa-threshold 0.15 --max-angle 20 --rk4 --step-size 0.1",
            "--fa-threshold 0.25 --max-angle 20 --rk4 --step-size 0.1",
            "--fa-threshold 0.2 --max-angle 20 --step-size 0.1"})


# Two conditions of one group, one of another.
GROUP = {"c1": "g1", "c2": "g1", "c3": "g2"}.get


def entries(name, f1, invalid=(0, 0, 0), valid=0.5):
    return [(name, condition, {"f1": f1[i], "valid": valid, "invalid": invalid[i]})
            for i, condition in enumerate(("c1", "c2", "c3"))]


class Criterion(unittest.TestCase):
    def setUp(self):
        self.rows = entries("a", (0.8, 0.4, 0.05), (0.2, 0.4, 0.5)) + entries("b", (0.4, 0.5, 0.02))
        self.found = criterion.Comparison(self.rows, GROUP)

    def test_it_is_the_mean_of_shares_over_conditions_then_groups(self):
        # Shares of a: 0.8/0.8, 0.4/0.5, and 0.05/0.1, since the best of c3 is below 0.1. Groups: 0.9 and 0.5.
        self.assertAlmostEqual(self.found.criterion("a"), 0.7)
        # b: 0.5, 1, 0.2; groups 0.75 and 0.2.
        self.assertAlmostEqual(self.found.criterion("b"), 0.475)
        # Invalid of a: groups 0.3 and 0.5.
        self.assertAlmostEqual(self.found.measure("a", "invalid"), 0.4)
        self.assertIsNone(self.found.measure("a", "seconds"))

    def test_intervals_draw_conditions_within_groups(self):
        # g1 of a draws (1, 1), (1, 0.8) twice or (0.8, 0.8) of four; g2 has one condition: 0.75, 0.7 or 0.65.
        low, high = self.found.interval("a")
        self.assertAlmostEqual(low, 0.65)
        self.assertAlmostEqual(high, 0.75)
        # Paired: differences 0.5, -0.2 and 0.3; together between (-0.2 + 0.3) / 2 and (0.5 + 0.3) / 2.
        low, high = self.found.interval("a", "b")
        self.assertAlmostEqual(low, 0.05)
        self.assertAlmostEqual(high, 0.4)

    def test_replicates_have_the_right_frequencies(self):
        drawn = self.found._weights() @ self.found.shares["a"]
        for value, share in ((0.65, 0.25), (0.7, 0.5), (0.75, 0.25)):
            self.assertAlmostEqual(np.isclose(drawn, value).mean(), share, delta=0.05)

    def test_what_is_within_the_tie_is_chosen_by_invalid_per_valid(self):
        # c has 0.396 of 0.4 in c2 less: criterion 0.7 - 0.004 / 0.5 / 4 = 0.698, and fewer invalid; d is 0.02 behind.
        rows = self.rows + entries("c", (0.8, 0.396, 0.05), (0.1, 0.1, 0.1)) + entries("d", (0.8, 0.36, 0.05))
        found = criterion.Comparison(rows, GROUP)
        self.assertAlmostEqual(found.criterion("c"), 0.698)
        self.assertAlmostEqual(found.criterion("d"), 0.68)
        self.assertEqual(found.ranked(), ["a", "c", "d", "b"])
        self.assertEqual(found.chosen(), "c")
        self.assertEqual(found.chosen(lambda name: name != "c"), "a")
        # More invalid ones than c has, but fewer per valid one.
        found = criterion.Comparison(rows + entries("e", (0.8, 0.396, 0.05), (0.15, 0.15, 0.15), 1.0), GROUP)
        self.assertEqual(found.chosen(), "e")

    def test_who_lacks_a_condition_is_left_out_and_named(self):
        found = criterion.Comparison(self.rows + entries("e", (1, 1, 1))[:2], GROUP)
        self.assertEqual((found.names, found.incomplete), (["a", "b"], ["e"]))
        self.assertAlmostEqual(found.criterion("a"), 0.7)  # e's F1 is nobody's best

    def test_pareto_front(self):
        points = [("slow", 0.9, 9), ("quick", 0.5, 1), ("worse", 0.5, 2), ("between", 0.6, 2), ("bad", 0.4, 8)]
        self.assertEqual(criterion.pareto_front(points), ["quick", "between", "slow"])


# Stands for cingulum: phantoms and fits are empty files, a score depends on the angle. Every call is noted.
FAKE = """
import gzip, json, os, struct, sys, time
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
def write_image(path, *size):
    # One byte per voxel, all of them 1.
    count = 1
    for n in size:
        count *= n
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into(f"<{1 + len(size)}h", head, 40, len(size), *size)
    struct.pack_into("<hh", head, 70, 2, 8)
    struct.pack_into("<3f", head, 108, 352, 1, 0)
    struct.pack_into("<h", head, 254, 1)
    with gzip.open(path, "wb") as file:
        file.write(bytes(head) + bytes([1]) * count)
with open(os.environ["FAKE_CALLS"], "a") as calls:
    calls.write(words[0] + "\\n")
if words[0] == "--version":
    print(json.dumps({"version": "1", "commit": "fake"}))
elif words[0] == "phantom":
    os.makedirs(value("--out"))
    for name in ("dwi.nii.gz", "dwi.bval", "dwi.bvec"):
        gzip.open(value("--out") + "/" + name, "w").close()
    write_image(value("--out") + "/mask.nii.gz", 3, 2, 2)
    write_image(value("--out") + "/tissue.nii.gz", 3, 2, 2, 3)
elif words[0] == "fit":
    os.makedirs(value("--out"))
    for name in ("tensor", "fa", "md", "fod"):
        gzip.open(value("--out") + "/" + name + ".nii.gz", "w").close()
elif words[0] == "track":
    time.sleep(0.05)
    angle = float(value("--max-angle")) if "--max-angle" in words else 60.0
    if angle == 10:
        sys.stderr.write("too narrow\\n")
        sys.exit(1)
    open(value("--out"), "w").write(str(1 - abs(angle - 30) / 100))
    print(json.dumps({"result": {"kept": 10, "seeds": 10, "mean_length_mm": 1},
                      "run": {"device": "cpu", "seeds_tracked": 20, "tracking_seconds": 1}}))
elif words[0] == "score":
    f1 = float(open(words[1]).read())
    print(json.dumps({name: 0.25 for name in ("valid", "invalid", "no_connection", "overlap", "overreach", "bundles_found",
                                              "bundle_count", "streamline_count")} | {"f1": f1}))
"""


class Resumed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        script = self.path / "fake.py"
        script.write_text(f"#!{sys.executable} -SE\n{FAKE}")
        script.chmod(0o755)
        self.environment = {**os.environ, "CINGULUM": str(script), "FAKE_CALLS": str(self.path / "calls")}
        self.results = self.path / "results.jsonl"

    def tearDown(self):
        self.folder.cleanup()

    def command(self, *words):
        return [sys.executable, str(TOOL), "run", "--small", "--only", "tensor", "--jobs", "1", "--work", str(self.path / "w"),
                "--results", str(self.results), *words]

    def study(self, *words):
        done = subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def tracked(self):
        return (self.path / "calls").read_text().split().count("track")

    def test_a_killed_study_loses_one_run_at_most(self):
        process = subprocess.Popen(self.command(), env=self.environment, stdout=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 100
            while not self.results.exists() or self.results.read_bytes().count(b"\n") < 5:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            self.assertIsNone(process.poll(), "lines came at the end only")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        kept = [json.loads(line) for line in self.results.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        self.assertGreaterEqual(len(kept), 5)
        with open(self.results, "ab") as file:
            file.write(b'{"key": "torn')
        self.study()
        rows = [json.loads(line) for line in self.results.read_text().splitlines()]
        self.assertEqual(rows[:len(kept)], kept)
        self.assertLessEqual(self.tracked(), len(rows) + 1)
        good = [row["key"] for row in rows if "error" not in row]
        self.assertEqual(len(set(good)), len(good))
        # All stages ran, and once more nothing is left but what failed.
        self.assertEqual({row["stage"] for row in rows}, set(design.STAGES))
        failed = {row["key"] for row in rows if "error" in row}
        self.assertTrue(all("too narrow" in row["error"] for row in rows if "error" in row))
        before = self.tracked()
        self.study()
        self.assertEqual(self.tracked() - before, len(failed))
        self.assertGreater(len(failed), 0)
        # With a limit the best below it wins, and no run is above it but those to compare with.
        self.results.rename(self.path / "whole.jsonl")
        self.study("--at-most", "max-angle=20")
        limited = tables.newest(results.Results(self.results).good())
        above = {row["candidate"] for row in limited if float(row["options"].get("max-angle", 0)) > 20}
        self.assertEqual(above, {design.candidate_name(options) for options in design.ANCHORS["tensor"]})
        self.assertRegex(tables.choose(limited, {"max-angle": 20}), r'\{"max-angle", .*"20"\}\}')
        (self.path / "whole.jsonl").rename(self.results)
        # The neighbours of the best were looked at, and what fails is not chosen.
        chosen = tables.choose(tables.newest(results.Results(self.results).good()))
        self.assertRegex(chosen, r'\{"max-angle", +\{"\?", +"\?", +"-", +"\?", +"\?", +"30"\}\}')
        self.assertIn("not the whole study: 7 of 56 conditions", chosen)

    def test_minutes_end_it_and_it_goes_on(self):
        done = self.study("--minutes", "0.02")
        self.assertIn("the same command goes on from here", done.stderr)
        first = self.tracked()
        self.study()
        rows = [json.loads(line) for line in self.results.read_text().splitlines()]
        self.assertEqual(self.tracked(), len(rows))
        self.assertGreater(len(rows), first)

    def test_another_program_starts_anew(self):
        key = results.key_of("c", "prob", {"max-angle": "30"}, "1 fake a")
        self.assertNotEqual(key, results.key_of("c", "prob", {"max-angle": "30"}, "1 fake b"))
        self.assertNotEqual(key, results.key_of("c", "det", {"max-angle": "30"}, "1 fake a"))
        self.assertNotEqual(key, results.key_of("d", "prob", {"max-angle": "30"}, "1 fake a"))
        self.assertNotEqual(key, results.key_of("c", "prob", {"max-angle": "20"}, "1 fake a"))
        self.assertEqual(results.key_of("c", "prob", {"a": "1", "b": "2"}, "p"),
                         results.key_of("c", "prob", {"b": "2", "a": "1"}, "p"))

    def test_an_option_that_takes_too_long_is_not_tried_again(self):
        file = results.Results(self.results)
        file.add({"key": "slow", "error": "more than 1 s", "too_long": True})
        file.add({"key": "failed", "error": "no room"})
        again = results.Results(self.results)
        self.assertTrue(again.is_done("slow"))
        self.assertFalse(again.is_done("failed"))
        self.assertEqual(again.good(), [])

    def test_a_reader_leaves_a_line_that_is_being_written(self):
        self.results.write_bytes(b'{"key": "a", "f1": 1}\n{"key": "b"')
        self.assertEqual(list(results.Results(self.results).rows), ["a"])
        self.assertTrue(self.results.read_bytes().endswith(b'{"key": "b"'))


class Tables(unittest.TestCase):
    def rows(self):
        """Two candidates and the defaults of prob in two conditions, a peer, a real series."""
        found = []
        scores = {"defaults": (0.4, 0.1), "--max-angle 20": (0.8, 0.2), "--max-angle 30": (0.6, 0.2)}
        for name, f1 in scores.items():
            options = {} if name == "defaults" else {"max-angle": name.split()[1]}
            for i, (condition, group) in enumerate((("c1", "single"), ("c2", "brain"))):
                found.append({"key": f"{name} {condition}", "stage": "final", "getter": "prob", "condition": condition,
                              "group": group, "candidate": name, "options": options, "program": "p", "f1": f1[i],
                              "valid": 0.5, "invalid": 0.125, "bundles_found": 1.0, "seconds_per_1000": 2.0 + i})
        for name, f1 in (("ours, chosen", 0.5), ("DIPY prob", 0.4)):
            found.append({**found[0], "key": name, "stage": "peers", "candidate": name, "f1": f1})
        found.append({"key": "r", "stage": "real", "getter": "MRtrix3 iFOD2", "condition": "real x", "group": "real",
                      "candidate": "defaults", "options": {}, "program": "p", "kept": 10, "mean_length_mm": 40.0,
                      "long_share": 0.75, "borders": {name: {
                          "both_ends_share": 0.375 + i, "one_end_share": 0.875 + i, "white_voxels": 99, "chance": 0.625}
                          for i, name in enumerate(("otsu", "fa 0.2"))}})
        return found

    def test_markdown(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.jsonl"
            older = {**self.rows()[2], "key": "old", "program": "older", "f1": 1.0}
            path.write_text("".join(json.dumps(row) + "\n" for row in [older, *self.rows()]))
            text = subprocess.run([sys.executable, str(TOOL), "table", str(path)], capture_output=True, text=True,
                                  check=True).stdout
            chosen = subprocess.run([sys.executable, str(TOOL), "choose", str(path)], capture_output=True, text=True,
                                    check=True).stdout
        # 0.4/0.8 and 0.1/0.2; 0.6/0.8 and 1.
        self.assertIn("| **chosen** `--max-angle 20` | 1.000 (1.000 to 1.000) |  | 0.500 | 0.500 | 0.125 | 2.50 | ", text)
        self.assertIn("| `--max-angle 30` | 0.875 (0.875 to 0.875) | -0.125 (-0.125 to -0.125) | 0.400 |", text)
        self.assertIn("| `defaults` | 0.500 (0.500 to 0.500) | -0.500 (-0.500 to -0.500) | 0.250 |", text)
        self.assertIn("| prob chosen | 1.000", text)
        self.assertIn("| DIPY prob | 0.800 (0.800 to 0.800) | 0.400 |", text)
        self.assertIn("| MRtrix3 iFOD2 | `defaults` | 10 | 40.0 | 0.750 | 0.375 | 0.875 | 1.375 | 1.875 |", text)
        self.assertRegex(chosen, r'\{"max-angle", +\{"\?", +"20", +"-", +"\?", +"\?", +"\?"\}\}')

    def test_a_file_that_is_not_there_is_named(self):
        done = subprocess.run([sys.executable, str(TOOL), "table", "nowhere.jsonl"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("nowhere.jsonl: no such file", done.stderr)


class Border(unittest.TestCase):
    def setUp(self):
        """A block of 12 x 8 x 8 white voxels, a hole of low FA in it, fluid at its upper face in z, a speck beside it."""
        shape = (20, 16, 16)
        self.fa, self.md = np.full(shape, 0.02), np.full(shape, 0.8e-3)
        self.fa[4:16, 4:12, 4:12] = 0.6
        self.fa[9, 8, 8] = 0.0
        self.md[:, :, 12:] = 3e-3
        self.mask = np.ones(shape)
        self.white, self.border = real.white_matter(self.fa, self.md, self.mask)

    def test_white_matter_has_no_holes_and_its_border_is_one_voxel_wide_on_both_sides(self):
        self.assertTrue(self.white[9, 8, 8])
        self.assertFalse(self.border[9, 8, 8])
        # Otsu's threshold lies between the means just outside of a face (9 of 27 voxels hold 0.6) and just inside (18).
        row = self.white[:, 8, 8]
        self.assertEqual((row.argmax(), len(row) - row[::-1].argmax()), (4, 16))
        self.assertEqual(list(np.flatnonzero(self.border[:, 8, 8])), [3, 4, 15, 16])

    def test_fluid_is_no_border(self):
        # White ends at 11, fluid begins at 12.
        self.assertTrue(self.white[9, 8, 11])
        self.assertFalse(self.border[9, 8, 11])
        self.assertFalse(self.border[9, 8, 12])

    def test_the_threshold_is_that_of_otsu(self):
        """By its definition, on values of two heaps, over every split."""
        values = np.concatenate([np.linspace(0.1, 0.3, 40), np.linspace(0.6, 0.7, 10)])
        between = [(values <= t).mean() * (values > t).mean() * (values[values > t].mean() - values[values <= t].mean()) ** 2
                   for t in values[:-1]]
        best = values[int(np.argmax(between))]
        self.assertEqual((values > real.otsu(values)).sum(), (values > best).sum())

    def test_a_piece_apart_is_not_white(self):
        fa = self.fa.copy()
        fa[0:2, 0:2, 0:2] = 0.9
        white, _ = real.white_matter(fa, self.md, self.mask)
        self.assertTrue(np.array_equal(white, self.white))

    def test_ends_of_long_streamlines_are_counted(self):
        affine = np.diag([2.0, 2.0, 2.0, 1.0])
        affine[:3, 3] = (10, 20, 30)

        def line(*voxels):
            return np.array(voxels, dtype=float) @ affine[:3, :3].T + affine[:3, 3]

        lines = [line((3.4, 8, 8), (9, 8, 8), (16.4, 8, 8)),   # both ends: 26 mm
                 line((3, 8, 8), (13, 8, 8)),                  # one: 20 mm
                 line((5, 5, 8), (14, 10, 8)),                 # none: 20.6 mm
                 line((-3, 8, 8), (16, 8, 8)),                 # one end out of the image
                 line((3, 8, 8), (6, 8, 8))]                   # 6 mm: not counted
        begins = np.concatenate([[0], np.cumsum([len(points) for points in lines])])
        found = real.measure_ends(np.concatenate(lines), begins, affine,
                                  {"block": (self.white, self.border), "none": (self.white, self.border & False)})
        self.assertEqual((found["kept"], found["long_share"]), (5, 0.8))
        block, none = found["borders"]["block"], found["borders"]["none"]
        self.assertEqual((block["both_ends_share"], block["one_end_share"]), (0.25, 0.75))
        self.assertEqual((none["both_ends_share"], none["one_end_share"], none["chance"]), (0, 0, 0))

    def test_a_given_threshold_moves_the_border(self):
        # 0.2 is passed one voxel beyond the face of the block, where 9 of 27 voxels hold 0.6.
        white, border = real.white_matter(self.fa, self.md, self.mask, 0.2)
        self.assertEqual(list(np.flatnonzero(border[:, 8, 8])), [2, 3, 16, 17])
        self.assertTrue(white[3, 8, 8])


class OnPhantom(unittest.TestCase):
    """With the real program, on the smallest phantom."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.program = Program(PROGRAM)
        cls.condition = design.Condition("straight", 30, 2.5, 1000, 30, 1)
        cls.data = cls.program.folder_of(cls.condition, cls.folder.path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def test_a_row_holds_the_score_of_such_a_run(self):
        """The same by hand: fit, track and score as one types them."""
        row = scored_run(self.program, self.condition, "tensor", {"max-angle": "30", "rk4": ""}, self.folder.path,
                         self.folder.path)
        truth, out = self.data / "truth", self.folder / "by-hand.trx"
        run("fit", truth / "dwi.nii.gz", "--bvals", truth / "dwi.bval", "--bvecs", truth / "dwi.bvec", "--mask",
            self.data / "mask.nii.gz", "--model", "dti", "--out", self.folder / "dti", "--quiet")
        track("--tensor", self.folder / "dti/tensor.nii.gz", "--mask", self.data / "mask.nii.gz", "--stop-map",
              self.folder / "dti/fa.nii.gz", "--dg", "tensor", "--max-angle", 30, "--rk4", "--select", 100, "--seed", 1,
              "--max-seeds", 5000, "--out", out)
        score = json.loads(run("score", out, "--truth", truth, "--json", "--quiet").stdout)
        self.assertEqual(row["kept"], 100)
        self.assertGreater(row["f1"], 0.3)
        for name in ("f1", "valid", "invalid"):
            self.assertEqual(row[name], score[name])

    def test_every_getter_tracks_what_was_fitted(self):
        for getter in design.GETTERS:
            row = scored_run(self.program, self.condition, getter, design.ANCHORS[getter][-1], self.folder.path,
                             self.folder.path)
            self.assertGreater(row["valid"], 0.1, getter)
            self.assertGreater(row["seconds_per_1000"], 0, getter)

    def test_the_mask_of_a_small_preset_reaches_a_rim_beyond_its_bundles(self):
        tissue = np.asarray(nib.load(self.data / "truth/tissue.nii.gz").dataobj)[..., 0] > 0
        mask = np.asarray(nib.load(self.data / "mask.nii.gz").dataobj) > 0
        places, white = np.argwhere(mask), np.argwhere(tissue)
        # 4 mm are two voxels of 2.5 mm, counted along faces.
        steps = np.array([np.abs(white - place).sum(axis=1).min() for place in places])
        self.assertEqual(steps.max(), 2)
        whole = np.asarray(nib.load(self.data / "truth/mask.nii.gz").dataobj) > 0
        self.assertTrue(np.array_equal(mask & whole, mask))
        self.assertLess(mask.sum(), whole.sum() / 5)
        self.assertTrue(mask[tissue & whole].all())

    def test_images_and_streamlines_are_read_as_nibabel_and_trx_python_read_them(self):
        for name in ("truth/dwi.nii.gz", "fa.nii", "mask.nii.gz"):
            values, affine = images.read_image(self.data / name)
            image = nib.load(self.data / name)
            self.assertTrue(np.array_equal(values, np.asarray(image.dataobj, dtype=np.float32)), name)
            self.assertTrue(np.allclose(affine, image.affine))
        for ending in ("trx", "tck"):
            out = self.folder / f"read.{ending}"
            track("--tensor", self.data / "tensor.nii", "--mask", self.data / "mask.nii.gz", "--dg", "tensor", "--nseeds", 400,
                  "--out", out)
            points, begins = images.read_streamlines(out)
            lines = read_lines(out)
            self.assertEqual(len(begins) - 1, len(lines))
            self.assertGreater(len(lines), 10)
            for i, line in enumerate(lines):
                self.assertTrue(np.array_equal(points[begins[i]:begins[i + 1]].astype(np.float32), line))
            mm = [np.linalg.norm(np.diff(line.astype(float), axis=0), axis=1).sum() for line in lines]
            self.assertTrue(np.allclose(images.lengths(points, begins), mm, atol=1e-4))

    def test_the_threshold_for_peers_is_that_of_the_program(self):
        out = self.folder / "typed.trx"
        track("--tensor", self.data / "tensor.nii", "--mask", self.data / "mask.nii.gz", "--dg", "tensor", "--nseeds", 10,
              "--out", out)
        stated = json.loads(pathlib.Path(f"{out}.json").read_text())["arguments"]["options"]["fa-threshold"]
        self.assertEqual(float(peers.threshold_of({}, self.program, "tensor")), float(stated))
        self.assertEqual(peers.threshold_of({"fa-threshold": "0.3"}, self.program, "tensor"), "0.3")


if __name__ == "__main__":
    suite.main()
