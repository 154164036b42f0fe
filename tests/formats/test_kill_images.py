"""Goal R7 for the writer of compressed images: kill -9 at random moments leaves the old or the new file.

CINGULUM_TEST_IMAGE_DUMP names image_dump; CINGULUM_TEST_KILLS is the number of kills (40 unless set; the long tier takes 1000).
The random moments follow from CINGULUM_TEST_KILL_SEED, which is printed.
"""

import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

DUMP = os.environ.get("CINGULUM_TEST_IMAGE_DUMP", "build/bin/image_dump")
KILLS = int(os.environ.get("CINGULUM_TEST_KILLS", "40"))
SEED = int(os.environ.get("CINGULUM_TEST_KILL_SEED", str(random.randrange(2**32))))
SHAPE = (64, 64, 32, 4)


class Killed(unittest.TestCase):
    def test_an_image_writer_killed_at_any_moment_leaves_the_old_or_the_new_image(self):
        print(f"seed {SEED}, {KILLS} kills")
        choose = random.Random(SEED)
        rng = np.random.default_rng(SEED)
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as name:
            folder = Path(name)
            output = folder / "out"
            output.mkdir()
            path = output / "a.nii.gz"
            spec = folder / "spec.json"
            spec.write_text(json.dumps({"shape": SHAPE, "affine": np.eye(4)[:3].ravel().tolist(), "type": "int16",
                                        "threads": 2}))
            raws = [folder / "0.raw", folder / "1.raw"]
            commands, contents, durations = [], [], []
            for raw in raws:
                rng.integers(0, 5000, np.prod(SHAPE)).astype(np.float64).tofile(raw)
                commands.append([DUMP, "write", str(spec), str(raw), str(path)])
                for _ in range(2):
                    begin = time.monotonic()
                    subprocess.run(commands[-1], check=True, stdout=subprocess.DEVNULL)
                    durations.append(time.monotonic() - begin)
                contents.append(path.read_bytes())
            self.assertNotEqual(contents[0], contents[1])
            duration = sorted(durations)[2]
            before = 1
            counts = {"old": 0, "new": 0, "leftovers": 0}
            for _ in range(KILLS):
                with subprocess.Popen(commands[1 - before], stdout=subprocess.DEVNULL) as process:
                    time.sleep(choose.uniform(0, 1.1 * duration))
                    process.send_signal(signal.SIGKILL)
                found = path.read_bytes()
                self.assertIn(found, contents, f"torn file of {len(found)} bytes; seed {SEED}")
                after = contents.index(found)
                counts["old" if after == before else "new"] += 1
                before = after
                others = [other for other in os.listdir(output) if other != path.name]
                for other in others:
                    self.assertRegex(other, r"^a\.nii\.gz\.partial-\d+-\d+$")
                self.assertLessEqual(len(others), 1, "the next run did not remove the leftover of the one before")
                counts["leftovers"] += len(others)
            subprocess.run(commands[before], check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(os.listdir(output), [path.name])
            self.assertEqual(path.read_bytes(), contents[before])
            print(f"a run takes {duration * 1e3:.0f} ms; {counts}")
            # Otherwise the moments were not spread over the run, and nothing was tested.
            self.assertGreater(counts["old"], 0)
            self.assertGreater(counts["leftovers"], 0)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
