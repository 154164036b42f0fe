"""Runs tests with and without a mutant. Needs nothing but Python's standard library: a package of programs is run on
another machine by this file alone (package.py)."""
import concurrent.futures
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from .results import rows_by

MARK = "CINGULUM_TEST_MUTANT_RUN"
# Tests of the text of the sources, and of programs that are built anew: no mutant can be on in them.
LEFT_OUT = re.compile(r"^(one_name_one_type|citations_resolve|direction_of_dependence|shared_constants_are_written_once|"
                      r"no_option_names_below_cli|no_contraction|format|install_and_outside_project|"
                      r"tracking_shaders_in_a_browser|limiters_from_ncu|mutation_testing)$|_NOT_BUILT$")
# Whose tests run first, and for numerics alone.
OWN_PROGRAMS = {
    "base": r"test_base$|test_out_of_memory$",
    "numerics": r"test_numerics|test_parity$|spherical_harmonics",
    "formats": r"test_formats$|test_out_of_memory$",
    "streamlines": r"test_streamlines$",
    "dmri": r"test_dmri$|test_model_devices$",
    "tract": r"test_tract$|test_track_devices$|test_webgpu_tracking$",
    "ring": r"test_ring",
    "wgsl": r"test_parity$|test_webgpu_tracking$|test_track_devices$",
}
MEMORY_LIMIT = 6 << 30
FILE_LIMIT = 4 << 30


class Test:
    def __init__(self, name, command, folder, environment, skip_codes, skip_texts, limit):
        self.name, self.command, self.folder, self.environment = name, command, folder, environment
        self.skip_codes, self.skip_texts, self.limit = skip_codes, skip_texts, limit

    @property
    def program(self):
        """The program's name, or the script's."""
        words = [word for word in self.command if not os.path.basename(word).startswith("python")]
        return os.path.basename(words[0]) if words else ""

    @property
    def is_script(self):
        return any(word.endswith((".py", ".sh")) for word in self.command)

    def state(self):
        """Changes when what is run changes."""
        digest = hashlib.sha256(json.dumps([self.command, self.environment]).encode())
        for word in self.command:
            if os.path.isfile(word) and os.path.getsize(word) < 1 << 28 and not os.path.basename(word).startswith("python"):
                digest.update(file_hash(word))
        return digest.hexdigest()[:16]


_hashes = {}


def file_hash(path):
    facts = os.stat(path)
    key = (path, facts.st_mtime_ns, facts.st_size)
    if key not in _hashes:
        with open(path, "rb") as file:
            _hashes[key] = hashlib.sha256(file.read()).digest()
    return _hashes[key]


def as_list(value):
    return value if isinstance(value, list) else [value]


def tests_of(listed):
    """From what `ctest --show-only=json-v1` says."""
    tests = []
    for entry in listed:
        if "command" not in entry or LEFT_OUT.search(entry["name"]):
            continue
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        environment = {}
        for text in as_list(properties.get("ENVIRONMENT", [])):
            name, equals, value = text.partition("=")
            if equals:
                environment[name] = value
        tests.append(Test(entry["name"], entry["command"], properties.get("WORKING_DIRECTORY") or ".", environment,
                          [int(code) for code in as_list(properties.get("SKIP_RETURN_CODE", []))],
                          as_list(properties.get("SKIP_REGULAR_EXPRESSION", [])), float(properties.get("TIMEOUT", 600))))
    return tests


def prepare_process():
    """Limits, since a mutant may ask for all memory; and signals as a program expects them, also below nohup."""
    for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))


def end_group(process, mark):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    # What left the group is known by the mark in its environment.
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        os.kill(int(name), signal.SIGKILL)
            except OSError:
                pass


_count = [0]
_count_lock = threading.Lock()


def run_once(test, limit, scratch, extra):
    """Runs one test in a home and a folder for temporary files of its own: what a mutant writes there must not reach
    another run. Answers ("passed" | "failed" | "skipped" | "timeout", seconds)."""
    with _count_lock:
        _count[0] += 1
        mark = f"{os.getpid()}-{_count[0]}"
    place = tempfile.mkdtemp(prefix="t", dir=scratch)
    # The program would warn of a variable with its own prefix that it does not know.
    given = {name: value for name, value in os.environ.items() if name not in ("CINGULUM_VENV", "CINGULUM_BUILD")}
    environment = {**given, **test.environment, "HOME": os.path.join(place, "home"), "TMPDIR": place, MARK: mark, **extra}
    os.mkdir(environment["HOME"])
    start = time.monotonic()
    out = os.path.join(place, "out.txt")
    try:
        with open(out, "wb") as file:
            process = subprocess.Popen(test.command, cwd=test.folder if os.path.isdir(test.folder) else None, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                       start_new_session=True, preexec_fn=prepare_process)
            try:
                code = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                end_group(process, mark)
                process.wait()
                return "timeout", time.monotonic() - start
        seconds = time.monotonic() - start
        if code != 0 and code not in test.skip_codes:
            end_group(process, mark)
            return "failed", seconds
        if code in test.skip_codes and code != 0:
            return "skipped", seconds
        if test.skip_texts:
            with open(out, "rb") as file:
                text = file.read().decode(errors="replace")
            if any(re.search(pattern, text) for pattern in test.skip_texts):
                return "skipped", seconds
        return "passed", seconds
    finally:
        shutil.rmtree(place, ignore_errors=True)


