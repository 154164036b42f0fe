// Resident grids on an NVIDIA GPU: mapped pinned memory, one cooperative launch, two streams that never wait for each
// other. While the kernel runs nothing is freed or loaded (device/blocking_calls.hpp).
#pragma once

#include <memory>

#include "device/device.hpp"
#include "ring/cuda/cuda_program.hpp"
#include "ring/resident/resident_backend.hpp"

namespace cingulum::ring {

// `device` is a CUDA device and outlives the backend. Give the result to ResidentGrid::open.
[[nodiscard]] Result<std::unique_ptr<ResidentBackend>> make_cuda_backend(Device& device, CudaProgram program);

// Grids of this process that were closed though a body of theirs does not return. Their memory, streams and code are
// kept, since to free them would be to wait for the body; the next grid that is made frees those that have ended since.
[[nodiscard]] std::size_t cuda_grids_let_go();

}  // namespace cingulum::ring
