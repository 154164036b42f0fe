// Few seeds at a time on a field that stays: how soon the first points and the last points of a request are there, by a
// warm session, by an actor on a host thread around it, by actors that are blocks of a kernel which stays on the GPU,
// and, beside them, by one launch on a warm tracker and by a tracker that is prepared anew for every request. Each asks
// for the same seeds around the same places, one request at a time; every answer is compared with the CPU's bits once.
// Before that what another plan costs on a session, beside preparing a tracker for it; after it a whole run beside the
// resident actors: its time, and the memory that the card has in use after each.
//   bench_track_session [--device NAME] [--out FILE.json] [--nseeds N] [--requests N] [--whole N] [--actors N]
//                       [--only WORD] [--cache-dir DIR]
#include "base/settings.hpp"
#include "bench/program.hpp"
#include "device/working_memory.hpp"
#include "examples/tracking_actors/tracking_actors.hpp"
#include "measure/bench_data.hpp"
#include "measure/repetitions.hpp"
#include "measure/tracking_rows.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum::bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string device = "auto";
  std::string out;
  std::string only;
  std::string cache = ".";
  std::uint64_t seeds = 200;      // of a request
  std::uint64_t requests = 300;   // that count, after a tenth that does not
  std::uint64_t whole = 200'000;  // seeds of a whole run
  std::uint32_t actors = 32;
};

// The points of one answer, and when its first and its last came.
struct Answer {
  double first_seconds = 0;
  double last_seconds = 0;
  std::uint64_t points = 0;
  std::vector<float> positions;
};

class AnswerClock {
 public:
  void take(const StreamlineBatch& batch) {
    answer_.last_seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (answer_.points == 0) answer_.first_seconds = answer_.last_seconds;
    answer_.points += batch.offsets.back();
    answer_.positions.insert(answer_.positions.end(), batch.points.begin(), batch.points.end());
  }
  [[nodiscard]] Answer answer() { return std::move(answer_); }

 private:
  const Clock::time_point start_ = Clock::now();
  Answer answer_;
};

// The seeds of request `number`: in a ball about one of the run's seeds.
std::vector<numerics::Vec3> seeds_about(const measure::BenchData& data, std::uint64_t number, std::uint64_t count) {
  constexpr float radius_voxels = 3;
  numerics::Vec3 centre{};
  data.seeds().fill(number % data.seeds().count(), {&centre, 1});
  std::vector<numerics::Vec3> around(count), seeds;
  std::uint64_t first = 0;
  // Offsets from other seeds' places within their voxels, spread over the ball: functions of the index alone.
  while (seeds.size() < count) {
    data.seeds().fill((number * 7919 + first) % (data.seeds().count() - count), around);
    first += count;
    for (const numerics::Vec3& place : around) {
      const auto offset = [&](float x) { return radius_voxels * (2 * (x * 7 - std::floor(x * 7)) - 1); };
      const numerics::Vec3 d{offset(place.x), offset(place.y), offset(place.z)};
      if (numerics::dot(d, d) > radius_voxels * radius_voxels || seeds.size() == count) continue;
      seeds.push_back(centre + d);
    }
  }
  return seeds;
}

// A way to answer: "streamlines from these seeds".
struct Way {
  std::string name;
  std::function<Answer(const std::vector<numerics::Vec3>&)> answer;
};

Answer pull(TrackingAnswer& answer, AnswerClock& clock) {
  while (const StreamlineBatch* const batch = require(answer.next())) clock.take(*batch);
  return clock.answer();
}

Answer ask(TrackingActors& actors, const TrackingPlan& plan, const std::vector<numerics::Vec3>& seeds) {
  AnswerClock clock;
  const auto stream = require(actors.ask({.plan = plan, .seeds = seeds}));
  while (const std::optional<StreamlineBatch> batch = require(stream->next())) clock.take(*batch);
  return clock.answer();
}

