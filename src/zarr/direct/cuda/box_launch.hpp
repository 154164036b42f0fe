// The launcher of box_kernels.cu, which nvcc compiles ahead. Pointers are of device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "zarr/direct/box_item.hpp"

namespace cingulum::zarr {

[[nodiscard]] cudaError_t launch_move_boxes(const BoxRecord* records, std::uint32_t count, std::uint32_t blocks,
                                            BoxDirection direction, std::byte* chunks, std::byte* places,
                                            cudaStream_t stream);

}  // namespace cingulum::zarr
