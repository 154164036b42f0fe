# Builds libcingulum and the verbs for `pip install .` in a clone in which `make` was not run: with CUDA where there is an
# nvcc that compiles, with WebGPU where there is wgpu-native (the Python package wgpu has it). A backend that is left out is
# named with the way to have it; the CPU is always there.
function(cingulum_build_library root build)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
  # Where the Python packages nvidia-cuda-nvcc and wgpu would be.
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import sys; print(sys.prefix)" OUTPUT_VARIABLE environment
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB packages ${environment}/lib/python3*/site-packages)
  find_program(CINGULUM_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin PATHS /usr/local/cuda/bin ${packages}/nvidia/cu13/bin)
  find_file(CINGULUM_WGPU NAMES libwgpu_native-release.so libwgpu_native.so libwgpu_native-release.dylib libwgpu_native.dylib
            HINTS ${packages}/wgpu/resources PATHS /usr/local/lib /usr/lib)
  set(cuda ON)
  if(NOT CINGULUM_NVCC AND NOT DEFINED ENV{CUDACXX})
    set(cuda OFF)
    message(WARNING "left out: CUDA, there is no nvcc. Set CUDACXX or CUDA_HOME, or run `make`, which brings one")
  endif()
  set(webgpu ON)
  if(NOT CINGULUM_WGPU)
    set(webgpu OFF)
    message(WARNING "left out: WebGPU, there is no wgpu-native. Install the package wgpu and give --no-build-isolation, or "
                    "run `make`, which brings it")
  endif()
  set(options -S ${root} -B ${build} -G ${CMAKE_GENERATOR} -DBUILD_TESTING=OFF -DCINGULUM_BENCH=OFF
      -DCMAKE_BUILD_TYPE=Release -DCINGULUM_WEBGPU=${webgpu} -DCINGULUM_VENV=${environment}
      -DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM})
  message(STATUS "building the library in ${build}: CUDA ${cuda}, WebGPU ${webgpu}; this takes minutes")
  execute_process(COMMAND ${CMAKE_COMMAND} ${options} -DCINGULUM_CUDA=${cuda} RESULT_VARIABLE failed)
  if(failed AND cuda)
    message(WARNING "left out: CUDA, the nvcc that was found does not compile (see above)")
    file(REMOVE ${build}/CMakeCache.txt)
    execute_process(COMMAND ${CMAKE_COMMAND} ${options} -DCINGULUM_CUDA=OFF RESULT_VARIABLE failed)
  endif()
  if(failed)
    message(FATAL_ERROR "the library cannot be built: see above what is missing (tools/versions.txt lists the packages)")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${build} --parallel --target cingulum cingulum_cli
                  COMMAND_ERROR_IS_FATAL ANY)
endfunction()
