# Finds what is linked (fmt, tl::expected, nlohmann::json, CLI11, xxHash, DLPack, ISA-L, zlib, Eigen, GoogleTest) and the two GPU toolkits:
# an nvcc of the machine or of the bootstrap's Python environment, and the headers and library of wgpu-native.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
find_path(ISAL_INCLUDE_DIR isa-l.h REQUIRED)  # the fastest inflate that streams
find_library(ISAL_LIBRARY isal REQUIRED)
find_package(ZLIB REQUIRED)                   # deflate whose bytes do not depend on the CPU
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)     # these four: codecs of Zarr
find_library(ZSTD_LIBRARY zstd REQUIRED)
find_path(LZ4_INCLUDE_DIR lz4.h REQUIRED)
find_library(LZ4_LIBRARY lz4 REQUIRED)
find_path(BLOSC_INCLUDE_DIR blosc.h REQUIRED)
find_library(BLOSC_LIBRARY blosc REQUIRED)
find_package(BZip2 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)   # set-up of the models only: contract, section 6
find_path(DLPACK_INCLUDE_DIR dlpack/dlpack.h REQUIRED)
if(CINGULUM_VIEW)
  find_path(BOOST_BEAST_INCLUDE_DIR boost/beast/version.hpp REQUIRED)  # headers alone
endif()
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
endif()

file(GLOB venv_packages ${CINGULUM_VENV}/lib/python3*/site-packages)
find_program(CINGULUM_PYTHON NAMES python python3 HINTS ${CINGULUM_VENV}/bin REQUIRED)

if(APPLE)
  set(CINGULUM_CUDA OFF)
endif()
set(CINGULUM_CUDA_COMPILER "none")
if(CINGULUM_CUDA)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(nvcc_path nvcc HINTS $ENV{CUDA_HOME}/bin PATHS /usr/local/cuda/bin ${venv_packages}/nvidia/cu13/bin)
    if(NOT nvcc_path)
      message(FATAL_ERROR "no nvcc: run tools/bootstrap, set CUDACXX, or configure with -DCINGULUM_CUDA=OFF")
    endif()
    set(CMAKE_CUDA_COMPILER ${nvcc_path})
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${CINGULUM_CUDA_ARCHS})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # Kernels are packed for size: a driver unpacks a module when it is first used. Drivers before 12.4 do not know how;
  # those of a runtime of 13 (580 and above) all do.
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0)
    add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
  endif()
  # FindCUDAToolkit is not used: it asks for libcudart.so, which the wheels lack. The CUDA language itself links the
  # static runtime into every target that has a .cu file.
  set(CINGULUM_CUDA_COMPILER "nvcc ${CMAKE_CUDA_COMPILER_VERSION}")
  # The run-time compiler travels beside the library in the build tree, where the wheels (not a toolkit) provide it.
  file(GLOB CINGULUM_NVRTC_LIBRARIES ${venv_packages}/nvidia/cu13/lib/libnvrtc.so.13
       ${venv_packages}/nvidia/cu13/lib/libnvrtc-builtins.so.13.*)
endif()

set(CINGULUM_WGPU_VERSION "none")
if(CINGULUM_WEBGPU)
  find_path(WGPU_INCLUDE_DIR wgpu.h HINTS ${venv_packages}/wgpu/resources PATH_SUFFIXES webgpu)
  find_file(WGPU_LIBRARY NAMES libwgpu_native-release.so libwgpu_native.so libwgpu_native-release.dylib
            libwgpu_native.dylib HINTS ${venv_packages}/wgpu/resources PATHS /usr/local/lib /usr/lib)
  if(NOT WGPU_INCLUDE_DIR OR NOT WGPU_LIBRARY)
    message(FATAL_ERROR "no wgpu-native: run tools/bootstrap, or configure with -DCINGULUM_WEBGPU=OFF")
  endif()
  # The C interface of wgpu-native changes with its version: the build remembers which one its headers belong to.
  execute_process(COMMAND ${CINGULUM_PYTHON} -c
                  "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).wgpuGetVersion() & 0xffffffff)" ${WGPU_LIBRARY}
                  OUTPUT_VARIABLE CINGULUM_WGPU_NATIVE_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  math(EXPR wgpu_major "${CINGULUM_WGPU_NATIVE_VERSION} >> 24")
  math(EXPR wgpu_minor "(${CINGULUM_WGPU_NATIVE_VERSION} >> 16) & 255")
  set(CINGULUM_WGPU_VERSION "wgpu-native ${wgpu_major}.${wgpu_minor}")
endif()
