#include "parity/backend_launch.hpp"

#if CINGULUM_HAS_CUDA
#include "device/cuda/cuda_queue.hpp"
#else
#include "parity/lane_cases.hpp"
#include "parity/scalar_cases.hpp"
#endif

namespace cingulum {

std::string_view embedded_case(std::string_view file_name);  // generated from the .wgsl files beside this one

namespace parity {

std::string_view scalar_cases_wgsl() {
  return embedded_case("scalar_cases.wgsl");
}
std::string_view lane_cases_wgsl() {
  return embedded_case("lane_cases.wgsl");
}

#if CINGULUM_HAS_CUDA
void* native_stream_of(const Queue& queue) {
  return cuda_stream_of(queue);
}
#else
void* native_stream_of(const Queue&) {
  return nullptr;
}
int launch_scalar_case(int, const std::uint32_t*, std::uint32_t*, std::uint32_t, void*) {
  return -1;
}
int launch_lane_case(int, const std::uint32_t*, std::uint32_t*, std::uint32_t, void*) {
  return -1;
}
#endif

}  // namespace parity
}  // namespace cingulum
