#include "bench/device_ceiling.hpp"

namespace cingulum::bench {

std::vector<double> raw_cuda_upload(std::uint64_t, int) {
  return {};
}
std::vector<double> raw_cuda_download(std::uint64_t, int) {
  return {};
}
std::vector<double> raw_cuda_copy(std::uint64_t, int) {
  return {};
}
std::vector<double> raw_cuda_copy_kernel(std::uint64_t, int) {
  return {};
}
std::vector<double> raw_cuda_empty_launch_call(int) {
  return {};
}
std::vector<double> raw_cuda_empty_launch_and_wait(int) {
  return {};
}
std::vector<double> raw_cuda_event_record(int) {
  return {};
}

}  // namespace cingulum::bench
