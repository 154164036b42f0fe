// gpu_ballast BYTES: takes all memory of the CUDA device but BYTES, says "ready", and holds it until its input ends.
// tests/tract/test_full_card.py runs other programs beside it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "device/registry.hpp"
#include "support/card_ballast.hpp"

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
  const auto ballast = testing::take_all_but(**device, left);
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
