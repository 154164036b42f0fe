// Random volumes and shapes for the tests of OCT kernels, the same for a seed everywhere.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "oct/device_volume.hpp"

namespace cingulum::testing {

// How many random plans a test runs: CINGULUM_TEST_PLANS, or 100.
inline std::uint32_t oct_plan_count() {
  const char* const text = std::getenv("CINGULUM_TEST_PLANS");
  return text == nullptr ? 100u : static_cast<std::uint32_t>(std::atoi(text));
}

class OctDraw {
 public:
  explicit OctDraw(std::uint32_t seed) : generator_(seed) {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(generator_() % n); }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  double unit() { return static_cast<double>(generator_() >> 8) * 0x1p-24; }
  float value(float low, float high) { return low + static_cast<float>(unit()) * (high - low); }
  // Sizes of 1 and 2 come often: windows are then longer than lines.
  oct::VolumeShape shape(std::uint32_t longest) {
    const auto side = [&] { return one_in(6) ? between(1, 2) : between(3, longest); };
    const std::uint32_t z = side();
    const std::uint32_t y = side();
    return {z, y, one_in(4) ? between(60, 150) : side()};
  }
  // Positive values with speckle, some of them zero or negative.
  std::vector<float> volume(const oct::VolumeShape& shape) {
    std::vector<float> voxels(shape.voxels());
    for (float& voxel : voxels)
      voxel = one_in(20) ? value(-1.0f, 0.0f) * static_cast<float>(below(2)) : value(0.001f, 4.0f);
    return voxels;
  }

 private:
  std::mt19937 generator_;
};

}  // namespace cingulum::testing
