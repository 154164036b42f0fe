"""Ctrl-C at a random moment of `cingulum ring bench`, `ring run`, `ring top`, `cingulum track` and
`cingulum zarr copy`, on a terminal of its own. The key is pressed after the program has its handlers (asked of the
kernel, not of the clock), and the runs are far longer than the latest moment (where a machine is quicker, the key is
pressed sooner): each must end with exit code 130 (`top`, which one leaves so, with 0), leave the terminal as it was and
nothing under the final name. That they end within a second (two on a GPU) is asserted by the
long form. Before the handlers are there SIGINT itself ends the process: a case of its own.

CINGULUM names the program; CINGULUM_TEST_INTERRUPTS is how often each is interrupted (5 unless set; the goal is 200 in
all); CINGULUM_TEST_INTERRUPT_DEVICE the device of ring and track (cpu). The moments follow from CINGULUM_TEST_KILL_SEED."""
import fcntl
import os
import pathlib
import pty
import random
import re
import shutil
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
INTERRUPTED = 130
# What switches a terminal's modes or its other screen on, and what switches it off again.
MODES = re.compile(rb"\x1b\[\?(\d+)([hl])")


def has_handler(process):
    """Whether the process catches SIGINT; exec takes the handlers of the process before away."""
    try:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return False
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return caught is not None and int(caught.group(1), 16) >> (signal.SIGINT - 1) & 1 == 1


class Interrupts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.environment = {**os.environ, "XDG_RUNTIME_DIR": cls.folder.name}
        subprocess.run([CINGULUM, "phantom", "--preset", "crossing", "--voxel-size", "2.5", "--out", cls.path / "phantom"],
                       check=True, capture_output=True)
        phantom = cls.path / "phantom"
        # Each runs longer than the latest moment at which the key is pressed, most of them by far.
        cls.commands = {
            "bench": ["ring", "bench", "--device", DEVICE],
            "extended": ["ring", "run", "extended", "--device", DEVICE],
            "pagerank": ["ring", "run", "pagerank", "--device", DEVICE, "--nodes", 1000000, "--ranks", cls.path / "out.ranks"],
            "anomaly": ["ring", "run", "anomaly", "--device", DEVICE, "--points", 2000000, "--batch", 1],
            "track": ["track", phantom / "dwi.nii.gz", "--mask", phantom / "mask.nii.gz", "--bvec-frame", "fsl", "--dg", "prob",
                      "--device", DEVICE, "--nseeds", 20000000, "--out", cls.path / "out.trx"],
            "copy": ["zarr", "copy", cls.path / "source.ome.zarr", cls.path / "out.ome.zarr", "--codec", "blosc-zstd:9",
                     "--threads", 1],
        }
        subprocess.run([CINGULUM, "convert", phantom / "dwi.nii.gz", cls.path / "source.ome.zarr", "--quiet"], check=True,
                       capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def interrupt(self, words, moment_s, waits_for_handler):
        """Presses Ctrl-C `moment_s` seconds after the handlers stand: the exit code, how long it took from there, and
        whether the program was still at work when the key was pressed."""
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

        start = time.monotonic()
        while waits_for_handler and not has_handler(process) and process.poll() is None:
            self.assertLess(time.monotonic() - start, 60, f"{words}: SIGINT has no handler; shown: {shown[-2000:]!r}")
            shown += read()
            time.sleep(0.001)
        moment = time.monotonic() + moment_s
        while time.monotonic() < moment and process.poll() is None:
            shown += read()
            time.sleep(0.002)
        was_at_work = process.poll() is None
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
        return process.returncode, took, was_at_work, shown

    def leftovers(self):
        names = sorted(each.name for each in self.path.iterdir() if each.name.startswith("out."))
        for name in names:
            if (self.path / name).is_dir():
                shutil.rmtree(self.path / name)
            else:
                (self.path / name).unlink()
        return names

    def run_all(self, words, longest, code):
        choose = random.Random(f"{SEED} {words}")
        times = []
        while len(times) < TIMES:
            moment = choose.uniform(0, longest)
            got, took, was_at_work, shown = self.interrupt(words, moment, True)
            case = f"{words}; {moment:.3f} s after its handlers; seed {SEED}; shown: {shown[-500:]!r}"
            if not was_at_work:
                # How long a run lasts is the machine's affair: where it was over before the key, press sooner.
                self.assertEqual(got, 0, case)
                self.leftovers()
                longest = moment / 2
                self.assertGreater(longest, 0.005, f"over before a key can be pressed: make the run longer; {case}")
                continue
            self.assertEqual(got, code, case)
            self.assertEqual(self.leftovers(), [], case)
            times.append(took)
        late = [took for took in times if took > LIMIT]
        print(f"{' '.join(map(str, words[:3]))}: {TIMES} times, ended after {max(times):.2f} s at most", flush=True)
        # The quick form runs beside other tests on few processors: there it must only end.
        if LONG:
            self.assertLessEqual(len(late), len(times) // 50, f"{words}: {late} s")

    def test_bench(self):
        self.run_all(self.commands["bench"], 2.0, INTERRUPTED)

    def test_extended(self):
        # All of it takes about a second.
        self.run_all(self.commands["extended"], 0.1, INTERRUPTED)

    def test_pagerank(self):
        self.run_all(self.commands["pagerank"], 0.3, INTERRUPTED)

    def test_anomaly(self):
        self.run_all(self.commands["anomaly"], 2.0, INTERRUPTED)

    def test_top(self):
        self.run_all(["ring", "top", "--interval", 0.1], 1.0, 0)

    def test_track(self):
        self.run_all(self.commands["track"], 2.0, INTERRUPTED)

    def test_zarr_copy(self):
        # All of it takes about two seconds.
        self.run_all(self.commands["copy"], 0.5, INTERRUPTED)

    def test_before_the_handlers_stand(self):
        choose = random.Random(f"{SEED} early")
        for words in self.commands.values():
            got, _, _, shown = self.interrupt(words, choose.uniform(0, 0.01), False)
            case = f"{words}; seed {SEED}; shown: {shown[-500:]!r}"
            self.assertIn(got, {INTERRUPTED, -signal.SIGINT}, case)
            self.assertEqual(self.leftovers(), [], case)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
