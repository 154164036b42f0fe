#include "bench/track_rows.hpp"

#include <algorithm>

#include "bench/program.hpp"
#include "bench/track_ceiling.hpp"
#include "measure/bench_report.hpp"
#include "measure/repetitions.hpp"
#include "measure/tracking_rows.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/cpu/track_kernels.hpp"

namespace cingulum::bench {
namespace {

using Json = nlohmann::ordered_json;

double million_points(const StreamlineBatch& batch) {
  return 1e-6 * static_cast<double>(batch.points.size()) / 3;
}

// What is kept of a run as the command line does it, and its score.
void describe(const TrackData& data, Tracker& tracker, const TrackingOptions& options, const TrackingPlan& plan,
              Json& json) {
  const std::filesystem::path file = data.folder() / "tracked.trx";
  const TrackingStatistics statistics = require(measure::track_to_file(
      {&tracker}, options, plan, data.data(), TrackingRunOptions{}.chunk_seeds, data.pool(), file, false));
  json["kept"] = statistics.kept;
  json["points"] = statistics.points;
  json["mean_length_mm"] = statistics.lengths.mean_mm();
  json["score"] = require(measure::score_of_file(file, data.data(), data.pool()));
}

// Steps from the fixed points: points and the fastest processor time of `steps` steps.
struct ShortRun {
  double million_points = 0;
  double seconds = 0;
};

ShortRun run_short(const TrackData& data, const TrackBenchOptions& bench, const Field& field, TrackingOptions options,
                   int steps) {
  const TrackingPlan whole = require(make_tracking_plan(options, data.geometry()));
  options.one_sided = true;
  options.min_length_mm = 0;
  options.max_length_mm = (steps + 0.01) * static_cast<double>(whole.step_mm);
  const TrackingPlan plan = require(make_tracking_plan(options, data.geometry()));
  const std::unique_ptr<Tracker> tracker = make_cpu_tracker(data.pool());
  require(tracker->prepare(plan, field, data.fixed_seeds(), &data.fixed_directions()));
  StreamlineBatch batch;
  const measure::Seconds seconds = measure::measure_repetitions(0, bench.repetitions + 1, [&] {
    require(tracker->track({0, data.fixed_seeds().count()}, batch));
  });
  ShortRun result;
  result.seconds = *std::min_element(seconds.processor.begin(), seconds.processor.end()) / bench.threads;
  result.million_points = million_points(batch);
  return result;
}

// ptt: the mean number of candidates that are tried after the 32 of the bound, at the fixed points: the sum over t of
// the share of points where none of the first t was taken.
double candidates_per_step(const TrackData& data, const Field& field, const TrackingOptions& options) {
  const TrackingPlan plan = require(make_tracking_plan(options, data.geometry()));
  const KernelTables tables = require(make_kernel_tables(plan, field));
  TrackingInput input = make_tracking_input(plan, field, tables);
  const SlabMemory slab(input);
  const std::vector<numerics::Vec3>& directions = data.fixed_directions().directions;
  std::vector<numerics::Vec3> positions(std::min<std::size_t>(directions.size(), 200));
  data.fixed_seeds().fill(0, positions);
  double tried = 0, taken = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const float at[3] = {positions[i].x, positions[i].y, positions[i].z};
    const float ahead[3] = {directions[i].x, directions[i].y, directions[i].z};
    float direction[3];
    const auto found_within = [&](std::uint32_t tries) {
      input.plan.ptt_tries = tries;
      return best_cpu_kernels().next_direction(input, slab.slab(), static_cast<std::uint32_t>(i), 0, at, ahead,
                                               direction);
    };
    if (!found_within(plan.ptt_tries)) continue;
    std::uint32_t tries = 1;
    while (!found_within(tries)) ++tries;
    tried += tries;
    taken += 1;
  }
  return taken > 0 ? tried / taken : 0;
}

}  // namespace

