#include "cli/bench_data.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "dmri/phantom/phantom_files.hpp"
#include "formats/nifti.hpp"
#include "tract/field/file_field.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

constexpr BenchScenario scenarios[] = {
    {"boot OPDT order 4", Getter::boot, FieldModel::opdt, 4, false, "mirror321"},
    {"prob on SF", Getter::prob, FieldModel::csd, 8, true, "repulsion724"},
    {"ptt on SF", Getter::ptt, FieldModel::csd, 8, true, "repulsion724"},
    // As many arcs as cuslines makes of a step.
    {"ptt on SF, 20 substeps", Getter::ptt, FieldModel::csd, 8, true, "repulsion724", 20},
    {"det on SF", Getter::det, FieldModel::csd, 8, true, "repulsion724"},
    {"prob from SH order 8", Getter::prob, FieldModel::csd, 8, false, "mirror321"},
    {"det from SH order 8", Getter::det, FieldModel::csd, 8, false, "mirror321"},
    {"closest from SH order 8", Getter::closest, FieldModel::csd, 8, false, "mirror321"},
    {"tensor", Getter::tensor, FieldModel::dti, 4, false, "mirror321"},
};

Status make_phantom(const PhantomModel& model, double voxel_mm, const fs::path& folder, ThreadPool& pool,
                    const WriteOptions& write, const ProgressOptions& progress) {
  std::error_code ignored;
  if (fs::exists(folder / "phantom.json", ignored)) return {};
  log_info("making the phantom `brain` in {}", folder.string());
  PhantomRequest request;
  request.model = model;
  request.grid.voxel_mm = {voxel_mm, voxel_mm, voxel_mm};
  CGL_TRY_ASSIGN(request.scheme, named_scheme(request.model.scheme));
  CGL_TRY(write_phantom(request, folder, write, pool, progress));
  return {};
}

}  // namespace

std::span<const BenchScenario> bench_scenarios() {
  return scenarios;
}

TrackingOptions bench_tracking_options(const BenchScenario& scenario) {
  TrackingOptions options;
  options.getter = scenario.getter;
  options.max_angle_deg = bench_max_angle_deg;
  options.stop_threshold = bench_stop_threshold;
  options.max_directions = 1;
  if (scenario.ptt_substeps != 0) options.ptt_substeps = scenario.ptt_substeps;
  return options;
}

Result<BenchData> BenchData::load(const BenchSource& source, std::uint64_t seeds, ThreadPool& pool,
                                  const WriteOptions& write, const ProgressOptions& progress) {
  BenchData data;
  data.source_ = source;
  if (!source.dwi.empty() && !source.sh.empty()) {
    return fail(ErrorKind::invalid_argument, "--dwi and --sh are both given: one of them is tracked");
  }
  if (!source.sh.empty()) {
    CGL_TRY(data.load_harmonics());
  } else {
    if (source.dwi.empty()) {
      CGL_TRY_ASSIGN(const PhantomModel model, brain_phantom());
      const bool usual = source.voxel_mm == model.voxel_mm;
      data.truth_ = source.cache / (usual ? "brain-phantom" : fmt::format("brain-phantom-{}mm", source.voxel_mm));
      CGL_TRY(make_phantom(model, source.voxel_mm, data.truth_, pool, write, progress));
      data.source_.dwi = data.truth_ / "dwi.nii.gz";
      data.source_.mask = data.truth_ / "mask.nii.gz";
    } else if (source.mask.empty()) {
      return fail(ErrorKind::invalid_argument, "--dwi needs --mask");
    }
    CGL_TRY(data.load_series(pool));
  }
  std::vector<std::uint8_t> start(data.inside_.size());
  for (std::size_t i = 0; i < start.size(); ++i) {
    start[i] = data.inside_[i] != 0 && static_cast<double>(data.stop_map_[i]) > bench_stop_threshold ? 1 : 0;
  }
  CGL_TRY_ASSIGN(data.seeds_, random_seeds(data.geometry_, start, seeds, numerics::philox_key(0)));
  return data;
}

Status BenchData::load_series(ThreadPool& pool) {
  std::string stem = source_.dwi.string();
  for (const std::string_view ending : {".gz", ".nii"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  }
  CGL_TRY_ASSIGN(const GradientTable table, read_fsl_gradients(stem + ".bval", stem + ".bvec"));
  CGL_TRY_ASSIGN(inside_, read_mask(source_.mask, geometry_));
  CGL_TRY_ASSIGN(
      series_, read_dwi_series(source_.dwi, table, source_.frame.value_or(table.frame), inside_, default_b0_threshold));
  CGL_TRY_ASSIGN(tensors_, fit_tensor_maps(series_, pool, nullptr));
  stop_map_ = tensors_.fa;
  return {};
}

Status BenchData::load_harmonics() {
  CGL_TRY_ASSIGN(const FieldFile file, read_field_file({.kind = FieldFileKind::harmonics, .path = source_.sh}));
  geometry_ = file.image.geometry;
  const auto voxels = static_cast<std::size_t>(geometry_.voxel_count());
  inside_.assign(voxels, 1);
  ImageGeometry other = geometry_;
  if (!source_.mask.empty()) {
    CGL_TRY_ASSIGN(inside_, read_mask(source_.mask, other));
  }
  if (source_.stop_map.empty()) {
    CGL_TRY_ASSIGN(stop_map_, default_stop_map(file));
  } else {
    CGL_TRY_ASSIGN(const Image image, read_image(source_.stop_map));
    stop_map_ = image.values;
  }
  if (inside_.size() != voxels || stop_map_.size() != voxels) {
    return fail(ErrorKind::invalid_argument, "{} has {} voxels, its mask {} and its stopping map {}",
                source_.sh.string(), voxels, inside_.size(), stop_map_.size());
  }
  return {};
}

bool BenchData::has(const BenchScenario& scenario) const {
  return source_.sh.empty() || scenario.model == FieldModel::csd;
}

Result<PreparedField> BenchData::make_field(const BenchScenario& scenario, ThreadPool& pool,
                                            const ProgressOptions& progress) {
  const bool other_sphere = scenario.amplitudes && !source_.sphere.empty();
  CGL_TRY_ASSIGN(Sphere sphere, named_sphere(other_sphere ? source_.sphere : scenario.sphere));
  if (!source_.sh.empty()) {
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
  request.stop_threshold = bench_stop_threshold;
  return make_dwi_field(series_, stop_map_, &tensors_, request, std::move(sphere), pool, progress);
}

Result<const Field*> BenchData::field_of(const BenchScenario& scenario, ThreadPool& pool,
                                         const ProgressOptions& progress) {
  if (prepared_for_ == nullptr || prepared_for_->model != scenario.model ||
      prepared_for_->amplitudes != scenario.amplitudes) {
    prepared_.reset();  // before the next is made: both may be large
    CGL_TRY_ASSIGN(prepared_, make_field(scenario, pool, progress));
    prepared_for_ = &scenario;
  }
  return &prepared_->field;
}

}  // namespace cingulum
