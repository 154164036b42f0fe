"""`cingulum track --cache-dir`: a run that finds a kept fit writes the bytes that it would have written without, damage is
said and mended, changed inputs and parameters are other fits, and processes may share the folder."""
import json
import pathlib
import shutil
import subprocess
import unittest

import nibabel as nib
import numpy as np

from tracking import LONG, PROGRAM, Folder, run, write_image

SEEDS = ["--nseeds", 60, "--bvec-frame", "fsl", "--progress", "none"]
USED = "using the fit kept in"


class Cache(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.phantom = cls.folder.phantom("phantom", "--preset", "crossing", "--voxel-size", "3", "--scheme", "dirs64-b1000")
        cls.series = cls.phantom / "dwi.nii.gz"
        cls.mask = cls.phantom / "mask.nii.gz"
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def fresh(self, name="cache"):
        type(self).count += 1
        return self.folder / f"{name}-{self.count}"

    def track(self, *words, out=None):
        """Bytes of the tractogram, the sidecar without `run`, and what was said."""
        out = out or pathlib.Path(str(self.fresh("out")) + ".trx")
        done = run("track", *words, *SEEDS, "--out", out)
        sidecar = json.loads(pathlib.Path(str(out) + ".json").read_text())
        for name in ("run", "file"):
            del sidecar[name]
        return out.read_bytes(), sidecar, done.stderr

    def entries(self, cache):
        return sorted(cache.glob("*.fit"))

    def test_bytes_and_sidecar_are_the_same_with_and_without(self):
        stop_map = write_image(self.folder / "stop.nii.gz",
                               np.asarray(nib.load(self.mask).dataobj, dtype=np.float32), nib.load(self.mask).affine)
        for words in (["--dg", "boot"], ["--dg", "boot", "--model", "csa"], ["--dg", "prob"],
                      ["--dg", "prob", "--amplitudes"], ["--dg", "det", "--model", "opdt", "--sphere", "mirror406"],
                      ["--dg", "ptt", "--sphere", "repulsion724", "--full-sphere"], ["--dg", "tensor"],
                      ["--dg", "prob", "--stop-map", stop_map, "--stop-threshold", "0.5"]):
            cache = self.fresh()
            data = [self.series, "--mask", self.mask, *words]
            plain, plain_sidecar, _ = self.track(*data)
            first, first_sidecar, said = self.track(*data, "--cache-dir", cache)
            self.assertNotIn(USED, said)
            self.assertEqual(len(self.entries(cache)), 1, words)
            second, second_sidecar, said = self.track(*data, "--cache-dir", cache)
            self.assertIn(USED, said)
            self.assertGreater(len(plain), 1000)
            self.assertEqual(plain, first, words)
            self.assertEqual(plain, second, words)
            self.assertEqual(plain_sidecar, first_sidecar, words)
            self.assertEqual(plain_sidecar, second_sidecar, words)
            self.assertEqual(len(self.entries(cache)), 1)

    def test_a_mask_that_was_made_is_written_again(self):
        cache = self.fresh()
        outs = [pathlib.Path(str(self.fresh("unmasked")) + ".trx") for _ in range(2)]
        said = [self.track(self.series, "--cache-dir", cache, out=out)[2] for out in outs]
        self.assertIn(USED, said[1])
        self.assertIn("median Otsu", said[1])
        masks = [pathlib.Path(str(out) + ".mask.nii.gz").read_bytes() for out in outs]
        self.assertEqual(masks[0], masks[1])
        self.assertEqual(outs[0].read_bytes(), outs[1].read_bytes())

    def test_what_does_not_concern_the_fit_finds_it_and_what_does_not(self):
        cache = self.fresh()
        base = [self.series, "--mask", self.mask, "--dg", "prob", "--cache-dir", cache]
        self.track(*base)
        for same in (["--max-angle", 30], ["--seed", 5], ["--step-size", "0.3"], ["--dg", "det"],
                     ["--min-length", 20], ["--threads", 1]):
            _, _, said = self.track(*base, *same) if "--dg" not in same else self.track(*base[:3], *same, *base[5:])
            self.assertIn(USED, said, same)
        self.assertEqual(len(self.entries(cache)), 1)
        count = 1
        for other in (["--fa-threshold", "0.15"], ["--sh-order", 6], ["--amplitudes"], ["--sphere", "small"],
                      ["--b0-threshold", 20], ["--shell", 1000]):
            _, _, said = self.track(*base, *other)
            self.assertNotIn(USED, said, other)
            count += 1
            self.assertEqual(len(self.entries(cache)), count, other)

    def test_every_parameter_of_a_model_makes_another_fit(self):
        """And the bytes are those of a run without a cache: an entry of other parameters is never taken."""
        cache = self.fresh()
        base = [self.series, "--mask", self.mask, "--dg", "prob", "--model", "opdt"]
        runs = [[], ["--sm-lambda", "0.05"], ["--min-signal", "30"], ["--min-signal", "20%"],
                ["--sh-order", 6], ["--model", "csa"]]
        found = set()
        for count, other in enumerate(runs, 1):
            words = [*base[:5], *other] if "--model" in other else [*base, *other]
            plain, _, _ = self.track(*words)
            first, _, said = self.track(*words, "--cache-dir", cache)
            self.assertNotIn(USED, said, other)
            self.assertEqual(len(self.entries(cache)), count, other)
            again, _, said = self.track(*words, "--cache-dir", cache)
            self.assertIn(USED, said, other)
            self.assertEqual(plain, first, other)
            self.assertEqual(plain, again, other)
            found.add(plain)
        self.assertEqual(len(found), len(runs), "parameters that change nothing show nothing")

    def test_a_changed_input_is_another_fit(self):
        cache = self.fresh()
        names = {}
        for ending in ("nii.gz", "bval", "bvec"):
            names[ending] = self.folder / f"own.{ending}"
            shutil.copy(self.phantom / f"dwi.{ending}", names[ending])
        mask = self.folder / "own-mask.nii.gz"
        shutil.copy(self.mask, mask)
        data = [names["nii.gz"], "--mask", mask, "--cache-dir", cache]
        before, _, _ = self.track(*data)

        def change_image(path):
            image = nib.load(path)
            values = np.asarray(image.dataobj).copy()
            values[: values.shape[0] // 2] = values[: values.shape[0] // 2] * 0
            nib.save(nib.Nifti1Image(values, image.affine), path)

        def change_text(path):
            path.write_text(path.read_text().replace("0.7", "0.6").replace("1000", "1010"))

        for count, change in enumerate((lambda: change_text(names["bvec"]), lambda: change_text(names["bval"]),
                                        lambda: change_image(mask), lambda: change_image(names["nii.gz"])), 2):
            change()
            after, _, said = self.track(*data)
            self.assertNotIn(USED, said)
            self.assertEqual(len(self.entries(cache)), count)
            self.assertNotEqual(after, before)

    def test_damage_is_said_and_computed_anew(self):
        cache = self.fresh()
        data = [self.series, "--mask", self.mask, "--dg", "boot", "--cache-dir", cache]
        good, _, _ = self.track(*data)
        (entry,) = self.entries(cache)
        content = entry.read_bytes()
        random = np.random.default_rng(5)
        places = [0, 16, 40, 47, 50, 51, 60, 200, 1000, len(content) // 2, len(content) - 1,
                  *random.integers(0, len(content), 4).tolist()]
        damaged = [bytes(content[:at]) + bytes([content[at] ^ (1 << int(random.integers(8)))]) + content[at + 1:]
                   for at in places]
        damaged += [b"", content[:10], content[:60], content[:-1], content + b"\0", content[: len(content) // 2],
                    bytes(len(content))]
        for number, bytes_there in enumerate(damaged):
            entry.write_bytes(bytes_there)
            result, _, said = self.track(*data)
            self.assertIn("is damaged", said, f"damage {number}")
            self.assertNotIn(USED, said)
            self.assertEqual(result, good)
            self.assertEqual(entry.read_bytes(), content)
        # An entry of another run under this name is not taken.
        other = self.fresh()
        self.track(self.series, "--mask", self.mask, "--dg", "prob", "--cache-dir", other)
        shutil.copy(self.entries(other)[0], entry)
        result, _, said = self.track(*data)
        self.assertIn("another run", said)
        self.assertEqual(result, good)

    def test_processes_share_the_folder(self):
        cache = self.fresh()
        data = [str(word) for word in (self.series, "--mask", self.mask, "--dg", "prob", *SEEDS, "--cache-dir", cache)]
        plain, _, _ = self.track(self.series, "--mask", self.mask, "--dg", "prob")
        for _ in range(2):
            outs = [str(self.fresh("shared")) + ".trx" for _ in range(4)]
            running = [subprocess.Popen([PROGRAM, "track", *data, "--threads", "1", "--out", out],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for out in outs]
            for process, out in zip(running, outs):
                _, said = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 0, said)
                self.assertNotIn("damaged", said)
                self.assertEqual(pathlib.Path(out).read_bytes(), plain)
            self.assertEqual([path.suffix for path in cache.iterdir()], [".fit"])

    @unittest.skipUnless(LONG, "the phantom `brain` is large: CINGULUM_TEST_LONG=1")
    def test_processes_without_data_share_the_phantom(self):
        cache = self.fresh()
        outs = [str(self.fresh("phantoms")) + ".trx" for _ in range(2)]
        running = [subprocess.Popen([PROGRAM, "track", "--nseeds", "20", "--progress", "none", "--cache-dir", str(cache),
                                     "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                   for out in outs]
        for process in running:
            _, said = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, said)
        self.assertEqual(pathlib.Path(outs[0]).read_bytes(), pathlib.Path(outs[1]).read_bytes())
        self.assertEqual(sorted(path.name for path in cache.iterdir() if path.suffix != ".fit"), ["brain-phantom"])

    def test_a_folder_that_cannot_be_is_a_warning(self):
        blocked = self.fresh("file")
        blocked.write_text("not a folder")
        plain, _, _ = self.track(self.series, "--mask", self.mask)
        result, _, said = self.track(self.series, "--mask", self.mask, "--cache-dir", blocked)
        self.assertIn("not kept", said)
        self.assertEqual(result, plain)
        self.assertEqual(blocked.read_text(), "not a folder")

    def test_the_verb_cache_lists_and_clears(self):
        cache = self.fresh()
        for getter in ("prob", "boot"):
            self.track(self.series, "--mask", self.mask, "--dg", getter, "--cache-dir", cache)
        (cache / "note.txt").write_text("not ours")
        listed = json.loads(run("cache", "--cache-dir", cache, "--json").stdout)
        self.assertEqual(listed["entries"], 2)
        self.assertEqual(sorted(fit["model"] for fit in listed["fits"]), ["csd", "opdt"])
        self.assertEqual({fit["series"] for fit in listed["fits"]}, {"dwi.nii.gz"})
        self.assertEqual(listed["bytes"], sum(path.stat().st_size for path in self.entries(cache)))
        self.entries(cache)[0].write_bytes(b"broken")
        text = run("cache", "--cache-dir", cache).stdout
        self.assertIn("2 fits", text)
        self.assertIn("cannot be read", text)
        cleared = json.loads(run("cache", "--cache-dir", cache, "--clear", "--json").stdout)
        self.assertEqual((cleared["removed"], cleared["entries"]), (2, 0))
        self.assertEqual([path.name for path in cache.iterdir()], ["note.txt"])


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
