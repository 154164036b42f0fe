"""How every test script ends, and what its tests need that a machine may lack.

    @suite.needs("data", "mrtrix")      above a class or a test
    suite.main()                        in place of unittest.main()

A test without what it needs is skipped with the reason, or fails where CINGULUM_TEST_REQUIRE names the thing (as
continuous integration does: data,mrtrix,chromium). A script none of whose tests ran ends with 77, which ctest counts as
skipped; where only some were skipped, lines that begin with `skipped:` say how many and why, which tools/skips adds up.
Only the standard library is used: GPU machines run some of the scripts with whatever Python they have.
"""
import collections
import functools
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ALL_SKIPPED = 77
# Absolute, so that a test may run it in another folder.
PROGRAM = os.path.abspath(os.environ.get("CINGULUM", "build/bin/cingulum"))


def run_program(*words, **options):
    """The finished `cingulum` of these words, with what it printed as text, however it ended."""
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, **options)


class WithFolder(unittest.TestCase):
    """Tests each of which has a folder of its own."""

    verb = ()  # the words before those of `done`

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def done(self, *words):
        """The finished program, which has to have done it."""
        result = run_program(*self.verb, *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result


def words_of(variable):
    return {word for word in os.environ.get(variable, "").split(",") if word}


def data_folder(name="."):
    """A folder of the real data, or None where it is not there."""
    root = os.environ.get("CINGULUM_TEST_DATA", "")
    path = pathlib.Path(root) / name
    return path if root and path.is_dir() else None


def reason_against(thing):
    """Why a thing is not there; nothing where it is."""
    if thing == "data":
        if not os.environ.get("CINGULUM_TEST_DATA"):
            return "CINGULUM_TEST_DATA is not set"
        return None if data_folder() else "CINGULUM_TEST_DATA names no folder"
    if thing == "zarrita":
        packages = os.environ.get("CINGULUM_TEST_NODE_PACKAGES", "")
        there = packages and (pathlib.Path(packages) / "node_modules" / "zarrita").is_dir() and node_program()
        return None if there else "zarrita is not installed (make test-web does that)"
    if thing == "neuroglancer":
        there = (pathlib.Path(os.environ.get("CINGULUM_TEST_NEUROGLANCER", "")) / "neuroglancer/static/client/index.html").is_file()
        return None if there else "neuroglancer is not installed (make test-web does that)"
    if thing == "nextflow":
        there = shutil.which("java") and (build_folder() / "nextflow" / "lib").is_dir()
        return None if there else "Java or Nextflow is not installed (make test-cluster does that)"
    if thing == "slurm":
        if not all(shutil.which(program) for program in ("slurmctld", "slurmd", "munged", "sbatch")):
            return "Slurm or munge is not installed (make test-cluster does that)"
        return None if os.geteuid() == 0 else "daemons of Slurm run as root alone"
    if thing == "bids-validator":
        there = pathlib.Path(sys.executable).with_name("bids-validator-deno").exists()
        return None if there else "bids-validator-deno is not installed (make test-cluster does that)"
    if thing == "trekker":
        return None if importlib.util.find_spec("Trekker") else "Trekker is not installed"
    programs = {"mrtrix": ("mrconvert", "MRtrix3"), "chromium": ("chromium", "Chromium"), "buildah": ("buildah", "buildah")}
    program, name = programs[thing]
    return None if shutil.which(program) else f"{name} is not installed"


def build_folder():
    """The build folder whose Python runs this."""
    return pathlib.Path(sys.prefix).parent


def node_program():
    """Node: the one beside this Python, or the machine's; None where there is none."""
    beside = pathlib.Path(sys.executable).with_name("node")
    return str(beside) if beside.exists() else shutil.which("node")


def run_in_node(case, script):
    """Runs a file of tests for Node; a test of theirs that fails is a failure of `case`."""
    environment = {**os.environ, "CINGULUM": os.path.abspath(os.environ["CINGULUM"])}
    done = subprocess.run([node_program(), "--test", "--test-reporter=spec", str(script)], capture_output=True, text=True, check=False, env=environment)
    print(done.stdout[-6000:])
    case.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])


def absent(thing, reason):
    """Ends the test that calls it: skipped, or failed where the thing is required."""
    if thing in words_of("CINGULUM_TEST_REQUIRE"):
        raise AssertionError(f"CINGULUM_TEST_REQUIRE names {thing}: {reason}")
    raise unittest.SkipTest(reason)


def need_data(name):
    """The folder of a data set; the test ends where it is not there."""
    path = data_folder(name)
    if path is None:
        absent("data", reason_against("data") or f"CINGULUM_TEST_DATA has no {name}")
    return path


def needs(*things):
    """For a class of tests or one test."""
    lacking = [(thing, reason) for thing, reason in ((thing, reason_against(thing)) for thing in things) if reason]

    def decorate(test):
        if not lacking:
            return test
        for thing, reason in lacking:
            if thing not in words_of("CINGULUM_TEST_REQUIRE"):
                continue
            if isinstance(test, type):
                test.setUpClass = classmethod(lambda _: absent(thing, reason))
                return test
            return functools.wraps(test)(lambda *_: absent(thing, reason))
        return unittest.skip(lacking[0][1])(test)

    return decorate


def device_is_required(name):
    return name in words_of("CINGULUM_TEST_DEVICES")


class CountingResult(unittest.TextTestResult):
    """Remembers how many tests ended well."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


class CountingRunner(unittest.TextTestRunner):
    resultclass = CountingResult


def main(**options):
    """Runs the tests of the script that calls it, as unittest.main does, and ends the process."""
    result = unittest.main(exit=False, testRunner=CountingRunner, **options).result
    reasons = collections.Counter(" ".join(reason.split()) for _, reason in result.skipped)
    sys.stderr.flush()
    for reason, count in reasons.items():
        print(f"skipped: {count}: {reason}", flush=True)
    if not result.wasSuccessful():
        sys.exit(1)
    if result.passed > 0:
        sys.exit(0)
    if not reasons:
        print("skipped: 1: the script has no test", flush=True)
    sys.exit(ALL_SKIPPED)
