#include "dmri/series/dwi_series.hpp"

#include <algorithm>
#include <utility>

#include "base/part_clock.hpp"
#include "formats/nifti.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

Status check_volumes(std::string_view series, std::int64_t volumes, const GradientTable& table) {
  if (volumes == static_cast<std::int64_t>(table.size())) return {};
  return fail(ErrorKind::corrupt, "{} has {} volumes, the gradient table has {} b-values", series, volumes,
              table.size());
}

// `next_volume` fills its argument with one volume after the other; none is asked for after the last b0.
template <class NextVolume>
Result<std::vector<double>> mean_of_b0(std::string_view series, const ImageGeometry& geometry,
                                       const GradientTable& table, double b0_threshold, const CancelToken& cancel,
                                       NextVolume&& next_volume) {
  std::size_t last_b0 = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.b_values[i] <= b0_threshold) last_b0 = i + 1;
  }
  if (last_b0 == 0) {
    return fail(ErrorKind::invalid_argument,
                "{}: no volume has b of at most {} s/mm^2, and a brain mask is made from those; give a mask", series,
                b0_threshold);
  }
  std::vector<float> volume(static_cast<std::size_t>(geometry.voxel_count()));
  std::vector<double> sum;
  std::size_t count = 0;
  for (std::size_t i = 0; i < last_b0; ++i) {
    CGL_TRY(cancel.check());
    CGL_TRY(next_volume(std::span<float>(volume)));
    if (table.b_values[i] > b0_threshold) continue;
    add_to_sum(sum, volume);
    ++count;
  }
  divide_sum(sum, count);
  return sum;
}

BrainMask given_mask(std::vector<std::uint8_t> voxels) {
  BrainMask mask;
  mask.mask = std::move(voxels);
  mask.voxels = static_cast<std::size_t>(
      std::count_if(mask.mask.begin(), mask.mask.end(), [](std::uint8_t value) { return value != 0; }));
  return mask;
}

Result<SettledSeries> settle_series(DwiSignals signals, BrainMask mask, bool mask_made, const GradientTable& table,
                                    const SeriesRequest& request, const FitMachine& machine) {
  CGL_TRY(check_volumes("the series", static_cast<std::int64_t>(signals.volumes), table));
  SettledSeries series;
  series.mask = std::move(mask);
  series.mask_made = mask_made;
  series.frame.frame = unchecked_frame(request.frame, table.frame);
  if (request.check_frame) {
    CGL_TRY_ASSIGN(series.frame, settle_gradient_frame(signals, table, request.frame, machine));
  }
  series.dwi.directions = directions_in_image_axes(table, series.frame.frame, signals.geometry.voxel_to_world);
  series.dwi.signals = std::move(signals);
  series.dwi.table = table;
  series.dwi.b0_threshold = request.b0_threshold;
  return series;
}

}  // namespace

Result<SeriesHead> read_series_head(const SeriesFiles& files) {
  SeriesHead head;
  if (files.grad.empty()) {
    CGL_TRY_ASSIGN(head.table, read_fsl_gradients(files.bvals, files.bvecs));
  } else {
    CGL_TRY_ASSIGN(head.table, read_mrtrix_gradients(files.grad));
  }
  head.warnings = head.table.warnings;
  CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(files.dwi));
  const std::string name = files.dwi.string();
  for (const std::string& warning : reader.header().warnings) {
    head.warnings.push_back(fmt::format("{}: {}", name, warning));
  }
  head.geometry = reader.header().geometry;
  head.oriented = reader.header().affine_source != AffineSource::pixdim;
  CGL_TRY(check_volumes(name, reader.header().volume_count(), head.table));
  return head;
}

NamedGrid series_grid(const SeriesFiles& files, const SeriesHead& head) {
  return {head.geometry, fmt::format("the series {}", files.dwi.string()), head.oriented};
}

