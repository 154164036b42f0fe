// The ceiling of the device benches: the same transfers and launches by the CUDA runtime alone, in the same run. The
// figures of src/device are set beside these.
#pragma once

#include <cstdint>
#include <vector>

namespace cingulum::bench {

// Seconds per repetition. Empty where there is no CUDA.
[[nodiscard]] std::vector<double> raw_cuda_upload(std::uint64_t bytes, int repetitions);
[[nodiscard]] std::vector<double> raw_cuda_download(std::uint64_t bytes, int repetitions);
[[nodiscard]] std::vector<double> raw_cuda_copy(std::uint64_t bytes, int repetitions);
// A kernel of our own that copies 16 bytes a thread: what the memory can do.
[[nodiscard]] std::vector<double> raw_cuda_copy_kernel(std::uint64_t bytes, int repetitions);
[[nodiscard]] std::vector<double> raw_cuda_empty_launch_call(int repetitions);
[[nodiscard]] std::vector<double> raw_cuda_empty_launch_and_wait(int repetitions);
[[nodiscard]] std::vector<double> raw_cuda_event_record(int repetitions);

}  // namespace cingulum::bench
