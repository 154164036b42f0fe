#include "bench/track_data.hpp"

#include "base/atomic_file.hpp"
#include "bench/program.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/cpu/track_kernels.hpp"
#include "tract/field/dwi_preparation.hpp"
#include "tract/field/file_field.hpp"

namespace cingulum::bench {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  require(write_file_atomically(path, text, {.force = true, .sync = false}));
}

}  // namespace

void write_vectors(const fs::path& path, const std::vector<numerics::Vec3>& vectors) {
  std::string text;
  for (const numerics::Vec3& v : vectors) text += fmt::format("{:.9g} {:.9g} {:.9g}\n", v.x, v.y, v.z);
  write_text(path, text);
}

TrackData::TrackData(const TrackBenchOptions& options)
    : folder_(options.data), pool_(require(ThreadPool::create(options.threads))) {
  make_files(options);
  load(options.seeds);
}

void TrackData::make_files(const TrackBenchOptions& options) const {
  const fs::path program = own_program().parent_path() / "cingulum";
  fs::create_directories(folder_);
  const auto make = [&](const fs::path& result, std::vector<std::string> words) {
    if (fs::exists(result)) return;
    words.insert(words.begin(), program.string());
    fmt::print("making {}\n", result.string());
    if (!run_child(words, folder_ / "stdout").succeeded) give_up(fmt::format("{} failed", fmt::join(words, " ")));
  };
  const std::string phantom = (folder_ / "phantom").string();
  make(folder_ / "phantom/phantom.json",
       {"phantom", "--preset", "brain", "--out", phantom, "--voxel-size", options.voxel_size, "--force", "--quiet"});
  for (const char* model : {"csd", "dti"}) {
    make(folder_ / model / "fit.json",
         {"fit", "--model", model, phantom + "/dwi.nii.gz", "--bvals", phantom + "/dwi.bval", "--bvecs",
          phantom + "/dwi.bvec", "--mask", phantom + "/mask.nii.gz", "--out", (folder_ / model).string(), "--force",
          "--quiet"});
  }
  // The directions that DIPY tracks on: its own half sphere, or ours where there is no DIPY.
  const fs::path script = fs::path(CINGULUM_BENCH_PEERS) / "track.py";
  if (!fs::exists(folder_ / "sphere.txt") &&
      !run_child({options.python, script.string(), "sphere", folder_.string()}, folder_ / "stdout").succeeded) {
    std::string text;
    for (const numerics::Vec3d& v : require(named_sphere("repulsion724")).directions) {
      text += fmt::format("{:.17g} {:.17g} {:.17g}\n", v.x, v.y, v.z);
    }
    write_text(folder_ / "sphere.txt", text);
  }
}

void TrackData::load(std::uint64_t seeds) {
  const Image fa = require(read_image(folder_ / "dti/fa.nii.gz"));
  const Image mask = require(read_image(folder_ / "phantom/mask.nii.gz"));
  geometry_ = fa.geometry;
  stop_map_ = fa.values;
  mask_.resize(mask.values.size());
  std::vector<std::uint8_t> start(mask_.size());
  for (std::size_t i = 0; i < mask_.size(); ++i) {
    mask_[i] = mask.values[i] > 0 ? 1 : 0;
    start[i] = mask_[i] != 0 && static_cast<double>(stop_map_[i]) > stop_threshold ? 1 : 0;
  }
  seeds_ = require(random_seeds(geometry_, start, seeds, numerics::philox_key(0)));
  std::vector<numerics::Vec3> positions(seeds);
  seeds_->fill(0, positions);
  write_vectors(folder_ / "seeds.txt", positions);
}

void TrackData::choose_fixed_points(const Field& field) {
  const TrackingPlan plan = require(make_tracking_plan({.getter = Getter::prob, .max_directions = 1}, geometry_));
  const KernelTables tables = require(make_kernel_tables(plan, field));
  const TrackingInput input = make_tracking_input(plan, field, tables);
  const SlabMemory slab(input);
  std::vector<numerics::Vec3> positions(seeds_->count()), chosen;
  seeds_->fill(0, positions);
  for (const numerics::Vec3& position : positions) {
    const float at[3] = {position.x, position.y, position.z};
    float direction[3 * most_initial_directions];
    if (best_cpu_kernels().initial_directions(input, slab.slab(), 0, at, direction).count == 0) continue;
    chosen.push_back(position);
    fixed_directions_.directions.push_back({direction[0], direction[1], direction[2]});
  }
  write_vectors(folder_ / "fixed_points.txt", chosen);
  write_vectors(folder_ / "fixed_directions.txt", fixed_directions_.directions);
  fixed_seeds_ = require(listed_seeds(std::move(chosen)));
}

Field TrackData::amplitudes() const {
  const FieldFile file = require(
      read_field_file({.kind = FieldFileKind::harmonics, .path = folder_ / "csd/fod.nii.gz", .amplitudes = true}));
  return require(make_file_field(file, stop_map_, mask_, require(read_sphere(folder_ / "sphere.txt", false)), *pool_))
      .field;
}

Field TrackData::harmonics() const {
  const FieldFile file =
      require(read_field_file({.kind = FieldFileKind::harmonics, .path = folder_ / "csd/fod.nii.gz"}));
  return require(make_file_field(file, stop_map_, mask_, require(named_sphere("mirror321")), *pool_)).field;
}

Field TrackData::bootstrap() const {
  const GradientTable table = require(read_fsl_gradients(folder_ / "phantom/dwi.bval", folder_ / "phantom/dwi.bvec"));
  DwiSeries series =
      require(read_dwi_series(folder_ / "phantom/dwi.nii.gz", table, table.frame, mask_, default_b0_threshold));
  return require(make_dwi_field(
                     std::move(series), stop_map_, nullptr,
                     {.model = FieldModel::opdt, .bootstrap = true, .degree = 4, .stop_threshold = stop_threshold},
                     require(named_sphere("mirror321")), *pool_, {}))
      .field;
}

}  // namespace cingulum::bench
