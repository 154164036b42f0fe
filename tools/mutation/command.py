"""The command tools/mutate: draws mutants, builds them, runs the tests that reach them and tells who survived."""
import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

from . import mutants as mutation
from . import find_wgsl, package, results as reports, run_tests
from .mutated_tree import BuildFailed, Tree, project_files

# Tests, what only tests include, and what is compiled for CUDA.
NOT_MUTATED = re.compile(r"\.test\.cpp$|/lanes_test_body\.hpp$|/error_in_ulp\.hpp$|(^|/)cuda/")
EPILOG = """examples:
  tools/mutate --count 300 --seed 1            300 mutants over formats, base, numerics, tract, dmri and ring
  tools/mutate src/formats/tck.cpp             mutants of one file
  tools/mutate --diff origin/main              mutants of the lines that a change touches
  tools/mutate --rerun-survivors               after tests were added
A run that was interrupted goes on when the same command is given again."""


def arguments(words):
    parser = argparse.ArgumentParser(prog="tools/mutate", description="Mutation testing: which small bugs do the tests let through?",
                                     epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="files or folders; default: the folders of src/ that the goal names")
    parser.add_argument("--wgsl", action="store_true", help="shaders in place of C++")
    parser.add_argument("--diff", metavar="BASE", help="only lines that differ from this commit")
    parser.add_argument("--count", type=int, default=300, help="how many are drawn; 0: as many as one build can hold (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilations and tests at a time")
    parser.add_argument("--cap", type=float, default=60, metavar="S", help="seconds of test programs for each mutant (default 60)")
    parser.add_argument("--script-cap", type=float, default=60, metavar="S", help="seconds of test scripts for each mutant (default 60)")
    parser.add_argument("--programs", nargs="+", metavar="NAME", help="build and run only these test programs")
    parser.add_argument("--rerun-survivors", action="store_true", help="only the survivors of the last draw, with the present tests")
    parser.add_argument("--minutes", type=float, help="stop judging after so many; what was judged is told")
    parser.add_argument("--fail-above", type=float, metavar="PERCENT", help="exit 1 if more survive unexplained")
    parser.add_argument("--list", action="store_true", help="print the mutants that would be drawn, build nothing")
    parser.add_argument("--report", action="store_true", help="print the tables of what was judged so far, run nothing")
    parser.add_argument("--package", metavar="FOLDER", help="build, and pack the programs for another machine")
    parser.add_argument("--run-package", metavar="FOLDER", help="run what --package made; needs Python alone")
    parser.add_argument("--take-results", metavar="FILE", help="add results.jsonl of a package that was run elsewhere")
    parser.add_argument("--project", default=os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), help=argparse.SUPPRESS)
    parser.add_argument("--work", help="folder for everything that is made (default build-mutate)")
    parser.add_argument("--venv", help="Python environment of the build (default: CINGULUM_VENV or build/venv)")
    parser.add_argument("--option", action="append", default=[], metavar="-DX=Y", help="option of CMake")
    return parser.parse_args(words)


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def chosen_files(root, paths, wgsl):
    """C++ that is compiled for the host and is no test, or shaders."""
    if not paths:
        paths = [f"src/{folder}" for folder in reports.FOLDERS]
    kind = r"\.wgsl$" if wgsl else r"\.[ch]pp$"
    wanted = [os.path.relpath(os.path.join(root, path), root) for path in paths]
    files = []
    for name in project_files(root):
        if not re.search(kind, name) or NOT_MUTATED.search(name):
            continue
        if any(name == path or name.startswith(path.rstrip("/") + "/") for path in wanted):
            files.append(name)
    if not files:
        sys.exit(f"tools/mutate: no source files in {' '.join(paths)}")
    return files


def changed_lines(root, base):
    """file -> numbers of the lines that differ from `base`."""
    text = subprocess.run(["git", "-C", root, "diff", "-U0", base, "--"], capture_output=True, text=True, check=True).stdout
    lines, file = {}, None
    for line in text.splitlines():
        if line.startswith("+++ "):
            file = line[6:] if line.startswith("+++ b/") else None
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match.group(1)), int(match.group(2) or 1)
            lines.setdefault(file, set()).update(range(first, first + count))
    return lines


