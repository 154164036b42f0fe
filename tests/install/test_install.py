"""Installs into an empty prefix, builds outside projects with find_package(cingulum) against it, and runs their programs; each
installed header of the rings (with CINGULUM_TEST_LONG=1: each installed header) compiles alone; the library has nothing of the
command line. Build folder in BUILD, CMake in CMAKE, the compilers in CXX and NVCC (empty: no CUDA)."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ["BUILD"]
CMAKE = os.environ["CMAKE"]
HAS_WEBGPU = os.environ.get("CINGULUM_TEST_WEBGPU", "1") != "0"
NVCC = os.environ.get("NVCC", "")
HERE = pathlib.Path(__file__).resolve().parent
CLONE = HERE.parents[1]
sys.path.insert(0, str(CLONE / "tests" / "support"))
import page_files  # noqa: E402
import suite  # noqa: E402


def run(*words):
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(words)}\n{result.stdout}\n{result.stderr}")
    return result.stdout


# What programs include of the rings; docs/ring-gpu.md says what for.
PUBLIC_RING_HEADERS = ["actor/runtime.hpp", "actor/actor_context.hpp", "actor/typed_actor.hpp", "actor/reply_buffer.hpp",
                       "cpu/turn_schedule.hpp", "edge/wire.hpp", "edge/wire_gate.hpp", "telemetry/telemetry_publisher.hpp",
                       "resident/resident_grid.hpp", "child/child_host.hpp", "child/child_service.hpp"]
PUBLIC_CUDA_HEADERS = ["cuda/cuda_backend.hpp", "cuda/resident_kernel.cuh", "cuda/user_program.hpp"]


def included_by(folder, names):
    """These headers and all that they include of the same folder."""
    reached, to_read = set(), list(names)
    while to_read:
        name = to_read.pop()
        if name in reached or not (folder / name).exists():
            continue
        reached.add(name)
        to_read += re.findall(r'^#include "([^"]+)"', (folder / name).read_text(), re.MULTILINE)
    return reached


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
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.prefix = pathlib.Path(folder.name) / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", str(cls.prefix))

    def test_headers_of_the_rings_compile_alone_and_private_ones_stay_out(self):
        folder = self.prefix / "include" / "cingulum"
        installed = sorted(str(path.relative_to(folder)) for path in [*folder.rglob("*.hpp"), *folder.rglob("*.cuh")])
        rings = [name for name in installed if name.startswith("ring/")]
        public = ["ring/" + name for name in PUBLIC_RING_HEADERS + (PUBLIC_CUDA_HEADERS if NVCC else [])]
        self.assertEqual([name for name in public if name not in rings], [])
        reached = included_by(folder, public)
        self.assertEqual([name for name in rings if name not in reached], [], "no public header needs these")
        page = (CLONE / "docs" / "ring-gpu.md").read_text()
        self.assertEqual([name for name in PUBLIC_RING_HEADERS + PUBLIC_CUDA_HEADERS if f"`ring/{name}`" not in page], [])

        def compile_alone(name):
            text = f'#include "{name}"\nint main() {{ return 0; }}\n'
            host = [os.environ["CXX"], "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++"]
            device = [NVCC, "-std=c++20", "-arch=sm_90", "-DFMT_USE_CONSTEXPR=1", "-ptx", "-o", os.devnull, "-x", "cu"]
            command = [*(device if name.endswith(".cuh") else host), f"-I{folder}", "-"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
            return "" if done.returncode == 0 else f"{name}: {done.stderr[:2000]}"

        wanted = installed if os.environ.get("CINGULUM_TEST_LONG") else rings
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            failures = [text for text in pool.map(compile_alone, wanted) if text]
        self.assertEqual("\n".join(failures), "")

    @unittest.skipUnless(NVCC, "no CUDA compiler")
    def test_the_project_of_the_page_about_gpu_actors_builds_and_runs(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            files = page_files.write_files(CLONE / "docs" / "ring-gpu.md", folder)
            self.assertEqual(set(files), {"CMakeLists.txt", "first_actor.cu"})
            run(CMAKE, "-S", name, "-B", str(folder / "build"), f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CUDA_COMPILER={NVCC}",
                "-DCMAKE_CUDA_ARCHITECTURES=90", "-DCMAKE_BUILD_TYPE=Release")
            run(CMAKE, "--build", str(folder / "build"))
            done = subprocess.run([str(folder / "build" / "first_actor")], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                self.assertEqual(done.stdout, "the actor answers 42\n")
            else:
                self.assertIn("cuda", done.stderr)

    def test_the_project_of_the_page_about_cpp_tracks_fits_and_reads(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            files = page_files.write_files(CLONE / "docs" / "cpp.md", folder)
            self.assertEqual(set(files), {"CMakeLists.txt", "streamlines.cpp"})
            build = folder / "build"
            run(CMAKE, "-S", name, "-B", str(build), f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Debug")
            run(CMAKE, "--build", str(build))
            cingulum, phantom, results = str(self.prefix / "bin" / "cingulum"), folder / "phantom", folder / "results"
            results.mkdir()
            run(cingulum, "phantom", "--preset", "crossing", "--voxel-size", "4", "--out", str(phantom))
            series = [str(phantom / "dwi.nii.gz"), "--bvals", str(phantom / "dwi.bval"), "--bvecs", str(phantom / "dwi.bvec"),
                      "--mask", str(phantom / "mask.nii.gz")]
            run(cingulum, "fit", *series, "--model", "dti", "--out", str(folder / "first"))
            run(cingulum, "convert", str(folder / "first" / "fa.nii.gz"), str(results / "fa.ome.zarr"))
            run(cingulum, "oct", "simulate", "--grid", "2,2", "--tile", "40,32,32", "--overlap", "0.25", "--surface", "8",
                "--out", str(results / "tiles"))
            printed = run(str(build / "streamlines"), str(phantom), str(results))
            kept = re.search(r"file: (\d+) streamlines\nmemory: (\d+) streamlines\n", printed)
            self.assertIsNotNone(kept, printed)
            self.assertEqual(kept[1], kept[2])
            self.assertGreater(int(kept[1]), 10)
            # What the program wrote is what the command writes, and its sidecar repeats it.
            run(cingulum, "track", str(phantom / "dwi.nii.gz"), "--mask", str(phantom / "mask.nii.gz"), "--dg", "prob", "--nseeds", "500",
                "--max-angle", "25", "--step-size", "0.5mm", "--device", "cpu", "--out", str(folder / "typed.trx"))
            written = (results / "tracks.trx").read_bytes()
            self.assertEqual(written, (folder / "typed.trx").read_bytes())
            self.assertEqual(written, (results / "again.trx").read_bytes())
            self.assertEqual((results / "dti" / "fa.nii.gz").read_bytes(), (folder / "first" / "fa.nii.gz").read_bytes())
            run(cingulum, "oct", "run", str(results / "tiles"), "--axial-step", "3.5", "--device", "cpu", "--out", str(folder / "volume.ome.zarr"))
            for file in sorted((folder / "volume.ome.zarr").rglob("*")):
                if file.is_file():
                    ours = results / "volume.ome.zarr" / file.relative_to(folder / "volume.ome.zarr")
                    self.assertEqual(ours.read_bytes(), file.read_bytes(), file.name)
            self.assertRegex(printed, r"oct: \d+ planes of 4 tiles")
            self.assertIn("zarr: 1 chunks", printed)

    def test_an_outside_project_finds_builds_and_runs(self):
        prefix = self.prefix
        with tempfile.TemporaryDirectory() as folder:
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
            # Without CUDA: its compiler takes long, and the page's project has shown that it works.
            run(CMAKE, "-S", str(CLONE / "examples"), "-B", str(examples), f"-DCMAKE_PREFIX_PATH={prefix}",
                "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CUDA_COMPILER=CMAKE_CUDA_COMPILER-NOTFOUND")
            run(CMAKE, "--build", str(examples))
            self.assertIn("stopped", run(str(examples / "example_echo")))


if __name__ == "__main__":
    suite.main()
