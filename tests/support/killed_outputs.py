"""What kill -9 leaves of outputs and their sidecars, for the tests of every writer and verb.

A writer makes one of two variants of its outputs. It is killed at random moments, at random steps and, in order, before every
single step (file_calls.py). Each time every output is the old or the new one, bytes equal, and `cingulum verify` calls it
whole; how often each state of file and sidecar was met is counted. CINGULUM names the program, CINGULUM_TEST_KILLS the kills
per writer (40 unless set; the long tier takes 1000); the random moments follow from CINGULUM_TEST_KILL_SEED, which is printed.
"""

import collections
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import file_calls

CINGULUM = os.path.abspath(os.environ.get("CINGULUM", "build/bin/cingulum"))
KILLS = int(os.environ.get("CINGULUM_TEST_KILLS", "40"))
LONG = KILLS > 40
SEED = int(os.environ.get("CINGULUM_TEST_KILL_SEED", str(random.randrange(2**32))))
PARTIAL = re.compile(r"\.partial-\d+-\d+$")


def digest(path):
    """The hash of a file, or of names and bytes of all files of a folder; None when nothing is there."""
    if path.is_dir():
        parts = sorted((str(p.relative_to(path)), hashlib.sha256(p.read_bytes()).hexdigest())
                       for p in path.rglob("*") if p.is_file())
        return hashlib.sha256(repr(parts).encode()).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def sidecar_of(output):
    return output.with_name(output.name + ".json")


class Writer:
    """Writes into `folder`: command(variant, force) makes variant 0 or 1 of `outputs`, which are paths in it.

    Those in `bare` get no sidecar. `fills_folder`: the verb refuses a folder that is not empty.
    """

    def __init__(self, folder, outputs, command, bare=(), fills_folder=False):
        self.folder = folder
        self.outputs = [folder / output for output in outputs]
        self.bare = {folder / output for output in bare}
        self.command = command
        self.fills_folder = fills_folder

    def clear(self):
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def sidecars(self):
        """The text of each sidecar, None where there is none."""
        paths = {output: sidecar_of(output) for output in self.outputs}
        return {output: path.read_text() if path.exists() else None for output, path in paths.items()}


