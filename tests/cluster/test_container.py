"""The image of the Dockerfile, built here without Docker and without a registry from the program that `make` left: it is small,
holds no compiler, and computes the bytes that the program computes outside."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite
import pipeline
from pipeline import PROJECT, Case

CONTAINER = PROJECT / "tools" / "container"
COMPILERS = ("gcc", "g++", "cc", "c++", "cpp", "clang", "ld", "as", "nvcc", "make", "cmake", "python3")
# As continuous integration has it; tools/test-long builds from source.
FROM_SOURCE = os.environ.get("CINGULUM_TEST_CONTAINER") == "source"


def tearDownModule():
    pipeline.remove_phantoms()


@suite.needs("buildah")
class Container(Case):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            suite.absent("buildah", "buildah without a registry needs root here")
        built = subprocess.run([CONTAINER, "build", *(["--from-source"] if FROM_SOURCE else [])], capture_output=True, text=True)
        if built.returncode != 0:
            raise AssertionError(f"the image was not built:\n{built.stderr[-6000:]}")

    def inside(self, *words):
        return subprocess.run([str(CONTAINER), "run", *map(str, words)], cwd=self.folder, capture_output=True, text=True)

    def test_it_adds_at_most_150_megabytes_to_its_base(self):
        sizes = json.loads(subprocess.run([CONTAINER, "sizes"], capture_output=True, text=True, check=True).stdout)
        self.assertGreater(sizes["base_bytes"], 50e6)
        self.assertGreater(sizes["added_bytes"], 10e6)
        self.assertLess(sizes["added_bytes"], 150e6)
        print(f"the image adds {sizes['added_bytes'] / 1e6:.1f} MB to {sizes['base_bytes'] / 1e6:.1f} MB", flush=True)

    def test_no_compiler_and_no_source_is_left(self):
        found = self.inside("sh", "-c", f"for tool in {' '.join(COMPILERS)}; do command -v $tool; done; ls -d /source; command -v sh")
        self.assertEqual(found.stdout.split(), ["/usr/bin/sh"], found.stdout)

    def test_it_runs_without_a_gpu_and_says_so(self):
        devices = self.inside("cingulum", "devices", "--json")
        self.assertEqual(devices.returncode, 0, devices.stderr)
        self.assertIn("cpu", [device["id"] for device in json.loads(devices.stdout)["devices"]])

    def test_it_writes_the_bytes_of_a_run_outside(self):
        data = pipeline.phantom(0)
        for name in ("dwi.nii.gz", "dwi.bval", "dwi.bvec", "mask.nii.gz"):
            (self.folder / name).write_bytes((data / name).read_bytes())
        done = self.inside("cingulum", "track", "dwi.nii.gz", "--mask", "mask.nii.gz", "--device", "cpu", "--out", "inside.trx",
                           *pipeline.TRACK_ARGUMENTS.split())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(pipeline.digest(self.folder / "inside.trx"), pipeline.single_run(data)[0])

    def test_what_tasks_of_the_workflow_ask_of_it_is_there(self):
        asked = self.inside("bash", "-c", "set -e; for tool in bash awk flock ps tee grep sed mktemp; do command -v $tool > /dev/null || echo $tool; done")
        self.assertEqual((asked.returncode, asked.stdout), (0, ""))


class Definition(unittest.TestCase):
    def test_the_files_for_docker_and_apptainer_install_and_copy_the_same(self):
        """Apptainer cannot be had here: its file is held to the other, which is built."""
        docker, apptainer = ((PROJECT / name).read_text().replace("\\\n", " ") for name in ("Dockerfile", "cingulum.def"))
        for pattern in (r"install -y --no-install-recommends (libfmt9[^&\n]*)", r"install -y --no-install-recommends (make[^&\n]*)",
                        r"(find installed/lib\*[^\n]*?\{\} /opt/cingulum/lib/)"):
            found = [re.search(pattern, text) for text in (docker, apptainer)]
            self.assertTrue(all(found), pattern)
            self.assertEqual(*(match.group(1).split() for match in found))


if __name__ == "__main__":
    suite.main()
