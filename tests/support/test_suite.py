"""Skips are not passes: how test scripts end (suite.py), which of them end so, and what tools/skips says of a run."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import suite

HERE = pathlib.Path(__file__).resolve().parent
SKIPS = HERE.parents[1] / "tools" / "skips"

SCRIPT = """
import sys, unittest
sys.path.insert(0, {support!r})
import suite

class First(unittest.TestCase):
    {first}
    def test_first(self):
        pass
    def test_second(self):
        {second}

@suite.needs("data")
class Whole(unittest.TestCase):
    def test_whole(self):
        pass
    def test_another(self):
        pass

suite.main()
"""


class Scripts(unittest.TestCase):
    def run_script(self, first="", second="pass", arguments=(), **variables):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "test_some.py"
            path.write_text(SCRIPT.format(support=str(HERE), first=first, second=second))
            environment = {name: value for name, value in os.environ.items() if not name.startswith("CINGULUM_TEST")}
            # Neither MRtrix3 nor Chromium is on this path.
            environment["PATH"] = folder
            done = subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True, check=False,
                                  env={**environment, **variables})
        return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("skipped:")], done.stderr

    def test_tests_that_run_and_pass_are_a_pass(self):
        code, lines, _ = self.run_script(CINGULUM_TEST_DATA="/")
        self.assertEqual((code, lines), (0, []))

    def test_some_skips_are_counted_by_reason_and_the_rest_passes(self):
        code, lines, _ = self.run_script('@suite.needs("mrtrix")')
        self.assertEqual((code, sorted(lines)), (0, ["skipped: 1: MRtrix3 is not installed",
                                                     "skipped: 2: CINGULUM_TEST_DATA is not set"]))

    def test_a_script_whose_tests_are_all_skipped_is_skipped(self):
        code, lines, _ = self.run_script(arguments=["Whole"])
        self.assertEqual((code, lines), (77, ["skipped: 2: CINGULUM_TEST_DATA is not set"]))
        code, lines, _ = self.run_script(arguments=["Whole"], CINGULUM_TEST_DATA="/no/such/folder")
        self.assertEqual((code, lines), (77, ["skipped: 2: CINGULUM_TEST_DATA names no folder"]))
        code, lines, _ = self.run_script(second='suite.absent("tmpfs", "no tmpfs\\n here")', arguments=["First.test_second"])
        self.assertEqual((code, lines), (77, ["skipped: 1: no tmpfs here"]))
        code, lines, _ = self.run_script(arguments=["-k", "nothing"])
        self.assertEqual((code, lines), (77, ["skipped: 1: the script has no test"]))

    def test_a_failure_is_a_failure_whatever_was_skipped(self):
        code, _, _ = self.run_script(second="self.fail()")
        self.assertEqual(code, 1)
        code, _, _ = self.run_script(second="self.fail()", arguments=["First.test_second", "Whole"])
        self.assertEqual(code, 1)

    def test_what_is_required_and_missing_is_a_failure(self):
        code, lines, talk = self.run_script(arguments=["Whole"], CINGULUM_TEST_REQUIRE="mrtrix,data")
        self.assertEqual((code, lines), (1, []))
        self.assertIn("CINGULUM_TEST_REQUIRE names data: CINGULUM_TEST_DATA is not set", talk)
        code, _, talk = self.run_script('@suite.needs("chromium")', arguments=["First"], CINGULUM_TEST_REQUIRE="chromium")
        self.assertEqual(code, 1)
        self.assertIn("CINGULUM_TEST_REQUIRE names chromium: Chromium is not installed", talk)
        code, _, talk = self.run_script(second='suite.need_data("no such set")', CINGULUM_TEST_DATA="/",
                                        CINGULUM_TEST_REQUIRE="data")
        self.assertEqual(code, 1)
        self.assertIn("CINGULUM_TEST_DATA has no no such set", talk)
        # What is required and there changes nothing; nor what is missing and not required.
        code, lines, _ = self.run_script('@suite.needs("mrtrix")', CINGULUM_TEST_DATA="/", CINGULUM_TEST_REQUIRE="data")
        self.assertEqual((code, lines), (0, ["skipped: 1: MRtrix3 is not installed"]))

    def test_every_script_ends_so_and_no_thing_is_looked_for_elsewhere(self):
        scripts = sorted(HERE.parent.glob("*/test_*.py"))
        self.assertGreater(len(scripts), 30)
        for path in scripts:
            text = path.read_text(encoding="utf-8")
            if path != pathlib.Path(__file__).resolve():
                self.assertRegex(text, r'\nif __name__ == "__main__":\n(.*\n)*    suite\.main\(.*\)\n\Z', path.name)
                self.assertIsNone(re.search(r"unittest\.main\(|skip\w*\(.*shutil\.which|skip\w*\(.*CINGULUM_TEST_DATA", text),
                                  f"{path.name}: suite.needs and suite.need_data say what is missing")


JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="x" tests="5" skipped="3">
 <testcase name="a" status="run"><system-out>skipped: 2: MRtrix3 is not installed
skipped: 1: CINGULUM_TEST_DATA is not set
</system-out></testcase>
 <testcase name="b" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>skipped: 3: MRtrix3 is not installed
</system-out></testcase>
 <testcase name="c" status="notrun"><skipped message="x"/><system-out>[ RUN      ] C.c
tests/support/each_device.hpp:46: Skipped
device 'cuda' is not available: no driver

[  SKIPPED ] C.c (0 ms)
</system-out></testcase>
 <testcase name="d" status="notrun"><skipped message="x"/></testcase>
 <testcase name="e" status="run"><system-out>nothing is skipped: here
</system-out></testcase>
</testsuite>
"""


class Summary(unittest.TestCase):
    def summary(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ctest.xml"
            path.write_text(text)
            return subprocess.run([sys.executable, SKIPS, path], capture_output=True, text=True, check=True).stdout

    def test_reasons_are_added_up_most_frequent_first(self):
        self.assertEqual(self.summary(JUNIT).splitlines(), [
            "skipped: 8 tests; 3 entries of ctest did not run at all, 1 in part",
            "      5  MRtrix3 is not installed",
            "      1  CINGULUM_TEST_DATA is not set",
            "      1  device 'cuda' is not available: no driver",
            "      1  no reason was given"])

    def test_a_run_without_skips_says_so(self):
        self.assertEqual(self.summary('<testsuite><testcase name="a"><system-out/></testcase></testsuite>'),
                         "skipped: none\n")


if __name__ == "__main__":
    suite.main()
