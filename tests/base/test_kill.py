"""A writer on a real file system: kill -9 and Ctrl-C at random moments, and a disk that is really full.

The program kill_writer is named by the variable CINGULUM_TEST_KILL_WRITER, the rest as tests/support/killed_outputs.py says:
CINGULUM_TEST_KILLS is the number of kills (40 unless set; the long tier takes 1000). The random moments follow from
CINGULUM_TEST_KILL_SEED, which is printed.
"""

import fcntl
import os
import pty
import random
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from killed_outputs import KILLS, SEED, KillCase, Writer  # noqa: E402

# A shell in the background has SIGINT ignored, and so would every program that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
WRITER = os.environ.get("CINGULUM_TEST_KILL_WRITER", "build/bin/kill_writer")
SIZE = 6_000_000


def content(seed, size=SIZE):
    """The bytes that kill_writer writes for a seed."""
    return bytes((((i + seed) * 2654435761) & (2**64 - 1)) >> 24 & 0xFF for i in range(size))


def write(path, seed, size=SIZE):
    return subprocess.run([WRITER, str(path), str(size), str(seed)], capture_output=True, text=True, check=False)


class Killed(unittest.TestCase):
    def test_writer_killed_at_any_moment_leaves_the_old_or_the_new_content(self):
        print(f"seed {SEED}, {KILLS} kills")
        choose = random.Random(SEED)
        contents = [content(0), content(1)]
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
            path = Path(folder) / "out.bin"
            durations = []
            for _ in range(5):
                begin = time.monotonic()
                self.assertEqual(write(path, 0).returncode, 0)
                durations.append(time.monotonic() - begin)
            duration = sorted(durations)[2]
            before = 0
            counts = {"old": 0, "new": 0, "leftovers": 0}
            for _ in range(KILLS):
                with subprocess.Popen([WRITER, str(path), str(SIZE), str(1 - before)]) as process:
                    time.sleep(choose.uniform(0, 1.1 * duration))
                    process.send_signal(signal.SIGKILL)
                found = path.read_bytes()
                self.assertIn(found, contents, f"torn file of {len(found)} bytes; seed {SEED}")
                after = contents.index(found)
                counts["old" if after == before else "new"] += 1
                before = after
                others = [name for name in os.listdir(folder) if name != "out.bin"]
                for name in others:
                    self.assertRegex(name, r"^out\.bin\.partial-\d+-\d+$")
                self.assertLessEqual(len(others), 1, "the next run did not remove the leftover of the one before")
                counts["leftovers"] += len(others)
            self.assertEqual(write(path, before).returncode, 0)
            self.assertEqual(os.listdir(folder), ["out.bin"])
            print(f"a run takes {duration * 1e3:.0f} ms; {counts}")
            # Otherwise the moments were not spread over the run, and nothing was tested.
            self.assertGreater(counts["old"], 0)
            self.assertGreater(counts["leftovers"], 0)


class KilledWithSidecar(KillCase):
    def writer(self):
        folder = self.scratch / "out"
        folder.mkdir()
        command = lambda variant, force: [WRITER, str(folder / "out.bin"), "600000", str(variant),
                                          "sidecar" if force else "fresh"]
        return Writer(folder, ["out.bin"], command)

    def test_file_and_sidecar_fit_whenever_the_writer_is_killed(self):
        self.kill_often(self.writer())

    def test_file_and_sidecar_fit_before_every_step(self):
        self.kill_before_every_step(self.writer())


class Terminal:
    """A program on a terminal of its own, where Ctrl-C is a key."""

    def __init__(self, command):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def press_ctrl_c(self):
        os.write(self.master, b"\x03")

    def wait(self, seconds):
        """The exit code and all that was shown."""
        deadline = time.monotonic() + seconds
        shown = b""
        os.set_blocking(self.master, False)
        while self.process.poll() is None and time.monotonic() < deadline:
            shown += self.read()
            time.sleep(0.002)
        if self.process.poll() is None:
            self.process.kill()
            raise AssertionError(f"the program did not end within {seconds} s; shown: {shown!r}")
        # The kernel passes on what was written some time later, maybe after the program's end: read until it says so.
        os.set_blocking(self.master, True)
        while rest := self.read():
            shown += rest
        os.close(self.master)
        return self.process.returncode, shown

    def read(self):
        try:
            return os.read(self.master, 65536)
        except (BlockingIOError, OSError):
            return b""


