#include "tract/field/tracking_data.hpp"

namespace cingulum {

Result<std::vector<float>> read_stop_map(const std::filesystem::path& path, const NamedGrid& grid) {
  return read_map_on(path, "the stopping map", grid);
}

void stop_outside(std::span<float> stop_map, std::span<const std::uint8_t> mask) {
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) stop_map[i] = 0.0f;
  }
}

}  // namespace cingulum
