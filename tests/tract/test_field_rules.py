"""Rules of the field that a run tracks, as whole commands: the amplitude cutoff of files without a stopping map, the
smallest signal as a share of the median b0, thresholds and frame of given peaks, masks and maps on other grids."""
import json
import pathlib
import sys
import unittest

import nibabel as nib
import numpy as np

from tracking import Folder, lengths, read_lines, run, track, track_json, write_image, write_rows

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

TURN = np.array([[0, -2.0, 0, 10], [2.0, 0, 0, 3], [0, 0, 2.0, -5], [0, 0, 0, 1]])  # image x is world y


class Rules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def refused(self, code, *words):
        out = self.folder / "refused.trx"
        done = track(*words, "--out", out, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertFalse(out.exists())
        return done.stderr

    def said(self, *words):
        return run("track", *words, "--progress", "none", "--force").stderr


class AmplitudeCutoff(Rules):
    """Fibres along x whose amplitude falls from 1 at x = 0 by 0.025 per voxel of 1 mm, to zero at x = 40."""
    SHAPE = (48, 5, 5)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scale = np.clip(1 - np.arange(cls.SHAPE[0]) / 40, 0, None)[:, None, None] * np.ones(cls.SHAPE)
        vectors = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0], [0.6, 0, 0.8], [0, 0.6, 0.8], [0.6, 0.8, 0]])
        cls.sphere = write_rows(cls.folder / "sphere.txt", vectors)
        values = scale[..., None] * np.array([0.01, 1, 0.01, 0.3, 0.01, 0.3])
        cls.sf = ["--sf", write_image(cls.folder / "sf.nii", values, np.eye(4)), "--sphere", cls.sphere]
        cls.small = ["--sf", write_image(cls.folder / "small.nii", 0.01 * values, np.eye(4)), "--sphere", cls.sphere]
        peaks = scale[..., None] * np.array([1.0, 0, 0])
        cls.peaks = ["--peaks", write_image(cls.folder / "peaks.nii", peaks, np.eye(4))]
        # x^2, greatest along x, as even harmonics by DIPY.
        from dipy.data import default_sphere
        from dipy.reconst.shm import sf_to_sh
        x = default_sphere.vertices[:, 0]
        sh = sf_to_sh(x**2, default_sphere, sh_order_max=4, basis_type="descoteaux07", legacy=True)
        cls.sh = ["--sh", write_image(cls.folder / "sh.nii", scale[..., None] * sh, np.eye(4)), "--sh-basis",
                  "descoteaux07-legacy"]
        cls.seed = ["--seed-file", write_rows(cls.folder / "seed.txt", [[2.0, 2, 2]]), "--step-size", "0.1mm",
                    "--max-angle", 20, "--min-length", 0]

    def end_of(self, getter, *words):
        track(*words, "--dg", getter, *self.seed, "--out", self.folder / "end.trx", "--force")
        lines = read_lines(self.folder / "end.trx")
        self.assertGreater(len(lines), 0)
        return max(line[:, 0].max() for line in lines)

    def test_streamlines_end_where_the_greatest_amplitude_falls_to_the_cutoff(self):
        # The amplitude at x is 1 - x / 40: 0.1 at 36 mm, 0.3 at 28 mm; the last point is at most a step before.
        for getter, words in (("det", self.sf), ("prob", self.sf), ("det", self.sh), ("closest", self.peaks)):
            with self.subTest(getter=getter, words=words[0]):
                self.assertAlmostEqual(self.end_of(getter, *words), 36, delta=0.15)
                self.assertAlmostEqual(self.end_of(getter, *words, "--amplitude-cutoff", 0.3), 28, delta=0.15)
                # Off: wherever the file has numbers, as before.
                self.assertGreater(self.end_of(getter, *words, "--amplitude-cutoff", 0), 38.5)

    def test_it_is_named_and_stated_and_stands_in_the_sidecar(self):
        words = [*self.sf, "--dg", "det", *self.seed, "--out", self.folder / "said.trx"]
        said = self.said(*words)
        self.assertIn("--amplitude-cutoff 0.1", said)
        self.assertIn("no --stop-map given", said)
        self.assertIn("900 of 1 000 voxels", said)  # x from 0 to 35 of 0 to 39, 25 each
        options = json.loads((self.folder / "said.trx.json").read_text())["arguments"]["options"]
        self.assertEqual([options[name] for name in ("amplitude-cutoff", "fa-threshold", "pmf-threshold-absolute")],
                         ["0.1", "0.1", "0.1"])
        track("--from", self.folder / "said.trx.json", "--out", self.folder / "again.trx")
        self.assertEqual((self.folder / "again.trx").read_bytes(), (self.folder / "said.trx").read_bytes())

    def test_thresholds_that_are_given_stay(self):
        def plan(*words):
            result = track_json(*words, "--dg", "prob", *self.seed, "--out", self.folder / "plan.trx", "--force")
            return [round(result["plan"][name], 6) for name in ("stop_threshold", "absolute_threshold")]

        stop = ["--stop-map", write_image(self.folder / "stop.nii", np.ones(self.SHAPE), np.eye(4))]
        self.assertEqual(plan(*self.sf), [0.1, 0.1])
        self.assertEqual(plan(*self.sf, "--amplitude-cutoff", 0.2), [0.2, 0.2])
        self.assertEqual(plan(*self.sf, "--stop-threshold", 0.3), [0.3, 0.1])
        self.assertEqual(plan(*self.sf, "--fa-threshold", 0.3), [0.3, 0.1])
        self.assertEqual(plan(*self.sf, "--pmf-threshold-absolute", 0.05), [0.1, 0.05])
        # A preset's threshold of amplitudes is its own; a cutoff that is given goes before it.
        self.assertEqual(plan(*self.sf, "--preset", "dipy"), [0.1, 0])
        self.assertEqual(plan(*self.sf, "--preset", "dipy", "--amplitude-cutoff", 0.2), [0.2, 0.2])
        # With a map it acts where it is given, and on amplitudes alone.
        before = plan(*self.sf, *stop)
        self.assertEqual(before[1], 0)
        self.assertEqual(plan(*self.sf, *stop, "--amplitude-cutoff", 0.2), [before[0], 0.2])

    def test_a_file_in_other_units_is_refused_with_its_median_maximum(self):
        median = np.median(0.01 * (1 - np.arange(40) / 40))  # 25 voxels each
        for getter, words in (("det", self.small), ("prob", self.small)):
            said = self.refused(1, *words, "--dg", getter, *self.seed)
            self.assertIn("0 of 1 000 voxels with amplitudes", said)
            self.assertIn("--amplitude-cutoff 0.1", said)
            self.assertIn("a tenth", said)
            # The median of an even number is the upper of the two in the middle.
            self.assertIn(f"{median + 0.01 / 80:.4g}"[:6], said)
        self.assertAlmostEqual(self.end_of("det", *self.small, "--amplitude-cutoff", 0.003), 28, delta=0.15)
        weak = write_image(self.folder / "weak.nii", 0.05 * nib.load(self.peaks[1]).get_fdata(), np.eye(4))
        self.assertIn("--peaks", self.refused(1, "--peaks", weak, "--dg", "closest", *self.seed))

    def test_a_tenth_is_of_the_mask(self):
        # Above 0.88 are 5 of the 40 planes with amplitudes; of the 8 planes without any nobody asks.
        words = [*self.sf, "--dg", "det", *self.seed, "--amplitude-cutoff", 0.88]
        mask = np.ones(self.SHAPE)
        for words_of_mask in ([], ["--mask", write_image(self.folder / "mask.nii", mask, np.eye(4))]):
            self.assertGreater(self.end_of("det", *self.sf, "--amplitude-cutoff", 0.88, *words_of_mask), 4)
        mask[[0, 1]] = 0
        said = self.refused(1, *words, "--mask", write_image(self.folder / "mask.nii", mask, np.eye(4)))
        self.assertIn("75 of 950 voxels of the mask with amplitudes", said)

    def test_it_is_refused_where_nothing_has_amplitudes(self):
        self.assertIn("--sh, --sf or --peaks", self.refused(2, "--tensor", self.sf[1], "--dg", "tensor",
                                                            "--amplitude-cutoff", 0.1))


