"""tools/mutate on a project of two functions: one whose test holds every edge, one whose test looks at one value. The tool
must kill what the strong test finds, name what the weak one lets through, go on after it was killed, and find nothing
where the compiler alone would see a change. CINGULUM_TEST_VENV: the Python environment of the build."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import suite  # noqa: E402

VENV = os.environ.get("CINGULUM_TEST_VENV") or os.path.join(ROOT, "build", "venv")

FILES = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.20)
project(toy LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
enable_testing()
add_executable(strong tests/strong.cpp src/strong/inside.cpp)
add_executable(weak tests/weak.cpp src/weak/scale.cpp)
add_test(NAME strong COMMAND strong)
add_test(NAME weak COMMAND weak)
""",
    "src/strong/inside.cpp": """bool is_inside(int index, int size) {
  return index >= 0 && index < size;
}
""",
    "tests/strong.cpp": """bool is_inside(int index, int size);
int main() {
  const bool right = is_inside(0, 3) && is_inside(1, 3) && is_inside(2, 3) && !is_inside(-1, 3) && !is_inside(3, 3) &&
                     !is_inside(4, 3) && is_inside(0, 1) && !is_inside(1, 1);
  return right ? 0 : 1;
}
""",
    "src/weak/scale.cpp": """constexpr int evaluated(int x) { return x + 40; }
static_assert(evaluated(2) == 42);
int calls = 0;
void count(int by) { calls += by; }
int scale(int value, int limit) {
  count(1);
  if (value > limit) return limit;
  return value * 2;
}
int nobody_calls_this(int value) { return value - 7; }
""",
    "tests/weak.cpp": """int scale(int value, int limit);
int main() { return scale(2, 10) == 4 && scale(20, 10) == 10 ? 0 : 1; }
""",
}


SHADER = """// a mirror
fn inside(x: f32) -> bool {
  return x < 1.0;
}
"""


class Shaders(unittest.TestCase):
    def test_a_shader_is_handed_out_with_the_mutant_that_is_on(self):
        sys.path.insert(0, os.path.join(ROOT, "tools"))
        from mutation import find_wgsl, mutants, mutated_tree
        with tempfile.TemporaryDirectory(prefix="mutate") as folder:
            place = lambda name: os.path.join(folder, name)
            with open(place("x.wgsl"), "w") as file:
                file.write(SHADER)
            found = find_wgsl.find(folder, ["x.wgsl"])
            self.assertEqual(sorted((m.line, m.change) for m in found if m.operator == "comparison"), [(3, "< becomes <="), (3, "< becomes >")])
            self.assertEqual({m.line for m in found}, {3})
            chosen = [next(m for m in found if m.change == "< becomes <="), next(m for m in found if m.operator == "constant")]
            for number, mutant in enumerate(chosen, 7):
                mutant.number = number
            with open(place("x.wgsl"), "wb") as file:
                file.write(mutants.write_switched(SHADER.encode(), chosen))
            with open(os.path.join(ROOT, mutated_tree.EMBEDDER), "rb") as file, open(place("embed.py"), "wb") as out:
                out.write(mutated_tree.with_choice(file.read()))
            subprocess.run([sys.executable, place("embed.py"), "--function", "text_of", "--out", place("text.cpp"), place("x.wgsl")], check=True)
            with open(place("main.cpp"), "w") as file:
                file.write('#include "text.cpp"\n#include <iostream>\nint main() { std::cout << cingulum::text_of("x.wgsl"); }\n')
            subprocess.run(["c++", "-std=c++20", "-o", place("main"), place("main.cpp"), os.path.join(ROOT, "tools", "mutation", "switch.cpp")], check=True)
            shown = lambda number: subprocess.run([place("main")], env={"CINGULUM_TEST_MUTANT": number}, capture_output=True, text=True, check=True).stdout
            self.assertEqual(shown("0"), SHADER)
            self.assertEqual(shown("7"), SHADER.replace("<", "<="))
            self.assertEqual(shown("8"), SHADER.replace("1.0", chosen[1].mutated))


