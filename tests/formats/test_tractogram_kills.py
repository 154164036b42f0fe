"""Goal R7 for the tractogram writers: `cingulum convert` killed at random moments leaves the old or the new file.

CINGULUM names the program; CINGULUM_TEST_KILLS the kills per writer (30 unless set; the long tier takes 1000). The random
moments follow from CINGULUM_TEST_KILL_SEED, which is printed.
"""

import hashlib
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

import numpy as np

import hostile_trx

CINGULUM = os.environ.get("CINGULUM", "build/bin/cingulum")
KILLS = int(os.environ.get("CINGULUM_TEST_KILLS", "30"))
SEED = int(os.environ.get("CINGULUM_TEST_KILL_SEED", str(random.randrange(2**32))))


def digest(path):
    if path.is_dir():
        parts = sorted((str(p.relative_to(path)), p.read_bytes()) for p in path.rglob("*") if p.is_file())
        return hashlib.sha256(repr([(n, hashlib.sha256(d).hexdigest()) for n, d in parts]).encode()).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_source(path, seed):
    count, length = 4000, 60
    generator = np.random.default_rng(seed)
    content = {
        "header.json": hostile_trx.header(NB_STREAMLINES=count, NB_VERTICES=count * length),
        "positions.3.float32": generator.random((count * length, 3), np.float32).tobytes(),
        "offsets.uint64": (np.arange(count + 1, dtype="<u8") * length).tobytes(),
        "dpv/fa.float64": generator.random(count * length).tobytes(),  # enough for a temporary file
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


class Killed(unittest.TestCase):
    def kill_often(self, name):
        choose = random.Random(f"{SEED} {name}")
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as temporary:
            sources = [Path(temporary) / f"{i}.trx" for i in range(2)]
            for i, source in enumerate(sources):
                make_source(source, i)
            folder = Path(temporary) / "out"
            folder.mkdir()
            output = folder / name
            command = lambda i: [CINGULUM, "convert", str(sources[i]), str(output), "--force", "--quiet"]
            contents, durations = [None, None], []
            for i in (1, 0, 1, 0):
                begin = time.monotonic()
                subprocess.run(command(i), check=True, capture_output=True)
                durations.append(time.monotonic() - begin)
                contents[i] = digest(output)
            self.assertNotEqual(*contents)
            duration = sorted(durations)[1]
            before, counts = 0, {"old": 0, "new": 0, "leftovers": 0}
            for _ in range(KILLS):
                with subprocess.Popen(command(1 - before), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                    time.sleep(choose.uniform(0, 1.1 * duration))
                    process.send_signal(signal.SIGKILL)
                found = digest(output)
                self.assertIn(found, contents, f"torn file; seed {SEED}")
                after = contents.index(found)
                counts["old" if after == before else "new"] += 1
                before = after
                others = [n for n in os.listdir(folder) if n not in (name, name + ".json")]
                for other in others:
                    self.assertRegex(other, r"^" + name + r"(\.json)?\.partial-\d+-\d+$")
                counts["leftovers"] += len(others)
            subprocess.run(command(before), check=True, capture_output=True)
            self.assertEqual(sorted(os.listdir(folder)), [name, name + ".json"])
            print(f"{name}: a run takes {duration * 1e3:.0f} ms; {counts}; seed {SEED}")
            # Otherwise the moments were not spread over the run, and nothing was tested.
            self.assertGreater(counts["old"], 0)
            self.assertGreater(counts["leftovers"], 0)

    def test_trx(self):
        self.kill_often("a.trx")

    def test_trx_folder(self):
        self.kill_often("a.trx.d")

    def test_trk(self):
        self.kill_often("a.trk")

    def test_tck(self):
        self.kill_often("a.tck")


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main(warnings="ignore")
