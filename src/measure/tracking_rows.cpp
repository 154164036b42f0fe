#include "measure/tracking_rows.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "base/elapsed.hpp"
#include "base/read_file.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram.hpp"
#include "measure/repetitions.hpp"
#include "numerics/portable.hpp"
#include "tract/run/seed_sharing.hpp"

namespace cingulum::measure {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// What one launch takes.
std::uint64_t kernel_seeds(const BenchData& data) {
  return std::min<std::uint64_t>(data.seeds().count(), 1'000'000);
}

// The least that any program does to put these bytes on a disk: the measure that whole runs are held against.
Result<double> seconds_of_copy(std::string_view bytes, const fs::path& file) {
  const auto begin = Clock::now();
  const int to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool written = to >= 0;
  for (std::size_t done = 0; written && done < bytes.size();) {
    const ssize_t count = ::write(to, bytes.data() + done, bytes.size() - done);
    written = count > 0;
    if (written) done += static_cast<std::size_t>(count);
  }
  written = written && ::fsync(to) == 0;
  if (to >= 0) ::close(to);
  const double seconds = seconds_since(begin);
  std::error_code ignored;
  fs::remove(file, ignored);
  if (!written)
    return fail(ErrorKind::io, "copying {} bytes to {}: it could not be written", bytes.size(), file.string());
  return seconds;
}

}  // namespace

bool same_bits(const StreamlineBatch& a, const StreamlineBatch& b) {
  return a.offsets == b.offsets && a.seed_index == b.seed_index && a.seed_point == b.seed_point &&
         a.end_reason == b.end_reason && a.steps == b.steps && a.points.size() == b.points.size() &&
         std::equal(a.points.begin(), a.points.end(), b.points.begin(),
                    [](float x, float y) { return numerics::float_bits(x) == numerics::float_bits(y); });
}

Result<KernelRun> best_kernel_run(Tracker& tracker, std::uint64_t seeds, std::int64_t repetitions,
                                  StreamlineBatch& batch) {
  KernelRun best;
  for (std::int64_t i = 0; i < repetitions; ++i) {
    const double begin = tracker.kernel_seconds();
    CGL_TRY(tracker.track({0, seeds}, batch));
    const double seconds = tracker.kernel_seconds() - begin;
    if (best.seconds == 0 || seconds < best.seconds) best.seconds = seconds;
  }
  best.points = batch.points.size() / 3;
  best.steps = batch.steps;
  return best;
}

Status measure_kernel(Tracker& tracker, const BenchData& data, const BenchMeasures& measures, Json& row) {
  // It was launched before, for the comparison with the CPU.
  if (tracker.kernel_seconds() == 0) return {};
  const std::uint64_t seeds = kernel_seeds(data);
  StreamlineBatch batch;
  CGL_TRY_ASSIGN(const KernelRun run, best_kernel_run(tracker, seeds, measures.repetitions, batch));
  row["kernel_seconds"] = run.seconds;
  row["kernel_seeds"] = seeds;
  row["kernel_steps"] = run.steps;
  row["kernel_M_points_per_s"] = 1e-6 * static_cast<double>(run.points) / run.seconds;
  row["kernel_M_steps_per_s"] = 1e-6 * static_cast<double>(run.steps) / run.seconds;
  return {};
}

Status measure_unsorted_kernel(Tracker& tracker, const BenchData& data, const BenchMeasures& measures, Json& row) {
  if (tracker.kernel_seconds() == 0) return {};
  StreamlineBatch batch;
  ::setenv("CINGULUM_TEST_SEED_ORDER", "given", 1);
  const Result<KernelRun> run = best_kernel_run(tracker, kernel_seeds(data), measures.repetitions, batch);
  ::unsetenv("CINGULUM_TEST_SEED_ORDER");
  if (!run) return tl::make_unexpected(run.error());
  row["kernel_M_points_per_s_unsorted"] = 1e-6 * static_cast<double>(run->points) / run->seconds;
  return {};
}

Status measure_tracking(const std::vector<Tracker*>& trackers, const BenchData& data, const BenchMeasures& measures,
                        Json& row) {
  // measure_repetitions is not used: giving back the memory of a run does not belong to its time.
  std::vector<double> seconds;
  std::uint64_t points = 0, steps = 0;
  for (std::int64_t i = 0; i <= measures.repetitions; ++i) {
    points = steps = 0;
    const auto begin = Clock::now();
    CGL_TRY_ASSIGN(const auto sharing,
                   SeedSharing::start(trackers, {.total = data.seeds().count(), .chunk = measures.chunk_seeds}));
    for (;;) {
      CGL_TRY_ASSIGN(auto batch, sharing->next());
      if (!batch) break;
      points += batch->points.size() / 3;
      steps += batch->steps;
      sharing->give_back(std::move(batch));
    }
    if (i > 0) seconds.push_back(seconds_since(begin));
  }
  const double median = spread_of(seconds).median;
  row["tracking_seconds"] = median;
  row["points"] = points;
  row["steps"] = steps;
  row["M_points_per_s"] = 1e-6 * static_cast<double>(points) / median;
  row["M_steps_per_s"] = 1e-6 * static_cast<double>(steps) / median;
  return {};
}

