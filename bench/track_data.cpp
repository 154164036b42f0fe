#include "bench/track_data.hpp"

#include "base/atomic_file.hpp"
#include "bench/program.hpp"
#include "measure/tracking_peers.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/cpu/track_kernels.hpp"

namespace cingulum::bench {

namespace fs = std::filesystem;

TrackData::TrackData(const TrackBenchOptions& options)
    : folder_(options.data), pool_(require(ThreadPool::create(options.threads))) {
  make_files(options);
  // CSD is read from the file that peers read, and sampled on the directions that DIPY tracks on.
  const measure::BenchSource source = {.dwi = folder_ / "phantom/dwi.nii.gz",
                                       .sh = folder_ / "csd/fod.nii.gz",
                                       .mask = folder_ / "phantom/mask.nii.gz",
                                       .stop_map = folder_ / "dti/fa.nii.gz",
                                       .phantom = folder_ / "phantom",
                                       .sphere = (folder_ / "sphere.txt").string()};
  data_ =
      std::make_unique<measure::BenchData>(require(measure::BenchData::load(source, options.seeds, *pool_, {}, {})));
  require(measure::write_seeds(folder_ / "seeds.txt", seeds()));
}

void TrackData::make_files(const TrackBenchOptions& options) const {
  fs::create_directories(folder_);
  const fs::path phantom = folder_ / "phantom";
  require(measure::make_brain_phantom(phantom, std::stod(options.voxel_size), *pool_, {.force = true}, {}));
  require(measure::fit_for_peers(measure::own_program().parent_path() / "cingulum", folder_, phantom / "dwi.nii.gz",
                                 phantom / "mask.nii.gz"));
  // The directions that DIPY tracks on: its own hemisphere, or ours where there is no DIPY.
  if (fs::exists(folder_ / "sphere.txt")) return;
  const fs::path script = require(measure::write_peer_script(folder_));
  if (measure::run_child({options.python, script.string(), "sphere", folder_.string()}, folder_ / "log",
                         measure::ChildErrors::with_output)
          .succeeded) {
    return;
  }
  std::string text;
  for (const numerics::Vec3d& v : require(named_sphere("repulsion724")).directions) {
    text += fmt::format("{:.17g} {:.17g} {:.17g}\n", v.x, v.y, v.z);
  }
  require(write_file_atomically(folder_ / "sphere.txt", text, {.force = true, .sync = false}));
}

const Field& TrackData::field_of(const measure::BenchScenario& scenario) {
  return *require(data_->field_of(scenario, *pool_, {}));
}

void TrackData::choose_fixed_points(const Field& field) {
  const TrackingPlan plan = require(make_tracking_plan({.getter = Getter::prob, .max_directions = 1}, geometry()));
  const KernelTables tables = require(make_kernel_tables(plan, field));
  const TrackingInput input = make_tracking_input(plan, field, tables);
  const SlabMemory slab(input);
  std::vector<numerics::Vec3> positions(seeds().count()), chosen;
  seeds().fill(0, positions);
  for (const numerics::Vec3& position : positions) {
    const float at[3] = {position.x, position.y, position.z};
    float direction[3 * most_initial_directions];
    if (best_cpu_kernels().initial_directions(input, slab.slab(), 0, at, direction).count == 0) continue;
    chosen.push_back(position);
    fixed_directions_.directions.push_back({direction[0], direction[1], direction[2]});
  }
  require(measure::write_vectors(folder_ / "fixed_points.txt", chosen));
  require(measure::write_vectors(folder_ / "fixed_directions.txt", fixed_directions_.directions));
  fixed_seeds_ = require(listed_seeds(std::move(chosen)));
}

}  // namespace cingulum::bench
