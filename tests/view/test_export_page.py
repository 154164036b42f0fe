"""The folder of `cingulum view --export` in Chromium (tests/web/view_export.test.mjs, which says what is tested). Part of
`make test-web`, which installs emscripten, so that here a program without the module has failed.

CINGULUM names the program, CINGULUM_TEST_NODE_PACKAGES the packages of tests/web."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import suite  # noqa: E402  (beside the folder of the script)


@suite.needs("chromium", "zarrita")
class ExportedPage(unittest.TestCase):
    def test_in_a_browser(self):
        suite.run_in_node(self, ROOT / "tests/web/view_export.test.mjs")


if __name__ == "__main__":
    suite.main()
