"""Tracking on a full GPU: another process has taken all of its memory but a little. Each round either writes the bytes of the
CPU or refuses before work begins, naming the memory, and leaves nothing under the final name; once the other process
is gone the same command works. CINGULUM and CINGULUM_TEST_BALLAST name the programs, CINGULUM_TEST_ROUNDS another number
of rounds. Called by tools/gpu-test."""
import os
import pathlib
import subprocess
import tempfile
import unittest

CINGULUM = os.environ["CINGULUM"]
BALLAST = os.environ["CINGULUM_TEST_BALLAST"]
MEBIBYTE = 1 << 20
# With the first a program does not even get a context; then there is one, and some or all of what a run takes.
LEFT = [64, 550, 600, 650, 700, 800, 1000, 1400]
ROUNDS = int(os.environ.get("CINGULUM_TEST_ROUNDS", "20"))


class FullCard(unittest.TestCase):
    def track(self, device, path):
        command = [CINGULUM, "track", str(self.folder / "phantom/dwi.nii.gz"), "--mask", str(self.folder / "phantom/mask.nii.gz"),
                   "--dg", "boot", "--seeds-per-voxel", "3", "--seed", "3", "--device", device, "--out", str(path),
                   "--quiet"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def test_a_card_that_another_process_filled(self):
        with tempfile.TemporaryDirectory() as folder:
            self.folder = pathlib.Path(folder)
            subprocess.run([CINGULUM, "phantom", "--preset", "crossing60", "--out", str(self.folder / "phantom"), "--quiet"], check=True)
            truth = self.folder / "truth.trx"
            made = self.track("cpu", truth)
            self.assertEqual(made.returncode, 0, made.stderr)
            tracked = 0
            reasons = set()
            for round_number in range(ROUNDS):
                left = LEFT[round_number % len(LEFT)] * MEBIBYTE
                path = self.folder / f"{round_number}.trx"
                with subprocess.Popen([BALLAST, str(left)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ballast:
                    self.assertTrue(ballast.stdout.readline().startswith("ready"))
                    ended = self.track("cuda", path)
                    ballast.stdin.close()
                    self.assertEqual(ballast.wait(timeout=30), 0)
                if ended.returncode == 0:
                    tracked += 1
                    self.assertEqual(path.read_bytes(), truth.read_bytes(), f"{left} bytes left")
                else:
                    self.assertGreater(ended.returncode, 0, f"{left} bytes left: ended by a signal")
                    self.assertRegex(ended.stderr, "out of memory|needed, .* free")
                    self.assertFalse(path.exists())
                    reasons.add(ended.stderr.strip())
            print(f"tracked in {tracked} of {ROUNDS} rounds; refusals:", *sorted(reasons), sep="\n  ")
            self.assertGreater(tracked, 0)
            self.assertLess(tracked, ROUNDS)
            path = self.folder / "after.trx"
            self.assertEqual(self.track("cuda", path).returncode, 0)
            self.assertEqual(path.read_bytes(), truth.read_bytes())


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
