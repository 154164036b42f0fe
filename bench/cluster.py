#!/usr/bin/env python3
"""What a task costs beside its work: `true` started by a loop, by Nextflow on this machine, by Slurm, by Nextflow on Slurm, singly
and in arrays. Slurm is the one of tools/slurm-on-one-machine: two nodes of one processor.

    bench/cluster.py [--tasks 40] [--repetitions 3] [--out FILE.json]

Seconds of a whole run; for Nextflow also those of a run with one task, so that a task's share is the difference by the
tasks that there are more. Of the repetitions the median counts, and the spread stands beside it. The load of the machine at
the beginning stands in the result: on a machine that does other things the figures are of no use. Needs what
`make test-cluster` installs, and root for Slurm.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

PROJECT = pathlib.Path(__file__).resolve().parents[1]
WORKFLOW = """
process TASK {
    input: val number
    script: "true"
}
workflow { TASK(Channel.of(1..params.tasks)) }
"""
SLURM = "process.executor = 'slurm'\nexecutor { pollInterval = '2 sec'; queueStatInterval = '5 sec'; queueSize = 1000 }\n"


def seconds_of(command, folder, environment=None):
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=dict(os.environ, **(environment or {})), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stdout}{done.stderr}")
    return time.perf_counter() - begin


def nextflow(folder, tasks, configuration, environment=None):
    """A run in a folder of its own, so that nothing is cached."""
    with tempfile.TemporaryDirectory(dir=folder) as run:
        pathlib.Path(run, "main.nf").write_text(WORKFLOW)
        pathlib.Path(run, "nextflow.config").write_text(configuration)
        return seconds_of([PROJECT / "tools/nextflow", "run", "main.nf", "--tasks", str(tasks)], run, environment)


def slurm_alone(folder, tasks, environment, array):
    """Until the queue is empty; `sbatch --wait` polls too slowly."""
    begin = time.perf_counter()
    variables = dict(os.environ, **environment)
    words = ["sbatch", "-o", "/dev/null", "--wrap", "true"]
    for _ in range(1 if array else tasks):
        subprocess.run(words + ([f"--array=1-{tasks}"] if array else []), env=variables, check=True, capture_output=True)
    while subprocess.run(["squeue", "-h"], env=variables, check=True, capture_output=True).stdout.strip():
        time.sleep(0.1)
    return time.perf_counter() - begin


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--tasks", type=int, default=40)
    arguments.add_argument("--repetitions", type=int, default=3)
    arguments.add_argument("--out", type=pathlib.Path)
    given = arguments.parse_args()
    tasks = given.tasks
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cingulum-bench-", dir="/tmp"))
    slurm = folder / "slurm"
    environment = {"SLURM_CONF": str(slurm / "slurm.conf")}
    tool = PROJECT / "tools/slurm-on-one-machine"
    result = {"scenario": "tasks that do nothing", "tasks": tasks, "repetitions": given.repetitions, "processors": os.cpu_count(),
              "load_at_begin": os.getloadavg()[0], "rows": []}
    try:
        subprocess.run([tool, "start", slurm, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)
        array = SLURM + "process.array = 10\n"
        rows = [("bare", 1, lambda count: seconds_of(["bash", "-c", f"for i in $(seq {count}); do bash -c true; done"], folder)),
                ("nextflow, local", 2, lambda count: nextflow(folder, count, "")),
                ("slurm, singly", 2, lambda count: slurm_alone(folder, count, environment, False)),
                ("slurm, an array", 2, lambda count: slurm_alone(folder, count, environment, True)),
                ("nextflow on slurm, singly", 2, lambda count: nextflow(folder, count, SLURM, environment)),
                ("nextflow on slurm, arrays of 10", 2, lambda count: nextflow(folder, count, array, environment))]
        measured = {name: ([], []) for name, _, _ in rows}
        for _ in range(given.repetitions):  # alternating, so that a change of the machine meets all rows
            for name, _, run in rows:
                measured[name][0].append(run(1))
                measured[name][1].append(run(tasks))
        for name, slots, _ in rows:
            one, many = (statistics.median(values) for values in measured[name])
            row = {"by": name, "slots": slots, "one_task_s": round(one, 3), "all_tasks_s": round(many, 3),
                   "per_task_and_slot_s": round((many - one) / (tasks - 1) * slots, 4),
                   "spread_s": round(max(measured[name][1]) - min(measured[name][1]), 3)}
            result["rows"].append(row)
            print(f"{name:32} one {one:7.2f} s, {tasks} {many:7.2f} s, a task and slot {row['per_task_and_slot_s']:8.4f} s", flush=True)
    finally:
        subprocess.run([tool, "stop", slurm])
        shutil.rmtree(folder, ignore_errors=True)
    if given.out:
        given.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
