"""Writers of Zarr under kill -9 while an array is written. A new array is there whole or not at all, an old one is replaced
as a whole, and of a region that is written into an array every shard is the old or the new one. What is left besides are names with
.partial-, which the next run to the end removes.

CINGULUM_TEST_ZARR_PROBE names zarr_probe, CINGULUM_TEST_FILE_CALLS the library that ends it before a chosen step (file_calls.py);
kills and seed are as in tests/support/killed_outputs.py.
"""
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import file_calls  # noqa: E402
import suite  # noqa: E402
from killed_outputs import KILLS, PARTIAL, SEED, digest  # noqa: E402
from probe import PROGRAM, Probe  # noqa: E402

CODECS = {"plain": {}, "zstd": {"codec": "zstd"}}


class Writer:
    """Writes variant 0 or 1 of an array into `folder`, as a new array or into the one that is there."""

    def __init__(self, scratch, name, shape, op="new", threads=2, **members):
        self.folder = scratch / "out"
        self.folder.mkdir()
        self.array = self.folder / name
        random_values = np.random.default_rng(SEED)
        self.values = [random_values.integers(0, 3000, shape).astype(np.uint16) for _ in range(2)]
        self.requests = {}
        for variant, values in enumerate(self.values):
            values.tofile(scratch / f"{variant}.raw")
            for force in (False, True):
                request = {"op": "new", "store": str(self.array), "type": "uint16", "shape": list(shape), "sync": True,
                           "force": force, "threads": 2, "from": str(scratch / f"{variant}.raw"), **members}
                self.requests["new", variant, force] = self.keep(scratch, request)
            request = {"op": "write", "store": str(self.array), "origin": [0] * len(shape), "shape": list(shape), "sync": True,
                       "threads": threads, "from": str(scratch / f"{variant}.raw")}
            self.requests["write", variant, True] = self.keep(scratch, request)
        self.op = op

    @staticmethod
    def keep(scratch, request):
        path = scratch / f"request-{len(list(scratch.iterdir()))}.json"
        path.write_text(json.dumps(request) + "\n")
        return path

    def command(self, variant, force=True, op=None):
        return ["sh", "-c", f"exec '{PROGRAM}' < '{self.requests[op or self.op, variant, force]}'"]

    def make_whole(self, variant, op=None):
        done = subprocess.run(self.command(variant, op=op), check=True, capture_output=True, text=True)
        assert "error" not in json.loads(done.stdout), done.stdout

    def leftovers(self):
        return [str(path) for path in self.folder.rglob("*") if PARTIAL.search(path.name)]


