"""The page of `cingulum view` in Chromium, against the real server (tests/web/view_page.test.mjs, which says what is tested),
its layer of streamlines alone (streamline_layer.test.mjs), and its sources under TypeScript's checker. Part of `make test-web`.

CINGULUM names the program, CINGULUM_TEST_NODE_PACKAGES the packages of tests/web, CINGULUM_TEST_PAGE_PACKAGES those of web."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import suite  # noqa: E402  (beside the folder of the script)


@suite.needs("chromium", "zarrita")
class Page(unittest.TestCase):
    def test_in_a_browser(self):
        suite.run_in_node(self, ROOT / "tests/web/view_page.test.mjs")

    def test_the_layer_of_streamlines_alone(self):
        suite.run_in_node(self, ROOT / "tests/web/streamline_layer.test.mjs")

    def test_types(self):
        packages = pathlib.Path(os.environ["CINGULUM_TEST_PAGE_PACKAGES"])
        with tempfile.TemporaryDirectory(prefix="cingulum-test-") as folder:
            # The checker looks for packages beside the sources, which have none.
            for name in ("src", "bench", "tsconfig.json"):
                (pathlib.Path(folder) / name).symlink_to(ROOT / "web" / name)
            (pathlib.Path(folder) / "node_modules").symlink_to(packages / "node_modules")
            done = subprocess.run([suite.node_program(), str(packages / "node_modules/typescript/bin/tsc"), "--preserveSymlinks", "-p", folder],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    suite.main()
