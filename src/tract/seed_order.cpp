#include "tract/seed_order.hpp"

#include <algorithm>
#include <utility>

#include "numerics/classify.hpp"
#include "numerics/portable.hpp"

namespace cingulum {
namespace {

std::uint64_t spread_bits(std::uint64_t value) {
  value &= 0x1fffff;
  value = (value | (value << 32)) & 0x1f00000000ffffull;
  value = (value | (value << 16)) & 0x1f0000ff0000ffull;
  value = (value | (value << 8)) & 0x100f00f00f00f00full;
  value = (value | (value << 4)) & 0x10c30c30c30c30c3ull;
  return (value | (value << 2)) & 0x1249249249249249ull;
}

// The bits of x, y and z by turns (Morton 1966).
std::uint64_t morton_code(numerics::Vec3 position_voxel) {
  const auto voxel = [](float coordinate) {
    return static_cast<std::uint64_t>(numerics::float_to_uint32(numerics::floor_of(coordinate + 0.5f)));
  };
  return spread_bits(voxel(position_voxel.x)) | (spread_bits(voxel(position_voxel.y)) << 1) |
         (spread_bits(voxel(position_voxel.z)) << 2);
}

}  // namespace

std::vector<std::uint32_t> order_in_space(const std::vector<numerics::Vec3>& positions) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> codes(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    codes[i] = {morton_code(positions[i]), static_cast<std::uint32_t>(i)};
  }
  std::sort(codes.begin(), codes.end());
  std::vector<std::uint32_t> order(positions.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = codes[i].second;
  return order;
}

}  // namespace cingulum