class Candidates:
    """All mutants of each file, kept by the hash of its content: parsing takes longer than anything but the build."""

    def __init__(self, root, work, tree):
        self.root, self.path, self.tree = root, os.path.join(work, "candidates.json"), tree
        self.parse_folder = os.path.join(work, "parse")
        self.known = {}
        if os.path.exists(self.path):
            with open(self.path) as file:
                self.known = json.load(file)

    def of(self, files):
        finder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "find_mutants.py")
        with open(finder, "rb") as file:
            version = mutation.content_hash(file.read())
        hashes = {}
        for name in files:
            with open(os.path.join(self.root, name), "rb") as file:
                hashes[name] = f"{mutation.content_hash(file.read())}-{version}"
        missing = [name for name in files if self.known.get(name, {}).get("content") != hashes[name]]
        shaders = [name for name in missing if name.endswith(".wgsl")]
        for name in shaders:
            self.known[name] = {"content": hashes[name], "mutants": [mutant.to_json() for mutant in find_wgsl.find(self.root, [name])]}
        missing = [name for name in missing if name not in shaders]
        if missing:
            from . import find_mutants
            self.configure()
            say(f"parsing {len(missing)} files")
            found = {name: [] for name in missing}
            for mutant in find_mutants.find(self.root, self.parse_folder, missing, say):
                found[mutant.file].append(mutant.to_json())
            for name in missing:
                self.known[name] = {"content": hashes[name], "mutants": found[name]}
        if missing or shaders:
            with open(self.path + ".new", "w") as file:
                json.dump(self.known, file)
            os.replace(self.path + ".new", self.path)
        return [mutation.from_json(data) for name in files for data in self.known[name]["mutants"]]

    def configure(self):
        answer = subprocess.run([self.tree.tool("cmake"), "-G", "Ninja", "-S", self.root, "-B", self.parse_folder,
                                 "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCINGULUM_CUDA=OFF",
                                 "-DCINGULUM_BENCH=OFF", f"-DCINGULUM_VENV={self.tree.venv}", *self.tree.options],
                                capture_output=True, text=True)
        if answer.returncode:
            raise BuildFailed(answer.stdout[-2000:] + answer.stderr[-4000:])


def draw(candidates, count, seed):
    """At random, the same number from each folder and, as far as there are, of each operator; none overlaps another."""
    random_ = random.Random(seed)
    strata = {}
    for mutant in sorted(candidates, key=lambda m: (m.file, m.key)):
        strata.setdefault(reports.folder_of(mutant.file), {}).setdefault(mutant.operator, []).append(mutant)
    taken, by_file = [], {}
    quota = {}
    folders = sorted(strata)
    for position, folder in enumerate(folders):
        quota[folder] = (count * (position + 1)) // len(folders) - (count * position) // len(folders)
    for folder in folders:
        piles = strata[folder]
        for pile in piles.values():
            random_.shuffle(pile)
        operators = [operator for operator in mutation.OPERATORS if operator in piles]
        number = 0
        while operators and (count == 0 or number < quota[folder]):
            for operator in list(operators):
                if count and number >= quota[folder]:
                    break
                pile = piles[operator]
                while pile:
                    mutant = pile.pop()
                    if not any(mutant.overlaps(other) for other in by_file.get(mutant.file, ())):
                        by_file.setdefault(mutant.file, []).append(mutant)
                        taken.append(mutant)
                        number += 1
                        break
                else:
                    operators.remove(operator)
    for number, mutant in enumerate(taken, 1):
        mutant.number = number
    return taken, quota


