// The tasks of a launch of checksums (crc32c_fold.hpp), and what its answers mean: the part that CUDA and the host
// share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "zarr/direct/checksum_kernels.hpp"
#include "zarr/direct/crc32c_fold.hpp"

namespace cingulum::zarr {

struct ChecksumPlan {
  std::vector<CrcTask> tasks;
  std::uint32_t blocks = 0;
};

[[nodiscard]] ChecksumPlan plan_checksums(std::span<const ChecksumPlace> places);
[[nodiscard]] std::vector<bool> judge_checksums(const ChecksumPlan& plan, std::span<const CrcAnswer> answers);

}  // namespace cingulum::zarr
