// gpu_ballast BYTES: takes all memory of the CUDA device but BYTES, says "ready" with what is left, and holds it until
// its input ends. tests/tract/test_full_card.py runs other programs beside it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "device/registry.hpp"

int main(int count, char** arguments) {
  using namespace cingulum;
  const std::uint64_t left = count == 2 ? std::strtoull(arguments[1], nullptr, 10) : 0;
  if (left == 0) {
    std::fputs("usage: gpu_ballast BYTES\n", stderr);
    return 2;
  }
  const auto devices = DeviceRegistry::probe({});
  const auto device = devices.and_then([](const DeviceRegistry& registry) { return registry.select_one("cuda"); });
  if (!device) {
    std::fprintf(stderr, "gpu_ballast: %s\n", device.error().message().c_str());
    return 1;
  }
  constexpr std::uint64_t largest = std::uint64_t{8} << 30, least = std::uint64_t{2} << 20;
  std::vector<std::unique_ptr<Buffer>> ballast;
  std::uint64_t free = 0;
  for (std::uint64_t piece = largest; piece >= least;) {
    const auto memory = (*device)->memory();
    if (!memory) return 1;
    free = memory->free_bytes.value_or(0);
    if (free < left + least) break;
    auto more = (*device)->allocate(std::min(free - left, piece));
    if (more) {
      ballast.push_back(std::move(*more));
    } else {
      piece /= 2;
    }
  }
  std::printf("ready %llu\n", static_cast<unsigned long long>(free));
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