class KilledZarr(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        self.addCleanup(temporary.cleanup)
        self.scratch = Path(os.path.realpath(temporary.name))
        self.probe = Probe()
        self.addCleanup(self.probe.close)
        self.choose = random.Random(f"{SEED} {self.id()}")

    def kill(self, writer, command, duration, steps):
        """At a random moment, or every other time before a random step."""
        if steps and self.choose.random() < 0.5:
            file_calls.run_until(command, writer.folder, self.choose.randint(1, steps))
            return
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(self.choose.uniform(0, 1.1 * duration))
            process.send_signal(signal.SIGKILL)

    def measure(self, writer, op):
        """Digests of both variants, seconds and steps of a run."""
        writer.make_whole(0, op="new")
        digests, begin = [digest(writer.array)], time.monotonic()
        writer.make_whole(1, op=op)
        duration = time.monotonic() - begin
        digests.append(digest(writer.array))
        self.assertNotEqual(*digests)
        steps = 0
        if file_calls.LIBRARY:
            steps = sum(call.name != "write" for call in file_calls.record(writer.command(0, op=op), writer.folder))
        return digests, duration, steps

    def read(self, array):
        return self.probe.read(array, complete=True)[0]

    def replace_often(self, name, **members):
        """A new array in the place of an old one."""
        writer = Writer(self.scratch, name, (96, 64, 64), chunks=[16, 32, 32], **members)
        digests, duration, steps = self.measure(writer, "new")
        current, counts, leftovers = digest(writer.array), collections.Counter(), 0
        for _ in range(KILLS):
            wanted = 1 - digests.index(current)
            self.kill(writer, writer.command(wanted), duration, steps)
            found = digest(writer.array)
            self.assertIn(found, digests, f"{name} is torn; seed {SEED}")
            counts["new" if found == digests[wanted] else "old"] += 1
            np.testing.assert_array_equal(self.read(writer.array), writer.values[digests.index(found)])
            leftovers += len(writer.leftovers()) > 0
            current = found
        writer.make_whole(0)
        self.assertEqual(writer.leftovers(), [])
        print(f"{name}: {KILLS} kills, a run takes {duration * 1e3:.0f} ms; {dict(counts)}, {leftovers} with leftovers; seed {SEED}")
        self.assertGreater(counts["old"], 0)
        self.assertGreater(leftovers, 0)

    def test_a_folder_that_replaces_another_is_the_old_or_the_new_one(self):
        self.replace_often("a.zarr", shards=[32, 32, 32])

    def test_an_archive_that_replaces_another_is_the_old_or_the_new_one(self):
        self.replace_often("a.zarr.zip", shards=[32, 32, 32], codec="zstd")

    def test_a_new_array_is_whole_or_not_there(self):
        for name in ("a.zarr", "a.zarr.zip"):
            writer = Writer(self.scratch / self.folder_of(name), name, (64, 64, 32), chunks=[16, 32, 32], shards=[32, 32, 32])
            digests, duration, steps = self.measure(writer, "new")
            counts = collections.Counter()
            for _ in range(KILLS):
                shutil.rmtree(writer.folder)
                writer.folder.mkdir()
                self.kill(writer, writer.command(1, force=False), duration, steps)
                found = digest(writer.array)
                self.assertIn(found, (None, digests[1]), f"{name} is torn; seed {SEED}")
                counts["absent" if found is None else "whole"] += 1
                for path in writer.folder.iterdir():
                    self.assertTrue(path == writer.array or PARTIAL.search(path.name), path)
            print(f"new {name}: {KILLS} kills, a run takes {duration * 1e3:.0f} ms; {dict(counts)}; seed {SEED}")
            self.assertGreater(counts["absent"], 0)

    def folder_of(self, name):
        (self.scratch / f"for-{name}").mkdir()
        return f"for-{name}"

    def test_every_shard_of_a_region_is_the_old_or_the_new_one(self):
        for coding, members in CODECS.items():
            writer = Writer(self.scratch / self.folder_of(coding), "a.zarr", (96, 64, 64), op="write", chunks=[16, 32, 32],
                            shards=[32, 32, 32], **members)
            _, duration, steps = self.measure(writer, "write")
            expected = []
            for variant in (0, 1):
                writer.make_whole(variant)
                expected.append({path.relative_to(writer.array): path.read_bytes()
                                 for path in writer.array.rglob("*") if path.is_file()})
            counts = collections.Counter()
            for kill in range(KILLS):
                wanted = kill % 2
                self.kill(writer, writer.command(wanted), duration, steps)
                values = self.read(writer.array)
                keys = 0
                for key in expected[0]:
                    found = (writer.array / key).read_bytes()
                    self.assertIn(found, (expected[0][key], expected[1][key]), f"{key} is torn; seed {SEED}")
                    if expected[0][key] != expected[1][key]:
                        keys += found == expected[wanted][key]
                counts["all" if keys == len(expected[0]) - 1 else "some" if keys else "none"] += 1
                for z in range(0, 96, 32):
                    for y in range(0, 64, 32):
                        for x in range(0, 64, 32):
                            box = (slice(z, z + 32), slice(y, y + 32), slice(x, x + 32))
                            self.assertTrue(any((values[box] == each[box]).all() for each in writer.values), box)
            writer.make_whole(0)
            self.assertEqual(writer.leftovers(), [])
            print(f"region, {coding}: {KILLS} kills, a run takes {duration * 1e3:.0f} ms; {dict(counts)} shards new; seed {SEED}")
            self.assertGreater(counts["some"] + counts["none"], 0)

    def test_before_every_step(self):
        if not file_calls.LIBRARY:
            self.skipTest("CINGULUM_TEST_FILE_CALLS names no library")
        for name in ("a.zarr", "a.zarr.zip"):
            writer = Writer(self.scratch / self.folder_of(name), name, (8, 8), chunks=[4, 4], shards=[4, 8])
            digests, _, steps = self.measure(writer, "new")
            self.assertGreater(steps, 3)
            states = collections.Counter()
            for step in range(1, steps + 1):
                writer.make_whole(0)
                self.assertEqual(writer.leftovers(), [], "a run to the end removes what killed ones left")
                self.assertTrue(file_calls.run_until(writer.command(1), writer.folder, step))
                found = digest(writer.array)
                self.assertIn(found, digests, f"{name}, step {step}")
                states["old" if found == digests[0] else "new"] += 1
            print(f"{name}: killed before each of {steps} steps: {dict(states)}")
            self.assertEqual(set(states), {"old", "new"})

    def test_a_region_before_every_step(self):
        if not file_calls.LIBRARY:
            self.skipTest("CINGULUM_TEST_FILE_CALLS names no library")
        # By one thread the shards get their names one after the other; by two both may have theirs between two kills.
        writer = Writer(self.scratch, "a.zarr", (8, 8), op="write", threads=1, chunks=[4, 4], shards=[4, 8])
        writer.make_whole(0, op="new")
        steps = sum(call.name != "write" for call in file_calls.record(writer.command(1), writer.folder))
        self.assertGreater(steps, 8)
        states = collections.Counter()
        for step in range(1, steps + 1):
            writer.make_whole(0)
            self.assertEqual(writer.leftovers(), [], "a run to the end removes what killed ones left")
            self.assertTrue(file_calls.run_until(writer.command(1), writer.folder, step))
            values = self.read(writer.array)
            fresh = 0
            for row in (slice(0, 4), slice(4, 8)):
                self.assertTrue(any((values[row] == each[row]).all() for each in writer.values), step)
                fresh += (values[row] == writer.values[1][row]).all()
            states[int(fresh)] += 1
        print(f"region: killed before each of {steps} steps, shards new: {dict(states)}")
        self.assertEqual(set(states), {0, 1, 2})


if __name__ == "__main__":
    suite.main()
