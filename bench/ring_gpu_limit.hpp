// What the machine gives without the runtime: the same exchanges by the barest kernels. bench/ring_gpu.cpp sets its
// figures beside these, measured in the same run. All times in seconds, one per exchange.
#pragma once

#include <cstdint>
#include <vector>

#include "ring/cuda/cuda_program.hpp"

namespace cingulum::bench {

// 64 bytes to the GPU and back, a sequence number in every 8-byte word, one warp that does nothing else.
std::vector<double> raw_round_trips(std::uint32_t count);
// 64-byte messages per second through a ring each way, one block of 512 threads, one host thread.
double raw_messages_per_second(std::uint64_t count);
// Between two blocks and back.
double raw_kernel_to_kernel_seconds(std::uint32_t count);
std::vector<double> raw_launch_and_synchronise(std::uint32_t count);

// The actors that the bench runs: echo, batch_echo, bounce.
ring::CudaProgram bench_program();

}  // namespace cingulum::bench
