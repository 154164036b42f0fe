"""A host that dies in any state of its actors' life leaves nothing behind. Five hosts at a time, each in a state
of its own, are ended by SIGKILL, SIGSEGV, SIGINT, SIGTERM and by calling exit(); within five seconds they and every process
they started are gone, on a GPU also its memory and its load (NVML, read by this process), and the next hosts start.

CINGULUM_TEST_RING_HOST names the program; CINGULUM_TEST_DEATH_DEVICE is cpu, child, emulated or cuda (several, with
commas); CINGULUM_TEST_DEATHS is the number of rounds of five (one for each state unless set; the goal is 20)."""
import ctypes
import os
import signal
import subprocess
import time
import unittest

# A shell in the background has SIGINT ignored, and so would every program that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
HOST = os.environ["CINGULUM_TEST_RING_HOST"]
DEVICES = os.environ.get("CINGULUM_TEST_DEATH_DEVICE", "cpu,child,emulated").split(",")
STATES = ["created", "launched", "active", "deactivated", "terminating", "failed"]
ROUNDS = int(os.environ.get("CINGULUM_TEST_DEATHS", str(len(STATES))))
WAYS = [signal.SIGKILL, signal.SIGSEGV, signal.SIGINT, signal.SIGTERM, "exit"]
SLACK_BYTES = 32 << 20


class Gpu:
    """What NVML says of the first GPU: bytes in use and the share of time in which a kernel ran."""

    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    class Utilisation(ctypes.Structure):
        _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]

    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        assert self.nvml.nvmlInit_v2() == 0
        self.handle = ctypes.c_void_p()
        assert self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle)) == 0

    def used_bytes(self):
        memory = self.Memory()
        assert self.nvml.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(memory)) == 0
        return memory.used

    def load(self):
        value = self.Utilisation()
        assert self.nvml.nvmlDeviceGetUtilizationRates(self.handle, ctypes.byref(value)) == 0
        return value.gpu


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as text:
        found = [int(word) for word in text.read().split()]
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/children", encoding="ascii") as text:
            found += [int(word) for word in text.read().split()]
    return sorted(set(found))


def is_there(process):
    """Whether it runs; a zombie of somebody else's does not."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as text:
            return text.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class HostDeath(unittest.TestCase):
    def die(self, device, turn, gpu):
        used_before = gpu.used_bytes() if gpu else 0
        hosts = []
        for number, way in enumerate(WAYS):
            state = STATES[(turn + number) % len(STATES)]
            process = subprocess.Popen([HOST, device, state], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            hosts.append((process, state, way))
        started = []
        for process, state, _ in hosts:
            self.assertEqual(process.stdout.readline(), b"ready\n", f"{device} {state}")
            started += [(state, child) for child in children_of(process.pid)]
        if device == "child":
            self.assertEqual(len(started), len(hosts))
        time.sleep(0.05)
        begin = time.monotonic()
        for process, _, way in hosts:
            if way == "exit":
                process.stdin.close()
            else:
                process.send_signal(way)
        for process, state, way in hosts:
            try:
                code = process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                raise AssertionError(f"{device} {state}: {way} did not end it within 5 s") from None
            self.assertEqual(code, 3 if way == "exit" else -way, f"{device} {state}")
            process.stdout.close()
            if not process.stdin.closed:
                process.stdin.close()
        ended = time.monotonic() - begin
        while time.monotonic() - begin < 5:
            left = [(state, child) for state, child in started if is_there(child)]
            idle = not gpu or (gpu.used_bytes() <= used_before + SLACK_BYTES and gpu.load() == 0)
            if not left and idle:
                break
            time.sleep(0.01)
        self.assertEqual(left, [], f"{device}: processes of dead hosts after 5 s")
        self.assertTrue(idle, f"{device}: the GPU is not idle 5 s after its hosts died")
        return ended, time.monotonic() - begin

    def test_nothing_is_left_of_a_host_that_dies_in_any_state(self):
        for device in DEVICES:
            gpu = Gpu() if device == "cuda" else None
            times = [self.die(device, turn, gpu) for turn in range(ROUNDS)]
            print(f"{device}: {ROUNDS} x {len(WAYS)} hosts; processes gone after {max(t[0] for t in times):.2f} s at most, "
                  f"{'GPU idle and its memory back' if gpu else 'their children'} after {max(t[1] for t in times):.2f} s",
                  flush=True)


if __name__ == "__main__":
    import pathlib
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
