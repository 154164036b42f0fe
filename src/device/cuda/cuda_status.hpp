// Every call of the CUDA runtime is checked through this one function.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "base/result.hpp"

namespace cingulum {

[[nodiscard]] Status cuda_failure(cudaError_t code, const std::string& doing);

// Success, or what was being done with CUDA's name and words for the failure. The text is made on failure only. Clears
// the runtime's memory of the error, so that a later call does not report it again; an error that ended the context
// stays and is said to have done so.
template <class... Args>
[[nodiscard]] Status cuda_status(cudaError_t code, fmt::format_string<Args...> doing, Args&&... args) {
  if (code == cudaSuccess) return {};
  return cuda_failure(code, fmt::format(doing, std::forward<Args>(args)...));
}

// 13000 is "13.0".
[[nodiscard]] inline std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace cingulum