def mutants_of(text):
    """Those that are found in a source of this text."""
    sys.path.insert(0, os.path.join(ROOT, "tools"))
    from mutation import find_mutants
    with tempfile.TemporaryDirectory(prefix="mutate") as folder:
        path = os.path.join(folder, "source.cpp")
        with open(path, "w") as file:
            file.write(text)
        with open(os.path.join(folder, "compile_commands.json"), "w") as file:
            json.dump([{"directory": folder, "file": path, "command": f"c++ -std=c++20 -c {path}"}], file)
        return find_mutants.find(folder, folder, ["source.cpp"])


OPERANDS = """#include <algorithm>
template <class Lanes>
float sum(float a, float b, float c) {
  return Lanes::add(a, Lanes::subtract(Lanes::multiply(b, c), c));
}
struct Plain {
  static float add(float a, float b) { return a + b; }
  static float subtract(float a, float b) { return a - b; }
  static float multiply(float a, float b) { return a * b; }
};
float of_plain(float a, float b) { return sum<Plain>(a, b, a); }
int least(int a, int b) { return std::minmax(a, b).first; }
"""


class Operands(unittest.TestCase):
    def test_change_places_where_that_changes_something(self):
        found = mutants_of(OPERANDS)
        swapped = sorted((m.line, m.change) for m in found if m.operator == "swapped arguments")
        self.assertEqual([line for line, _ in swapped if line != 4], [11, 11])
        self.assertNotIn("b and c exchanged", [change for line, change in swapped if line == 4])
        self.assertNotIn("a and b exchanged", [change for line, change in swapped if line == 12])


CALLS = """#include <vector>
template <class Numbers> void keep(Numbers& numbers) {
  numbers.reserve(7);
  numbers.clear();
}
void keep_four(std::vector<int>& numbers) {
  numbers.reserve(7);
  keep(numbers);
}
"""


class Calls(unittest.TestCase):
    def test_that_only_make_room_stay_in_templates_too(self):
        found = mutants_of(CALLS)
        self.assertEqual(sorted(m.line for m in found if m.operator == "removed call"), [4, 8])


class Judging(unittest.TestCase):
    """One test whose runs end as told, with the mutant and without it in turn."""

    def verdict(self, *outcomes):
        sys.path.insert(0, os.path.join(ROOT, "tools"))
        from mutation import run_tests
        test = run_tests.Test("only", ["program"], ".", {}, [], [], 600)
        table = run_tests.Table(os.devnull)
        table.rows = {"only": {"outcome": "passed", "seconds": 1.0, "reached": [7]}}
        left = list(outcomes)
        with mock.patch.object(run_tests, "run_once", lambda *_: (left.pop(0), 1.0)):
            result = run_tests.judge({"number": 7, "file": "src/base/a.cpp"}, {"only": test}, table, 60, 60, ".")
        self.assertEqual(left, [])
        return result["status"], result.get("doubtful", [])

    def test_a_failure_counts_where_the_test_passes_without_the_mutant(self):
        self.assertEqual(self.verdict("failed", "passed"), ("killed", []))
        self.assertEqual(self.verdict("failed", "failed"), ("survived", ["only"]))
        self.assertEqual(self.verdict("passed"), ("survived", []))

    def test_a_run_out_of_time_counts_when_it_comes_twice(self):
        self.assertEqual(self.verdict("timeout", "passed", "timeout"), ("killed", []))
        self.assertEqual(self.verdict("timeout", "passed", "failed"), ("killed", []))
        self.assertEqual(self.verdict("timeout", "passed", "passed"), ("survived", ["only"]))
        self.assertEqual(self.verdict("timeout", "timeout"), ("survived", ["only"]))


