"""`cingulum track` as a whole: the same bytes whatever threads and chunks, repeats from sidecars, seeds, regions,
selection, end reasons, formats, interruption. Streamlines are read by trx-python and nibabel."""
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
import zipfile

import nibabel as nib
import numpy as np

from tracking import LONG, PROGRAM, Folder, lengths, read_lines, read_trx, run, track, track_json, write_image, write_rows


class WithPhantom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.phantom = cls.folder.phantom("phantom", "--preset", "crossing", "--voxel-size", "2.5")
        cls.data = [cls.phantom / "dwi.nii.gz", "--mask", cls.phantom / "mask.nii.gz", "--bvec-frame", "fsl",
                    "--fa-threshold", "0.25"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()


class Reproducibility(WithPhantom):
    def test_bytes_do_not_depend_on_threads_or_chunks(self):
        for getter, seeds in (("prob", 1500), ("boot", 400), ("ptt", 100), ("det", 400), ("closest", 400),
                              ("tensor", 400)):
            words = [*self.data, "--dg", getter, "--nseeds", seeds, "--save-seeds"]
            first = self.folder / f"{getter}.trx"
            track(*words, "--out", first, "--threads", 1, "--chunk-size", 100000)
            content = first.read_bytes()
            self.assertGreater(len(content), 2000)
            for threads, chunk in ((2, 100000), (8, 100), (2, 37), (1, 1 if seeds <= 400 else 17)):
                other = self.folder / f"{getter}-{threads}-{chunk}.trx"
                track(*words, "--out", other, "--threads", threads, "--chunk-size", chunk)
                self.assertEqual(other.read_bytes(), content, f"{getter}, {threads} threads, chunks of {chunk}")
                ours = json.loads((self.folder / (other.name + ".json")).read_text())
                theirs = json.loads((self.folder / (first.name + ".json")).read_text())
                for facts in (ours, theirs):
                    del facts["run"], facts["file"]
                self.assertEqual(ours, theirs, getter)

    def test_devices_share_the_seeds_of_a_run_and_the_file_stays(self):
        words = [*self.data, "--dg", "prob", "--nseeds", 900, "--save-seeds"]
        alone, shared = self.folder / "alone.trx", self.folder / "shared.trx"
        track(*words, "--out", alone, "--device", "cpu")
        track(*words, "--out", shared, "--device", "cpu,cpu,cpu", "--chunk-size", 40)
        self.assertEqual(shared.read_bytes(), alone.read_bytes())
        facts = json.loads((self.folder / "shared.trx.json").read_text())["run"]
        self.assertEqual(facts["device"], "cpu,cpu,cpu")
        self.assertEqual(len(facts["seeds_of_devices"]), 3)
        self.assertEqual(sum(facts["seeds_of_devices"]), 900)

    def test_bench_compares_devices_and_mixes(self):
        out = self.folder / "bench.json"
        done = run("bench", "track", "--dwi", self.phantom / "dwi.nii.gz", "--mask", self.phantom / "mask.nii.gz",
                   "--devices", "cpu,cpu+cpu", "--only", "tensor", "--nseeds", 200, "--check-seeds", 40,
                   "--repetitions", 1, "--folder", self.folder.path, "--disk", self.folder.path, "--out", out,
                   "--progress", "none")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(out.read_text())
        rows = report["rows"]
        self.assertEqual([row["device"] for row in rows], ["cpu", "cpu,cpu"])
        for row in rows:
            self.assertTrue(row["equal_to_cpu"])
            self.assertTrue(row["same_file_as_first_device"])
            for name in ("M_points_per_s", "file_seconds", "disk_seconds", "disk_copy_seconds", "file_bytes",
                         "field_bytes", "mean_length_mm", "median_length_mm", "host_peak_bytes"):
                self.assertGreater(row[name], 0, name)
        self.assertEqual(rows[0]["streamlines"], rows[1]["streamlines"])
        self.assertEqual(list(self.folder.path.glob("cingulum-bench*")), [])
        # The command as it is typed: what it keeps is what the command in the row keeps.
        typed = report["typed"]
        self.assertEqual([(row["scenario"], row["device"]) for row in typed],
                         [("typed tensor", "cpu"), ("typed tensor", "cpu,cpu")])
        words = typed[0]["command"].split()
        self.assertEqual((words[:2], words[-2:]), (["cingulum", "track"], ["--out", "tracks.trx"]))
        again = track_json(*words[2:-2], "--out", self.folder / "typed.trx")
        for row in typed:
            self.assertEqual((row["kept"], row["points"]), (again["result"]["kept"], again["result"]["points"]))
            self.assertEqual(row["seconds"], min(row["seconds_each"]))
            self.assertGreater(row["seconds"], row["tracking_seconds"])
            self.assertGreater(row["processor_seconds"], 0)
        self.assertIn("typed tensor", done.stdout.splitlines()[0])

    def test_bench_tracks_harmonics_from_a_file(self):
        fit = self.folder / "fit"
        run("fit", "--model", "csd", self.phantom / "dwi.nii.gz", "--bvals", self.phantom / "dwi.bval", "--bvecs",
            self.phantom / "dwi.bvec", "--mask", self.phantom / "mask.nii.gz", "--out", fit, "--quiet")
        out = self.folder / "bench-sh.json"
        run("bench", "track", "--sh", fit / "fod.nii.gz", "--mask", self.phantom / "mask.nii.gz", "--devices", "cpu",
            "--only", "SH", "--nseeds", 60, "--check-seeds", 20, "--repetitions", 1, "--folder", self.folder.path,
            "--out", out, "--progress", "none")
        rows = json.loads(out.read_text())["rows"]
        self.assertEqual([row["scenario"].split()[0] for row in rows], ["prob", "det", "closest"])
        self.assertTrue(all(row["streamlines"] > 0 for row in rows))
        both = run("bench", "track", "--sh", fit / "fod.nii.gz", "--dwi", self.phantom / "dwi.nii.gz", check=False)
        self.assertNotEqual(both.returncode, 0)
        self.assertIn("both given", both.stderr)

    def test_a_peer_that_takes_too_long_is_left_out(self):
        out = self.folder / "bench-limit.json"
        done = run("bench", "track", "--dwi", self.phantom / "dwi.nii.gz", "--mask", self.phantom / "mask.nii.gz",
                   "--devices", "cpu", "--only", "DIPY prob", "--nseeds", 20, "--folder", self.folder.path, "--peers",
                   "--peer-limit", 0.05, "--python", sys.executable, "--out", out, "--progress", "none")
        report = json.loads(out.read_text())
        self.assertEqual((report["peers"], report["rows"], report["typed"]), ({}, [], []))
        self.assertIn("no row of DIPY prob on SF: it took more than 0.05 s", done.stderr)

    def test_bench_runs_peers_on_the_same_seeds(self):
        out = self.folder / "bench-peers.json"
        run("bench", "track", "--dwi", self.phantom / "dwi.nii.gz", "--mask", self.phantom / "mask.nii.gz", "--devices",
            "cpu", "--only", "prob on SF", "--nseeds", 300, "--check-seeds", 20, "--repetitions", 1, "--folder",
            self.folder.path, "--peers", "--peer-seeds", 150, "--python", sys.executable, "--out", out, "--progress",
            "none")
        report = json.loads(out.read_text())
        self.assertEqual(list(report["peers"]), ["DIPY prob on SF"])
        peer = report["peers"]["DIPY prob on SF"]
        self.assertEqual(peer["seeds"], 150)
        self.assertGreater(peer["kept"], 30)
        # The same function and rules: streamlines are of a length.
        self.assertLess(abs(peer["mean_length_mm"] / report["rows"][0]["mean_length_mm"] - 1), 0.3)

    def test_trk_and_tck_of_several_chunks_hold_every_chunk_once(self):
        words = [*self.data, "--dg", "prob", "--nseeds", 500]
        track(*words, "--out", self.folder / "all.trx", "--chunk-size", 500)
        expected = read_lines(self.folder / "all.trx")
        for ending, tolerance in (("trk", 2e-5), ("tck", 0)):
            out = self.folder / f"chunks.{ending}"
            track(*words, "--out", out, "--chunk-size", 60)
            lines = read_lines(out)
            self.assertEqual([len(line) for line in lines], [len(line) for line in expected])
            difference = max(np.abs(a.astype(float) - b).max() for a, b in zip(lines, expected))
            self.assertLessEqual(difference, tolerance)

    def test_a_sidecar_repeats_the_run_to_the_bit(self):
        out = self.folder / "original.trx"
        region = write_image(self.folder / "ball.nii.gz", np.ones((4, 4, 4)),
                             np.array([[5., 0, 0, -10], [0, 5, 0, -10], [0, 0, 5, -10], [0, 0, 0, 1]]))
        track(*self.data, "--dg", "prob", "--nseeds", 600, "--seed", "0xfeedbeef01", "--include", region, "--exclude",
              "100,100,100,3", "--step-size", "0.7", "--max-angle", "33.3", "--min-length", "9.75", "--out", out)
        again = self.folder / "again.trx"
        track("--from", str(out) + ".json", "--out", again, "--threads", 2)
        self.assertEqual(again.read_bytes(), out.read_bytes())
        first = json.loads((self.folder / "original.trx.json").read_text())
        second = json.loads((self.folder / "again.trx.json").read_text())
        self.assertEqual((first.pop("file"), second.pop("file")), ("original.trx", "again.trx"))
        del first["run"], second["run"]
        self.assertEqual(first, second)
        self.assertIn(str(region), [entry["path"] for entry in first["inputs"]])
        # An option beside it takes precedence.
        track("--from", str(out) + ".json", "--out", self.folder / "other.trx", "--seed", 1)
        self.assertNotEqual((self.folder / "other.trx").read_bytes(), out.read_bytes())

    def test_a_repeat_with_a_changed_or_missing_input_is_refused(self):
        copy = self.folder / "copied.nii.gz"
        shutil.copy(self.phantom / "mask.nii.gz", copy)
        out = self.folder / "with-copy.trx"
        track(*self.data, "--nseeds", 50, "--seed-mask", copy, "--out", out)
        mask = nib.load(copy)
        values = np.asanyarray(mask.dataobj).copy()
        values[values.shape[0] // 2] = 0
        nib.save(nib.Nifti1Image(values, mask.affine), copy)
        done = track("--from", str(out) + ".json", "--out", self.folder / "not.trx", check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("has changed", done.stderr)
        copy.unlink()
        done = track("--from", str(out) + ".json", "--out", self.folder / "not.trx", check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("not there", done.stderr)
        done = track("--from", self.phantom / "phantom.json", "--out", self.folder / "not.trx", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not a sidecar", done.stderr)

    def test_files_found_beside_the_series_are_inputs_too(self):
        series = self.folder / "own.nii.gz"
        shutil.copy(self.phantom / "dwi.nii.gz", series)
        for ending in ("bval", "bvec"):
            shutil.copy(self.phantom / f"dwi.{ending}", self.folder / f"own.{ending}")
        out = self.folder / "own.trx"
        track(series, *self.data[1:], "--nseeds", 20, "--out", out)
        options = {entry["option"] for entry in json.loads((self.folder / "own.trx.json").read_text())["inputs"]}
        self.assertEqual(options, {"data", "bvals", "bvecs", "mask"})
        text = (self.folder / "own.bvec").read_text()
        (self.folder / "own.bvec").write_text(text.replace("1", "2", 1))
        done = track("--from", str(out) + ".json", "--out", self.folder / "not.trx", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("own.bvec has changed", done.stderr)

    def test_the_key_changes_streamlines_and_the_seeds_key_their_places(self):
        words = [*self.data, "--dg", "prob", "--nseeds", 50, "--save-seeds"]
        results = {}
        for name, more in (("a", []), ("b", ["--seed", 7]), ("c", ["--seed", 7, "--seed-seed", 0])):
            track(*words, *more, "--out", self.folder / f"key-{name}.trx")
            results[name] = read_trx(self.folder / f"key-{name}.trx")
        places = {name: {int(index): tuple(place) for index, place in zip(data["seed_index"].ravel(), data["seed_point"])}
                  for name, (_, data) in results.items()}
        self.assertFalse(set(places["a"].values()) & set(places["b"].values()))
        # Same places, other streamlines; a seed whose streamline is too short under one key is not in that file.
        both = places["a"].keys() & places["c"].keys()
        self.assertGreater(len(both), 35)
        self.assertEqual({index: places["c"][index] for index in both}, {index: places["a"][index] for index in both})
        same = sum(any(np.array_equal(x, y) for y in results["a"][0]) for x in results["c"][0])
        self.assertLess(same, len(results["c"][0]) / 2)


class FromFits(WithPhantom):
    def test_tracking_a_series_is_tracking_its_fit(self):
        words = [self.phantom / "dwi.nii.gz", "--bvals", self.phantom / "dwi.bval", "--bvecs", self.phantom / "dwi.bvec",
                 "--bvec-frame", "fsl", "--mask", self.phantom / "mask.nii.gz", "--frame", "image", "--quiet"]
        run("fit", *words, "--model", "csd", "--sh-basis", "descoteaux07-legacy", "--out", self.folder / "csd")
        run("fit", *words, "--model", "dti", "--out", self.folder / "dti")
        stop = ["--mask", self.phantom / "mask.nii.gz", "--stop-map", self.folder / "dti" / "fa.nii.gz",
                "--stop-threshold", "0.25"]
        for getter, field in (("det", ["--sh", self.folder / "csd" / "fod.nii.gz"]),
                              ("prob", ["--sh", self.folder / "csd" / "fod.nii.gz"]),
                              ("ptt", ["--sh", self.folder / "csd" / "fod.nii.gz"]),
                              ("tensor", ["--tensor", self.folder / "dti" / "tensor.nii.gz"])):
            rest = ["--dg", getter, "--nseeds", 60 if getter == "ptt" else 300]
            track(*self.data, *rest, "--out", self.folder / f"series-{getter}.trx")
            track(*field, *stop, *rest, "--out", self.folder / f"fit-{getter}.trx")
            self.assertGreater(len(read_lines(self.folder / f"fit-{getter}.trx")), 20)
            self.assertEqual((self.folder / f"series-{getter}.trx").read_bytes(),
                             (self.folder / f"fit-{getter}.trx").read_bytes(), getter)


class SelectionAndSeeds(WithPhantom):
    def test_select_gives_the_first_streamlines_that_pass(self):
        rules = ["--dg", "prob", "--min-length", 20, "--include", "0,0,0,8", "--save-seeds"]
        track(*self.data, *rules, "--nseeds", 3000, "--out", self.folder / "many.trx")
        expected, data = read_trx(self.folder / "many.trx")
        self.assertGreater(len(expected), 150)
        contents = set()
        for threads, chunk in ((1, 1000), (2, 64), (8, 25000)):
            out = self.folder / f"select-{threads}.trx"
            track(*self.data, *rules, "--select", 150, "--out", out, "--threads", threads, "--chunk-size", chunk)
            lines, mine = read_trx(out)
            self.assertEqual(len(lines), 150)
            for a, b in zip(lines, expected):
                self.assertTrue(np.array_equal(a, b))
            self.assertTrue(np.array_equal(mine["seed_index"].ravel(), data["seed_index"].ravel()[:150]))
            contents.add(out.read_bytes())
        self.assertEqual(len(contents), 1)

    def test_select_that_cannot_be_reached_says_so(self):
        done = run("track", *self.data, "--dg", "prob", "--select", 5, "--max-seeds", 300, "--min-length", 400,
                   "--out", self.folder / "few.trx", "--progress", "none", "--json")
        self.assertIn("--max-seeds", done.stderr)
        result = json.loads(done.stdout)["result"]
        self.assertFalse(result["select_reached"])
        self.assertEqual(result["seeds"], 300)
        self.assertEqual(result["kept"], 0)
        self.assertEqual(len(read_lines(self.folder / "few.trx")), 0)

    def test_lengths_are_kept_between_the_limits_in_mm(self):
        words = [*self.data, "--dg", "det", "--max-angle", 60, "--max-directions", 32, "--nseeds", 400]
        track(*words, "--min-length", 0, "--out", self.folder / "any.trx")
        everything = read_lines(self.folder / "any.trx")
        measured = lengths(everything)
        self.assertEqual(np.sum(np.abs(measured - 15) < 0.01), 0)  # nothing is on the limit, where rounding would decide
        track(*words, "--min-length", 15, "--out", self.folder / "long.trx")
        self.assertEqual([line.tobytes() for line in read_lines(self.folder / "long.trx")],
                         [line.tobytes() for line, length in zip(everything, measured) if length > 15])
        # A half that reaches the maximum ends there, so that among the kept are parts of longer ones.
        track(*words, "--min-length", 15, "--max-length", 40, "--out", self.folder / "between.trx")
        between = read_lines(self.folder / "between.trx")
        self.assertGreaterEqual(lengths(between).min(), 15 - 0.002)
        self.assertLessEqual(lengths(between).max(), 40 + 0.002)
        wanted = {line.tobytes() for line, length in zip(everything, measured) if 15 < length < 40 - 0.01}
        self.assertGreater(len(wanted), 10)
        self.assertLessEqual(wanted, {line.tobytes() for line in between})
        self.assertLess(len(between), np.sum(measured > 15))

    def test_seeds_per_voxel_and_grids_fill_every_voxel(self):
        mask = nib.load(self.phantom / "mask.nii.gz")
        few = np.zeros(mask.shape, dtype=np.uint8)
        few[15:17, 15:17, 12] = 1
        nib.save(nib.Nifti1Image(few, mask.affine), self.folder / "few.nii.gz")
        inverse = np.linalg.inv(mask.affine)
        third = 1 / 3
        for words, each, grid in ((["--seeds-per-voxel", 3], 3, None),
                                  (["--seed-grid", "2x3x1"], 6, ((-0.25, 0.25), (-third, 0, third), (0,))),
                                  (["--seed-grid", 2], 8, ((-0.25, 0.25),) * 3)):
            result = track_json(*self.data, "--dg", "det", "--seed-mask", self.folder / "few.nii.gz", *words,
                                "--save-seeds", "--min-length", 0, "--out", self.folder / "voxels.trx", "--force")
            self.assertEqual(result["result"]["seeds"], 4 * each)
            _, data = read_trx(self.folder / "voxels.trx")
            # Two fibres cross there: a seed has a streamline or two.
            indices, first = np.unique(data["seed_index"].ravel(), return_index=True)
            self.assertEqual(indices.tolist(), list(range(4 * each)))
            places = data["seed_point"][first] @ inverse[:3, :3].T + inverse[:3, 3]
            voxels = np.floor(places + 0.5).astype(int)
            found, counts = np.unique(voxels, axis=0, return_counts=True)
            self.assertEqual(found.tolist(), [[15, 15, 12], [15, 16, 12], [16, 15, 12], [16, 16, 12]])
            self.assertEqual(counts.tolist(), [each] * 4)
            for voxel in found if grid else ():
                inside = (places - voxels)[(voxels == voxel).all(axis=1)]
                np.testing.assert_allclose(sorted(inside.round(4).tolist()),
                                           sorted(map(list, itertools.product(*grid))), atol=1e-3)

    def test_seeds_of_a_sphere(self):
        words = [*self.data, "--dg", "prob", "--seed-sphere", "-4,3,2,9", "--save-seeds", "--min-length", 0]
        whole = track_json(*words, "--nseeds", 400, "--out", self.folder / "ball.trx")
        _, data = read_trx(self.folder / "ball.trx")
        offsets = np.unique(data["seed_point"], axis=0) - np.array([-4, 3, 2])
        distances = np.linalg.norm(offsets, axis=1)
        self.assertGreater(len(distances), 150)
        self.assertLess(distances.max(), 9.0001)
        self.assertGreater(distances.max(), 8)
        self.assertEqual(whole["arguments"]["options"]["seed-sphere"], "-4,3,2,9")
        self.assertEqual(whole["result"]["seeds"], 400)
        # Chunks, threads and a repetition from the sidecar write the same file.
        for more in (["--chunk-size", 7, "--threads", 2], ["--chunk-size", 400, "--threads", 1]):
            track(*words, "--nseeds", 400, *more, "--out", self.folder / "ball2.trx", "--force")
            self.assertEqual((self.folder / "ball2.trx").read_bytes(), (self.folder / "ball.trx").read_bytes())
        track("--from", self.folder / "ball.trx.json", "--out", self.folder / "ball3.trx")
        self.assertEqual((self.folder / "ball3.trx").read_bytes(), (self.folder / "ball.trx").read_bytes())
        # The first seeds of the same ball without end.
        few = track_json(*words, "--select", 30, "--out", self.folder / "ball4.trx")
        _, selected = read_trx(self.folder / "ball4.trx")
        self.assertEqual(few["result"]["kept"], 30)
        np.testing.assert_array_equal(selected["seed_point"], data["seed_point"][:30])
        # Partly outside of the image: what is there is tracked, the rest counted.
        affine = nib.load(self.phantom / "mask.nii.gz").affine
        corner = ",".join(map(str, affine[:3, 3].tolist())) + ",30"
        partly = track_json(*self.data, "--dg", "prob", f"--seed-sphere={corner}", "--nseeds", 400, "--out",
                            self.folder / "ball5.trx")
        self.assertGreater(partly["result"]["seeds_outside"], 200)
        self.assertEqual(partly["result"]["seeds"], 400)

    def test_listed_seeds_and_directions_are_where_the_user_put_them(self):
        affine = nib.load(self.phantom / "mask.nii.gz").affine
        voxels = np.array([[16.25, 15.5, 12.0], [14.0, 16.0, 11.75]])
        world = voxels @ affine[:3, :3].T + affine[:3, 3]
        write_rows(self.folder / "voxel.txt", voxels)
        write_rows(self.folder / "world.txt", world)
        write_rows(self.folder / "directions.txt", [[1, 1, 0], [1, -1, 0]])
        track(*self.data, "--dg", "det", "--seed-file", self.folder / "world.txt", "--directions",
              self.folder / "directions.txt", "--save-seeds", "--out", self.folder / "listed.trx")
        lines, data = read_trx(self.folder / "listed.trx")
        self.assertEqual(list(data["seed_index"].ravel()), [0, 1])  # one direction each
        np.testing.assert_allclose(data["seed_point"], world, atol=1e-4)
        for line, along in zip(lines, ([0.7071, 0.7071, 0], [0.7071, -0.7071, 0])):
            span = line[-1] - line[0]
            self.assertGreater(abs(span @ along), 0.95 * np.linalg.norm(span))
        track(*self.data, "--dg", "det", "--seed-file", self.folder / "voxel.txt", "--seed-space", "voxel",
              "--directions", self.folder / "directions.txt", "--save-seeds", "--out", self.folder / "listed2.trx")
        again, _ = read_trx(self.folder / "listed2.trx")
        self.assertEqual(len(again), 2)
        for one, other in zip(again, lines):
            np.testing.assert_allclose(one, other, atol=1e-3)
        # One-sided: the seed is the first point.
        track(*self.data, "--dg", "det", "--seed-file", self.folder / "world.txt", "--directions",
              self.folder / "directions.txt", "--one-sided", "--save-seeds", "--out", self.folder / "one.trx")
        half, half_data = read_trx(self.folder / "one.trx")
        self.assertEqual(len(half), 2)
        for line, seed, reasons in zip(half, half_data["seed_point"], half_data["end_reason"]):
            np.testing.assert_array_equal(line[0], seed)
            self.assertEqual(reasons[0], 0)
        # Ends of a tractogram as seeds: two each.
        result = track_json(*self.data[:-1], 0, "--dg", "det", "--seed-ends", self.folder / "listed.trx", "--min-length",
                            0, "--save-seeds", "--out", self.folder / "ends.trx")
        self.assertEqual(result["result"]["seeds"], 4)
        _, ends = read_trx(self.folder / "ends.trx")
        expected = [point for line in lines for point in (line[0], line[-1])]
        self.assertEqual(sorted(set(ends["seed_index"].ravel().tolist())), [0, 1, 2, 3])
        for index, place in zip(ends["seed_index"].ravel(), ends["seed_point"]):
            np.testing.assert_allclose(place, expected[index], atol=1e-4)
        done = track(*self.data, "--nseeds", 3, "--directions", self.folder / "directions.txt", "--out",
                     self.folder / "not.trx", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("2 directions for 3 seeds", done.stderr)

    def test_regions_divide_streamlines_as_dense_sampling_does(self):
        words = [*self.data, "--dg", "prob", "--nseeds", 800]
        affine = nib.load(self.phantom / "mask.nii.gz").affine
        box = np.zeros((32, 32, 24), dtype=np.uint8)
        box[19:21, 19:21, 10:14] = 1
        nib.save(nib.Nifti1Image(box, affine), self.folder / "box.nii.gz")
        track(*words, "--out", self.folder / "everything.trx")
        everything = read_lines(self.folder / "everything.trx")
        for name, region, inside in (
                ("image", self.folder / "box.nii.gz", self.in_box(box, affine)),
                ("sphere", "-10,-9,0,3", lambda points: np.linalg.norm(points - [-10, -9, 0], axis=1) <= 3)):
            track(*words, "--include", region, "--out", self.folder / f"in-{name}.trx")
            track(*words, "--exclude", region, "--out", self.folder / f"ex-{name}.trx")
            met = {line.tobytes() for line in read_lines(self.folder / f"in-{name}.trx")}
            not_met = {line.tobytes() for line in read_lines(self.folder / f"ex-{name}.trx")}
            self.assertFalse(met & not_met)
            self.assertEqual(len(met) + len(not_met), len({line.tobytes() for line in everything}))
            self.assertGreater(len(met), 20)
            self.assertGreater(len(not_met), 20)
            disagreeing = 0
            for line in everything:
                steps = np.linspace(0, 1, 50)[:, None, None]
                dense = (line[:-1] * (1 - steps) + line[1:] * steps).reshape(-1, 3).astype(float)
                if inside(dense).any() and line.tobytes() not in met:
                    self.fail("a streamline with a point in the region was left out")
                disagreeing += not inside(dense).any() and line.tobytes() in met
            self.assertLessEqual(disagreeing, 3)  # those that cut a corner between samples
        spheres = [(-12, -12, 0, 5), (0, 0, 0, 3), (12, 12, 0, 5)]
        for name, order, at_least in (("ordered", (0, 1, 2), 10), ("other end", (2, 1, 0), 10), ("disordered", (1, 0, 2), 0)):
            regions = [spheres[i] for i in order]
            out = self.folder / f"{name}.trx"
            track(*words, *(word for region in regions for word in ("--include-ordered", ",".join(map(str, region)))),
                  "--out", out)
            kept = {line.tobytes() for line in read_lines(out)}
            expected = {line.tobytes() for line in everything if self.met_in_order(line, regions)}
            self.assertLessEqual(expected, kept, name)
            self.assertLessEqual(len(kept) - len(expected), 3, name)  # those that graze a sphere between samples
            self.assertGreaterEqual(len(kept), at_least, name)
            self.assertLess(len(kept), len(everything) / 2, name)

    @staticmethod
    def met_in_order(line, spheres):
        """Whether the spheres are met one after the other from either end, by dense sampling."""
        steps = np.linspace(0, 1, 50)[:, None]
        dense = np.concatenate([a * (1 - steps) + b * steps for a, b in zip(line[:-1].astype(float), line[1:])])
        inside = [np.linalg.norm(dense - sphere[:3], axis=1) <= sphere[3] for sphere in spheres]
        for direction in (1, -1):
            at, met = 0, 0
            for hits in inside:
                places = np.flatnonzero(hits[::direction])
                places = places[places >= at]
                if len(places) == 0:
                    break
                at, met = places[0], met + 1
            if met == len(spheres):
                return True
        return False

    @staticmethod
    def in_box(box, affine):
        inverse = np.linalg.inv(affine)

        def inside(points):
            voxels = np.floor(points @ inverse[:3, :3].T + inverse[:3, 3] + 0.5).astype(int)
            good = np.all((voxels >= 0) & (voxels < box.shape), axis=1)
            found = np.zeros(len(points), dtype=bool)
            found[good] = box[tuple(voxels[good].T)] > 0
            return found

        return inside

    def test_a_stop_region_ends_streamlines_where_they_enter(self):
        words = [*self.data, "--dg", "det", "--nseeds", 500, "--save-seeds", "--min-length", 0]
        track(*words, "--out", self.folder / "free.trx")
        track(*words, "--stop", "12,12,0,6", "--out", self.folder / "stopped.trx")
        free, free_data = read_trx(self.folder / "free.trx")
        stopped, data = read_trx(self.folder / "stopped.trx")
        centre = np.array([12, 12, 0])
        self.assertEqual(len(free), len(stopped))
        cut = 0
        for before, after, seed, reasons in zip(free, stopped, data["seed_point"], data["end_reason"]):
            inside = np.linalg.norm(after - centre, axis=1) < 6
            if np.linalg.norm(seed - centre) < 6:
                continue
            # The ends alone lie inside, and those are the ones that say so.
            self.assertFalse(inside[1:-1].any())
            self.assertEqual((inside[0], inside[-1]), (reasons[0] == 5, reasons[1] == 5))
            # What is left is a piece of the streamline that is not stopped, and shorter where it goes on inside.
            begin = int(np.flatnonzero((before == after[0]).all(axis=1))[0])
            np.testing.assert_array_equal(before[begin:begin + len(after)], after)
            entered = np.linalg.norm(before - centre, axis=1) < 6
            self.assertEqual(5 in reasons, entered.any())
            cut += len(after) < len(before)
        self.assertGreater(cut, 50)
        self.assertNotIn(5, free_data["end_reason"])


class EndsAndData(WithPhantom):
    def test_per_streamline_data_are_seed_and_end_reasons(self):
        result = track_json(*self.data, "--dg", "prob", "--nseeds", 300, "--save-seeds", "--out",
                            self.folder / "data.trx")
        lines, data = read_trx(self.folder / "data.trx")
        self.assertEqual(data["seed_index"].dtype, np.uint32)
        self.assertEqual(data["end_reason"].dtype, np.uint8)
        self.assertEqual(data["seed_point"].dtype, np.float32)
        self.assertTrue(np.all(np.diff(data["seed_index"].ravel().astype(int)) >= 0))
        self.assertEqual((len(lines), len(data["seed_point"]), len(data["end_reason"])), (result["result"]["kept"],) * 3)
        self.assertGreater(len(lines), 200)
        for line, seed in zip(lines, data["seed_point"]):
            self.assertTrue((line == seed).all(axis=1).any())
        names = {int(code): name for code, name in result["end_reason_codes"].items()}
        counts = {names[code]: int((data["end_reason"] == code).sum()) for code in names}
        self.assertEqual(counts, result["result"]["end_reasons"])
        self.assertAlmostEqual(result["result"]["mean_length_mm"], lengths(lines).mean(), places=3)
        self.assertAlmostEqual(result["result"]["median_length_mm"], np.median(lengths(lines)), delta=0.1)

    def test_half_precision_and_linearisation_shorten_the_file(self):
        words = [*self.data, "--dg", "det", "--nseeds", 300]
        track(*words, "--out", self.folder / "full.trx")
        track(*words, "--float16", "--out", self.folder / "half.trx")
        track(*words, "--linearise", "0.1mm", "--save-seeds", "--out", self.folder / "linear.trx")
        full, half, linear = (read_lines(self.folder / f"{n}.trx") for n in ("full", "half", "linear"))
        self.assertEqual(half[0].dtype, np.float16)
        self.assertEqual([len(line) for line in half], [len(line) for line in full])
        for a, b in zip(full, half):
            # Rounded once, from float64: within half a spacing of float16 below 64.
            self.assertLessEqual(np.abs(a - b.astype(np.float32)).max(), 0.0157)
        self.assertEqual(len(full), len(linear))
        self.assertLess(sum(map(len, linear)), 0.6 * sum(map(len, full)))
        for before, after in zip(full, linear):
            np.testing.assert_array_equal(before[[0, -1]], after[[0, -1]])
            a, b, points = after[:-1].astype(float), after[1:].astype(float), before.astype(float)[:, None]
            share = np.clip(((points - a) * (b - a)).sum(2) / ((b - a) ** 2).sum(1), 0, 1)
            away = np.linalg.norm(points - a - share[..., None] * (b - a), axis=2).min(axis=1)
            self.assertLessEqual(away.max(), 0.1 + 1e-5)

    def test_points_limit_what_is_kept_before_linearisation(self):
        words = [*self.data, "--dg", "det", "--nseeds", 400, "--min-length", 0]
        track(*words, "--out", self.folder / "any.trx")
        everything = read_lines(self.folder / "any.trx")
        points = np.array(list(map(len, everything)))
        low, high = int(np.quantile(points, 0.25)), int(np.quantile(points, 0.75))
        for number in (low, high):  # both limits are met by a streamline: they are inclusive or the test sees it
            self.assertGreater((points == number).sum(), 0)
        facts = track_json(*words, "--min-points", low, "--max-points", high, "--out", self.folder / "points.trx")["result"]
        expected = [line for line in everything if low <= len(line) <= high]
        self.assertEqual([line.tobytes() for line in read_lines(self.folder / "points.trx")],
                         [line.tobytes() for line in expected])
        self.assertEqual((facts["too_few_points"], facts["too_many_points"], facts["kept"]),
                         ((points < low).sum(), (points > high).sum(), len(expected)))
        linear = track_json(*words, "--min-points", low, "--max-points", high, "--linearise", "0.2mm", "--out",
                            self.folder / "points-linear.trx")["result"]
        self.assertEqual(linear["kept"], facts["kept"])
        self.assertLess(linear["points_written"], facts["points_written"])

    def test_no_segment_of_linearisation_is_longer_than_asked_for(self):
        words = [*self.data, "--dg", "det", "--nseeds", 300, "--linearise", "0.5mm"]
        longest = {}
        for name, options in (("plain", ()), ("ten", ("--max-segment-length", "10")), ("four", ("--max-segment-length", "4mm")),
                              ("two voxels", ("--max-segment-length", "2vox"))):
            track(*words, *options, "--out", self.folder / "segments.trx", "--force")
            longest[name] = max(np.linalg.norm(np.diff(line.astype(float), axis=0), axis=1).max()
                                for line in read_lines(self.folder / "segments.trx"))
        self.assertEqual(longest["plain"], longest["ten"])
        for name, limit in (("ten", 10), ("four", 4), ("two voxels", 5)):
            self.assertLessEqual(longest[name], limit + 1e-4, name)
            self.assertGreater(longest[name], limit - 1.3, name)  # a step is 1.25 mm

    def test_double_precision_is_not_rounded_and_deflation_loses_nothing(self):
        words = [*self.data, "--dg", "det", "--nseeds", 300, "--save-seeds"]
        track(*words, "--out", self.folder / "single.trx")
        track(*words, "--float64", "--out", self.folder / "double.trx")
        track(*words[:-1], "--float64", "--out", self.folder / "double.tck")
        single, double = (read_lines(self.folder / name) for name in ("single.trx", "double.trx"))
        self.assertEqual(double[0].dtype, np.float64)
        self.assertEqual([line.tobytes() for line in single], [line.astype("f4").tobytes() for line in double])
        rounded = np.concatenate(single).astype("f8")
        self.assertGreater((np.concatenate(double) != rounded).mean(), 0.1)
        # nibabel takes no TCK in double precision; the numbers behind the header are told apart by their NaN.
        tck = (self.folder / "double.tck").read_bytes()
        self.assertIn(b"datatype: Float64LE", tck[:1000])
        numbers = np.frombuffer(tck[int(tck.split(b"file: . ")[1].split()[0]):], "<f8").reshape(-1, 3)
        np.testing.assert_array_equal(numbers[np.isfinite(numbers).all(1)], np.concatenate(double))
        contents = set()
        for threads in (1, 2, 8):
            track(*words, "--deflate", "--threads", threads, "--out", self.folder / "packed.trx", "--force")
            contents.add((self.folder / "packed.trx").read_bytes())
        self.assertEqual(len(contents), 1)
        self.assertLess(len(contents.pop()), (self.folder / "single.trx").stat().st_size)
        with zipfile.ZipFile(self.folder / "packed.trx") as packed, zipfile.ZipFile(self.folder / "single.trx") as plain:
            self.assertIsNone(packed.testzip())
            self.assertEqual(packed.namelist(), plain.namelist())
            for name in plain.namelist():
                self.assertEqual(packed.read(name), plain.read(name), name)
                self.assertEqual(packed.getinfo(name).compress_type == zipfile.ZIP_DEFLATED, name != "header.json")
        self.assertEqual([line.tobytes() for line in read_lines(self.folder / "packed.trx")],
                         [line.tobytes() for line in single])
        run("verify", "--require", self.folder / "packed.trx", self.folder / "double.trx")
        self.assertEqual(run("compare", "--exact", self.folder / "packed.trx", self.folder / "single.trx").returncode, 0)

    def test_a_mask_is_made_where_none_is_given_and_said_so(self):
        done = run("track", self.phantom / "dwi.nii.gz", "--bvec-frame", "fsl", "--nseeds", 20, "--out",
                   self.folder / "unmasked.trx", "--progress", "none")
        self.assertIn("median Otsu", done.stderr)
        made = nib.load(self.folder / "unmasked.trx.mask.nii.gz")
        self.assertEqual(made.shape, (32, 32, 24))
        self.assertGreater(np.asarray(made.dataobj).sum(), 1000)

    def test_the_arguments_of_cuslines_are_taken(self):
        # None of them is the default of the option, so that one that is not heard shows.
        heard = {"sphere": "small", "nseeds": "100", "max-angle": "50", "min-signal": "2", "step-size": "0.4vox",
                 "sh-order": "6", "fa-threshold": "0.2", "relative-peak-threshold": "0.3", "min-separation-angle": "40",
                 "sm-lambda": "0.007", "model": "csa", "dg": "boot", "seed-seed": "3", "bvec-frame": "fsl"}
        track(self.phantom / "dwi.nii.gz", self.phantom / "dwi.bval", self.phantom / "dwi.bvec",
              self.phantom / "mask.nii.gz", self.phantom / "mask.nii.gz", "--device", "numba", "--output-prefix",
              self.folder / "cus", "--chunk-size", 90, "--ngpus", 1, "--write-method", "trk", "--cache-dir",
              self.folder.path, *(word for name, value in heard.items() for word in ("--" + name, value.rstrip("vox"))))
        sidecar = json.loads((self.folder / "cus.trk.json").read_text())
        self.assertEqual({name: sidecar["arguments"]["options"][name] for name in heard}, heard)
        self.assertEqual((sidecar["run"]["device"], sidecar["run"]["chunk_size"]), ("cpu", 90))
        self.assertEqual((sidecar["result"]["seeds"], sidecar["model"]["model"]), (100, "csa"))
        self.assertEqual([os.path.basename(entry["path"]) for entry in sidecar["inputs"]],
                         ["dwi.nii.gz", "dwi.bval", "dwi.bvec", "mask.nii.gz", "mask.nii.gz"])
        self.assertEqual(len(read_lines(self.folder / "cus.trk")), sidecar["result"]["kept"])
        self.assertGreater(sidecar["result"]["kept"], 0)

    def test_ptt_has_its_own_defaults_and_short_names(self):
        def ptt(name, *words):
            return track_json(*self.data, "--dg", "ptt", "--nseeds", 20, *words, "--out", self.folder / f"ptt-{name}.trx")

        def same(first, second):
            return (self.folder / first).read_bytes() == (self.folder / second).read_bytes()

        plain = ptt("plain")
        options = plain["arguments"]["options"]
        for name, value in (("interpolate", "amplitudes"), ("pmf-threshold", "0.4"), ("pmf-threshold-absolute", "0.2"),
                            ("start", "peaks"), ("ptt-weak", "count"), ("ptt-bound-interval", "16"),
                            ("ptt-min-radius", "2vox"), ("ptt-probe-length", "2vox"), ("max-directions", "32")):
            self.assertEqual(options[name], value, name)
        self.assertEqual(plain["field"]["kind"], "amplitudes")
        ptt("flags", "--amplitudes", "--ptt-weak-links")
        self.assertTrue(same("ptt-flags.trx", "ptt-plain.trx"))
        # Where an angle is given it sets the radius: step / (2 sin(angle / 2)), 0.5 edge at 60 degrees.
        ptt("angle", "--max-angle", 60)
        ptt("radius", "--ptt-min-radius", "0.5vox")
        self.assertTrue(same("ptt-angle.trx", "ptt-radius.trx"))
        self.assertFalse(same("ptt-angle.trx", "ptt-plain.trx"))
        for name, words in (("harmonics", ["--interpolate", "harmonics"]), ("end", ["--ptt-weak", "end"]),
                            ("drawn", ["--start", "drawn"]), ("bound", ["--ptt-bound-interval", 1])):
            ptt(name, *words)
            self.assertFalse(same(f"ptt-{name}.trx", "ptt-plain.trx"), name)
        for words, said in ((["--amplitudes", "--interpolate", "harmonics"], "contradict"),
                            (["--ptt-weak-links", "--ptt-weak", "end"], "contradict"),
                            (["--ptt-bound-interval", 0], "--ptt-bound-interval"),
                            (["--dg", "tensor", "--start", "drawn"], "--start drawn")):
            dg = [] if "--dg" in words else ["--dg", "ptt"]
            done = track(*self.data, *dg, "--nseeds", 5, *words, "--out", self.folder / "refused.trx", check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr)
            self.assertFalse((self.folder / "refused.trx").exists())

    def test_defaults_are_those_of_the_conventions(self):
        result = track_json(*self.data[:-2], "--nseeds", 20, "--out", self.folder / "defaults.trx")
        options = result["arguments"]["options"]
        for name, value in (("dg", "ptt"), ("model", "default"), ("sphere", "default"), ("step-size", "0.5vox"),
                            ("min-signal", "0.1%"), ("fa-threshold", "0.2"),
                            ("amplitude-cutoff", "0.1"), ("all-peaks", False),
                            ("relative-peak-threshold", "0.25"), ("min-separation-angle", "45"),
                            ("sm-lambda", "0.006"), ("min-length", "2mm"), ("max-length", "500mm"),
                            ("boot-attempts", "5"), ("boot-retry", "no-peak-or-angle"), ("boot-seed", False),
                            ("ptt-probe-quality", "7"), ("ptt-probe-count", "1"), ("ptt-exponent", "1"),
                            ("ptt-substeps", "1"), ("seed", "0")):
            self.assertEqual(options[name], value, name)
        for name in ("sh-order", "seed-seed", "select", "max-seeds", "seed-mask"):
            self.assertNotIn(name, options)
        self.assertEqual((result["model"]["model"], result["model"]["degree"]), ("csd", 8))
        self.assertEqual(result["plan"]["step_mm"], 1.25)  # half of the smallest voxel edge
        boot = track_json(*self.data, "--dg", "boot", "--nseeds", 20, "--out", self.folder / "defaults-boot.trx")
        self.assertEqual((boot["field"]["sphere"], boot["field"]["directions"]), ("mirror321", 321))
        self.assertEqual((boot["model"]["model"], boot["model"]["degree"]), ("opdt", 4))
        # Angle, directions of a seed, thresholds of amplitudes: by getter; for models in other units none that is absolute.
        for words, angle, directions, share, absolute in (
                (["boot"], "30", "32", "0.1", "0"), (["prob"], "30", "1", "0.2", "0"), (["det"], "20", "1", "0.1", "0"),
                (["closest"], "45", "32", "0.1", "0"), (["tensor"], "45", "32", "0.1", "0"),
                (["prob", "--model", "csa"], "30", "1", "0.2", "0"), (["ptt", "--model", "opdt"], "60", "32", "0.4", "0")):
            taken = track_json(*self.data[:-2], "--dg", *words, "--nseeds", 20, "--out", self.folder / "getter.trx", "--force")
            options = taken["arguments"]["options"]
            self.assertEqual([options[name] for name in ("max-angle", "max-directions", "pmf-threshold",
                                                         "pmf-threshold-absolute", "fa-threshold")],
                             [angle, directions, share, absolute, "0.2"], words)
            self.assertGreater(taken["result"]["kept"], 0, words)
        # So it is of harmonics whose sidecar says so; others are taken for CSD's.
        words = [self.phantom / "dwi.nii.gz", "--bvals", self.phantom / "dwi.bval", "--bvecs", self.phantom / "dwi.bvec",
                 "--mask", self.phantom / "mask.nii.gz", "--quiet"]
        for model, file, absolute in (("csa", "sh", "0"), ("csd", "fod", "0.2")):
            run("fit", *words, "--model", model, "--out", self.folder / model)
            taken = track_json("--sh", self.folder / model / f"{file}.nii.gz", "--stop-map", self.phantom / "mask.nii.gz",
                               "--nseeds", 20, "--out", self.folder / "of-file.trx", "--force")
            self.assertEqual(taken["arguments"]["options"]["pmf-threshold-absolute"], absolute, model)
            self.assertGreater(taken["result"]["kept"], 0, model)
        small = track_json(*self.data, "--sphere", "small", "--nseeds", 20, "--out", self.folder / "small.trx")
        self.assertEqual(small["field"]["directions"], 181)
        # What belongs to the run is not in the arguments of the sidecar.
        text = " ".join(run("track", "--help").stdout.split())
        for words in ("100000", "25000", "auto", "trx"):
            self.assertIn(f"default {words})", text)

    def test_misuse_is_refused_with_option_and_reason(self):
        out = ["--out", self.folder / "none.trx"]
        for words, code, text in (
                (["--device", "abacus"], 2, "abacus"),
                (["--device", "cpu,abacus"], 2, "abacus"),
                (["--device", "cpu,cpu", "--ngpus", 3], 2, "--ngpus 3"),
                (["--dg", "boot", "--model", "csd"], 2, "opdt or csa"),
                (["--dg", "prob", "--model", "dti"], 2, "dti and tensor"),
                (["--rk4"], 2, "--dg tensor"),
                (["--max-seeds", 5], 2, "--select"),
                (["--select", 5, "--nseeds", 5], 2, "--max-seeds"),
                (["--seed-grid", "2x2"], 2, "--seed-grid"),
                (["--seed-sphere", "1,2,3"], 2, "x,y,z,r"),
                (["--seed-sphere", "1,2,3,0"], 2, "radius 0"),
                (["--seed-sphere", "1,2,nan,4"], 2, "--seed-sphere"),
                (["--seed-sphere", "9000,0,0,5"], 2, "outside of the image"),
                (["--seed-sphere", "0,0,0,5", "--seed-grid", "2"], 2, "exclude each other"),
                (["--seed-sphere", "0,0,0,5", "--seed-mask", self.phantom / "mask.nii.gz"], 2, "seed mask"),
                (["--seeds-per-voxel", 2, "--seed-grid", 2], 2, "exclude each other"),
                (["--include", "1,2,3,-4"], 2, "radius -4"),
                (["--include", "nothing.nii"], 1, "nothing.nii"),
                (["--stop-threshold", "0.1", "--fa-threshold", "0.1"], 2, "the same"),
                (["--nseeds", 2**32 + 1], 2, "--nseeds"),
                (["--seeds-per-voxel", 2**30], 2, "2^32"),
                (["--sh-order", 5], 2, "even"),
                (["--max-angle", 91], 2, "--max-angle"),
                (["--sf", self.phantom / "fod.nii.gz"], 2, "both name"),
                (["--min-points", 10, "--max-points", 9], 2, "--min-points 10"),
                (["--max-points", 0], 2, "--max-points"),
                (["--max-segment-length", 0], 2, "--max-segment-length"),
                (["--float16", "--float64"], 2, "exclude each other"),
                (["--response-centre", "1,2"], 2, "--response-centre '1,2'"),
                (["--min-length", 10, "--max-length", 5], 2, "--min-length")):
            done = track(self.phantom / "dwi.nii.gz", "--mask", self.phantom / "mask.nii.gz", *words, *out,
                         check=False)
            self.assertEqual(done.returncode, code, f"{words}: {done.stderr}")
            self.assertIn(text, done.stderr)
            self.assertFalse((self.folder / "none.trx").exists())
        track(*self.data, "--nseeds", 5, "--out", self.folder / "there.trx")
        content = (self.folder / "there.trx").read_bytes()
        done = track(*self.data, "--nseeds", 6, "--out", self.folder / "there.trx", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there.trx: it exists; use --force", done.stderr)
        self.assertEqual((self.folder / "there.trx").read_bytes(), content)
        done = track(*self.data, "--nseeds", 5, "--save-seeds", "--out", self.folder / "seeds.tck", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(".trx", done.stderr)
        self.assertFalse((self.folder / "seeds.tck").exists())
        for option, name in (("--deflate", "a.tck"), ("--deflate", "a.trx.d"), ("--float64", "a.trk"), ("--float16", "a.tck")):
            done = track(*self.data, "--nseeds", 5, option, "--out", self.folder / name, check=False)
            self.assertEqual((done.returncode, option in done.stderr), (2, True), done.stderr)
            self.assertFalse((self.folder / name).exists())

    def test_b_vectors_in_another_frame_stop_the_run_unless_given(self):
        """A helix, which no mirror image looks like. Its b-vectors are `fsl`, and its affine has a positive determinant:
        with x negated they are `voxel`."""
        helix = self.folder.phantom("helix", "--preset", "helix", "--voxel-size", "2.5")
        vectors = np.loadtxt(helix / "dwi.bvec")
        write_rows(self.folder / "negated.bvec", vectors * [[-1], [1], [1]])
        words = [helix / "dwi.nii.gz", "--bvals", helix / "dwi.bval", "--mask", helix / "mask.nii.gz", "--nseeds", 5,
                 "--force", "--out", self.folder / "frame.trx"]

        def facts(bvecs, *frame):
            model = track_json(*words, "--bvecs", bvecs, *frame)["model"]
            return model["bvec_frame"], model["gradient_check"]

        done = track(*words, "--bvecs", self.folder / "negated.bvec", check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("give --bvec-frame voxel, or give --bvec-frame fsl to keep them as they are", done.stderr)
        self.assertEqual([path.name for path in self.folder.path.glob("frame.trx*")], [])
        self.assertEqual(facts(helix / "dwi.bvec"), ("fsl", "agrees"))
        negated = self.folder / "negated.bvec"
        self.assertEqual(facts(negated, "--bvec-frame", "fsl"), ("fsl", "another_is_better"))
        self.assertEqual(facts(negated, "--bvec-frame", "voxel"), ("voxel", "agrees"))
        self.assertEqual(facts(negated, "--bvec-frame", "auto")[0], "voxel")


class Memory(unittest.TestCase):
    """Streamlines of twelve points through a field of a few kilobytes: what grows would be the streamlines."""

    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)
        peaks = np.zeros((6, 24, 24, 3))
        peaks[..., 0] = 1
        self.peaks = write_image(self.folder / "peaks.nii", peaks, np.eye(4))

    def peak_bytes(self, seeds, *words):
        """Largest resident memory of the process, and the bytes of its file, which is removed. Taken from /proc while it
        runs: what wait4 answers counts the memory of this Python before the program was started, too."""
        out = self.folder / f"{seeds}.trx"
        process = subprocess.Popen([PROGRAM, "track", "--peaks", str(self.peaks), "--dg", "closest", "--nseeds",
                                    str(seeds), "--progress", "none", "--quiet", "--threads", "2", "--out", str(out),
                                    *words], stdout=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/status") as file:
                    for line in file:
                        if line.startswith("VmHWM:"):
                            peak = max(peak, int(line.split()[1]) * 1024)
            except ProcessLookupError:
                break
            time.sleep(0.002)
        self.assertEqual(process.wait(), 0)
        self.assertGreater(peak, 0)
        sidecar = json.loads((self.folder / f"{seeds}.trx.json").read_text())
        self.assertEqual(sidecar["result"]["kept"], seeds)
        with zipfile.ZipFile(out) as archive:
            header = json.loads(archive.read("header.json"))
            self.assertEqual(header["NB_STREAMLINES"], seeds)
            self.assertEqual(archive.getinfo("positions.3.float32").file_size, 12 * header["NB_VERTICES"])
        written = out.stat().st_size
        out.unlink()
        return peak, written

    def test_it_does_not_grow_with_the_number_of_streamlines(self):
        few, _ = self.peak_bytes(20_000, "--chunk-size", "2000", "--save-seeds")
        many, written = self.peak_bytes(400_000, "--chunk-size", "2000", "--save-seeds")
        print(f"peak memory: {few / 1e6:.1f} MB for 20 000 streamlines, {many / 1e6:.1f} MB for 400 000")
        self.assertGreater(written, 60e6)
        # The arrays beside the positions take up to a megabyte each before they go to temporary files.
        self.assertLess(many - few, 8e6, f"{few} and {many} bytes for a file of {written}")

    @unittest.skipUnless(LONG, "ten million streamlines: CINGULUM_TEST_LONG=1")
    def test_ten_million_streamlines_take_what_ten_thousand_take(self):
        few, _ = self.peak_bytes(10_000)
        many, written = self.peak_bytes(10_000_000)
        print(f"peak memory: {few / 1e6:.1f} MB for 10 000 streamlines, {many / 1e6:.1f} MB for 10 000 000 "
              f"({written / 1e9:.2f} GB written)")
        self.assertGreater(written, 1.4e9)
        # The range of seeds that is tracked at a time is larger where there are more seeds; it is bounded.
        self.assertLess(many - few, 64e6)


class Interruption(WithPhantom):
    def start(self, *words):
        return subprocess.Popen([PROGRAM, "track", *map(str, self.data), "--dg", "prob", "--nseeds", "400000",
                                 "--chunk-size", "500", "--progress", "json", *map(str, words)],
                                stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                # a shell's background job has the signal ignored
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def interrupt(self, process):
        for line in process.stderr:
            if line.startswith("{"):
                facts = json.loads(line)
                if "tracking" in json.dumps(facts) and facts.get("done", 0) >= 2000:
                    break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        process.stderr.close()
        return process.wait(timeout=60), rest

    def test_nothing_is_left_of_an_interrupted_run(self):
        out = self.folder / "gone.trx"
        before = set(os.listdir(self.folder.path))
        code, _ = self.interrupt(self.start("--out", out))
        self.assertEqual(code, 130)
        self.assertEqual(set(os.listdir(self.folder.path)), before)

    def test_what_is_finished_is_kept_when_asked(self):
        out = self.folder / "partial.trx"
        code, text = self.interrupt(self.start("--out", out, "--keep-partial", "--save-seeds"))
        self.assertEqual(code, 130, text)
        sidecar = json.loads((self.folder / "partial.trx.json").read_text())
        seeds = sidecar["result"]["seeds"]
        self.assertTrue(sidecar["result"]["partial"])
        self.assertGreaterEqual(seeds, 2000)
        lines, data = read_trx(out)
        self.assertEqual(len(lines), sidecar["result"]["kept"])
        self.assertLess(data["seed_index"].max(), seeds)
        whole = self.folder / "whole.trx"
        track(*self.data, "--dg", "prob", "--nseeds", seeds, "--save-seeds", "--out", whole)
        self.assertEqual(whole.read_bytes(), out.read_bytes())


if __name__ == "__main__":
    import pathlib

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
