#include "oct/volume/slab_volume.hpp"

#include <algorithm>
#include <utility>

#include "base/file_layer.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {

SlabVolume::SlabVolume(HostVolume& volume)
    : shape_{volume.planes, volume.rows, volume.columns}, volume_(&volume), slab_planes_(volume.planes) {}

Result<SlabVolume> SlabVolume::in_file(const std::filesystem::path& path, const std::array<std::size_t, 3>& shape,
                                       std::size_t slab_planes) {
  SlabVolume made;
  made.shape_ = shape;
  made.path_ = path;
  made.slab_planes_ = std::clamp<std::size_t>(slab_planes, 1, shape[0]);
  CGL_TRY_ASSIGN(made.file_, zarr::LevelFile::create(FileLayer::system(), path.native(), {shape[0], shape[1], shape[2]},
                                                     {1, rows_of_band, shape[2]}, element_type_of<float>()));
  return made;
}

Result<SlabVolume> SlabVolume::another() const {
  if (file_) return in_file(path_, shape_, slab_planes_);
  auto volume = std::make_unique<HostVolume>(shape_[0], shape_[1], shape_[2]);
  SlabVolume made(*volume);
  made.owned_ = std::move(volume);
  return made;
}

HostVolume SlabVolume::slab_at(std::size_t first) const {
  return HostVolume(std::min(slab_planes_, shape_[0] - first), shape_[1], shape_[2]);
}

Status SlabVolume::write_rows(std::size_t first_plane, std::size_t first_row, const HostVolume& part) {
  for (std::size_t z = 0; z < part.planes; ++z) {
    for (std::size_t row = 0; row < part.rows; row += rows_of_band) {
      const std::size_t rows = std::min(rows_of_band, part.rows - row);
      const auto piece = part.plane(z).subspan(row * part.columns, rows * part.columns);
      CGL_TRY(file_->write_tile(zarr::Shape{first_plane + z, first_row + row, 0}, std::as_bytes(piece)));
    }
  }
  return {};
}

Status SlabVolume::make_slabs(const Body& body) {
  if (!file_) return body(0, *volume_);
  for (std::size_t first = 0; first < shape_[0]; first += slab_planes_) {
    HostVolume slab = slab_at(first);
    CGL_TRY(body(first, slab));
    CGL_TRY(write_rows(first, 0, slab));
  }
  return {};
}

Status SlabVolume::change_slabs(const Body& body) {
  if (!file_) return body(0, *volume_);
  for (std::size_t first = 0; first < shape_[0]; first += slab_planes_) {
    HostVolume slab = slab_at(first);
    CGL_TRY(read_box({first, slab.planes, 0, slab.rows}, slab.values));
    CGL_TRY(body(first, slab));
    CGL_TRY(write_rows(first, 0, slab));
  }
  return {};
}

Status SlabVolume::look_at_slabs(const LookingBody& body) const {
  if (!file_) return body(0, *volume_);
  for (std::size_t first = 0; first < shape_[0]; first += slab_planes_) {
    HostVolume slab = slab_at(first);
    CGL_TRY(read_box({first, slab.planes, 0, slab.rows}, slab.values));
    CGL_TRY(body(first, slab));
  }
  return {};
}

Status SlabVolume::change_bands(const Body& body) {
  if (!file_) return body(0, *volume_);
  for (std::size_t first = 0; first < shape_[1]; first += rows_of_band) {
    HostVolume band(shape_[0], std::min(rows_of_band, shape_[1] - first), shape_[2]);
    CGL_TRY(read_box({0, band.planes, first, band.rows}, band.values));
    CGL_TRY(body(first, band));
    CGL_TRY(write_rows(0, first, band));
  }
  return {};
}

Status SlabVolume::read_box(const PlaneBox& box, std::span<float> to) const {
  if (file_) {
    return file_->read({{box.first_plane, box.first_row, 0}, {box.planes, box.rows, shape_[2]}},
                       std::as_writable_bytes(to));
  }
  const std::size_t part = box.rows * shape_[2];
  for (std::size_t z = 0; z < box.planes; ++z) {
    const auto rows = std::as_const(*volume_).plane(box.first_plane + z).subspan(box.first_row * shape_[2], part);
    std::copy(rows.begin(), rows.end(), to.begin() + static_cast<std::ptrdiff_t>(z * part));
  }
  return {};
}

Result<const HostVolume*> SlabVolume::band(std::size_t first_row, std::size_t rows, HostVolume& held) const {
  if (!file_ && first_row == 0 && rows == shape_[1]) return volume_;
  held = HostVolume(shape_[0], rows, shape_[2]);
  CGL_TRY(read_box({0, shape_[0], first_row, rows}, held.values));
  return &held;
}

Result<HostImage> mean_projection(const SlabVolume& volume, ThreadPool* pool) {
  HostImage mean(volume.rows(), volume.columns());
  CGL_TRY(volume.look_at_slabs([&](std::size_t, const HostVolume& slab) -> Status {
    for_each_index(pool, slab.rows, [&](std::size_t row) {
      double* const sums = mean.values.data() + row * slab.columns;
      for (std::size_t z = 0; z < slab.planes; ++z) {
        const float* const from = slab.values.data() + slab.index(z, row, 0);
        for (std::size_t c = 0; c < slab.columns; ++c) sums[c] += static_cast<double>(from[c]);
      }
    });
    return {};
  }));
  for (double& value : mean.values) value /= static_cast<double>(volume.planes());
  return mean;
}

}  // namespace cingulum::oct
