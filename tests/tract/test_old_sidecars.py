"""Sidecars keep their word: those that earlier versions wrote, of every getter, still give the bytes whose hash they hold,
though defaults and rules have changed since. A sidecar is never made anew; a new set of rules adds files of its own."""
import gzip
import json
import pathlib
import unittest
import zlib

from tracking import Folder, run, track

SIDECARS = pathlib.Path(__file__).parent / "sidecars"
RULES = 3


def pack_as_before(path):
    """Sidecars hold the hashes of packed files, and `fit` packs the same images otherwise since: here as it did, pieces of
    512 KiB at level 1, each with the 32 KiB before it as its dictionary."""
    content = gzip.decompress(path.read_bytes())
    packed = bytearray(b"\x1f\x8b\x08\0\0\0\0\0\x04\xff")
    piece = 512 << 10
    for begin in range(0, max(len(content), 1), piece):
        known = {"zdict": content[max(begin - (32 << 10), 0):begin]} if begin else {}
        encoder = zlib.compressobj(1, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, **known)
        packed += encoder.compress(content[begin:begin + piece])
        packed += encoder.flush(zlib.Z_FINISH if begin + piece >= len(content) else zlib.Z_SYNC_FLUSH)
    packed += zlib.crc32(content).to_bytes(4, "little") + (len(content) % 2**32).to_bytes(4, "little")
    path.write_bytes(packed)


class OldSidecars(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The inputs of the runs, at the relative names that the sidecars have."""
        cls.folder = Folder()
        cls.folder.phantom("ph", "--preset", "crossing60")
        fit = ["fit", "ph/dwi.nii.gz", "--bvals", "ph/dwi.bval", "--bvecs", "ph/dwi.bvec", "--mask", "ph/mask.nii.gz"]
        run(*fit, "--model", "csd", "--response-fa", 0.4, "--response-radius", 1000, "--peaks", 3, "--odf", "--out", "csd",
            "--quiet", cwd=cls.folder.path)
        run(*fit, "--model", "dti", "--out", "dti", "--quiet", cwd=cls.folder.path)
        for model in ("csd", "dti"):
            for image in (cls.folder / model).glob("*.nii.gz"):
                pack_as_before(image)

    @classmethod
    def tearDownClass(cls):
        cls.folder.close()

    def repeat(self, sidecar, *words, **options):
        return track("--from", sidecar, "--out", "again.trx", "--force", *words, cwd=self.folder.path, **options)

    def new_sidecar(self):
        return json.loads((self.folder / "again.trx.json").read_text())

    def test_every_getter_is_among_them(self):
        found = {json.loads(path.read_text())["arguments"]["options"]["dg"] for path in SIDECARS.glob("*.rules1.json")}
        self.assertEqual(found, {"boot", "prob", "ptt", "det", "closest", "tensor"})

    def test_each_gives_the_bytes_that_it_was_written_with(self):
        for path in sorted(SIDECARS.glob("*.json")):
            with self.subTest(path.name):
                self.repeat(path)
                self.assertEqual(self.new_sidecar()["xxh3_128"], json.loads(path.read_text())["xxh3_128"])

    def test_what_is_repeated_can_be_repeated_again(self):
        """The new sidecar says by which rules its options are read, and holds them all."""
        path = SIDECARS / "ptt.rules1.json"
        self.repeat(path)
        again = self.new_sidecar()
        self.assertEqual(again["rules"], RULES)
        (self.folder / "second.json").write_text(json.dumps(again))
        self.repeat(self.folder / "second.json")
        self.assertEqual(self.new_sidecar()["xxh3_128"], json.loads(path.read_text())["xxh3_128"])

    def test_rules_of_the_future_are_refused(self):
        later = json.loads((SIDECARS / "det.rules1.json").read_text())
        for rules, said in ((RULES + 1, f"rules {RULES + 1}"), (0, "rules 0"), ("two", "'rules' is not a number")):
            (self.folder / "later.json").write_text(json.dumps({**later, "rules": rules}))
            done = self.repeat(self.folder / "later.json", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
