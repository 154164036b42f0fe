// The OCT kernels on the CPU: each says into how many pieces it falls and runs one of them. Pieces share nothing, so
// that any number of threads gives the same bits. Called by host_backend.cpp.
#pragma once

#include <cstdint>

#include "oct/kernel_backend.hpp"

namespace cingulum::oct {

struct HostKernel {
  std::uint32_t (*pieces)(const KernelPointers&);
  void (*run)(const KernelPointers&, std::uint32_t piece);
};

[[nodiscard]] HostKernel host_filter_axis();
[[nodiscard]] HostKernel host_spline_axis();

}  // namespace cingulum::oct