class Mutants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="mutate")
        for name, text in FILES.items():
            path = os.path.join(cls.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def command(self, *words):
        return [os.path.join(VENV, "bin", "python"), os.path.join(ROOT, "tools", "mutate"), "--project", self.folder, "--venv", VENV,
                "--jobs", "2", "src", "--count", "0", "--seed", "3", *words]

    def mutate(self, *words):
        answer = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=300)
        self.assertIn(answer.returncode, (0, 1), answer.stdout + answer.stderr)
        return answer

    def rows(self):
        with open(os.path.join(self.folder, "build-mutate", "results.jsonl")) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def test_1_a_run_that_is_killed_goes_on_and_judges_each_mutant_once(self):
        results = os.path.join(self.folder, "build-mutate", "results.jsonl")
        first = subprocess.Popen(self.command("--jobs", "1"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        while first.poll() is None and not os.path.exists(results):
            time.sleep(0.005)
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        before = self.rows()
        with open(results, "a") as file:
            file.write('{"id": "cut sho')  # the line that a kill can leave
            file.write("\n")
        answer = self.mutate()
        self.assertIn("going on with the", answer.stdout)
        with open(results) as file:
            ids = [json.loads(line)["id"] for line in file if not line.startswith('{"id": "cut')]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertGreater(len(ids), len(before))
        self.assertEqual(self.mutate().stdout.count("judging 0 mutants"), 1)

    def test_2_the_strong_test_kills_all_and_the_weak_one_not(self):
        rows = [row for row in self.rows_of_last_line_each()]
        strong = [row for row in rows if row["file"] == "src/strong/inside.cpp"]
        self.assertGreaterEqual(len(strong), 2)
        self.assertEqual([row for row in strong if row["status"] != "killed"], [])
        weak = {(row["line"], row["change"]): row["status"] for row in rows if row["file"] == "src/weak/scale.cpp"}
        self.assertEqual(weak[(6, "count() is not called")], "survived")
        self.assertEqual({status for (line, _), status in weak.items() if line == 8}, {"killed"})
        self.assertEqual({status for (line, _), status in weak.items() if line == 10}, {"not covered"})
        self.assertFalse([line for line, _ in weak if line in (1, 2)])  # the compiler evaluates it, and no code is left

    def rows_of_last_line_each(self):
        with open(os.path.join(self.folder, "build-mutate", "results.jsonl")) as file:
            found = {}
            for line in file:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                found[row["id"]] = row
        return found.values()

    def test_3_the_report_names_line_change_and_share(self):
        answer = self.mutate("--report", "--fail-above", "5")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("src/weak/scale.cpp:6: removed call: count() is not called (survived)", answer.stdout)
        self.assertIn("  - count(1);", answer.stdout)
        self.assertIn("covered by weak", answer.stdout)
        self.assertIn("| src/weak |", answer.stdout)

    def test_4_a_survivor_with_a_reason_is_explained(self):
        path = os.path.join(self.folder, "tools", "mutation", "explained.json")
        os.makedirs(os.path.dirname(path))
        with open(path, "w") as file:
            json.dump([{"file": "src/weak/scale.cpp", "line": "count(1);", "change": "count() is not called", "reason": "counts for nobody"}], file)
        answer = self.mutate("--report")
        self.assertIn("explained: counts for nobody", answer.stdout)

    def test_5_a_better_test_kills_a_survivor_when_survivors_run_again(self):
        with open(os.path.join(self.folder, "tests", "weak.cpp"), "w") as file:
            file.write("extern int calls;\nint nobody_calls_this(int value);\n" +
                       FILES["tests/weak.cpp"].replace("== 10 ?", "== 10 && calls == 2 && nobody_calls_this(9) == 2 ?"))
        before = {row["id"]: row["status"] for row in self.rows_of_last_line_each()}
        answer = self.mutate("--rerun-survivors")
        after = {row["id"]: row for row in self.rows_of_last_line_each()}
        call = next(row for row in after.values() if row["change"] == "count() is not called")
        self.assertEqual((before[call["id"]], call["status"], call["by"]), ("survived", "killed", "weak"), answer.stdout)
        # A line that no test reached: which test reaches what is noted anew.
        self.assertEqual({row["status"] for row in after.values() if row["file"].endswith("scale.cpp") and row["line"] == 10}, {"killed"})
        self.assertFalse([id for id, status in before.items() if status == "killed" and after[id]["status"] != "killed"])


if __name__ == "__main__":
    suite.main()
