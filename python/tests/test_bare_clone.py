"""`pip install .` without `make` before: which backends the library is built with, and what is said of the others.

A project of two empty targets stands in for the library, which takes minutes to build.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

LIBRARY = """
cmake_minimum_required(VERSION 3.28)
project(library LANGUAGES NONE)
if(CINGULUM_CUDA)
  message(FATAL_ERROR "this nvcc is too old")
endif()
file(WRITE ${CMAKE_BINARY_DIR}/options.txt "${CINGULUM_CUDA} ${CINGULUM_WEBGPU} ${BUILD_TESTING} ${CMAKE_BUILD_TYPE}")
foreach(target cingulum cingulum_cli)
  add_custom_target(${target} COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/${target}.built)
endforeach()
"""
CALLER = """
cmake_minimum_required(VERSION 3.28)
project(caller LANGUAGES NONE)
include({root}/python/BuildLibrary.cmake)
cingulum_build_library(${{CMAKE_CURRENT_SOURCE_DIR}}/library ${{CMAKE_CURRENT_BINARY_DIR}}/built)
"""


@pytest.fixture
def configure(tmp_path):
    beside = pathlib.Path(sys.executable).with_name("cmake")
    cmake = str(beside) if beside.exists() else shutil.which("cmake")
    (tmp_path / "library").mkdir()
    (tmp_path / "library/CMakeLists.txt").write_text(LIBRARY)
    (tmp_path / "CMakeLists.txt").write_text(CALLER.format(root=ROOT))

    def run(python, **environment):
        words = [cmake, "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DPython_EXECUTABLE={python}"]
        cleared = {name: value for name, value in os.environ.items() if name not in ("CUDACXX", "CUDA_HOME")}
        done = subprocess.run(words, env={**cleared, **environment}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        built = tmp_path / "build/built"
        assert (built / "cingulum.built").exists() and (built / "cingulum_cli.built").exists()
        return " ".join(done.stderr.split()), (built / "options.txt").read_text()

    return run


def test_backends_without_toolkits_are_left_out_by_name(configure, tmp_path):
    if shutil.which("nvcc") or pathlib.Path("/usr/local/cuda/bin/nvcc").exists():
        pytest.skip("this machine has an nvcc of its own")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty"], check=True)
    said, options = configure(tmp_path / "empty/bin/python")
    assert "left out: CUDA, there is no nvcc" in said and "left out: WebGPU, there is no wgpu-native" in said
    assert options == "OFF OFF OFF Release"


def test_an_nvcc_that_does_not_compile_is_left_out(configure, tmp_path):
    packages = tmp_path / f"env/lib/python3.{sys.version_info.minor}/site-packages/wgpu/resources"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    packages.mkdir(parents=True)
    (packages / "libwgpu_native-release.so").touch()
    said, options = configure(tmp_path / "env/bin/python", CUDACXX="/nowhere/nvcc")
    assert "left out: CUDA, the nvcc that was found does not compile" in said and "WebGPU" not in said
    assert options == "OFF ON OFF Release"
