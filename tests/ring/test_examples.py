"""Runs the programs of examples/ and reads what they print; their folder in CINGULUM_EXAMPLES. Their sources, in
CINGULUM_EXAMPLE_SOURCES, stay short enough to be read in one go."""
import os
import pathlib
import subprocess
import unittest

PROGRAMS = pathlib.Path(os.environ["CINGULUM_EXAMPLES"])
SOURCES = pathlib.Path(os.environ["CINGULUM_EXAMPLE_SOURCES"])
EXPECTED = {
    "echo": "echo of 1: 1\necho of 2: 2\necho of 3: 3\nstopped\n",
    "pipeline": "11\n21\n41\n",
    # The average stands at 0.059, 0.9531, 0.87779, 0.760011 when 9, 0.2, -0.3 and -7 come.
    "filter": "unusual: 9\nunusual: -7\ndropped: 0\n",
}


class Examples(unittest.TestCase):
    def test_each_prints_what_it_says(self):
        for name, expected in EXPECTED.items():
            with self.subTest(name):
                done = subprocess.run([str(PROGRAMS / f"example_{name}")], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, expected, ""))

    def test_each_is_under_60_lines(self):
        sources = sorted(SOURCES.glob("*.cpp"))
        self.assertEqual({source.stem for source in sources}, set(EXPECTED))
        for source in sources:
            self.assertLess(len(source.read_text().splitlines()), 60, source)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
