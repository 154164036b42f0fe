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
        self.assertFalse([line for line, _ in weak if line == 2])

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
            file.write("extern int calls;\n" + FILES["tests/weak.cpp"].replace("== 10 ?", "== 10 && calls == 2 ?"))
        before = {row["id"]: row["status"] for row in self.rows_of_last_line_each()}
        answer = self.mutate("--rerun-survivors")
        after = {row["id"]: row for row in self.rows_of_last_line_each()}
        call = next(row for row in after.values() if row["change"] == "count() is not called")
        self.assertEqual((before[call["id"]], call["status"], call["by"]), ("survived", "killed", "weak"), answer.stdout)
        self.assertFalse([id for id, status in before.items() if status == "killed" and after[id]["status"] != "killed"])


if __name__ == "__main__":
    suite.main()
