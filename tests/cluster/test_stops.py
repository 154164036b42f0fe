"""The workflow is stopped at random moments, by Ctrl-C, by a kill of Nextflow or of a task, by a full disk. After -resume
the files are those of single runs, and no finished task was repeated.

CINGULUM_TEST_STOPS: how many stops (4; tools/test-long cluster: 16, and 4 lost nodes of Slurm); CINGULUM_TEST_SEED: the
seed of the moments.
"""
import ctypes
import datetime
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite
import pipeline
from pipeline import Case, Run

STOPS = int(os.environ.get("CINGULUM_TEST_STOPS", "4"))
SEED = int(os.environ.get("CINGULUM_TEST_SEED", str(int(time.time()))))
PARTS = 4
# EXPLAIN, PREPARE, four of TRACK, MERGE, REPORT of two subjects, and COMPLETE.
TASKS = 2 * (4 + PARTS) + 1
UNITS = {f"sub-{name}/dwi/sub-{name}_tract-wholebrain_tractogram": number for number, name in enumerate("ab")}


def tearDownModule():
    pipeline.remove_phantoms()


def own_mounts():
    """Mounts of this process are seen by it and its children alone, and end with them."""
    new_namespace = 0x00020000
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(new_namespace) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


@suite.needs("nextflow")
class Stops(Case):
    def begin(self, *more):
        run = Run(self.folder, "--input", self.folder / "sheet.csv", "--parts", PARTS, "--cpus", "1", "--cohort", "false",
                  "--track_args", pipeline.TRACK_ARGUMENTS, *more)
        self.addCleanup(run.end)
        return run

    def completed(self, log=".nextflow.log"):
        """Names of tasks that Nextflow has noted as done, with the moment."""
        text = (self.folder / log).read_text() if (self.folder / log).exists() else ""
        found = re.findall(r"^\w+-\d+ ([\d:.]+) .*Task completed > TaskHandler\[id: \d+; name: (.*?); status: COMPLETED; exit: 0;",
                           text, re.M)
        return {name: datetime.datetime.strptime(moment, "%H:%M:%S.%f") for moment, name in found}

    def wait_for(self, run, tasks, delay):
        """Until so many tasks are done, and a little longer; True unless the run ended before."""
        try:
            run.until(lambda: len(self.completed()) >= tasks)
        except AssertionError:
            return False
        time.sleep(delay)
        return run.process.poll() is None

    def check_resumed(self, done_before):
        again = self.begin("-resume").wait()
        self.assertEqual(again.status, 0, again.said())
        counts = again.counts()
        self.assertGreaterEqual(counts["cached"], len(done_before), again.said())
        self.assertEqual(counts["cached"] + counts["succeeded"], TASKS, again.said())
        repeated = set(re.findall(r"Submitted process > (.*)", again.said())) & set(done_before)
        self.assertEqual(repeated, set(), f"finished tasks were repeated:\n{again.said()}")
        self.assert_single_runs(self.folder / "results",
                                {name: (pipeline.phantom(number), True) for name, number in UNITS.items()})

    # Each gives the tasks that were done when it struck.
    def stop_by_interrupt(self, run):
        done = self.completed()
        run.process.send_signal(signal.SIGINT)
        run.wait(60)
        self.assertNotEqual(run.status, 0)
        return done

    def stop_by_kill_of_nextflow(self, run):
        done, struck = self.completed(), datetime.datetime.now()
        run.process.kill()
        run.process.wait()
        # What Nextflow notes in its last moment may be lost with it: the note of the log and that of the cache are two.
        moment_before = (struck - datetime.timedelta(seconds=1)).time()
        return {name: moment for name, moment in done.items() if moment.time() < moment_before}

    def stop_by_kill_of_a_task(self, run):
        """No stop at all: the task is done again, and the run ends well."""
        work = str(self.folder / "work")

        def victim():
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    if len(words) > 1 and words[0].endswith(b"cingulum") and words[1] in (b"track", b"merge", b"report") and \
                            os.readlink(entry / "cwd").startswith(work):
                        os.kill(int(entry.name), signal.SIGKILL)
                        return True
                except (OSError, ValueError):
                    continue
            return False

        run.until(victim, step=0.002)
        run.wait()
        self.assertEqual(run.status, 0, run.said())
        self.assertEqual(run.counts()["retries"], 1, run.said())
        return self.completed()

    def stop_by_a_full_disk(self, run):
        done = self.completed()
        ballast = self.folder / "work" / "ballast"
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 65536)
            except OSError:
                pass
        run.wait(90)
        ballast.unlink()
        self.assertNotEqual(run.status, 0, run.said())
        return done

    def test_after_any_stop_resume_gives_the_files_of_single_runs_and_repeats_nothing(self):
        print(f"CINGULUM_TEST_SEED={SEED}", flush=True)
        draw = random.Random(SEED)
        kinds = [self.stop_by_interrupt, self.stop_by_kill_of_nextflow, self.stop_by_kill_of_a_task, self.stop_by_a_full_disk]
        struck = 0
        own_mounts()
        for number in range(STOPS):
            stop = kinds[number % len(kinds)]
            with self.subTest(stop=number, kind=stop.__name__):
                subprocess.run(["rm", "-rf", *self.folder.glob("*"), *self.folder.glob(".nextflow*")], check=True)
                self.sheet("a", "b")
                work = self.folder / "work"
                work.mkdir()
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", work], check=True)
                try:
                    # The last tasks are few and short: before them, so that there is something to stop.
                    tasks, delay = draw.randint(1, TASKS - 5), draw.random() * 0.5
                    run = self.begin()
                    if not self.wait_for(run, tasks, delay):
                        self.fail(f"the run ended before it could be stopped after {tasks} tasks:\n{run.said()}")
                    done = stop(run)
                    print(f"stop {number}: {stop.__name__} after {tasks} tasks and {delay:.2f} s", flush=True)
                    self.check_resumed(done)
                    struck += 1
                finally:
                    subprocess.run(["umount", "-l", work], check=True)
        self.assertEqual(struck, STOPS)


if __name__ == "__main__":
    suite.main()
