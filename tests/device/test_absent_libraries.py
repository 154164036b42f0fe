"""Vendor libraries that are missing, damaged, too old, or present without a device: the program starts, `devices` says
why, and the CPU works. Fake libraries are compiled for each case. Program in CINGULUM, C compiler in CC."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["CINGULUM"]
COMPILER = os.environ.get("CC", "cc")
HAS_CUDA = os.environ.get("CINGULUM_TEST_CUDA", "1") != "0"
HAS_WEBGPU = os.environ.get("CINGULUM_TEST_WEBGPU", "1") != "0"

CUDA_FUNCTIONS = """
int cuDriverGetVersion(int* version) { *version = VERSION; return 0; }
int cuInit(unsigned flags) { (void)flags; return INIT; }
int cuGetErrorString(int code, const char** text) { (void)code; *text = "the fake is broken"; return 0; }
int cuGetProcAddress_v2(void) { return 1; }
"""


def run(*words, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CINGULUM")}
    environment.update(variables)
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120, env=environment, check=False)


class AbsentLibraries(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def fake(self, code, name="fake.so"):
        source = pathlib.Path(self.folder.name) / "fake.c"
        library = pathlib.Path(self.folder.name) / name
        source.write_text(code)
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        return str(library)

    def plain_file(self, content=b"", name="plain.so"):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(content)
        return str(path)

    def reason(self, backend, **variables):
        """Why a backend is absent, after checking that everything else works."""
        result = run("devices", "--json", **variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertIn("cpu", [device["id"] for device in report["devices"]])
        entry = next(one for one in report["backends"] if one["name"] == backend)
        self.assertEqual(entry["devices"], 0)
        check = run("selfcheck", "--device", "cpu", "--items", "1000", **variables)
        self.assertEqual(check.returncode, 0, check.stderr)
        asked = run("selfcheck", "--device", backend, "--items", "1000", **variables)
        self.assertEqual(asked.returncode, 1)
        self.assertIn(entry["absent_because"], asked.stderr)
        self.assertIn("available: ", asked.stderr)
        self.assertEqual(asked.stdout, "")
        return entry["absent_because"]

    @unittest.skipUnless(HAS_CUDA, "built without CUDA")
    def test_cuda_driver(self):
        cases = {
            "cannot open shared object file": "/nonexistent/libcuda.so.1",
            "file too short": self.plain_file(),
            "invalid ELF header": self.plain_file(b"not a library" * 100, "text.so"),
            "has no function cuDriverGetVersion": self.fake("int nothing;", "nothing.so"),
            "is for CUDA 12.4, 13.0 or newer is needed": self.fake(
                CUDA_FUNCTIONS.replace("VERSION", "12040").replace("INIT", "0"), "old.so"),
            "the driver does not start: the fake is broken (3)": self.fake(
                CUDA_FUNCTIONS.replace("VERSION", "13000").replace("INIT", "3"), "broken.so"),
            "the driver finds no GPU": self.fake(
                CUDA_FUNCTIONS.replace("VERSION", "13000").replace("INIT", "100"), "empty.so"),
        }
        for expected, library in cases.items():
            with self.subTest(expected):
                self.assertIn(expected, self.reason("cuda", CINGULUM_CUDA_LIBRARY=library))

    @unittest.skipUnless(HAS_CUDA, "built without CUDA")
    def test_cuda_driver_on_the_search_path(self):
        self.fake("int nothing;", "libcuda.so.1")
        self.assertIn("has no function", self.reason("cuda", LD_LIBRARY_PATH=self.folder.name))

    @unittest.skipUnless(HAS_WEBGPU, "built without WebGPU")
    def test_wgpu_native(self):
        cases = {
            "cannot open shared object file": "/nonexistent/libwgpu_native.so",
            "file too short": self.plain_file(),
            "has no function wgpuGetVersion": self.fake("int nothing;", "nothing.so"),
            "is wgpu-native 1.2.3.4, this build needs": self.fake(
                "unsigned wgpuGetVersion(void) { return 0x01020304; }", "old.so"),
        }
        for expected, library in cases.items():
            with self.subTest(expected):
                self.assertIn(expected, self.reason("webgpu", CINGULUM_WGPU_LIBRARY=library))

    @unittest.skipUnless(HAS_WEBGPU, "built without WebGPU")
    def test_wgpu_native_of_the_right_version_that_lacks_a_function(self):
        library = json.loads(run("devices", "--json").stdout)
        version = next(one for one in library["backends"] if one["name"] == "webgpu")["library"]
        parts = version.rsplit(" ", 1)[1].rstrip(")").split(".")
        number = sum(int(part) << shift for part, shift in zip(parts, (24, 16, 8, 0)))
        fake = self.fake(f"unsigned wgpuGetVersion(void) {{ return {number}u; }}", "partial.so")
        self.assertIn("has no function wgpuSetLogCallback", self.reason("webgpu", CINGULUM_WGPU_LIBRARY=fake))

    @unittest.skipUnless(HAS_WEBGPU, "built without WebGPU")
    def test_no_graphics_driver(self):
        reason = self.reason("webgpu", VK_ICD_FILENAMES="/nonexistent.json", VK_DRIVER_FILES="/nonexistent.json")
        self.assertIn("finds no adapter", reason)

    def test_malformed_settings_name_the_setting_and_what_is_accepted(self):
        for name, value in {"CINGULUM_MEMORY_LIMIT": "lots", "CINGULUM_THREADS": "-3", "CINGULUM_CACHE_LIMIT": "1X"}.items():
            result = run("devices", **{name: value})
            self.assertEqual(result.returncode, 2, name)
            self.assertIn(name, result.stderr)
            self.assertIn(value, result.stderr)
            self.assertEqual(result.stdout, "")

    def test_unknown_devices_are_answered_with_the_list(self):
        result = run("selfcheck", "--device", "quantum")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("quantum", result.stderr)
        for device in json.loads(run("devices", "--json").stdout)["devices"]:
            self.assertIn(device["id"], result.stderr)


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
    import suite

    suite.main()
