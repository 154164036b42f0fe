// What a GPU and its bus give without the runtime: the exchanges of the ring benches by the barest kernels, each of
// which ends by itself. `cingulum ring bench` and bench_ring_gpu set their figures beside these, of the same run. To be
// called before actors stay on the device: they free memory. They answer the code of the CUDA call that failed, 0:
// none. Times are in seconds, one per exchange.
#pragma once

#include <cstdint>
#include <vector>

namespace cingulum::ring {

// 64 bytes to the GPU and back, a sequence number in every 8-byte word, one warp that does nothing else.
[[nodiscard]] int bare_round_trips(std::uint32_t count, std::vector<double>& seconds);
// 64-byte messages per second through a ring each way, one block of 512 threads, one host thread. 0: one was changed on
// its way.
[[nodiscard]] int bare_stream(std::uint64_t count, double& messages_per_s);
// Between two blocks and back, on average.
[[nodiscard]] int bare_kernel_to_kernel(std::uint32_t count, double& seconds);
// The alternative to an actor: a kernel for each piece of work.
[[nodiscard]] int launch_and_synchronise(std::uint32_t count, std::vector<double>& seconds);

}  // namespace cingulum::ring
