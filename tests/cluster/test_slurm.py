"""The workflow on a real Slurm of two nodes on this machine: arrays, a GPU that is asked for, a node that is lost.

CINGULUM_TEST_LOSSES: how many nodes are lost (1; tools/test-long cluster: 4); CINGULUM_TEST_SEED: at which tasks.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite
import pipeline
from pipeline import PROJECT, Case, Run

LOSSES = int(os.environ.get("CINGULUM_TEST_LOSSES", "1"))
SEED = int(os.environ.get("CINGULUM_TEST_SEED", str(int(time.time()))))
SLURM = PROJECT / "tools" / "slurm-on-one-machine"
# Nodes answer at once here: Nextflow need not be patient.
QUICK = """
executor { pollInterval = '1 sec'; queueStatInterval = '2 sec'; exitReadTimeout = '10 sec'; submitRateLimit = null }
process.resourceLimits = [cpus: 1, memory: 2000.MB, time: 1.h]
"""


def tearDownModule():
    pipeline.remove_phantoms()


@suite.needs("nextflow", "slurm")
class Slurm(Case):
    @classmethod
    def setUpClass(cls):
        # A test that is asked to end ends its daemons first; one that is killed is noticed by their watch.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        # Not below the build folder: names of sockets may have 107 characters.
        cls.cluster = tempfile.mkdtemp(prefix="cingulum-slurm-", dir="/tmp")
        cls.addClassCleanup(shutil.rmtree, cls.cluster, ignore_errors=True)
        cls.addClassCleanup(subprocess.run, [SLURM, "stop", cls.cluster])
        subprocess.run([SLURM, "start", cls.cluster, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)

    def slurm(self, *words):
        return subprocess.run(words, env=dict(os.environ, SLURM_CONF=f"{self.cluster}/slurm.conf"), capture_output=True,
                              text=True, check=True).stdout

    def run_on_slurm(self, *arguments, shim=None):
        quick = self.folder / "quick.config"
        quick.write_text(QUICK)
        run = Run(self.folder, "-profile", "slurm,gpu", "-c", quick, "--device", "cpu", "--device_cores", "1", "--cpus", "1",
                  "--track_args", pipeline.TRACK_ARGUMENTS, "--cohort", "false", *arguments, before=[shim] if shim else [],
                  environment={"SLURM_CONF": f"{self.cluster}/slurm.conf"})
        self.addCleanup(run.end)
        return run

    def shim(self, text):
        """A program in front of ours that also sees where it runs."""
        folder = self.folder / "shim"
        folder.mkdir()
        path = folder / "cingulum"
        path.write_text(f"#!/usr/bin/env bash\n{text}\nexec {pipeline.PROGRAM} \"$@\"\n")
        path.chmod(0o755)
        return folder

    def test_arrays_on_two_nodes_with_gpus_write_the_files_of_single_runs(self):
        log = self.folder / "where"
        shim = self.shim(f'''if [[ " $* " == *" --part "* ]]; then
            echo "$SLURMD_NODENAME ${{CUDA_VISIBLE_DEVICES:-none}} ${{SLURM_ARRAY_TASK_ID:-none}}" >> {log}; fi''')
        run = self.run_on_slurm("--input", self.sheet("a", "b"), "--parts", "4", "--array_size", "4", "--array_gigabytes", "1",
                                shim=shim).wait()
        self.assertEqual(run.status, 0, run.said())
        self.assert_single_runs(self.folder / "results", {
            f"sub-{name}/dwi/sub-{name}_tract-wholebrain_tractogram": (pipeline.phantom(number), True)
            for number, name in enumerate("ab")})
        rows = [line.split() for line in log.read_text().splitlines()]
        self.assertEqual(len(rows), 8)
        self.assertEqual({row[0] for row in rows}, {"n1", "n2"})
        self.assertEqual({row[1] for row in rows}, {"0"}, "Slurm gave a task no GPU")
        self.assertEqual(sorted(row[2] for row in rows), sorted("01230123"), "parts were not submitted as arrays of four")
        # The scheduler is left empty.
        self.assertEqual(self.slurm("squeue", "-h").strip(), "")

    def test_batches_of_a_tree_in_an_array_write_the_files_of_single_runs(self):
        tree = pipeline.bids_tree(self.folder, "abc")
        run = self.run_on_slurm("--bids", tree, "--mode", "batch", "--batch_size", "1", "--array_size", "3", "--array_gigabytes",
                                "1").wait()
        self.assertEqual(run.status, 0, run.said())
        self.assert_single_runs(self.folder / "results", pipeline.batch_units("abc"), sidecars=False)
        jobs = {task["native_id"] for task in run.tasks(self.folder / "results") if task["process"] == "BATCH"}
        self.assertEqual(len({job.split("_")[0] for job in jobs}), 1, f"not one array: {jobs}")
        self.assertEqual(len(jobs), 3)

    def test_a_node_that_is_lost_costs_its_task_another_try_elsewhere(self):
        print(f"CINGULUM_TEST_SEED={SEED}", flush=True)
        draw = random.Random(SEED)
        for number in range(LOSSES):
            with self.subTest(loss=number):
                for left in list(self.folder.iterdir()):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                self.lose_a_node_at(draw.randint(1, 3))

    def lose_a_node_at(self, part):
        mark = self.folder / "first"
        shim = self.shim(f'''if [[ " $* " == *" --part {part}/3 "* ]]; then
            echo "$SLURMD_NODENAME" >> {self.folder}/nodes
            if mkdir {mark} 2>/dev/null; then echo "$SLURMD_NODENAME" > {mark}/node; sleep 600; fi; fi''')
        run = self.run_on_slurm("--input", self.sheet("a"), "--parts", "3", "--array_size", "0", shim=shim)
        run.until(lambda: (mark / "node").exists() and (mark / "node").read_text().strip())
        node = (mark / "node").read_text().strip()
        subprocess.run([SLURM, "lose", self.cluster, node], check=True)
        try:
            run.wait()
        finally:
            subprocess.run([SLURM, "mend", self.cluster, node], check=True)
        self.assertEqual(run.status, 0, run.said())
        self.assertEqual(run.counts()["retries"], 1, run.said())
        self.assert_single_runs(self.folder / "results", {"sub-a/dwi/sub-a_tract-wholebrain_tractogram": (pipeline.phantom(0), True)})
        nodes = (self.folder / "nodes").read_text().split()
        self.assertEqual(nodes[0], node)
        self.assertEqual(len(nodes), 2)
        self.assertNotEqual(nodes[1], node)


if __name__ == "__main__":
    suite.main()
