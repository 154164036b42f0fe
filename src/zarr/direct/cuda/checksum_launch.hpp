// The launcher of checksum_kernels.cu, which nvcc compiles ahead. Pointers are of device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "zarr/direct/crc32c_fold.hpp"

namespace cingulum::zarr {

// `answers` are zero before it.
[[nodiscard]] cudaError_t launch_crc32c(const CrcTask* tasks, std::uint32_t count, std::uint32_t blocks,
                                        const CrcTables* tables, const std::byte* staging, CrcAnswer* answers,
                                        cudaStream_t stream);

}  // namespace cingulum::zarr