Json measure_way(const Way& way, const measure::BenchData& data, const Options& options,
                 const std::vector<Answer>& truth) {
  std::vector<double> first, last;
  const std::uint64_t warm_up = options.requests / 10 + 1;
  for (std::uint64_t i = 0; i < warm_up + options.requests; ++i) {
    const Answer answer = way.answer(seeds_about(data, i, options.seeds));
    if (i < truth.size()) {
      require(answer.positions.size() == truth[i].positions.size() &&
                  std::memcmp(answer.positions.data(), truth[i].positions.data(),
                              answer.positions.size() * sizeof(float)) == 0,
              fmt::format("{}: the CPU's bits of request {}", way.name, i));
    }
    if (i < warm_up) continue;
    first.push_back(1e3 * answer.first_seconds);
    last.push_back(1e3 * answer.last_seconds);
  }
  const measure::Percentiles begin = measure::percentiles_of(first), end = measure::percentiles_of(last);
  fmt::print("  {:<34} first points p50 {:>8.3f} p99 {:>8.3f}, last points p50 {:>8.3f} p99 {:>8.3f} ms\n", way.name,
             begin.p50, begin.p99, end.p50, end.p99);
  return {{"way", way.name},
          {"first_points_ms", {{"p50", begin.p50}, {"p99", begin.p99}}},
          {"last_points_ms", {{"p50", end.p50}, {"p99", end.p99}}},
          {"requests", options.requests}};
}

// Whole runs one after the other: seconds, and what the process has of the card after each.
Json whole_runs(Device& device, ThreadPool& pool, const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                std::string_view name) {
  Json runs = Json::array();
  for (int i = 0; i < 4; ++i) {
    const auto start = Clock::now();
    const auto tracker = require(make_tracker(device, pool));
    require(tracker->prepare(plan, field, seeds, nullptr));
    std::uint64_t points = 0;
    const auto batches =
        require(TrackingBatches::start(std::vector<Tracker*>{tracker.get()}, seeds, field.geometry, {.pool = &pool}));
    while (const TractogramBatch* const batch = require(batches->next())) points += batch->offsets.back();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    runs.push_back({{"seconds", seconds}, {"points", points}, {"device_bytes", device.budget().used_bytes()}});
    fmt::print("  {:<34} {:>8.3f} s, {} MB of the device in use\n", name, seconds, device.budget().used_bytes() >> 20U);
  }
  return {{"way", name}, {"runs", runs}};
}

