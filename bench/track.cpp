// Tracking beside DIPY and MRtrix3 on the same data, seeds, mask, stopping map, step and angle, on as many threads:
// every getter in M points per second, with seeds, kept streamlines, mean length, score and field bytes of the same
// run. Data: the phantom `brain` with its FA and CSD of degree 8, made in --data unless it is there already.
//   bench_track [--data DIR] [--out FILE.json] [--seeds N] [--threads N] [--repetitions N] [--voxel-size MM]
//               [--python PROGRAM] [--no-peers] [--only WORD]
// Ceilings, measured in the same run: the bytes of the records that a step meets and the step before did not, against
// the rate at which all threads read the field from memory in order; and the operations of a step against what all
// threads reach on registers. The lower of both is reported. Rates are of processor time times threads: other work on
// the machine does not count; wall time stands beside it.
#include "bench/program.hpp"
#include "bench/track_ceiling.hpp"
#include "bench/track_data.hpp"
#include "bench/track_peers.hpp"
#include "bench/track_rows.hpp"
#include "tract/cpu/track_kernels.hpp"

namespace cingulum::bench {
namespace {

using Json = nlohmann::ordered_json;

int run(const TrackBenchOptions& options) {
  TrackData data(options);
  const double operations = operations_per_second(options.threads);
  fmt::print("kernels {}, {} threads; registers reach {:.0f} G operations/s\n", best_cpu_kernels().name,
             options.threads, operations * 1e-9);
  std::vector<Json> rows;
  const auto wanted = [&](std::string_view name) {
    return options.only.empty() || name.find(options.only) != std::string_view::npos;
  };
  using measure::BenchScenario;
  const auto track = [&](const Field& field, const Scenario& scenario) {
    if (!wanted(scenario.field.name)) return;
    rows.push_back(measure_scenario(data, options, field, scenario, operations));
  };
  {
    const auto on_amplitudes = [](std::string_view name, Getter getter) {
      return BenchScenario{name, getter, FieldModel::csd, 8, true, "repulsion724"};
    };
    const Field& field = data.field_of(on_amplitudes("amplitudes", Getter::prob));
    data.choose_fixed_points(field);
    const double m = static_cast<double>(field.sphere.size());
    const double step = 16 * (m + 1) + 8 * m;
    track(field, {on_amplitudes("prob on SF", Getter::prob), {}, step});
    track(field, {on_amplitudes("det on SF", Getter::det), {}, step});
    track(field, {on_amplitudes("closest on SF", Getter::closest), {}, step});
    // A probe's point: the frame 60 operations, eight corners 40, the nearest direction 30; the bound takes 32 probes.
    const double probe_points = (32 + 2) * 6;
    track(field, {on_amplitudes("ptt on SF", Getter::ptt),
                  {.ptt_probe_length_mm = 1.5, .ptt_weak_links = true},
                  step + 130 * probe_points});
  }
  constexpr double orbits = 96, slots = 384;
  if (wanted("prob from SH") || wanted("det from SH") || wanted("det from SH, not refined") ||
      wanted("closest from SH")) {
    const auto from_series = [](std::string_view name, Getter getter) {
      return BenchScenario{name, getter, FieldModel::csd, 8, false, "mirror321"};
    };
    const Field& field = data.field_of(from_series("series", Getter::prob));
    const double step = 16 * 46 + orbits * (2 * 45 + 8) + 8 * slots;
    track(field, {from_series("prob from SH", Getter::prob), {}, step});
    track(field, {from_series("det from SH", Getter::det), {}, step + 3 * 32 * 280});
    track(field, {from_series("det from SH, not refined", Getter::det), {.refine = false}, step});
    track(field, {from_series("closest from SH", Getter::closest), {}, step});
  }
  if (const BenchScenario boot = {"boot OPDT order 4", Getter::boot, FieldModel::opdt, 4, false, "mirror321"};
      wanted(boot.name)) {
    const Field& field = data.field_of(boot);
    const double gradients = field.bootstrap.gradients, coefficients = field.bootstrap.coefficients;
    track(field, {boot,
                  {},
                  16.0 * (field.channels + 1) + gradients * (2 * coefficients + 60) + 2 * coefficients * gradients +
                      orbits * (2 * coefficients + 8) + 6 * slots});
  }
  Json peers = Json::object();
  if (options.peers) peers = run_track_peers(data, options);
  compare_with_peers(peers, rows);
  write_report(options.out, "track",
               {{"kernels", best_cpu_kernels().name},
                {"threads", options.threads},
                {"voxel_size_mm", options.voxel_size},
                {"max_angle_deg", measure::max_angle_deg},
                {"stop_threshold", measure::stop_threshold},
                {"fixed_point_steps", {few_steps, many_steps}},
                {"operations_g_per_s", operations * 1e-9},
                {"rows", rows},
                {"peers", peers}});
  return 0;
}

TrackBenchOptions parse(int count, char** words) {
  TrackBenchOptions options;
  options.python = CINGULUM_BENCH_PYTHON;
  ProgramOptions()
      .add("--data", "DIR", options.data)
      .add("--out", "FILE.json", options.out)
      .add("--seeds", "N", options.seeds)
      .add("--threads", "N", options.threads)
      .add("--repetitions", "N", options.repetitions)
      .add("--voxel-size", "MM", options.voxel_size)
      .add("--python", "PROGRAM", options.python)
      .add_flag("--no-peers", options.peers, false)
      .add("--only", "WORD", options.only)
      .read(count, words);
  if (options.data.empty()) {
    options.data = (std::filesystem::temp_directory_path() / "cingulum-bench-track").string();
  }
  return options;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
