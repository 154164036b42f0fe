"""Where we and the readers of others both accept a damaged or odd file, we read the same. Mutants of the fuzz
corpus go through us and through nibabel (NIfTI, TRK, TCK) and trx-python (TRX).

CINGULUM_TEST_LONG=1: 100 000 mutants, otherwise a thousand. CINGULUM_TEST_MUTANTS and CINGULUM_TEST_SEED change number and
seed; a failure prints the seed and keeps the mutant.
"""
import gzip
import io
import json
import logging
import os
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.streamlines import TckFile, TrkFile

CINGULUM = os.environ.get("CINGULUM", "build/bin/cingulum")
DUMP = os.environ.get("CINGULUM_TEST_IMAGE_DUMP", "build/bin/image_dump")
CORPUS = Path(__file__).resolve().parents[2] / "fuzz" / "corpus"
LONG = os.environ.get("CINGULUM_TEST_LONG", "") not in ("", "0")
MUTANTS = int(os.environ.get("CINGULUM_TEST_MUTANTS", 100_000 if LONG else 1000))
SEED = int(os.environ.get("CINGULUM_TEST_SEED", 20261115))
os.environ["CINGULUM_NO_SYNC"] = "1"
logging.disable(logging.CRITICAL)  # nibabel speaks about every mutant


def mutate(content, rng):
    """Some bytes changed, set to telling values, or a piece left out, doubled or cut off."""
    content = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        if not content:
            break
        at = int(rng.integers(len(content)))
        kind = rng.integers(10)
        if kind < 5:
            content[at] ^= 1 << int(rng.integers(8))
        elif kind < 8:
            content[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, 0x20, 0x30, 0x39]))
        elif kind == 8:
            del content[at:at + int(rng.integers(1, 13))]
        else:
            content[at:at] = content[at:at + int(rng.integers(1, 13))]
    return bytes(content)


