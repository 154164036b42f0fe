#include "tract/field/tracking_data.hpp"

#include "formats/nifti.hpp"

namespace cingulum {

Result<std::vector<float>> read_stop_map(const std::filesystem::path& path, const ImageGeometry& grid,
                                         std::string_view what_grid) {
  CGL_TRY_ASSIGN(Image image, read_image(path));
  CGL_TRY(check_same_grid(image.geometry, fmt::format("the stopping map {}", path.string()), grid, what_grid));
  if (image.volumes != 1) {
    return fail(ErrorKind::invalid_argument, "the stopping map {}: {} volumes; accepted is one", path.string(),
                image.volumes);
  }
  return std::move(image.values);
}

void stop_outside(std::span<float> stop_map, std::span<const std::uint8_t> mask) {
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) stop_map[i] = 0.0f;
  }
}

}  // namespace cingulum
