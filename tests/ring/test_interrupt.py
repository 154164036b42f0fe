"""Goal R22: Ctrl-C at a random moment of `cingulum ring bench`, `ring run`, `ring top` and `cingulum track`, on a terminal
of its own. Each ends (within a second, two on a GPU, which the long form asserts), leaves the terminal as it was and nothing under the final name.

CINGULUM names the program; CINGULUM_TEST_INTERRUPTS is how often each is interrupted (5 unless set; the goal is 200 in
all); CINGULUM_TEST_INTERRUPT_DEVICE the device of ring and track (cpu). The moments follow from CINGULUM_TEST_KILL_SEED."""
import fcntl
import os
import pathlib
import pty
import random
import re
import signal
import subprocess
import tempfile
import termios
import time
import unittest

# A shell in the background has SIGINT ignored, and so would every program that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
CINGULUM = os.environ["CINGULUM"]
TIMES = int(os.environ.get("CINGULUM_TEST_INTERRUPTS", "5"))
LONG = os.environ.get("CINGULUM_TEST_LONG") == "1"
DEVICE = os.environ.get("CINGULUM_TEST_INTERRUPT_DEVICE", "cpu")
SEED = int(os.environ.get("CINGULUM_TEST_KILL_SEED", str(random.randrange(2**32))))
LIMIT = 1.0 if DEVICE == "cpu" else 2.0
# What switches a terminal's modes or its other screen on, and what switches it off again.
MODES = re.compile(rb"\x1b\[\?(\d+)([hl])")


class Interrupts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.environment = {**os.environ, "XDG_RUNTIME_DIR": cls.folder.name}
        subprocess.run([CINGULUM, "phantom", "--preset", "crossing", "--voxel-size", "2.5", "--out", cls.path / "phantom"],
                       check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def interrupt(self, words, longest, choose):
        """Presses Ctrl-C after up to `longest` seconds: the exit code, and how long it took from there."""
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        process = subprocess.Popen([CINGULUM, *map(str, words)], stdin=slave, stdout=slave, stderr=slave,
                                   start_new_session=True, env=self.environment,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.set_blocking(master, False)
        shown = b""

        def read():
            try:
                return os.read(master, 65536)
            except (BlockingIOError, OSError):
                return b""

        moment = time.monotonic() + choose.uniform(0, longest)
        while time.monotonic() < moment and process.poll() is None:
            shown += read()
            time.sleep(0.002)
        pressed = time.monotonic()
        try:
            os.write(master, b"\x03")
        except OSError:
            pass
        while process.poll() is None and time.monotonic() - pressed < 10:
            shown += read()
            time.sleep(0.001)
        took = time.monotonic() - pressed
        if process.poll() is None:
            process.kill()
            process.wait()
            raise AssertionError(f"{words}: still there 10 s after Ctrl-C; shown: {shown[-2000:]!r}")
        after = termios.tcgetattr(slave)
        os.close(slave)
        # The kernel passes on what was written some time later, maybe after the program's end: read until it says so.
        os.set_blocking(master, True)
        while rest := read():
            shown += rest
        os.close(master)
        self.assertEqual(before, after, f"{words}: the terminal's settings were not restored")
        modes = {}
        for number, switch in MODES.findall(shown):
            modes[number] = switch
        for number, switch in modes.items():
            # The cursor (25) is shown in the end; everything else is off.
            self.assertEqual(switch, b"h" if number == b"25" else b"l", f"{words}: mode {number} of the terminal stays")
        return process.returncode, took

    def run_all(self, words, longest, codes, leftovers=lambda: []):
        choose = random.Random(f"{SEED} {words}")
        times = []
        found = []
        for _ in range(TIMES):
            code, took = self.interrupt(words, longest, choose)
            self.assertIn(code, codes, f"{words}; seed {SEED}")
            self.assertEqual(leftovers(), [], f"{words}: left after exit code {code}; seed {SEED}")
            times.append(took)
            found.append(code)
        late = [took for took in times if took > LIMIT]
        print(f"{' '.join(map(str, words[:3]))}: {TIMES} times, ended after {max(times):.2f} s at most, codes "
              f"{ {code: found.count(code) for code in set(found)} }", flush=True)
        # The quick form runs beside other tests on few processors: there it must only end.
        if LONG:
            self.assertLessEqual(len(late), len(times) // 50, f"{words}: {late} s")

    # Before the handlers are there SIGINT itself ends the process.
    ENDS = {0, 130, -signal.SIGINT}

    def test_bench(self):
        self.run_all(["ring", "bench", "--device", DEVICE], 2.0, self.ENDS)

    def test_extended(self):
        self.run_all(["ring", "run", "extended", "--device", DEVICE], 2.0, self.ENDS)

    def test_pagerank(self):
        self.run_all(["ring", "run", "pagerank", "--device", DEVICE, "--nodes", 100000], 2.0, self.ENDS)

    def test_anomaly(self):
        self.run_all(["ring", "run", "anomaly", "--device", DEVICE, "--points", 1000000], 2.0, self.ENDS)

    def test_top(self):
        self.run_all(["ring", "top", "--interval", 0.1], 1.0, self.ENDS)

    def test_track(self):
        out = self.path / "out.trx"

        def leftovers():
            names = [each.name for each in self.path.iterdir() if each.name.startswith("out.")]
            for each in names:
                (self.path / each).unlink()
            # A run that ended before the key was pressed has written its file.
            return [] if names in ([], ["out.trx", "out.trx.json"], ["out.trx.json", "out.trx"]) else names

        phantom = self.path / "phantom"
        self.run_all(["track", phantom / "dwi.nii.gz", "--mask", phantom / "mask.nii.gz", "--bvec-frame", "fsl", "--dg", "prob",
                      "--device", DEVICE, "--nseeds", 400000, "--out", out], 2.0, self.ENDS, leftovers)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
