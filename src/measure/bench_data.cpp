#include "measure/bench_data.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "dmri/phantom/phantom_files.hpp"
#include "dmri/series/dwi_series.hpp"
#include "formats/nifti.hpp"
#include "tract/field/file_field.hpp"

namespace cingulum::measure {
namespace {

namespace fs = std::filesystem;

constexpr BenchScenario scenarios[] = {
    {"boot OPDT order 4", Getter::boot, FieldModel::opdt, 4, false, "mirror321"},
    {"prob on SF", Getter::prob, FieldModel::csd, 8, true, "repulsion724"},
    {"ptt on SF", Getter::ptt, FieldModel::csd, 8, true, "repulsion724"},
    // cuslines makes as many arcs of a step.
    {"ptt on SF, 20 substeps", Getter::ptt, FieldModel::csd, 8, true, "repulsion724", 20},
    {"det on SF", Getter::det, FieldModel::csd, 8, true, "repulsion724"},
    {"prob from SH order 8", Getter::prob, FieldModel::csd, 8, false, "mirror321"},
    {"det from SH order 8", Getter::det, FieldModel::csd, 8, false, "mirror321"},
    {"closest from SH order 8", Getter::closest, FieldModel::csd, 8, false, "mirror321"},
    {"tensor", Getter::tensor, FieldModel::dti, 4, false, "mirror321"},
};

}  // namespace

std::span<const BenchScenario> bench_scenarios() {
  return scenarios;
}

TrackingOptions bench_tracking_options(const BenchScenario& scenario) {
  TrackingOptions options;
  options.getter = scenario.getter;
  options.max_angle_deg = max_angle_deg;
  options.stop_threshold = stop_threshold;
  options.max_directions = 1;
  if (scenario.ptt_substeps != 0) options.ptt_substeps = scenario.ptt_substeps;
  return options;
}

Result<fs::path> brain_phantom_folder(const fs::path& cache, double voxel_mm) {
  CGL_TRY_ASSIGN(const PhantomModel model, brain_phantom());
  const bool usual = voxel_mm == model.voxel_mm;
  return cache / (usual ? "brain-phantom" : fmt::format("brain-phantom-{}mm", voxel_mm));
}

Status make_brain_phantom(const fs::path& folder, double voxel_mm, ThreadPool& pool, const WriteOptions& write,
                          const ProgressOptions& progress) {
  std::error_code ignored;
  if (fs::exists(folder / "phantom.json", ignored)) return {};
  log_info("making the phantom `brain` in {}", folder.string());
  PhantomRequest request;
  CGL_TRY_ASSIGN(request.model, brain_phantom());
  request.grid.voxel_mm = {voxel_mm, voxel_mm, voxel_mm};
  CGL_TRY_ASSIGN(request.scheme, named_scheme(request.model.scheme));
  CGL_TRY(write_phantom(request, folder, write, pool, progress));
  return {};
}

std::string stem_of_series(const fs::path& series) {
  std::string stem = series.string();
  for (const std::string_view ending : {".gz", ".nii"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  }
  return stem;
}

Result<BenchData> BenchData::load(const BenchSource& source, std::uint64_t seeds, ThreadPool& pool,
                                  const WriteOptions& write, const ProgressOptions& progress) {
  BenchData data;
  data.source_ = source;
  if (source.dwi.empty() && source.sh.empty()) {
    CGL_TRY(make_brain_phantom(source.phantom, source.voxel_mm, pool, write, progress));
    data.source_.dwi = source.phantom / "dwi.nii.gz";
    data.source_.mask = source.phantom / "mask.nii.gz";
  }
  if (!data.source_.dwi.empty()) CGL_TRY(data.load_series(pool));
  if (!data.source_.sh.empty()) CGL_TRY(data.load_harmonics());
  CGL_TRY(data.check_sizes());
  std::vector<std::uint8_t> start(data.inside_.size());
  for (std::size_t i = 0; i < start.size(); ++i) {
    start[i] = data.inside_[i] != 0 && static_cast<double>(data.stop_map_[i]) > stop_threshold ? 1 : 0;
  }
  CGL_TRY_ASSIGN(data.seeds_, random_seeds(data.geometry_, start, seeds, numerics::philox_key(0)));
  return data;
}

Status BenchData::load_series(ThreadPool& pool) {
  const std::string stem = stem_of_series(source_.dwi);
  const SeriesFiles files = {
      .dwi = source_.dwi, .bvals = stem + ".bval", .bvecs = stem + ".bvec", .grad = {}, .mask = source_.mask};
  CGL_TRY_ASSIGN(const SeriesHead head, read_series_head(files));
  CGL_TRY_ASSIGN(SettledSeries series, read_series(files, head, {.frame = source_.frame, .check_frame = false}, pool));
  geometry_ = head.geometry;
  inside_ = std::move(series.mask.mask);
  series_ = std::move(series.dwi);
  if (!source_.stop_map.empty()) return load_stop_map();
  CGL_TRY_ASSIGN(tensors_, fit_tensor_maps(series_, FieldRequest{}.min_signal, pool, nullptr));
  stop_map_ = tensors_->fa;
  return {};
}

Status BenchData::load_harmonics() {
  CGL_TRY_ASSIGN(const FieldFile file, read_field_file({.kind = FieldFileKind::harmonics, .path = source_.sh}));
  geometry_ = file.image.geometry;
  if (inside_.empty()) {
    inside_.assign(static_cast<std::size_t>(geometry_.voxel_count()), 1);
    ImageGeometry other = geometry_;
    if (!source_.mask.empty()) {
      CGL_TRY_ASSIGN(inside_, read_mask(source_.mask, other));
    }
  }
  if (!stop_map_.empty()) return {};
  if (!source_.stop_map.empty()) return load_stop_map();
  CGL_TRY_ASSIGN(stop_map_, default_stop_map(file));
  return {};
}

Status BenchData::load_stop_map() {
  CGL_TRY_ASSIGN(const Image image, read_image(source_.stop_map));
  stop_map_ = image.values;
  return {};
}

Status BenchData::check_sizes() const {
  const auto voxels = static_cast<std::size_t>(geometry_.voxel_count());
  if (inside_.size() == voxels && stop_map_.size() == voxels) return {};
  return fail(ErrorKind::invalid_argument, "{} has {} voxels, its mask {} and its stopping map {}",
              (source_.sh.empty() ? source_.dwi : source_.sh).string(), voxels, inside_.size(), stop_map_.size());
}

bool BenchData::has(const BenchScenario& scenario) const {
  return !source_.dwi.empty() || scenario.model == FieldModel::csd;
}

Result<PreparedField> BenchData::make_field(const BenchScenario& scenario, ThreadPool& pool,
                                            const ProgressOptions& progress) {
  const bool other_sphere = scenario.amplitudes && !source_.sphere.empty();
  CGL_TRY_ASSIGN(Sphere sphere, other_sphere ? sphere_by_name_or_file(source_.sphere) : named_sphere(scenario.sphere));
  if (!source_.sh.empty() && scenario.model == FieldModel::csd) {
    CGL_TRY_ASSIGN(
        const FieldFile file,
        read_field_file({.kind = FieldFileKind::harmonics, .path = source_.sh, .amplitudes = scenario.amplitudes}));
    return make_file_field(file, stop_map_, inside_, std::move(sphere), pool);
  }
  FieldRequest request;
  request.model = scenario.model;
  request.bootstrap = scenario.getter == Getter::boot;
  request.degree = scenario.degree;
  request.amplitudes = scenario.amplitudes;
  request.stop_threshold = stop_threshold;
  return make_dwi_field(series_, stop_map_, tensors_ ? &*tensors_ : nullptr, request, std::move(sphere), pool,
                        progress);
}

Result<const Field*> BenchData::field_of(const BenchScenario& scenario, ThreadPool& pool,
                                         const ProgressOptions& progress) {
  if (!prepared_for_ || prepared_for_->model != scenario.model || prepared_for_->amplitudes != scenario.amplitudes) {
    prepared_.reset();  // before the next is made: both may be large
    CGL_TRY_ASSIGN(prepared_, make_field(scenario, pool, progress));
    prepared_for_ = scenario;
  }
  return &prepared_->field;
}

}  // namespace cingulum::measure