class MinSignal(Rules):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        phantom = cls.folder.phantom("ph", "--preset", "crossing60", "--voxel-size", "3")
        image = nib.load(phantom / "dwi.nii.gz")
        values = np.asarray(image.dataobj, dtype=np.float32)
        # Some signals near zero, so that the floor acts.
        random = np.random.default_rng(4)
        values = np.where(random.random(values.shape) < 0.004, np.float32(1e-3), values)
        mask = np.asarray(nib.load(phantom / "mask.nii.gz").dataobj) > 0
        bvals = np.loadtxt(phantom / "dwi.bval")
        cls.median = np.sort(values[mask][:, bvals < 50].astype(float).mean(axis=1))[mask.sum() // 2]
        cls.series = {}
        for power in (-10, 0, 10):
            name = f"scaled{power}"
            nib.save(nib.Nifti1Image(values * np.float32(2.0**power), image.affine), cls.folder / f"{name}.nii.gz")
            cls.series[power] = [cls.folder / f"{name}.nii.gz", "--bvals", phantom / "dwi.bval", "--bvecs",
                                 phantom / "dwi.bvec", "--mask", phantom / "mask.nii.gz"]
        cls.values, cls.mask, cls.phantom = values, mask, phantom

    def bytes_of(self, power, *words):
        out = self.folder / "out.trx"
        track(*self.series[power], "--bvec-frame", "fsl", "--nseeds", 150, *words, "--out", out, "--force")
        return out.read_bytes()

    def test_a_series_in_other_units_gives_the_same_streamlines(self):
        for words in (["--dg", "boot", "--model", "opdt"], ["--dg", "boot", "--model", "csa"],
                      ["--dg", "prob", "--model", "opdt"], ["--dg", "prob", "--model", "csa"],
                      ["--dg", "tensor"]):
            with self.subTest(" ".join(words)):
                plain = self.bytes_of(0, *words)
                self.assertGreater(len(plain), 8000)
                self.assertEqual(plain, self.bytes_of(-10, *words))
                self.assertEqual(plain, self.bytes_of(10, *words))

    def test_a_bare_number_is_in_units_of_the_data(self):
        boot = ["--dg", "boot", "--min-signal", 1]
        self.assertNotEqual(self.bytes_of(0, *boot), self.bytes_of(-10, *boot))
        result = track_json(*self.series[0], "--bvec-frame", "fsl", *boot, "--nseeds", 5, "--out",
                            self.folder / "raw.trx", "--force")
        self.assertEqual((result["plan"]["boot_min_signal"], result["model"]["min_signal"]), (1, 1))

    def test_the_share_is_of_the_median_b0_in_the_mask(self):
        for words, share in (([], 1e-3), (["--min-signal", "2%"], 0.02)):
            result = track_json(*self.series[0], "--bvec-frame", "fsl", "--dg", "boot", *words, "--nseeds", 5, "--out",
                                self.folder / "share.trx", "--force")
            self.assertAlmostEqual(result["model"]["min_signal"] / (share * self.median), 1, places=12)
            self.assertAlmostEqual(result["plan"]["boot_min_signal"] / (share * self.median), 1, places=6)
            self.assertEqual(result["arguments"]["options"]["min-signal"], words[1] if words else "0.1%")
        again = track_json("--from", self.folder / "share.trx.json", "--out", self.folder / "share2.trx", "--force")
        self.assertEqual(again["plan"], result["plan"])

    def test_fit_has_the_same_rule(self):
        for model in ("opdt", "csa", "dti"):
            files = {}
            for power in (-10, 0, 10):
                out = self.folder / f"fit-{model}{power}"
                run("fit", *self.series[power], "--bvec-frame", "fsl", "--model", model, "--out", out, "--quiet")
                parameters = json.loads((out / "fit.json").read_text())["parameters"]
                self.assertAlmostEqual(parameters["min_signal"] / (1e-3 * self.median * 2.0**power), 1, places=12)
                self.assertEqual(parameters["min_signal_asked"], "0.1%")
                name = "fa.nii.gz" if model == "dti" else "sh.nii.gz"
                files[power] = np.asarray(nib.load(out / name).dataobj)
            for power in (-10, 10):
                # Logarithms of other numbers: a tensor's last bit may differ.
                np.testing.assert_allclose(files[0], files[power], rtol=0 if model != "dti" else 3e-7, atol=1e-12)
        raw = self.folder / "fit-raw"
        run("fit", *self.series[0], "--bvec-frame", "fsl", "--model", "opdt", "--min-signal", "7", "--out", raw, "--quiet")
        self.assertEqual(json.loads((raw / "fit.json").read_text())["parameters"]["min_signal"], 7)

    def test_much_that_is_raised_is_told_with_its_number(self):
        weighted = np.loadtxt(self.phantom / "dwi.bval") >= 0  # of one shell and b0: all volumes
        signals = self.values[self.mask][:, weighted]
        floor = 0.3 * self.median
        raised = int((signals < floor).sum())
        share = raised / signals.size
        self.assertGreater(share, 0.01)
        self.assertLess((signals < 1e-3 * self.median).mean(), 0.01)
        said = self.said(*self.series[0], "--bvec-frame", "fsl", "--dg", "boot", "--nseeds", 5, "--min-signal", "30%",
                         "--out", self.folder / "warned.trx")
        self.assertIn(f"{raised:,}".replace(",", " ") + f" signals, {100 * share:.1f} % of those in the mask", said)
        self.assertIn("--min-signal", said)
        said = self.said(*self.series[0], "--bvec-frame", "fsl", "--dg", "boot", "--nseeds", 5, "--out",
                         self.folder / "quiet.trx")
        self.assertNotIn("raised", said)
        fit = run("fit", *self.series[-10], "--bvec-frame", "fsl", "--model", "csa", "--min-signal", 1, "--out",
                  self.folder / "warned").stderr
        self.assertIn("are raised to it", fit)

    def test_what_is_no_floor_is_refused(self):
        for text in ("0", "-1", "0%", "101%", "much", "%", "1e31"):
            for words in ([*self.series[0], "--dg", "prob"], ["--sh", self.phantom / "fod.nii.gz", "--dg", "prob"]):
                self.assertIn("--min-signal", self.refused(2, *words, f"--min-signal={text}"))
            done = run("fit", *self.series[0], "--model", "csd", f"--min-signal={text}", "--out", self.folder / "no",
                       check=False)
            self.assertEqual(done.returncode, 2)


class GivenPeaks(Rules):
    SHAPE = (12, 12, 3)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # 1 along x, 0.2 along y, 0.5 at 30 degrees from x.
        one = np.concatenate([[0, 0.2, 0], [1, 0, 0], 0.5 * np.array([np.cos(np.pi / 6), np.sin(np.pi / 6), 0])])
        cls.values = np.broadcast_to(one, (*cls.SHAPE, 9))
        cls.peaks = ["--peaks", write_image(cls.folder / "peaks.nii", cls.values, np.eye(4)), "--dg", "closest"]
        cls.seed = ["--seed-file", write_rows(cls.folder / "seed.txt", [[6.0, 6, 1]]), "--min-length", 0]

    def directions(self, *words):
        """Angles to x in the plane of the streamlines through the seed, in the order of strength."""
        track(*self.peaks, *self.seed, *words, "--out", self.folder / "out.trx", "--force")
        ends = [line[-1] - line[0] for line in read_lines(self.folder / "out.trx")]
        return [round(float(np.degrees(np.arctan2(d[1], d[0])))) % 180 for d in ends]

    def test_thresholds_of_peaks_and_amplitudes_act_on_them(self):
        self.assertEqual(self.directions(), [0, 30])
        self.assertEqual(self.directions("--relative-peak-threshold", 0.1), [0, 30, 90])
        self.assertEqual(self.directions("--relative-peak-threshold", 0.6), [0])
        self.assertEqual(self.directions("--relative-peak-threshold", 0.2), [0, 30, 90])  # equal is not below
        self.assertEqual(self.directions("--relative-peak-threshold", 0, "--pmf-threshold-absolute", 0.3), [0, 30])
        self.assertEqual(self.directions("--relative-peak-threshold", 0, "--amplitude-cutoff", 0.3), [0, 30])
        self.assertEqual(self.directions("--relative-peak-threshold", 0, "--min-separation-angle", 40), [0, 90])
        self.assertEqual(self.directions("--relative-peak-threshold", 0, "--min-separation-angle", 20), [0, 30, 90])
        self.assertEqual(self.directions("--all-peaks", "--relative-peak-threshold", 0.6), [0, 30, 90])

    def test_a_weak_peak_is_no_way_to_go_on(self):
        """Not at the seed alone: with it gone, a streamline that comes along y finds no direction."""
        start = ["--directions", write_rows(self.folder / "along-y.txt", [[0, 1.0, 0]]), "--max-angle", 45]
        for words, least in (([], 0), (["--relative-peak-threshold", 0.1], 10)):
            track(*self.peaks, *self.seed, *start, *words, "--out", self.folder / "y.trx", "--force")
            found = lengths(read_lines(self.folder / "y.trx"))
            self.assertEqual(bool(len(found) and found.max() > 5), least > 0)

    def test_all_peaks_are_those_of_a_file(self):
        self.assertIn("--all-peaks", self.refused(2, "--sh", self.peaks[1], "--dg", "prob", "--all-peaks"))

    def turned(self, name, *words, sidecar=None):
        """The direction in the world of the streamlines of peaks (1, 0, 0), where image x is world y."""
        path = write_image(self.folder / name, np.broadcast_to([1.0, 0, 0], (*self.SHAPE, 3)), TURN)
        if sidecar:
            pathlib.Path(f"{path}.json").write_text(json.dumps(sidecar))
        seed = write_rows(self.folder / "middle.txt", [[6.0, 6, 1]])
        words = ["--peaks", path, "--dg", "closest", "--seed-file", seed, "--seed-space", "voxel", *words]
        done = track(*words, "--out", self.folder / "turned.trx", "--force", check=False)
        if done.returncode != 0:
            return done.returncode, done.stderr
        line = read_lines(self.folder / "turned.trx")[0]
        direction = np.abs(line[-1] - line[0]) / np.linalg.norm(line[-1] - line[0])
        return 0, "xyz"[int(direction.argmax())]

    def test_the_frame_comes_from_the_sidecar_or_must_be_said_where_axes_differ(self):
        code, said = self.turned("silent.nii")
        self.assertEqual(code, 2)
        self.assertIn("--frame image", said)
        self.assertIn("--frame world", said)
        self.assertIn("silent.nii", said)
        self.assertEqual(self.turned("silent.nii", "--frame", "image"), (0, "y"))
        self.assertEqual(self.turned("silent.nii", "--frame", "world"), (0, "x"))
        self.assertEqual(self.turned("world.nii", sidecar={"frame": "world"}), (0, "x"))
        self.assertEqual(self.turned("image.nii", sidecar={"frame": "image"}), (0, "y"))

    def test_a_sidecar_of_the_first_rules_takes_every_peak_in_image_axes(self):
        path = write_image(self.folder / "old.nii", self.values, TURN)
        words = ["--peaks", path, "--dg", "closest", "--seed-file", write_rows(self.folder / "old.txt", [[6.0, 6, 1]]),
                 "--seed-space", "voxel"]
        out = self.folder / "old.trx"
        track(*words, "--frame", "image", "--all-peaks", "--amplitude-cutoff", 0, "--out", out, "--force")
        self.assertEqual(len(read_lines(out)), 3)
        sidecar = json.loads((self.folder / "old.trx.json").read_text())
        del sidecar["rules"]
        for name in ("frame", "all-peaks", "amplitude-cutoff"):
            del sidecar["arguments"]["options"][name]
            sidecar["arguments"]["given"].remove(name)
        (self.folder / "first.json").write_text(json.dumps(sidecar))
        track("--from", self.folder / "first.json", "--out", self.folder / "again.trx", "--force")
        self.assertEqual((self.folder / "again.trx").read_bytes(), out.read_bytes())
        # And what that run wrote repeats it, too.
        track("--from", self.folder / "again.trx.json", "--out", self.folder / "third.trx", "--force")
        self.assertEqual((self.folder / "third.trx").read_bytes(), out.read_bytes())

    @suite.needs("mrtrix")
    def test_peaks_of_mrtrix_are_in_world_axes(self):
        """sh2peaks of a FOD along world x, in an image whose x is world y."""
        import subprocess
        from dipy.data import default_sphere
        from dipy.reconst.shm import sf_to_sh
        x = default_sphere.vertices[:, 0]
        fod = sf_to_sh(x**8, default_sphere, sh_order_max=8, basis_type="tournier07", legacy=False)
        write_image(self.folder / "fod.nii", np.broadcast_to(fod, (*self.SHAPE, 45)), TURN)
        subprocess.run(["sh2peaks", "-quiet", "-force", "-num", "1", str(self.folder / "fod.nii"),
                        str(self.folder / "theirs.nii")], check=True)
        seed = write_rows(self.folder / "middle.txt", [[6.0, 6, 1]])
        track("--peaks", self.folder / "theirs.nii", "--frame", "world", "--dg", "closest", "--seed-file", seed,
              "--seed-space", "voxel", "--out", self.folder / "theirs.trx", "--force")
        line = read_lines(self.folder / "theirs.trx")[0]
        direction = np.abs(line[-1] - line[0]) / np.linalg.norm(line[-1] - line[0])
        self.assertGreater(direction[0], 0.999)


class OtherGrids(Rules):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.phantom = cls.folder.phantom("ph", "--preset", "crossing60", "--voxel-size", "3")
        cls.series = [cls.phantom / "dwi.nii.gz", "--bvec-frame", "fsl", "--dg", "det", "--nseeds", 100]
        cls.mask = cls.phantom / "mask.nii.gz"
        cls.image = nib.load(cls.mask)
        run("fit", cls.phantom / "dwi.nii.gz", "--bvals", cls.phantom / "dwi.bval", "--bvecs", cls.phantom / "dwi.bvec",
            "--mask", cls.mask, "--model", "dti", "--out", cls.folder / "dti", "--quiet")

    def finer(self, name, values):
        """The same in voxels of half the edge."""
        affine = self.image.affine.copy()
        affine[:3, :3] /= 2
        affine[:3, 3] = (self.image.affine @ [-0.25, -0.25, -0.25, 1])[:3]
        path = self.folder / name
        nib.save(nib.Nifti1Image(np.kron(values, np.ones((2, 2, 2), values.dtype)), affine), path)
        return path

    def padded(self, name, values, before=3, after=5):
        """The same in the middle of a larger image, whose axes are stored the other way round."""
        affine = self.image.affine.copy()
        affine[:3, 3] = (self.image.affine @ [-before, -before, -before, 1])[:3]
        image = nib.Nifti1Image(np.pad(values, ((before, after),) * 3), affine).as_reoriented([[0, -1], [2, 1], [1, -1]])
        nib.save(image, self.folder / name)
        return self.folder / name

    def result(self, *words):
        out = self.folder / "out.trx"
        said = self.said(*self.series, *words, "--out", out)
        return out.read_bytes(), said

    def test_masks_on_another_grid_give_the_streamlines_of_the_same_mask(self):
        values = np.asarray(self.image.dataobj).astype(np.uint8)
        half = values.copy()
        half[: half.shape[0] // 2] = 0
        nib.save(nib.Nifti1Image(half, self.image.affine), self.folder / "half.nii.gz")
        plain, said = self.result("--mask", self.mask, "--seed-mask", self.folder / "half.nii.gz")
        self.assertNotIn("resampled", said)
        other, said = self.result("--mask", self.finer("fine.nii.gz", values), "--seed-mask",
                                  self.padded("padded.nii.gz", half))
        self.assertEqual(plain, other)
        self.assertIn(f"the mask {self.folder / 'fine.nii.gz'}", said)
        self.assertIn(f"the seed mask {self.folder / 'padded.nii.gz'}", said)
        self.assertIn("is resampled to the grid of the series", said)
        self.assertIn("by the nearest voxel; 100 % of it lies there", said)

    def test_stopping_maps_are_interpolated(self):
        fa = nib.load(self.folder / "dti" / "fa.nii.gz").get_fdata().astype(np.float32)
        plain, _ = self.result("--mask", self.mask, "--stop-map", self.folder / "dti" / "fa.nii.gz")
        other, said = self.result("--mask", self.mask, "--stop-map", self.padded("fa.nii.gz", fa))
        self.assertEqual(plain, other)
        self.assertIn("the stopping map", said)
        self.assertIn("by linear interpolation", said)

    def test_images_in_place_of_a_series_take_them_too(self):
        values = np.asarray(self.image.dataobj).astype(np.uint8)
        base = ["--sh", self.phantom / "fod.nii.gz", "--dg", "det", "--nseeds", 50]
        track(*base, "--mask", self.mask, "--out", self.folder / "a.trx", "--force")
        track(*base, "--mask", self.padded("p.nii.gz", values), "--out", self.folder / "b.trx", "--force")
        self.assertEqual((self.folder / "a.trx").read_bytes(), (self.folder / "b.trx").read_bytes())

    def test_fit_takes_such_a_mask(self):
        values = np.asarray(self.image.dataobj).astype(np.uint8)
        words = ["fit", self.phantom / "dwi.nii.gz", "--bvals", self.phantom / "dwi.bval", "--bvecs",
                 self.phantom / "dwi.bvec", "--model", "dti"]
        done = run(*words, "--mask", self.finer("fit-mask.nii.gz", values), "--out", self.folder / "dti2")
        self.assertIn("is resampled", done.stderr)
        for name in ("fa.nii.gz", "tensor.nii.gz"):
            self.assertEqual((self.folder / "dti" / name).read_bytes(), (self.folder / "dti2" / name).read_bytes())

    def test_what_lies_elsewhere_or_nowhere_is_refused(self):
        affine = self.image.affine.copy()
        affine[0, 3] += 60
        values = np.asarray(self.image.dataobj).astype(np.uint8)
        nib.save(nib.Nifti1Image(values, affine), self.folder / "away.nii.gz")
        bare = nib.Nifti1Image(values[:-1], None)
        bare.header.set_zooms((3, 3, 3))
        self.assertEqual((int(bare.header["qform_code"]), int(bare.header["sform_code"])), (0, 0))
        nib.save(bare, self.folder / "bare.nii.gz")
        for option in ("--mask", "--seed-mask", "--stop-map"):
            base = self.series if option == "--mask" else [*self.series, "--mask", self.mask]
            self.assertIn("at least 50 %", self.refused(2, *base, option, self.folder / "away.nii.gz"))
            self.assertIn("neither sform nor qform", self.refused(2, *base, option, self.folder / "bare.nii.gz"))


if __name__ == "__main__":
    suite.main()
