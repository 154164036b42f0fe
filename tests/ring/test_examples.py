"""Runs the programs of examples/, and the one that docs/ring-gpu.md begins with, and reads what they print; their folder in
CINGULUM_EXAMPLES. Their sources, in CINGULUM_EXAMPLE_SOURCES, stay short enough to be read in one go. What needs a GPU says so
where there is none; where CINGULUM_TEST_DEVICES names cuda it must answer."""
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
GPU_EXPECTED = {
    "example_gpu_actor": "11\n21\n42\n",
    "example_gpu_buffers": "4 900 998001\n",
    "example_gpu_child": "1 / 4 = 0.25\n1 / 0: no answer\n1 / 8 = 0.125\nchildren: 2\n",
    "example_gpu_text": "343\n",
    "page_ring_gpu": "the actor answers 42\n",
}
HAS_CUDA = os.environ.get("CINGULUM_TEST_CUDA", "1") != "0"
NEEDS_GPU = "cuda" in os.environ.get("CINGULUM_TEST_DEVICES", "").split(",")


def run(name):
    return subprocess.run([str(PROGRAMS / name)], capture_output=True, text=True, timeout=120)


class Examples(unittest.TestCase):
    def test_each_prints_what_it_says(self):
        for name, expected in EXPECTED.items():
            with self.subTest(name):
                done = run(f"example_{name}")
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, expected, ""))

    def test_each_can_be_read_in_one_go(self):
        sources = [*SOURCES.glob("*.cpp"), *SOURCES.glob("*.cu")]
        on_gpu = {name.removeprefix("example_") for name in GPU_EXPECTED if name.startswith("example_")}
        self.assertEqual({source.stem for source in sources}, set(EXPECTED) | on_gpu)
        for source in sources:
            self.assertLess(len(source.read_text().splitlines()), 70, source)


@unittest.skipUnless(HAS_CUDA, "built without CUDA")
class GpuExamples(unittest.TestCase):
    def test_each_answers_or_says_that_there_is_no_gpu(self):
        for name, expected in GPU_EXPECTED.items():
            with self.subTest(name):
                done = run(name)
                if done.returncode != 0 and not NEEDS_GPU:
                    self.assertEqual((done.returncode, done.stdout), (1, ""))
                    self.assertIn("cuda", done.stderr)
                    continue
                self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
