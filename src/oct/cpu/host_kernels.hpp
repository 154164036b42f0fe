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

// A piece for each plane, or for each row of all planes.
template <class Record>
[[nodiscard]] std::uint32_t plane_pieces(const KernelPointers& call) {
  return call.record<Record>().z;
}
template <class Record>
[[nodiscard]] std::uint32_t row_pieces(const KernelPointers& call) {
  return call.record<Record>().y;
}

// host_filter_axis and so on: each is beside what it runs.
#define CGL_DECLARE(name) extern const HostKernel host_##name;
CGL_OCT_KERNELS(CGL_DECLARE)
#undef CGL_DECLARE

}  // namespace cingulum::oct
