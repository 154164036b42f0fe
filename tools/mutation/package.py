"""A folder with the test programs of a mutated build, to be run on a machine with more cores: no compiler, no packages of
Python, no devices. Scripts stay behind; the survivors meet them here."""
import dataclasses
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

from . import results as reports
from . import run_tests

# What every Linux of the same processor has.
OF_THE_SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc\.so|libm\.so|libpthread|libdl|librt)")


def make(tree, tests, judged, drawn, folder, say):
    folder = os.path.abspath(folder)
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("bin", "lib", "mutation"):
        os.makedirs(os.path.join(folder, name))
    libraries, programs, listed = {}, set(), []
    for test in tests:
        if test.is_script or not test.command[0].startswith(os.path.join(tree.build, "bin") + os.sep):
            continue
        if any(tree.sources in word for word in test.command):
            continue  # reads files of the source tree
        programs.add(test.command[0])
        listed.append({"name": test.name, "command": [os.path.join("bin", test.program), *test.command[1:]],
                       "environment": test.environment, "skip_codes": test.skip_codes, "skip_texts": test.skip_texts,
                       "limit": test.limit})
    for program in programs:
        target = os.path.join(folder, "bin", os.path.basename(program))
        subprocess.run(["strip", "-o", target, program], check=True)
        for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
            if match := re.match(r"\s*(\S+) => (/\S+)", line):
                if not OF_THE_SYSTEM.match(match.group(1)):
                    libraries[match.group(1)] = match.group(2)
    for name, path in libraries.items():
        subprocess.run(["strip", "--strip-unneeded", "-o", os.path.join(folder, "lib", name), os.path.realpath(path)], check=True)
    here = os.path.dirname(os.path.abspath(__file__))
    for name in os.listdir(here):
        if name.endswith((".py", ".json")):
            shutil.copy(os.path.join(here, name), os.path.join(folder, "mutation", name))
    shutil.copy(os.path.join(os.path.dirname(here), "mutate"), os.path.join(folder, "mutate"))
    with open(os.path.join(folder, "package.json"), "w") as file:
        json.dump({"tests": listed, "mutants": [mutant.to_json() for mutant in judged],
                   "highest": max(mutant.number for mutant in drawn)}, file)
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
    say(f"{folder}: {len(programs)} programs, {len(listed)} tests, {len(judged)} mutants, {size / 2**20:.1f} MiB; there: "
        f"python3 mutate --run-package . --jobs N")


def run(given, say):
    from .mutants import from_json
    folder = os.path.abspath(given.run_package)
    with open(os.path.join(folder, "package.json")) as file:
        packed = json.load(file)
    os.environ["LD_LIBRARY_PATH"] = os.path.join(folder, "lib")
    tests = [run_tests.Test(row["name"], [os.path.join(folder, row["command"][0]), *row["command"][1:]], folder,
                            row["environment"], row["skip_codes"], row["skip_texts"], row["limit"]) for row in packed["tests"]]
    out = os.path.abspath(given.work or folder)
    os.makedirs(out, exist_ok=True)
    results = reports.Results(os.path.join(out, "results.jsonl"))
    explained = reports.Explained(os.path.join(folder, "mutation", "explained.json"))
    start = time.monotonic()
    end = start + 60 * given.minutes if given.minutes else None
    with tempfile.TemporaryDirectory(prefix="mutants") as scratch:
        table = run_tests.Table(os.path.join(out, "tests.jsonl"))
        table.record(tests, "package", packed["highest"], given.jobs, scratch, say)
        say(f"recorded in {time.monotonic() - start:.0f} s")
        by_name = {test.name: test for test in tests}
        mutants = [from_json(data) for data in packed["mutants"]]
        wanted = [mutant for mutant in mutants if mutant.id not in results.rows]
        lock = threading.Lock()

        def one(mutant):
            if end is not None and time.monotonic() > end:
                return None
            return run_tests.judge(dataclasses.asdict(mutant), by_name, table, given.cap, given.script_cap, scratch)

        def done(mutant, result):
            if result is not None:
                with lock:
                    results.add(mutant, result)

        run_tests.in_parallel(one, wanted, given.jobs, done)
    rows = [results.rows[mutant.id] for mutant in mutants if mutant.id in results.rows]
    print(reports.table(rows, explained))
    say(f"{len(rows)} of {len(mutants)} mutants in {time.monotonic() - start:.0f} s")
    return 0
