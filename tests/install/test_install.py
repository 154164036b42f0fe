"""Installs into an empty prefix, builds an outside project with find_package(cingulum) against it, and runs both programs;
the library has nothing of the command line. Build folder in BUILD, CMake in CMAKE."""
import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = os.environ["BUILD"]
CMAKE = os.environ["CMAKE"]
HAS_WEBGPU = os.environ.get("CINGULUM_TEST_WEBGPU", "1") != "0"
HERE = pathlib.Path(__file__).resolve().parent


def run(*words):
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(words)}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def defined_symbols(library):
    """Global symbols that are defined there and nowhere else: inline functions (weak) may be in several places."""
    lines = (line.split(maxsplit=2) for line in run("nm", "-gC", "--defined-only", str(library)).splitlines())
    return {words[2] for words in lines if len(words) == 3 and words[1] in "TDBR"}


class Library(unittest.TestCase):
    def test_has_nothing_of_the_command_line(self):
        folder = pathlib.Path(BUILD) / "lib"
        command_line = defined_symbols(folder / "libcingulum_cli.a")
        library = defined_symbols(next(iter(sorted(folder.glob("libcingulum.*")))))
        self.assertIn("cingulum::all_verbs()", command_line)
        self.assertGreater(len(library), 100)
        self.assertEqual(library & command_line, set())
        self.assertEqual({name for name in library if name.startswith("CLI::")}, set())


class Install(unittest.TestCase):
    def test_an_outside_project_finds_builds_and_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(folder) / "prefix"
            run(CMAKE, "--install", BUILD, "--prefix", str(prefix))
            names = {path.name for path in prefix.rglob("*")}
            self.assertIn("LICENSE", names)
            self.assertNotIn("libcingulum_cli.a", names)
            self.assertFalse(any(prefix.glob("include/cingulum/cli")), "its headers are not installed")
            libraries = next(path.parent for path in prefix.rglob("libcingulum.*"))
            if HAS_WEBGPU:
                self.assertTrue(any(libraries.glob("libwgpu_native.*")), "wgpu-native lies beside the library")
            self.assertIn("cpu", run(str(prefix / "bin" / "cingulum"), "devices"))

            outside = pathlib.Path(folder) / "outside"
            run(CMAKE, "-S", str(HERE / "outside_project"), "-B", str(outside), f"-DCMAKE_PREFIX_PATH={prefix}",
                "-DCMAKE_BUILD_TYPE=Release")
            run(CMAKE, "--build", str(outside))
            answers = dict(line.split() for line in run(str(outside / "outside")).splitlines())
            self.assertEqual(set(answers.values()), {"equal"})
            self.assertIn("cpu", answers)
            if HAS_WEBGPU:
                self.assertIn("webgpu:0", answers, "the outside program finds the wgpu-native of the prefix")

            examples = pathlib.Path(folder) / "examples"
            run(CMAKE, "-S", str(HERE.parents[1] / "examples"), "-B", str(examples), f"-DCMAKE_PREFIX_PATH={prefix}",
                "-DCMAKE_BUILD_TYPE=Debug")
            run(CMAKE, "--build", str(examples))
            self.assertIn("stopped", run(str(examples / "example_echo")))


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