Json measure_scenario(const TrackData& data, const TrackBenchOptions& bench, const Field& field,
                      const Scenario& scenario, double operations_per_second) {
  TrackingOptions options = scenario.options;
  options.getter = scenario.field.getter;
  options.max_angle_deg = measure::max_angle_deg;
  options.stop_threshold = measure::stop_threshold;
  options.max_directions = 1;  // as DIPY's trackers
  const TrackingPlan plan = require(make_tracking_plan(options, data.geometry()));
  const std::unique_ptr<Tracker> tracker = make_cpu_tracker(data.pool());
  require(tracker->prepare(plan, field, data.seeds(), nullptr));
  StreamlineBatch batch;
  const measure::Seconds seconds = measure::measure_repetitions(1, bench.repetitions, [&] {
    require(tracker->track({0, bench.seeds}, batch));
  });
  std::vector<double> rates;
  for (const double processor : seconds.processor) rates.push_back(million_points(batch) * bench.threads / processor);
  const double records = new_records_per_point(field, batch);
  const double bytes = records * sizeof(float) * (field.channels + 1);
  const double reading = read_bytes_per_second(field, data.pool());
  const double by_memory = 1e-6 * reading / bytes;
  const double by_arithmetic = 1e-6 * operations_per_second / scenario.operations_per_step;
  const measure::Row row{std::string(scenario.field.name), "M/s", measure::spread_of(rates),
                         by_memory < by_arithmetic
                             ? fmt::format("{:.0f} new bytes per step at {:.1f} GB/s", bytes, 1e-9 * reading)
                             : fmt::format("{:.0f} operations per step at {:.0f} G/s", scenario.operations_per_step,
                                           1e-9 * operations_per_second),
                         std::min(by_memory, by_arithmetic)};
  fmt::print("{}\n", to_text(row));
  Json json = to_json(row);
  json["ceiling_memory"] = by_memory;
  json["ceiling_arithmetic"] = by_arithmetic;
  json["new_records_per_step"] = records;
  json["read_gb_per_s"] = 1e-9 * reading;
  json["wall_s"] = measure::spread_of(seconds.elapsed).median;
  json["steps"] = batch.steps;
  json["steps_per_s_M"] = row.value.median * 1e-6 * static_cast<double>(batch.steps) / million_points(batch);
  json["field_bytes"] = field.stored_bytes().size() + field.record_of_voxel.size() * 4;
  json["seeds"] = bench.seeds;
  describe(data, *tracker, options, plan, json);
  fmt::print(
      "      {} of {} seeds' streamlines kept, mean {:.1f} mm, valid {:.3f}, invalid {:.3f}, overlap {:.3f}, "
      "F1 {:.3f}, field {:.0f} MB\n",
      json["kept"].get<std::size_t>(), bench.seeds, json["mean_length_mm"].get<double>(),
      json["score"]["valid"].get<double>(), json["score"]["invalid"].get<double>(),
      json["score"]["overlap"].get<double>(), json["score"]["f1"].get<double>(),
      static_cast<double>(json["field_bytes"].get<std::uint64_t>()) * 1e-6);
  const ShortRun few = run_short(data, bench, field, options, few_steps);
  const ShortRun many = run_short(data, bench, field, options, many_steps);
  json["fixed_points_per_s_M"] = (many.million_points - few.million_points) / (many.seconds - few.seconds);
  json["fixed_points"] = 1e6 * (many.million_points - few.million_points);
  fmt::print("      from {} fixed points, steps {} to {}: {:.4f} M/s\n", data.fixed_seeds().count(), few_steps + 1,
             many_steps, json["fixed_points_per_s_M"].get<double>());
  if (options.getter == Getter::ptt) {
    json["probe_quality"] = plan.ptt_probe_quality;
    json["probe_length_mm"] = plan.ptt_probe_length_mm;
    json["bound_candidates_per_step"] = 32;
    json["candidates_per_step"] = candidates_per_step(data, field, options);
    fmt::print(
        "      {:.3f} M internal steps/s; {} points per probe of {:.2f} mm, 32 probes for the bound and {:.1f} "
        "candidates per step\n",
        json["steps_per_s_M"].get<double>(), plan.ptt_probe_quality, plan.ptt_probe_length_mm,
        json["candidates_per_step"].get<double>());
  }
  return json;
}

}  // namespace cingulum::bench