class KillCase(unittest.TestCase):
    """A test case that kills writers and looks at what is left."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        self.addCleanup(temporary.cleanup)
        self.scratch = Path(os.path.realpath(temporary.name))
        self.kept = self.scratch / "kept"
        self.kept.mkdir()
        self.copies = []  # (path of a copy, whether it must have a sidecar)
        self.serial = 0

    def make_whole(self, writer, variant):
        """Runs to the end; the digest of each output."""
        subprocess.run(writer.command(variant, True), check=True, capture_output=True)
        self.expect_no_leftovers(writer)
        return {output: digest(output) for output in writer.outputs}

    def expect_no_leftovers(self, writer):
        left = [str(path) for path in writer.folder.rglob("*") if PARTIAL.search(path.name)]
        self.assertEqual(left, [], "a run to the end leaves what a killed one left")

    def states_after(self, writer, before, sidecars_before, wanted):
        """What is there now, per output, as CONTENT+SIDECAR; the outputs are kept for verify_all()."""
        states = {}
        for output in writer.outputs:
            found = digest(output)
            self.assertIn(found, (before[output], wanted[output]), f"{output.name} is torn; seed {SEED}")
            content = "absent" if found is None else "old" if found == before[output] else "new"
            sidecar = sidecar_of(output)
            text = sidecar.read_text() if sidecar.exists() else None
            if text is None:
                kind = "none"
            elif "pending" in json.loads(text):
                kind = "pending"
            else:
                kind = "old" if text == sidecars_before[output] else "final"
            states[output] = f"{content}+{kind}"
            if found is not None:
                self.keep(output, sidecar, output not in writer.bare)
        return states

    def keep(self, output, sidecar, has_sidecar):
        """By links: writers never change a file that has its name."""
        self.serial += 1
        folder = self.kept / str(self.serial)
        folder.mkdir()
        copy = folder / output.name
        if output.is_dir():
            shutil.copytree(output, copy, copy_function=os.link)
        else:
            os.link(output, copy)
        if sidecar.exists():
            os.link(sidecar, sidecar_of(copy))
        self.copies.append((copy, has_sidecar))
        if len(self.copies) >= 200:
            self.verify_all()

    def verify_all(self):
        """`cingulum verify` calls everything whole that was found."""
        if not self.copies:
            return
        result = subprocess.run([CINGULUM, "verify", "--json", *(str(copy) for copy, _ in self.copies)],
                                capture_output=True, text=True, check=False)
        answers = {entry["file"]: entry for entry in json.loads(result.stdout)["files"]}
        for copy, has_sidecar in self.copies:
            answer = answers[str(copy)]
            self.assertFalse(answer["damaged"], f"a false alarm; seed {SEED}: {answer}")
            if has_sidecar:
                self.assertIn("sidecar XXH3-128", answer["checksums"], answer)
        self.assertEqual(result.returncode, 0)
        shutil.rmtree(self.kept)
        self.kept.mkdir()
        self.copies = []

    def kill_often(self, writer):
        """Overwrites with --force; kills at random moments and, every other time, before a random step."""
        choose = random.Random(f"{SEED} {writer.outputs[0].name}")
        variants, durations = [None, None], []
        for variant in (1, 0, 1, 0):
            begin = time.monotonic()
            variants[variant] = self.make_whole(writer, variant)
            durations.append(time.monotonic() - begin)
        main = writer.outputs[0]
        self.assertNotEqual(variants[0][main], variants[1][main])
        duration = sorted(durations)[1]
        steps = 0
        if file_calls.LIBRARY:
            steps = sum(call.name != "write" for call in file_calls.record(writer.command(0, True), writer.folder))
        before = dict(variants[0])
        counts, leftovers = collections.Counter(), 0
        for kill in range(KILLS):
            wanted = variants[1] if before[main] == variants[0][main] else variants[0]
            command = writer.command(variants.index(wanted), True)
            sidecars = writer.sidecars()
            if steps and kill % 2:
                file_calls.run_until(command, writer.folder, choose.randint(1, steps))
            else:
                with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                    time.sleep(choose.uniform(0, 1.1 * duration))
                    process.send_signal(signal.SIGKILL)
            for output, state in self.states_after(writer, before, sidecars, wanted).items():
                if output not in writer.bare and before[output] != wanted[output]:
                    counts[state] += 1
            before = {output: digest(output) for output in writer.outputs}
            leftovers += sum(PARTIAL.search(path.name) is not None for path in writer.folder.rglob("*"))
        self.verify_all()
        self.make_whole(writer, variants.index(wanted))
        print(f"{main.name}: {KILLS} kills, a run takes {duration * 1e3:.0f} ms; {dict(counts)}, {leftovers} leftovers; seed {SEED}")
        self.assertLessEqual(set(counts), {"old+old", "old+pending", "new+pending", "new+final"})
        # Otherwise the moments were not spread over the run, and nothing was tested.
        self.assertGreater(counts["old+old"] + counts["old+pending"], 0)
        self.assertGreater(leftovers, 0)

    def steps_of(self, writer, variant, force):
        """Numbers of steps to be killed at: all; in the quick tier those around files with a sidecar, of many every fifth."""
        steps = [call for call in file_calls.record(writer.command(variant, force), writer.folder) if call.name != "write"]
        if LONG:
            return range(1, len(steps) + 1)
        pairs = tuple(str(output) for output in writer.outputs if output not in writer.bare)
        numbers = set()
        for number, call in enumerate(steps, 1):
            if call.path.startswith(pairs):
                numbers.update((number, min(number + 1, len(steps))))
        return sorted(numbers)[::5 if len(numbers) > 50 else 1]

    def kill_before_every_step(self, writer):
        """In order, while an old file is replaced and while nothing is there; every state of the window is met."""
        if not file_calls.LIBRARY:
            self.skipTest("CINGULUM_TEST_FILE_CALLS names no library")
        with_sidecar = [output for output in writer.outputs if output not in writer.bare]
        old, new = self.make_whole(writer, 0), self.make_whole(writer, 1)
        self.make_whole(writer, 0)
        replaced = collections.Counter()
        for step in self.steps_of(writer, 1, True):
            self.make_whole(writer, 0)
            sidecars = writer.sidecars()
            self.assertTrue(file_calls.run_until(writer.command(1, True), writer.folder, step))
            states = self.states_after(writer, old, sidecars, new)
            replaced.update(states[output] for output in with_sidecar if old[output] != new[output])
        fresh = collections.Counter()
        nothing = dict.fromkeys(writer.outputs)
        writer.clear()
        steps = self.steps_of(writer, 1, False)
        for step in steps:
            writer.clear()
            killed = file_calls.run_until(writer.command(1, False), writer.folder, step)
            self.assertTrue(killed)
            states = self.states_after(writer, nothing, nothing, new)
            fresh.update(states[output] for output in with_sidecar)
            if not writer.fills_folder and states[writer.outputs[0]].startswith("absent"):
                # What a killed run left is no reason to refuse the next one.
                result = subprocess.run(writer.command(1, False), capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.expect_no_leftovers(writer)
                self.assertEqual(digest(writer.outputs[0]), new[writer.outputs[0]])
                self.assertNotIn("pending", json.loads(sidecar_of(writer.outputs[0]).read_text()))
        self.verify_all()
        print(f"{writer.outputs[0].name}: before each step, replacing: {dict(replaced)}; where nothing was: {dict(fresh)}")
        expected = {"old+old", "old+pending", "new+pending", "new+final"}
        expected_fresh = {"absent+none", "absent+pending", "new+pending", "new+final"}
        self.assertEqual(set(replaced), expected)
        self.assertEqual(set(fresh), expected_fresh)