class Differential(unittest.TestCase):
    """A share of the mutants per format; `ours` and `theirs` read a file or answer None."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cingulum-differential-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_format(self, target, ending, share, ours, theirs, same, change=mutate):
        rng = np.random.default_rng([SEED, len(target)])
        inputs = [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]
        mutants = max(20, int(MUTANTS * share))
        both = accepted = 0
        path = self.folder / f"mutant{ending}"
        for number in range(mutants):
            content = change(inputs[int(rng.integers(len(inputs)))], rng)
            if content is None:
                continue
            path.write_bytes(content)
            mine = ours(path)
            if mine is None:
                continue
            accepted += 1
            other = theirs(path)
            if other is None:
                continue
            both += 1
            difference = same(mine, other)
            if difference:
                kept = Path(tempfile.gettempdir()) / f"cingulum-differs-{SEED}-{number}{ending}"
                kept.write_bytes(content)
                self.fail(f"mutant {number} of {target} (seed {SEED}, kept as {kept}): {difference}")
        print(f"{target}: {mutants} mutants, {accepted} accepted by us, {both} by both, seed {SEED}")
        # Otherwise nothing was compared.
        self.assertGreater(both, mutants // 100)

    def test_images_are_what_nibabel_reads(self):
        dump = subprocess.Popen([DUMP, "read-many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        raw = self.folder / "values.raw"

        def ours(path):
            dump.stdin.write(f"{path}\t{raw}\n")
            dump.stdin.flush()
            line = dump.stdout.readline()
            self.assertTrue(line, "image_dump ended")
            header = json.loads(line)
            if "error" in header:
                return None
            return header, np.fromfile(raw).reshape(header["shape"], order="F")

        def theirs(path):
            try:
                content = path.read_bytes()
                plain = self.folder / "plain.nii"
                plain.write_bytes(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
                image = nib.load(plain)
                return image.shape, np.array(image.dataobj, dtype=np.float64)
            except Exception:  # their refusals have many names
                return None

        def same(mine, other):
            header, values = mine
            shape, expected = other
            if any(warning.startswith("vox_offset") for warning in header["warnings"]):
                return ""  # an offset inside the header: nibabel takes the header for voxels, we say that we do not
            if expected.size == 0:
                return ""  # an axis of length 0: no voxel for nibabel, one for us, and we say so
            # An axis count of zero to two and trailing axes of length 1 are reported differently.
            trimmed = lambda dims: [n for i, n in enumerate(dims) if i < 3 or any(m != 1 for m in dims[i:])]  # noqa: E731
            padded = lambda dims: (list(dims) + [1, 1, 1])[: max(3, len(dims))]  # noqa: E731
            if trimmed(padded(header["shape"])) != trimmed(padded(shape)):
                return f"shape {header['shape']} and {shape}"
            ours_flat, theirs_flat = values.ravel(order="F"), expected.ravel(order="F")
            if ours_flat.size != theirs_flat.size:
                return f"{ours_flat.size} and {theirs_flat.size} values"
            # nibabel scales in a type of its own choice, which may be float32.
            scale = np.nanmax(np.abs(np.where(np.isfinite(theirs_flat), theirs_flat, 0)), initial=0)
            close = np.isclose(ours_flat, theirs_flat, rtol=2e-6, atol=2e-6 * scale, equal_nan=True)
            # NaN and infinity of scaled integers are converted differently by numpy.
            close |= ~np.isfinite(ours_flat) & ~np.isfinite(theirs_flat)
            return "" if close.all() else f"values {ours_flat[~close][:3]} and {theirs_flat[~close][:3]}"

        try:
            self.run_format("nifti", ".nii", 0.5, ours, theirs, same)
        finally:
            dump.stdin.close()
            dump.stdout.close()
            dump.wait()

    def convert(self, path, ending):
        """Positions and lengths of all streamlines as we read them, through a TCK file of float64."""
        out = self.folder / f"ours{ending}"
        done = subprocess.run([CINGULUM, "convert", str(path), str(out), "--force", "--quiet"], capture_output=True,
                              text=True, errors="replace", check=False)
        self.assertTrue(done.returncode in (0, 1) or "not finite" in done.stderr, done.stderr)
        if done.returncode != 0:
            return None
        content = out.read_bytes()
        start = int(content.split(b"file: . ")[1].split(b"\n")[0])
        kind = "<f8" if b"Float64LE" in content[:start] else "<f4"
        rows = np.frombuffer(content[start:], kind).reshape(-1, 3)[:-1]
        ends = np.flatnonzero(np.isnan(rows[:, 0]))
        return [rows[a:b].astype(np.float64) for a, b in zip([0, *(ends[:-1] + 1)], ends)]

    @staticmethod
    def same_lines(tolerance):
        def same(mine, other):
            # nibabel leaves out streamlines without points.
            mine, other = ([line for line in lines if len(line) > 0] for lines in (mine, other))
            if [len(line) for line in mine] != [len(line) for line in other]:
                return f"{len(mine)} streamlines of {[len(m) for m in mine][:5]}, {len(other)} of {[len(o) for o in other][:5]}"
            for number, (a, b) in enumerate(zip(mine, other)):
                scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
                if not np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
                    return f"streamline {number}: {a[:2]} and {b[:2]}"
            return ""
        return same

    def nibabel_lines(self, cls):
        def theirs(path):
            try:
                with open(path, "rb") as file:
                    read = cls.load(io.BytesIO(file.read()))
                if cls is TrkFile and (read.header["voxel_sizes"] == 0).any():
                    return None  # nibabel divides by it; we take the edge from vox_to_ras, and say so
                return [np.asarray(line, dtype=np.float64) for line in read.tractogram.streamlines]
            except Exception:  # their refusals have many names
                return None
        return theirs

    def test_tck_is_what_nibabel_reads(self):
        self.run_format("tck", ".tck", 0.2, lambda path: self.convert(path, ".tck"), self.nibabel_lines(TckFile),
                        self.same_lines(1e-7))

    def test_trk_is_what_nibabel_reads(self):
        self.run_format("trk", ".trk", 0.2, lambda path: self.convert(path, ".tck"), self.nibabel_lines(TrkFile),
                        self.same_lines(1e-5))

    def test_trx_is_what_trx_python_reads(self):
        from trx import trx_file_memmap

        def change(content, rng):
            """Mutates one entry and makes the archive anew: its checksums are right, its content is not."""
            try:
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    entries = {name: archive.read(name) for name in archive.namelist()}
            except Exception:
                return None
            if not entries or "" in entries:
                return None
            name = list(entries)[int(rng.integers(len(entries)))]
            entries[name] = mutate(entries[name], rng)
            made = io.BytesIO()
            with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
                for entry, value in entries.items():
                    archive.writestr(entry, value)
            return made.getvalue()

        def theirs(path):
            try:
                trx = trx_file_memmap.load(str(path))
                lines = [np.array(line, dtype=np.float64) for line in trx.streamlines]  # copies: the map goes with close()
                trx.close()
                return lines
            except Exception:
                return None

        self.run_format("trx", ".trx", 0.1, lambda path: self.convert(path, ".tck"), theirs, self.same_lines(1e-6),
                        change)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main(warnings="ignore")