Result<TrackingStatistics> track_to_file(const std::vector<Tracker*>& trackers, const TrackingOptions& options,
                                         const TrackingPlan& plan, const BenchData& data, std::uint64_t chunk_seeds,
                                         ThreadPool& pool, const fs::path& file, bool sync) {
  TractogramLayout layout;
  layout.format = TractogramFormat::trx;
  layout.reference = data.geometry();
  CGL_TRY_ASSIGN(const auto writer,
                 TractogramWriter::create(file, layout, {.force = true, .sync = sync, .pool = &pool}));
  TrackingRunOptions run;
  run.selection.min_length_mm = options.min_length_mm;
  run.selection.max_length_mm = options.max_length_mm;
  run.selection.tolerance_mm = 1e-3 * static_cast<double>(plan.step_mm);
  run.chunk_seeds = chunk_seeds;
  run.pool = &pool;
  CGL_TRY_ASSIGN(const TrackingStatistics statistics,
                 run_tracking(trackers, data.seeds(), data.geometry(), run, *writer, nullptr));
  CGL_TRY(writer->commit());
  return statistics;
}

Status measure_files(const std::vector<Tracker*>& trackers, const TrackingOptions& options, const TrackingPlan& plan,
                     const BenchData& data, const BenchMeasures& measures, ThreadPool& pool, const Json& first,
                     Json& row) {
  const std::string name = fmt::format("cingulum-bench-{}.trx", ::getpid());
  const fs::path file = measures.folder / name;
  TrackingStatistics statistics;
  const auto track = [&]() -> Status {
    CGL_TRY_ASSIGN(statistics, track_to_file(trackers, options, plan, data, measures.chunk_seeds, pool, file, false));
    return {};
  };
  CGL_TRY_ASSIGN(const Seconds seconds, measure_repetitions(1, measures.repetitions, track));
  row["file_seconds"] = spread_of(seconds.elapsed).median;
  row["streamlines"] = statistics.kept;
  row["mean_length_mm"] = statistics.lengths.mean_mm();
  row["median_length_mm"] = statistics.lengths.quantile_mm(0.5);
  CGL_TRY_ASSIGN(row["file_xxh3_128"], hash_of_file(file));
  std::error_code ignored;
  row["file_bytes"] = fs::file_size(file, ignored);
  const bool same = first.is_null() || first["file_xxh3_128"] == row["file_xxh3_128"];
  row["same_file_as_first_device"] = same;
  if (!first.is_null() && same) {
    if (first.contains("score")) row["score"] = first["score"];
  } else {
    CGL_TRY_ASSIGN(Json score, score_of_file(file, data, pool));
    if (!score.empty()) row["score"] = std::move(score);
  }
  if (!measures.disk.empty()) {
    CGL_TRY_ASSIGN(const std::string bytes, read_text_file(file, std::numeric_limits<std::uint64_t>::max()));
    std::vector<double> to_disk, copies;
    // Alternately, since the speed of a disk changes.
    for (std::int64_t i = 0; i <= measures.repetitions; ++i) {
      const auto begin = Clock::now();
      CGL_TRY(track_to_file(trackers, options, plan, data, measures.chunk_seeds, pool, measures.disk / name, true));
      const double run = seconds_since(begin);
      fs::remove(measures.disk / name, ignored);
      CGL_TRY_ASSIGN(const double copy, seconds_of_copy(bytes, measures.disk / (name + ".copy")));
      if (i == 0) continue;
      to_disk.push_back(run);
      copies.push_back(copy);
    }
    row["disk_seconds"] = spread_of(to_disk).median;
    row["disk_copy_seconds"] = spread_of(copies).median;
  }
  fs::remove(file, ignored);
  return {};
}

Json score_json(const Score& score) {
  return {{"commissural", score.commissural_count},
          {"valid", score.valid.value},
          {"invalid", score.invalid.value},
          {"no_connection", score.no_connection.value},
          {"overlap", score.any.overlap.value},
          {"overreach", score.any.overreach.value},
          {"f1", score.any.f1.value}};
}

Result<Json> score_of_file(const fs::path& tractogram, const BenchData& data, ThreadPool& pool) {
  if (data.phantom().empty()) return Json::object();
  CGL_TRY_ASSIGN(const Score score, score_tractogram(tractogram, data.phantom(), {.bootstrap = 0}, pool, {}));
  return score_json(score);
}

}  // namespace cingulum::measure