Result<SettledSeries> read_series(const SeriesFiles& files, const SeriesHead& head, const SeriesRequest& request,
                                  const FitMachine& machine) {
  const auto found = [&]() -> Result<FitMachine> { return machine; };
  return read_series(files, head, request, machine.pool, machine.cancel, found);
}

Result<SettledSeries> read_series(const SeriesFiles& files, const SeriesHead& head, const SeriesRequest& request,
                                  ThreadPool& pool, const CancelToken& cancel, const FindFitMachine& find) {
  PartClock clock("series");
  BrainMask mask;
  if (files.mask.empty()) {
    CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(files.dwi, cancel));
    const auto next_volume = [&](std::span<float> volume) { return reader.next_volume(volume); };
    CGL_TRY_ASSIGN(const std::vector<double> b0, mean_of_b0(files.dwi.string(), head.geometry, head.table,
                                                            request.b0_threshold, cancel, next_volume));
    CGL_TRY_ASSIGN(mask, median_otsu(b0, head.geometry.size, {}, pool, cancel));
  } else {
    CGL_TRY_ASSIGN(auto voxels, read_mask_on(files.mask, "the mask", series_grid(files, head)));
    mask = given_mask(std::move(voxels));
  }
  clock.ended("mask");
  CGL_TRY_ASSIGN(DwiSignals signals, read_dwi_signals(files.dwi, mask.mask, {}, cancel, &pool));
  clock.ended("reading");
  CGL_TRY_ASSIGN(const FitMachine machine, find());
  clock.ended("opening the device");
  auto series = settle_series(std::move(signals), std::move(mask), files.mask.empty(), head.table, request, machine);
  clock.ended("gradient check");
  return series;
}

Result<SettledSeries> series_of_arrays(const SeriesHead& head, const VolumeArray& series,
                                       std::span<const std::uint8_t> mask, const SeriesRequest& request,
                                       const FitMachine& machine) {
  return catch_out_of_memory([&]() -> Result<SettledSeries> {
    CGL_TRY(check_volumes("the series", static_cast<std::int64_t>(series.volumes()), head.table));
    BrainMask brain;
    if (mask.empty()) {
      std::size_t next = 0;
      const auto next_volume = [&](std::span<float> volume) -> Status {
        series.read(next++, 0, volume);
        return {};
      };
      CGL_TRY_ASSIGN(const std::vector<double> b0, mean_of_b0("the series", head.geometry, head.table,
                                                              request.b0_threshold, machine.cancel, next_volume));
      CGL_TRY_ASSIGN(brain, median_otsu(b0, head.geometry.size, {}, machine.pool, machine.cancel));
    } else {
      brain = given_mask({mask.begin(), mask.end()});
    }
    CGL_TRY_ASSIGN(DwiSignals signals,
                   take_dwi_signals(head.geometry, series, brain.mask, machine.cancel, &machine.pool));
    return settle_series(std::move(signals), std::move(brain), mask.empty(), head.table, request, machine);
  });
}

Result<SettledSeries> series_of_arrays(const SeriesHead& head, std::span<const float> values,
                                       std::span<const std::uint8_t> mask, const SeriesRequest& request,
                                       const FitMachine& machine) {
  const auto voxels = static_cast<std::size_t>(head.geometry.voxel_count());
  if (voxels == 0 || values.size() % voxels != 0) {
    return fail(ErrorKind::invalid_argument, "the series: {} numbers are not whole volumes of {} voxels", values.size(),
                voxels);
  }
  return series_of_arrays(head, VolumeArray(values, voxels), mask, request, machine);
}

std::vector<Vec3d> to_world(std::span<const Vec3d> directions, const Affine& affine) {
  Vec3d axes[3];
  for (int c = 0; c < 3; ++c) axes[c] = normalise(Vec3d{affine.at(0, c), affine.at(1, c), affine.at(2, c)});
  std::vector<Vec3d> result;
  for (const Vec3d& d : directions) result.push_back(normalise(combine(axes[0], d.x, axes[1], d.y, axes[2], d.z)));
  return result;
}

}  // namespace cingulum