// What it costs that a request brings a plan of its own: on a session, which has the field and the kernels, and by
// preparing a tracker for it. Nothing is tracked.
Json measure_plans(const measure::BenchScenario& scenario, Device& device, ThreadPool& pool,
                   const measure::BenchData& data, const std::shared_ptr<const Field>& field, const Options& options) {
  const std::shared_ptr<const Seeds> seeds(require(listed_seeds(seeds_about(data, 1, options.seeds))));
  const auto plan_of = [&](int number) {
    TrackingOptions wanted = measure::bench_tracking_options(scenario);
    wanted.max_angle_deg -= 0.1 * number;
    return require(make_tracking_plan(wanted, data.geometry()));
  };
  const auto milliseconds_of = [](const auto& work) {
    const auto begin = Clock::now();
    work();
    return 1e3 * std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const auto session = require(TrackingSession::open(device, pool, field, plan_of(0)));
  std::vector<double> prepared, asked;
  for (int i = 0; i < 12; ++i) {
    const auto tracker = require(make_tracker(device, pool));
    const double took = milliseconds_of([&] { require(tracker->prepare(plan_of(i), *field, *seeds, nullptr)); });
    if (i >= 2) prepared.push_back(took);
  }
  for (int i = 0; i < 110; ++i) {
    const double took = milliseconds_of([&] { require(session->ask({.plan = plan_of(i % 12), .seeds = seeds})); });
    if (i >= 10) asked.push_back(took);
  }
  const measure::Percentiles fresh = measure::percentiles_of(prepared), another = measure::percentiles_of(asked);
  fmt::print("  another plan p50 {:.3f} p99 {:.3f} ms, prepared p50 {:.3f} ms\n", another.p50, another.p99, fresh.p50);
  return {{"another_plan_ms", {{"p50", another.p50}, {"p99", another.p99}}},
          {"prepare_ms", {{"p50", fresh.p50}, {"p99", fresh.p99}}},
          {"share", another.p50 / fresh.p50}};
}

Json measure_scenario(const measure::BenchScenario& scenario, Device& device, Device& cpu_device, ThreadPool& pool,
                      measure::BenchData& data, const std::shared_ptr<const Field>& field, const Options& options) {
  const TrackingPlan plan = require(make_tracking_plan(measure::bench_tracking_options(scenario), data.geometry()));
  const auto listed = [](const std::vector<numerics::Vec3>& seeds) {
    return std::shared_ptr<const Seeds>(require(listed_seeds(seeds)));
  };
  const auto cpu = require(TrackingSession::open(cpu_device, pool, field, plan));
  std::vector<Answer> truth;
  for (std::uint64_t i = 0; i < 3; ++i) {
    AnswerClock clock;
    truth.push_back(
        pull(*require(cpu->ask({.plan = plan, .seeds = listed(seeds_about(data, i, options.seeds))})), clock));
  }
  fmt::print("{} on {}, {} seeds a request, {} points in the first\n", scenario.name, device.id(), options.seeds,
             truth.front().points);
  Json rows = Json::array();
  {
    const Way fresh{"prepared for every request", [&](const auto& places) {
                      AnswerClock clock;
                      const auto seeds = listed(places);
                      const auto tracker = require(make_tracker(device, pool));
                      require(tracker->prepare(plan, *field, *seeds, nullptr));
                      StreamlineBatch batch;
                      require(tracker->track({0, seeds->count()}, batch));
                      clock.take(batch);
                      return clock.answer();
                    }};
    Options fewer = options;
    fewer.requests = std::max<std::uint64_t>(options.requests / 10, 5);
    rows.push_back(measure_way(fresh, data, fewer, truth));
  }
  {
    const auto session = require(TrackingSession::open(device, pool, field, plan));
    const Way launch{"a launch on a warm tracker", [&](const auto& places) {
                       AnswerClock clock;
                       const auto seeds = listed(places);
                       const auto answer = require(session->ask({.plan = plan, .seeds = seeds}));
                       StreamlineBatch batch;
                       require(answer->tracker().track({0, seeds->count()}, batch));
                       clock.take(batch);
                       return clock.answer();
                     }};
    rows.push_back(measure_way(launch, data, options, truth));
    const Way warm{"a warm session", [&](const auto& places) {
                     AnswerClock clock;
                     return pull(*require(session->ask({.plan = plan, .seeds = listed(places)})), clock);
                   }};
    rows.push_back(measure_way(warm, data, options, truth));
    const auto runtime = require(ring::Runtime::create());
    const auto actor = require(start_tracking_actor(*runtime, "track", session));
    const Way on_thread{"an actor on a thread", [&](const auto& places) { return ask(*actor, plan, places); }};
    rows.push_back(measure_way(on_thread, data, options, truth));
  }
  if (device.description().backend != Backend::cuda) return rows;
  rows.push_back(whole_runs(device, pool, plan, *field, data.seeds(), "a whole run alone"));
  const auto resident = require(start_cuda_tracking(device, field, plan, {.actors = options.actors}));
  const Way blocks{fmt::format("{} resident actors", options.actors),
                   [&](const auto& places) { return ask(*resident, plan, places); }};
  rows.push_back(measure_way(blocks, data, options, truth));
  rows.push_back(whole_runs(device, pool, plan, *field, data.seeds(), "a whole run beside resident actors"));
  return rows;
}

int run(const Options& options) {
  const auto pool = require(ThreadPool::create(default_thread_count()));
  const DeviceRegistry registry = require(DeviceRegistry::probe({}));
  Device& device = *require(choose_devices(registry, options.device, 1)).front();
  Device& cpu_device = *require(registry.select_one("cpu"));
  WriteOptions write;
  write.force = true;
  measure::BenchSource source;
  source.phantom = require(measure::brain_phantom_folder(options.cache, source.voxel_mm));
  measure::BenchData data = require(measure::BenchData::load(source, options.whole, *pool, write, {}));
  Json scenarios = Json::array();
  for (const measure::BenchScenario& scenario : measure::bench_scenarios()) {
    if (scenario.name.find(options.only) == std::string_view::npos || scenario.ptt_substeps != 0) continue;
    const auto field = std::make_shared<const Field>(*require(data.field_of(scenario, *pool, {})));
    scenarios.push_back({{"scenario", scenario.name},
                         {"plans", measure_plans(scenario, device, *pool, data, field, options)},
                         {"rows", measure_scenario(scenario, device, cpu_device, *pool, data, field, options)}});
  }
  write_report(options.out, "few seeds at a time",
               {{"device", device.id()},
                {"description", device.description().name},
                {"seeds", options.seeds},
                {"scenarios", scenarios}});
  return 0;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  cingulum::bench::Options options;
  cingulum::bench::ProgramOptions()
      .add("--device", "NAME", options.device)
      .add("--out", "FILE.json", options.out)
      .add("--only", "WORD", options.only)
      .add("--cache-dir", "DIR", options.cache)
      .add("--nseeds", "N", options.seeds)
      .add("--requests", "N", options.requests)
      .add("--whole", "N", options.whole)
      .add("--actors", "N", options.actors)
      .read(count, words);
  if (options.seeds == 0 || options.requests == 0 || options.whole <= options.seeds) {
    cingulum::bench::give_up("seeds and requests are at least 1, and a whole run has more seeds than a request");
  }
  return cingulum::bench::run(options);
}