class Interrupted(unittest.TestCase):
    size = 2_400_000  # about 0.4 s in the slow modes

    def stop(self, mode, presses, choose):
        """Presses Ctrl-C at a random moment; the exit code."""
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
            path = Path(folder) / "out.bin"
            path.write_bytes(b"old")
            terminal = Terminal([WRITER, str(path), str(self.size), "1", mode])
            time.sleep(choose.uniform(0, 0.4))
            for _ in range(presses):
                terminal.press_ctrl_c()
                time.sleep(0.02)
            code, shown = terminal.wait(1 if mode == "polite" else 10)
            found = path.read_bytes()
            self.assertIn(found, [b"old", self.expected])
            self.assertEqual(os.listdir(folder), ["out.bin"], f"{mode}, exit code {code}")
            if code == 0:
                self.assertEqual(found, self.expected)
            # The terminal shows the key itself as ^C.
            last_line = shown.split(b"\n")[-1].split(b"\r")[-1].replace(b"^C", b"")
            self.assertIn(last_line, [b"", b"\x1b[K"], f"the bar stands on the terminal: {shown!r}")
            return code

    def setUp(self):
        self.expected = content(1, self.size)

    def test_first_ctrl_c_ends_polite_work_within_a_second_and_leaves_nothing(self):
        choose = random.Random(SEED)
        codes = [self.stop("polite", 1, choose) for _ in range(max(10, KILLS // 5))]
        print(f"seed {SEED}, polite: {codes}")
        # SIGINT before the handlers are installed ends the process by the signal itself.
        self.assertLessEqual(set(codes), {0, 130, -signal.SIGINT})
        self.assertIn(130, codes)

    def test_second_ctrl_c_ends_stubborn_work_and_leaves_nothing(self):
        choose = random.Random(SEED)
        codes = [self.stop("stubborn", 2, choose) for _ in range(max(10, KILLS // 5))]
        print(f"seed {SEED}, stubborn: {codes}")
        self.assertLessEqual(set(codes), {0, 130, -signal.SIGINT})
        self.assertIn(130, codes)


FULL_DISK = r"""
set -eu
mount -t tmpfs -o size=4m tmpfs "$1"
"$2" "$1/out.bin" 1000000 0
cp "$1/out.bin" "$1/../old.bin"
status=0
"$2" "$1/out.bin" 6000000 1 2> "$1/../message" || status=$?
echo "$status" > "$1/../status"
ls "$1" > "$1/../names"
cmp "$1/out.bin" "$1/../old.bin"
"$2" "$1/out.bin" 2000000 1
"""


class FullDisk(unittest.TestCase):
    def test_full_disk_is_reported_with_numbers_and_leaves_the_old_file_alone(self):
        can = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
        if can.returncode != 0:
            self.skipTest(f"no user namespace here: {can.stderr.decode().strip()}")
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
            disk = Path(folder) / "disk"
            disk.mkdir()
            run = subprocess.run(
                ["unshare", "-rm", "sh", "-c", FULL_DISK, "sh", str(disk), os.path.abspath(WRITER)],
                capture_output=True, text=True, check=False)
            if "mount" in run.stderr:
                self.skipTest(f"no tmpfs here: {run.stderr.strip()}")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual((Path(folder) / "status").read_text(), "1\n")
            self.assertEqual((Path(folder) / "names").read_text(), "out.bin\n")
            message = (Path(folder) / "message").read_text()
            self.assertEqual(message.count("\n"), 1, message)
            self.assertRegex(
                message,
                r"^kill_writer: writing \S+/out\.bin: no space left on device: at least \S+ \S+ needed, "
                r"\S+ \S+ free in \S+; make room or write elsewhere$")


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