class Run:
    def __init__(self, given):
        self.given = given
        self.root = os.path.realpath(given.project)
        self.work = os.path.abspath(given.work or os.path.join(self.root, "build-mutate"))
        os.makedirs(self.work, exist_ok=True)
        venv = given.venv or os.environ.get("CINGULUM_VENV") or os.path.join(self.root, "build", "venv")
        self.tree = Tree(self.root, self.work, os.path.abspath(venv), given.jobs, given.option, say)
        self.candidates = Candidates(self.root, self.work, self.tree)
        self.results = reports.Results(os.path.join(self.work, "results.jsonl"))
        self.explained = reports.Explained(os.path.join(self.root, "tools", "mutation", "explained.json"))
        self.state_path = os.path.join(self.work, "drawn.json")
        self.scratch = os.path.join(self.work, "scratch")
        self.contents = {}

    # --- what was drawn -----------------------------------------------------------------------------------------------

    def load(self):
        if not os.path.exists(self.state_path):
            return None
        with open(self.state_path) as file:
            state = json.load(file)
        state["drawn"] = [mutation.from_json(data) for data in state["drawn"]]
        return state

    def save(self, state):
        with open(self.state_path + ".new", "w") as file:
            json.dump({**state, "drawn": [mutant.to_json() for mutant in state["drawn"]]}, file)
        os.replace(self.state_path + ".new", self.state_path)

    def request(self):
        given = self.given
        return {"paths": given.paths, "diff": given.diff, "count": given.count, "seed": given.seed,
                **({"wgsl": True} if given.wgsl else {})}

    def is_current(self, state):
        return all(self.is_unchanged(mutant) for mutant in state["drawn"])

    def is_unchanged(self, mutant):
        """Whether the file is as it was when the mutant was found in it."""
        path = os.path.join(self.root, mutant.file)
        if path not in self.contents:
            self.contents[path] = None
            if os.path.exists(path):
                with open(path, "rb") as file:
                    self.contents[path] = mutation.content_hash(file.read())
        return self.contents[path] == mutant.content

    def draw(self):
        given = self.given
        state = self.load()
        if given.rerun_survivors or given.report:
            if state is None:
                sys.exit("tools/mutate: nothing was drawn yet")
            return state if self.is_current(state) else self.follow(state)
        if state is not None and state["request"] == self.request() and self.is_current(state):
            say(f"going on with the {len(state['drawn'])} mutants drawn before")
            return state
        lines = changed_lines(self.root, given.diff) if given.diff else None
        files = chosen_files(self.root, given.paths, given.wgsl)
        if lines is not None:
            files = [name for name in files if name in lines]
            if not files:
                say("no line of these files has changed")
                sys.exit(0)
        candidates = self.candidates.of(files)
        if lines is not None:
            candidates = [mutant for mutant in candidates if mutant.line in lines[mutant.file]]
        say(f"{len(candidates)} mutants are possible in {len(files)} files")
        # Some will not compile, and some are in code that is not compiled for this machine.
        more = given.count and (given.count * 13 + 9) // 10
        drawn, _ = draw(candidates, more, given.seed)
        return {"request": self.request(), "drawn": drawn, "built": False}

    def follow(self, state):
        """Sources have changed: the same mutants at their new places. Those whose line is gone are left out."""
        say("sources have changed since the draw; following the mutants by their lines")
        files = sorted({m.file for m in state["drawn"] if os.path.exists(os.path.join(self.root, m.file)) and not self.is_unchanged(m)})
        found, by_text = {}, {}
        for mutant in self.candidates.of(files):
            found[mutant.key] = mutant
            by_text.setdefault((mutant.file, mutant.operator, mutant.before, mutant.after), mutant)
        followed = []
        for mutant in state["drawn"]:
            here = mutant if self.is_unchanged(mutant) else found.get(mutant.key) or by_text.get((mutant.file, mutant.operator, mutant.before, mutant.after))
            if here is not None and not any(here.file == other.file and here.overlaps(other) for other in followed):
                here.number = mutant.number
                if here.key != mutant.key:
                    state["judged"] = [here.key if key == mutant.key else key for key in state.get("judged", ())]
                    if mutant.key in self.by_key:
                        self.by_key[here.key] = self.by_key[mutant.key]
                followed.append(here)
        say(f"{len(state['drawn']) - len(followed)} of {len(state['drawn'])} are gone")
        return {**state, "drawn": followed, "checked": False}

    # --- building -------------------------------------------------------------------------------------------------------

    def targets(self, drawn):
        if self.given.programs:
            return self.given.programs
        if all(mutant.file.startswith("src/numerics/") and not mutant.file.endswith(".wgsl") for mutant in drawn):
            return ["test_numerics", "test_numerics_avx2", "test_numerics_avx512", "test_parity", "spherical_harmonics_dump"]
        return []

    def build(self, state):
        drawn = state["drawn"]
        count = self.given.count if not (self.given.rerun_survivors or self.given.report) else 0
        start = time.monotonic()
        self.tree.write(drawn)
        self.tree.configure()
        say(f"building {len(drawn)} mutants at once")
        def keep(left, checked):
            self.save({**state, "drawn": left, "checked": checked})
        compiled = self.tree.compile(drawn, self.targets(drawn), state.get("checked", False), keep)
        state["checked"] = True
        inside = self.tree.numbers_in_code()
        alive = [mutant for mutant in compiled if mutant.number in inside or mutant.form == "text"]
        say(f"built in {(time.monotonic() - start) / 60:.1f} minutes: {len(drawn) - len(compiled)} did not compile, "
            f"{len(compiled) - len(alive)} are in code that is not compiled here or that the compiler evaluates")
        state["drawn"] = compiled
        if not state["built"]:
            judged = fit_quota(alive, count)
            state["judged"] = [mutant.key for mutant in judged]
        state["built"] = True
        self.save(state)

    def build_state(self, drawn):
        """Changes when what the tests run changes: mutants, and every source that is no test."""
        digest = hashlib.sha256(json.dumps([[m.number, m.key, m.content] for m in drawn]).encode())
        for name in sorted(project_files(self.root)):
            if name.startswith("src/") and not name.endswith(".test.cpp"):
                with open(os.path.join(self.root, name), "rb") as file:
                    digest.update(file.read())
        return digest.hexdigest()[:16]

    # --- judging --------------------------------------------------------------------------------------------------------

    def tests(self):
        tests = run_tests.tests_of(self.tree.tests())
        if self.given.programs:
            tests = [test for test in tests if test.program in self.given.programs]
        return tests

    def judged(self, state):
        keys = set(state.get("judged", ()))
        return [mutant for mutant in state["drawn"] if mutant.key in keys]

    def row(self, mutant):
        """The newest result of the mutant, whatever else in its file has changed."""
        return self.results.rows.get(mutant.id) or self.by_key.get(mutant.key)

    def run(self):
        given = self.given
        self.by_key = {row["key"]: row for row in self.results.rows.values()}
        state = self.draw()
        if given.list:
            for mutant in state["drawn"]:
                print(f"{mutant.file}:{mutant.line}: {mutant.operator}: {mutant.change}\n  - {mutant.before}\n  + {mutant.after}")
            return 0
        if given.report:
            return self.tell(state)
        if given.take_results:
            return self.take_results(state)
        self.save(state)
        self.build(state)
        if given.package:
            package.make(self.tree, self.tests(), self.judged(state), state["drawn"], given.package, say)
            return 0
        os.makedirs(self.scratch, exist_ok=True)
        tests = self.tests()
        table = run_tests.Table(os.path.join(self.work, "tests.jsonl"))
        highest = max((mutant.number for mutant in state["drawn"]), default=0)
        table.record(tests, self.build_state(state["drawn"]), highest, given.jobs, self.scratch, say)
        self.judge(state, {test.name: test for test in tests}, table)
        return self.tell(state)

    def judge(self, state, tests, table):
        wanted = self.judged(state)
        if self.given.rerun_survivors:
            wanted = [mutant for mutant in wanted if (row := self.row(mutant)) is None or reports.is_survivor(row)]
        else:
            wanted = [mutant for mutant in wanted if mutant.id not in self.results.rows]
        # Folder after folder in turn, so that a run that is cut short has seen something of each.
        wanted.sort(key=lambda m: hashlib.sha256(m.key.encode()).digest())
        say(f"judging {len(wanted)} mutants")
        end = time.monotonic() + 60 * self.given.minutes if self.given.minutes else None
        lock = threading.Lock()
        count = [0]

        def one(mutant):
            if end is not None and time.monotonic() > end:
                return None
            return run_tests.judge(mutant.to_json(), tests, table, self.given.cap, self.given.script_cap, self.scratch)

        def done(mutant, result):
            if result is None:
                return
            with lock:
                row = self.results.add(mutant, result)
                self.by_key[mutant.key] = row
                count[0] += 1
                if reports.is_survivor(row):
                    print(reports.tell(row, self.explained), flush=True)
                if count[0] % 20 == 0:
                    say(f"  {count[0]} of {len(wanted)} judged")

        run_tests.in_parallel(one, wanted, self.given.jobs, done)

    def take_results(self, state):
        """Adds what a package found; the survivors are then run here again with the scripts: --rerun-survivors."""
        by_key = {mutant.key: mutant for mutant in state["drawn"]}
        count = 0
        with open(self.given.take_results) as file:
            for line in file:
                row = json.loads(line)
                mutant = by_key.get(row["key"])
                if mutant is not None and mutant.content == row["id"].split("-")[1]:
                    self.results.add(mutant, {name: value for name, value in row.items() if name not in
                                              ("id", "key", "file", "line", "operator", "change", "before", "after")})
                    count += 1
        say(f"{count} results taken")
        return self.tell(state)

    def tell(self, state):
        rows = [row for mutant in self.judged(state) if (row := self.row(mutant)) is not None]
        survivors = sorted((row for row in rows if reports.is_survivor(row)), key=lambda row: (row["file"], row["line"]))
        print()
        for row in survivors:
            print(reports.tell(row, self.explained))
        print()
        print(reports.table(rows, self.explained))
        left = len(self.judged(state)) - len(rows)
        if left:
            print(f"{left} mutants were not judged")
        share = 100 * reports.unexplained_share(rows, self.explained)
        if self.given.fail_above is not None and share > self.given.fail_above:
            print(f"{share:.1f} % survive without a reason, more than {self.given.fail_above:g} %")
            return 1
        return 0


def fit_quota(alive, count):
    """The first of each folder in the order of the draw, `count` in all."""
    if not count:
        return alive
    folders = {}
    for mutant in alive:
        folders.setdefault(reports.folder_of(mutant.file), []).append(mutant)
    chosen, names = [], sorted(folders)
    for position, name in enumerate(names):
        quota = (count * (position + 1)) // len(names) - (count * position) // len(names)
        chosen += folders[name][:quota]
    if len(chosen) < count:  # a folder had too few
        rest = [mutant for mutant in alive if mutant not in chosen]
        chosen += rest[:count - len(chosen)]
    return chosen


def main(words):
    given = arguments(words)
    if given.run_package:
        return package.run(given, say)
    try:
        return Run(given).run()
    except BuildFailed as failure:
        print(failure, file=sys.stderr)
        print("tools/mutate: the mutated tree does not build, and no mutant is at fault", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
