// Whether a device computes the bits that the CPU computes, on a computation that uses every kind of arithmetic that
// tracking uses. Behind `cingulum selfcheck`, and the quickest parity test there is.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "device/device.hpp"

namespace cingulum {

// 65535 workgroups of 64, the largest launch that every WebGPU device accepts.
inline constexpr std::uint32_t selfcheck_most_items = 65535 * 64;

struct SelfcheckResult {
  std::uint32_t items = 0;
  std::uint32_t equal = 0;          // items whose words all have the CPU's bits
  double compute_milliseconds = 0;  // on the device, transfers not counted
};

[[nodiscard]] Result<SelfcheckResult> run_selfcheck(Device& device, std::uint32_t items);

// The part that is compiled by nvcc (device/cuda/selfcheck.cu): queues the computation of `items` items into `output`.
[[nodiscard]] Status queue_selfcheck_on_cuda(Queue& queue, Buffer& output, std::uint32_t items);

}  // namespace cingulum