def in_parallel(function, items, jobs, done):
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        waiting = {pool.submit(function, item): item for item in items}
        try:
            for future in concurrent.futures.as_completed(waiting):
                done(waiting[future], future.result())
        except BaseException:
            for future in waiting:
                future.cancel()
            raise


class Table:
    """Which mutants a test reaches and how long it takes; a file, one JSON line for each test."""

    def __init__(self, path):
        self.path = path
        self.rows = rows_by(path, "test")

    def record(self, tests, build_state, count, jobs, scratch, say):
        """Runs the tests that the table does not know in their present state, each with a log of its own."""
        state = {test.name: f"{build_state}-{test.state()}" for test in tests}
        missing = [test for test in tests if self.rows.get(test.name, {}).get("state") != state[test.name] or
                   self.rows[test.name]["outcome"] in ("failed", "timeout")]
        # What takes longest begins first.
        missing.sort(key=lambda test: (not test.is_script, -self.rows.get(test.name, {}).get("seconds", 0)))
        if missing:
            say(f"recording which mutants each of {len(missing)} tests reaches")
        lock = threading.Lock()
        started = time.monotonic()
        finished = [0]

        def record_one(test):
            handle, log = tempfile.mkstemp(prefix="log", dir=scratch)
            try:
                os.ftruncate(handle, count + 1)
                os.close(handle)
                outcome, seconds = run_once(test, test.limit, scratch, {"CINGULUM_TEST_MUTANT_LOG": log})
                with open(log, "rb") as file:
                    reached = [number for number, byte in enumerate(file.read()) if byte]
            finally:
                os.unlink(log)
            return {"test": test.name, "state": state[test.name], "outcome": outcome, "seconds": round(seconds, 3),
                    "reached": reached}

        def keep(test, row):
            with lock:
                self.rows[test.name] = row
                with open(self.path, "a") as file:
                    file.write(json.dumps(row) + "\n")
                finished[0] += 1
                if finished[0] % 100 == 0:
                    say(f"  {finished[0]} of {len(missing)} tests recorded in {time.monotonic() - started:.0f} s")

        in_parallel(record_one, missing, jobs, keep)
        known = {test.name for test in tests}
        self.rows = {name: row for name, row in self.rows.items() if name in known}
        failed = sorted(name for name, row in self.rows.items() if row["outcome"] in ("failed", "timeout"))
        if failed:
            say(f"{len(failed)} tests fail without a mutant and are not used: {', '.join(failed[:12])}")

    def covering(self, number):
        return [name for name, row in self.rows.items() if row["outcome"] == "passed" and number in row["reached"]]


def choose(mutant_file, covering, tests, rows, cap, script_cap):
    """Tests in the order in which they run: the folder's own first, then the others, scripts last, cheapest first; up to
    `cap` seconds of programs and `script_cap` seconds of scripts. Answers them and how many were left out."""
    parts = mutant_file.split("/")
    folder = "wgsl" if mutant_file.endswith(".wgsl") else parts[1] if parts[0] == "src" and len(parts) > 1 else ""
    own = OWN_PROGRAMS.get(folder)
    chosen, left_out = [], 0
    rank = lambda test: (test.is_script, not (own and re.search(own, test.program)), rows[test.name]["seconds"])
    spent = {False: 0.0, True: 0.0}
    for test in sorted((tests[name] for name in covering), key=rank):
        if folder == "numerics" and not re.search(own, f"{test.program} {test.name}"):
            continue
        seconds = rows[test.name]["seconds"]
        limit = script_cap if test.is_script else cap
        # The first of a kind always runs: a long test that is the only one must not make a survivor.
        if spent[test.is_script] > 0 and spent[test.is_script] + seconds > limit:
            left_out += 1
            continue
        spent[test.is_script] += seconds
        chosen.append(test)
    return chosen, left_out


def is_held_up_again(test, seconds, mutant, scratch):
    """Whether a test that ran out of time with a mutant on does so, or fails, once more. Other work on the machine may have
    held it up the first time; `seconds` is what it takes without the mutant just now."""
    limit = 5 * max(seconds, 1) + 5
    return run_once(test, limit, scratch, {"CINGULUM_TEST_MUTANT": str(mutant["number"])})[0] in ("failed", "timeout")


def judge(mutant, tests, table, cap, script_cap, scratch):
    """One mutant against its tests, until one fails. A failure counts when the same test passes without the mutant, a run
    out of time when it comes twice."""
    covering = table.covering(mutant["number"])
    chosen, left_out = choose(mutant["file"], covering, tests, table.rows, cap, script_cap)
    result = {"covering": len(covering), "left_out": left_out, "ran": 0, "by": "", "seconds": 0.0}
    if not chosen:
        return {**result, "status": "not covered" if not left_out else "survived", "tests": []}
    start = time.monotonic()
    doubtful = []
    for test in chosen:
        limit = 5 * table.rows[test.name]["seconds"] + 5
        outcome, _ = run_once(test, limit, scratch, {"CINGULUM_TEST_MUTANT": str(mutant["number"])})
        result["ran"] += 1
        if outcome in ("failed", "timeout"):
            without, seconds = run_once(test, limit, scratch, {})
            if without != "passed" or outcome == "timeout" and not is_held_up_again(test, seconds, mutant, scratch):
                doubtful.append(test.name)
                continue
            return {**result, "status": "killed", "by": test.name, "how": outcome, "tests": [],
                    "seconds": round(time.monotonic() - start, 2)}
    return {**result, "status": "survived", "tests": [test.name for test in chosen][:12], "doubtful": doubtful,
            "seconds": round(time.monotonic() - start, 2)}
