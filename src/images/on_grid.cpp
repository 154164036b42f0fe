#include "images/on_grid.hpp"

#include <cmath>
#include <utility>

#include "base/log.hpp"
#include "formats/nifti.hpp"
#include "images/resample.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

constexpr double least_overlap = 0.5;

struct OneVolume {
  ImageGeometry geometry;
  bool oriented = false;
  std::vector<float> values;
};

Result<OneVolume> read_one_volume(const fs::path& path, std::string_view what) {
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(path));
  if (reader.header().volume_count() != 1) {
    return fail_file(path.native(), ErrorKind::invalid_argument, "{} {} has {} volumes; accepted is one", what,
                     path.string(), reader.header().volume_count());
  }
  OneVolume volume;
  volume.geometry = reader.header().geometry;
  volume.oriented = reader.header().affine_source != AffineSource::pixdim;
  CGL_TRY_ASSIGN(Image image, read_image(reader));
  volume.values = std::move(image.values);
  return volume;
}

std::string grid_text(const ImageGeometry& grid) {
  const auto edges = grid.voxel_mm();
  return fmt::format("{} x {} x {} voxels of {:.3g} x {:.3g} x {:.3g} mm", grid.size[0], grid.size[1], grid.size[2],
                     edges[0], edges[1], edges[2]);
}

// The share of the voxels that are not zero whose centres lie in the other grid; 1 where there is none.
Result<double> overlap(const OneVolume& image, const ImageGeometry& grid) {
  CGL_TRY_ASSIGN(const Affine inverse, grid.voxel_to_world.inverse());
  const Affine to_grid = compose(inverse, image.geometry.voxel_to_world);
  std::size_t all = 0, inside = 0, at = 0;
  for (std::int64_t k = 0; k < image.geometry.size[2]; ++k) {
    for (std::int64_t j = 0; j < image.geometry.size[1]; ++j) {
      for (std::int64_t i = 0; i < image.geometry.size[0]; ++i, ++at) {
        if (image.values[at] == 0) continue;
        ++all;
        const numerics::Vec3d voxel{static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)};
        if (is_inside(grid, to_grid.apply(voxel))) ++inside;
      }
    }
  }
  return all == 0 ? 1.0 : static_cast<double>(inside) / static_cast<double>(all);
}

bool has_two_values_at_most(const std::vector<float>& values) {
  float second = values.empty() ? 0 : values.front();
  for (const float value : values) {
    if (value == values.front() || value == second) continue;
    if (second != values.front()) return false;
    second = value;
  }
  return true;
}

bool is_same_grid(const ImageGeometry& a, const ImageGeometry& b) {
  return check_same_grid(a, "", b, "").has_value();
}

Result<std::vector<float>> resample_on(OneVolume image, std::string_view what, const fs::path& path,
                                       const NamedGrid& grid, Interpolation interpolation) {
  for (const auto& [name, oriented] :
       {std::pair{fmt::format("{} {}", what, path.string()), image.oriented}, std::pair{grid.name, grid.oriented}}) {
    if (oriented) continue;
    return fail_file(
        path.native(), ErrorKind::invalid_argument,
        "{} {} ({}) is not on the grid of {} ({}) and cannot be brought there: the header of {} has neither "
        "sform nor qform, so where its voxels lie is not known",
        what, path.string(), grid_text(image.geometry), grid.name, grid_text(grid.geometry), name);
  }
  CGL_TRY_ASSIGN(const double share, overlap(image, grid.geometry));
  if (share < least_overlap) {
    return fail_file(
        path.native(), ErrorKind::invalid_argument,
        "{} {} has another grid than {}, and {:.0f} % of it lies there; accepted is at least {:.0f} %: is it "
        "of the same subject and in the same space?",
        what, path.string(), grid.name, 100 * share, 100 * least_overlap);
  }
  log_info("{} {} ({}) is resampled to the grid of {} ({}) by {}; {:.0f} % of it lies there", what, path.string(),
           grid_text(image.geometry), grid.name, grid_text(grid.geometry),
           interpolation == Interpolation::nearest ? "the nearest voxel" : "linear interpolation", 100 * share);
  CGL_TRY_ASSIGN(const Resampler resampler, Resampler::create(image.geometry, grid.geometry, interpolation));
  std::vector<float> values(static_cast<std::size_t>(grid.geometry.voxel_count()));
  resampler.volume(image.values, values);
  return values;
}

}  // namespace

Result<std::vector<std::uint8_t>> read_mask_on(const fs::path& path, std::string_view what, const NamedGrid& grid) {
  return catch_out_of_memory([&]() -> Result<std::vector<std::uint8_t>> {
    CGL_TRY_ASSIGN(OneVolume image, read_one_volume(path, what));
    for (float& value : image.values) value = value > 0 ? 1.0f : 0.0f;
    std::vector<float> values;
    if (is_same_grid(image.geometry, grid.geometry)) {
      values = std::move(image.values);
    } else {
      CGL_TRY_ASSIGN(values, resample_on(std::move(image), what, path, grid, Interpolation::nearest));
    }
    std::vector<std::uint8_t> mask(values.size());
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = values[i] > 0 ? 1 : 0;
    return mask;
  });
}

Result<std::vector<float>> read_map_on(const fs::path& path, std::string_view what, const NamedGrid& grid) {
  return catch_out_of_memory([&]() -> Result<std::vector<float>> {
    CGL_TRY_ASSIGN(OneVolume image, read_one_volume(path, what));
    if (is_same_grid(image.geometry, grid.geometry)) return std::move(image.values);
    for (float& value : image.values) {
      if (!std::isfinite(value)) value = 0;
    }
    const Interpolation interpolation =
        has_two_values_at_most(image.values) ? Interpolation::nearest : Interpolation::linear;
    return resample_on(std::move(image), what, path, grid, interpolation);
  });
}

}  // namespace cingulum
