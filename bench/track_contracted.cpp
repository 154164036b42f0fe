// What the exact arithmetic of tracking costs on CUDA: the kernels of the library beside the same ones compiled with
// products and sums rounded once, with approximate division and roots, and without subnormals. These exist in this
// program alone; nothing of the product can pick them. Data and scenarios are those of `cingulum bench track`.
//   bench_track_contracted [--out FILE.json] [--nseeds N] [--repetitions N] [--only WORD] [--cache-dir DIR]
// The two take other ways where a rounding decides, so rates are of steps; how many streamlines are equal stands
// beside.
#include "base/settings.hpp"
#include "bench/program.hpp"
#include "measure/bench_data.hpp"
#include "measure/tracking_rows.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

Result<std::unique_ptr<Tracker>> make_contracted_cuda_tracker(Device& device);

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string out;
  std::string only;
  std::string cache = ".";
  std::uint64_t seeds = 100000;
  int repetitions = 3;
};

struct Rate {
  StreamlineBatch batch;
  double M_steps_per_s = 0;
};

Rate measure_kernels(Tracker& tracker, const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                     int repetitions) {
  require(tracker.prepare(plan, field, seeds, nullptr));
  Rate rate;
  require(tracker.track({0, seeds.count()}, rate.batch));  // the first launch does not count
  const measure::KernelRun best = require(measure::best_kernel_run(tracker, seeds.count(), repetitions, rate.batch));
  rate.M_steps_per_s = 1e-6 * static_cast<double>(best.steps) / best.seconds;
  return rate;
}

// Streamlines that have the same number of points and the same points.
double equal_share(const StreamlineBatch& a, const StreamlineBatch& b) {
  if (a.seed_index != b.seed_index || a.streamline_count() == 0) return 0;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < a.streamline_count(); ++i) {
    const std::uint64_t first = a.offsets[i], count = a.offsets[i + 1] - first, other = b.offsets[i];
    if (b.offsets[i + 1] - other != count) continue;
    const auto begin = a.points.begin() + static_cast<std::ptrdiff_t>(3 * first);
    if (std::equal(begin, begin + static_cast<std::ptrdiff_t>(3 * count),
                   b.points.begin() + static_cast<std::ptrdiff_t>(3 * other))) {
      ++equal;
    }
  }
  return static_cast<double>(equal) / static_cast<double>(a.streamline_count());
}

int run(const Options& options) {
  const auto pool = require(ThreadPool::create(default_thread_count()));
  const DeviceRegistry registry = require(DeviceRegistry::probe({}));
  Device& device = *require(choose_devices(registry, "cuda", 1)).front();
  WriteOptions write;
  write.force = true;
  measure::BenchSource source;
  source.phantom = require(measure::brain_phantom_folder(options.cache, source.voxel_mm));
  measure::BenchData data = require(measure::BenchData::load(source, options.seeds, *pool, write, {}));
  std::vector<Json> rows;
  for (const measure::BenchScenario& scenario : measure::bench_scenarios()) {
    // Substeps run the same kernel for longer.
    if (scenario.name.find(options.only) == std::string_view::npos || scenario.ptt_substeps != 0) continue;
    const Field& field = *require(data.field_of(scenario, *pool, {}));
    const TrackingPlan plan = require(make_tracking_plan(measure::bench_tracking_options(scenario), data.geometry()));
    const Rate exact =
        measure_kernels(*require(make_tracker(device, *pool)), plan, field, data.seeds(), options.repetitions);
    const Rate contracted =
        measure_kernels(*require(make_contracted_cuda_tracker(device)), plan, field, data.seeds(), options.repetitions);
    const double ratio = exact.M_steps_per_s / contracted.M_steps_per_s;
    const double equal = equal_share(exact.batch, contracted.batch);
    fmt::print("  {:<24} exact {:>8.1f} M steps/s, contracted {:>8.1f}: {:.3f}; {:.1f} % of streamlines equal\n",
               scenario.name, exact.M_steps_per_s, contracted.M_steps_per_s, ratio, 100 * equal);
    rows.push_back({{"scenario", scenario.name},
                    {"exact_M_steps_per_s", exact.M_steps_per_s},
                    {"contracted_M_steps_per_s", contracted.M_steps_per_s},
                    {"exact_over_contracted", ratio},
                    {"equal_streamlines", equal}});
  }
  write_report(options.out, "track, exact against contracted arithmetic",
               {{"device", device.description().name},
                {"seeds", options.seeds},
                {"repetitions", options.repetitions},
                {"contracted_flags", "-fmad=true -prec-div=false -prec-sqrt=false -ftz=true"},
                {"rows", rows}});
  return 0;
}

Options parse(int count, char** words) {
  Options options;
  ProgramOptions()
      .add("--out", "FILE.json", options.out)
      .add("--only", "WORD", options.only)
      .add("--cache-dir", "DIR", options.cache)
      .add("--nseeds", "N", options.seeds)
      .add("--repetitions", "N", options.repetitions)
      .read(count, words);
  return options;
}

}  // namespace
}  // namespace bench
}  // namespace cingulum

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
