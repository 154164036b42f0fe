// Checksums of chunks that came to a device past the host: CRC-32C where the bytes are, by a kernel. Called by the
// direct engine before any byte goes to its place.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"

namespace cingulum::zarr {

// A chunk of `bytes` bytes with its four bytes of CRC-32C behind it.
struct ChecksumPlace {
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
};

// one caller at a time
class ChecksumKernels {
 public:
  // Refuses devices whose memory has no address (WebGPU).
  [[nodiscard]] static Result<std::unique_ptr<ChecksumKernels>> create(Device& device);
  virtual ~ChecksumKernels() = default;
  ChecksumKernels(const ChecksumKernels&) = delete;
  ChecksumKernels& operator=(const ChecksumKernels&) = delete;

  // Whether each chunk has the checksum that is stored behind it, in the order of `places`. Returns when it is known,
  // after what was queued before.
  [[nodiscard]] virtual Result<std::vector<bool>> verify(Queue& queue, const Buffer& staging,
                                                         std::span<const ChecksumPlace> places) = 0;

 protected:
  ChecksumKernels() = default;
};

// Declared here, defined in cuda/.
[[nodiscard]] Result<std::unique_ptr<ChecksumKernels>> make_cuda_checksum_kernels(Device& device);

}  // namespace cingulum::zarr
