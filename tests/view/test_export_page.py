"""The folder of `cingulum view --export` in Chromium (tests/web/view_export.test.mjs, which says what is tested). Part of
`make test-web`, which installs emscripten, so that here a program without the module has failed.

CINGULUM names the program, CINGULUM_TEST_NODE_PACKAGES the packages of tests/web."""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import suite  # noqa: E402  (beside the folder of the script)


@suite.needs("chromium", "zarrita")
class ExportedPage(unittest.TestCase):
    def test_in_a_browser(self):
        environment = {**os.environ, "CINGULUM": os.path.abspath(os.environ["CINGULUM"])}
        done = subprocess.run([suite.node_program(), "--test", "--test-reporter=spec", str(ROOT / "tests/web/view_export.test.mjs")],
                              capture_output=True, text=True, check=False, env=environment)
        print(done.stdout[-6000:])
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])


if __name__ == "__main__":
    suite.main()
