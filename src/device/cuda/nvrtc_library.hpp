// The shim of NVRTC, CUDA's run-time compiler: CUDA C++ text to machine code. Works without a GPU, so that compilation,
// its options and its messages are tested everywhere.
#pragma once

#include <nvrtc.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/kernel.hpp"

namespace cingulum {

struct NvrtcLibrary {
  decltype(::nvrtcVersion)* nvrtcVersion = nullptr;
  decltype(::nvrtcGetErrorString)* nvrtcGetErrorString = nullptr;
  decltype(::nvrtcCreateProgram)* nvrtcCreateProgram = nullptr;
  decltype(::nvrtcDestroyProgram)* nvrtcDestroyProgram = nullptr;
  decltype(::nvrtcAddNameExpression)* nvrtcAddNameExpression = nullptr;
  decltype(::nvrtcCompileProgram)* nvrtcCompileProgram = nullptr;
  decltype(::nvrtcGetLoweredName)* nvrtcGetLoweredName = nullptr;
  decltype(::nvrtcGetProgramLogSize)* nvrtcGetProgramLogSize = nullptr;
  decltype(::nvrtcGetProgramLog)* nvrtcGetProgramLog = nullptr;
  decltype(::nvrtcGetCUBINSize)* nvrtcGetCUBINSize = nullptr;
  decltype(::nvrtcGetCUBIN)* nvrtcGetCUBIN = nullptr;

  std::string path;
  std::string version;  // "13.0"

  // Opened on the first call, once for the process; the failure is kept as well. Later calls ignore `override_path`.
  [[nodiscard]] static const Result<NvrtcLibrary>& get(const std::optional<std::filesystem::path>& override_path);
};

// The options that hold the roundings of the bit contract in code compiled at run time.
[[nodiscard]] const std::vector<std::string>& contract_nvrtc_options();

// All options with which `source` is compiled for `architecture` ("sm_90").
[[nodiscard]] std::vector<std::string> nvrtc_options(const KernelSource& source, const std::string& architecture);

struct CompiledCuda {
  std::vector<std::byte> code;  // a cubin
  std::string symbol;           // the mangled name of the entry point
  std::string log;
};

// Compiles; the failure carries the compiler's own message with the user's line numbers.
[[nodiscard]] Result<CompiledCuda> compile_cuda_source(const NvrtcLibrary& nvrtc, const KernelSource& source,
                                                       const std::string& architecture);

}  // namespace cingulum
