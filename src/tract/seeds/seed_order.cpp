#include "tract/seeds/seed_order.hpp"

#include <array>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <string_view>
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

struct CodedSeed {
  std::uint64_t code;
  std::uint32_t index;
};

// Sorts seeds by code, those of one code in the order in which they were: by digits, the lowest first. Images have
// codes of two or three digits.
void sort_by_code(std::vector<CodedSeed>& seeds, std::uint64_t all_bits) {
  constexpr int digit_bits = 11;
  std::vector<CodedSeed> sorted(seeds.size());
  const auto bits = static_cast<int>(std::bit_width(all_bits));
  for (int shift = 0; shift < bits; shift += digit_bits) {
    const auto digit = [shift](const CodedSeed& seed) {
      return static_cast<std::size_t>((seed.code >> shift) & ((1u << digit_bits) - 1u));
    };
    std::array<std::size_t, std::size_t{1} << digit_bits> place = {};
    for (const CodedSeed& seed : seeds) ++place[digit(seed)];
    std::exclusive_scan(place.begin(), place.end(), place.begin(), std::size_t{0});
    for (const CodedSeed& seed : seeds) sorted[place[digit(seed)]++] = seed;
    seeds.swap(sorted);
  }
}

}  // namespace

std::vector<std::uint32_t> order_in_space(const std::vector<numerics::Vec3>& positions) {
  std::vector<std::uint32_t> order(positions.size());
  // For comparisons: as they were given.
  const char* const wanted = std::getenv("CINGULUM_TEST_SEED_ORDER");
  if (wanted != nullptr && std::string_view(wanted) == "given") {
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    return order;
  }
  std::vector<CodedSeed> seeds(positions.size());
  std::uint64_t all_bits = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    seeds[i] = {morton_code(positions[i]), static_cast<std::uint32_t>(i)};
    all_bits |= seeds[i].code;
  }
  sort_by_code(seeds, all_bits);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = seeds[i].index;
  return order;
}

}  // namespace cingulum
