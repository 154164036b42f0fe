// A field that stays on a device answers every request with the bits of a tracker that was prepared for it alone:
// whatever was asked before, whoever asks at the same time, and whichever request was cancelled.
#include "tract/session/tracking_session.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "base/log.hpp"
#include "device/working_memory.hpp"
#include "formats/tractogram.hpp"
#include "ring/workloads/workload_place.hpp"
#include "support/each_tracker.hpp"
#include "support/memory_jobs.hpp"
#include "support/shaped_plan.hpp"
#include "support/small_series.hpp"
#include "support/temporary_folder.hpp"
#include "tract/field/series_field.hpp"
#include "tract/run/device_choice.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum::tracking_session_tests {
namespace {

class SessionTracking : public testing::EachTracker {
 protected:
  // Fewer and shorter streamlines.
  [[nodiscard]] std::uint32_t seeds() const { return is_emulated() ? 20 : 150; }

  [[nodiscard]] std::shared_ptr<TrackingSession> open(std::shared_ptr<const Field> field, const TrackingPlan& first,
                                                      const TrackingSessionOptions& options = {}) {
    auto session = TrackingSession::open(device(), pool(), std::move(field), first, options);
    EXPECT_TRUE(session) << testing::message_of(session);
    return session ? std::move(*session) : nullptr;
  }
};

// Everything that an answer has, as one batch.
Result<StreamlineBatch> whole_answer(TrackingAnswer& answer) {
  StreamlineBatch whole;
  for (;;) {
    CGL_TRY_ASSIGN(const StreamlineBatch* const batch, answer.next());
    if (batch == nullptr) return whole;
    EXPECT_EQ(batch->seeds.first, whole.seeds.count) << "batches follow each other";
    EXPECT_GT(batch->seeds.count, 0u);
    const std::uint64_t points = whole.offsets.back();
    for (std::size_t i = 1; i < batch->offsets.size(); ++i) whole.offsets.push_back(points + batch->offsets[i]);
    whole.points.insert(whole.points.end(), batch->points.begin(), batch->points.end());
    whole.seed_index.insert(whole.seed_index.end(), batch->seed_index.begin(), batch->seed_index.end());
    whole.seed_point.insert(whole.seed_point.end(), batch->seed_point.begin(), batch->seed_point.end());
    whole.end_reason.insert(whole.end_reason.end(), batch->end_reason.begin(), batch->end_reason.end());
    whole.seeds.count += batch->seeds.count;
    whole.steps += batch->steps;
    whole.seeds_outside += batch->seeds_outside;
    whole.seeds_without_direction += batch->seeds_without_direction;
  }
}

// The streamlines by the CPU, prepared for this request alone.
StreamlineBatch truth_of(const TrackingRequest& request, const Field& field, ThreadPool& pool) {
  const auto cpu = make_cpu_tracker(pool);
  StreamlineBatch batch;
  EXPECT_TRUE(cpu->prepare(request.plan, field, *request.seeds, request.directions.get()));
  EXPECT_TRUE(cpu->track({0, request.seeds->count()}, batch));
  return batch;
}

// A field, and what may be asked of it.
struct Subject {
  std::shared_ptr<const Field> field;
  std::vector<TrackingOptions> options;
  std::vector<numerics::Vec3> seeds;

  // Request `number`: another plan and other seeds each.
  [[nodiscard]] TrackingRequest request(std::size_t number) const {
    TrackingRequest request;
    TrackingOptions given = options[number % options.size()];
    given.random_key = number;
    given.max_angle_deg = number % 3 == 0 ? 45 : 60;
    given.stop_threshold = 0.05 * static_cast<double>(number % 4);
    given.one_sided = number % 7 == 3;
    if (number % 2 == 1) given.step_mm = 0.7;
    request.plan = make_tracking_plan(given, field->geometry).value();
    std::vector<numerics::Vec3> some(seeds.begin(), seeds.end() - static_cast<std::ptrdiff_t>(number % 5));
    if (number % 5 == 4) {
      auto directions = std::make_shared<GivenDirections>();
      for (std::size_t i = 0; i < some.size(); ++i) {
        directions->directions.push_back(i % 2 == 0 ? numerics::Vec3{1, 0, 0} : numerics::Vec3{0, 0.6f, 0.8f});
      }
      request.directions = std::move(directions);
    }
    request.seeds = listed_seeds(std::move(some)).value();
    return request;
  }
};

Subject make_subject(Getter getter, int degree, const char* sphere, std::vector<Getter> others, std::uint32_t seeds,
                     bool brief, ThreadPool& pool) {
  test::RandomPlan plan = test::shaped_plan(getter, degree, sphere, seeds, pool);
  if (brief) plan.options.max_length_mm = 20;
  plan.options.ptt_tries = brief ? 40 : 200;
  Subject subject{std::make_shared<const Field>(std::move(plan.field)), {plan.options}, std::move(plan.seeds)};
  for (const Getter other : others) {
    subject.options.push_back(plan.options);
    subject.options.back().getter = other;
  }
  return subject;
}

std::vector<Subject> every_kind(std::uint32_t seeds, bool brief, ThreadPool& pool) {
  std::vector<Subject> subjects;
  subjects.push_back(
      make_subject(Getter::prob, 8, "mirror321", {Getter::det, Getter::closest, Getter::ptt}, seeds, brief, pool));
  subjects.push_back(
      make_subject(Getter::ptt, 0, "repulsion724", {Getter::prob, Getter::closest, Getter::det}, seeds, brief, pool));
  subjects.push_back(make_subject(Getter::boot, 4, "mirror321", {}, seeds, brief, pool));
  subjects.push_back(make_subject(Getter::tensor, 0, nullptr, {}, seeds, brief, pool));
  subjects.push_back(make_subject(Getter::closest, 0, nullptr, {}, seeds, brief, pool));
  return subjects;
}

TEST_P(SessionTracking, every_getter_has_the_bits_of_a_fresh_tracker_whatever_was_asked_before) {
  std::uint64_t points = 0;
  for (const Subject& subject : every_kind(seeds(), is_emulated(), pool())) {
    const auto session = open(subject.field, subject.request(0).plan);
    ASSERT_NE(session, nullptr);
    const std::size_t rounds = (is_emulated() ? 1 : 3) * subject.options.size() + 1;
    for (std::size_t number = 0; number < rounds; ++number) {
      const TrackingRequest request = subject.request(number);
      SCOPED_TRACE(fmt::format("request {} by {}", number, getter_name(static_cast<Getter>(request.plan.getter))));
      ASSERT_OK_AND_ASSIGN(const auto answer, session->ask(request));
      ASSERT_OK_AND_ASSIGN(const StreamlineBatch batch, whole_answer(*answer));
      const StreamlineBatch truth = truth_of(request, *subject.field, pool());
      EXPECT_TRUE(test::same_batch(batch, truth));
      points += truth.offsets.back();
    }
    const TrackingSessionCounts counts = session->counts();
    EXPECT_EQ(counts.requests, rounds);
    EXPECT_EQ(counts.answered, rounds);
    EXPECT_EQ(counts.cancelled + counts.failed, 0u);
  }
  EXPECT_GT(points, 5000u);
}

TEST_P(SessionTracking, requests_at_the_same_time_have_the_bits_that_they_have_alone) {
  const Subject subject =
      make_subject(Getter::prob, 8, "mirror321", {Getter::det, Getter::closest}, seeds(), is_emulated(), pool());
  const auto session = open(subject.field, subject.request(0).plan, {.first_batch_seconds = 0, .batch_seconds = 0});
  ASSERT_NE(session, nullptr);
  constexpr std::size_t requesters = 3;
  const std::size_t each = is_emulated() ? 2 : 6;
  std::vector<StreamlineBatch> answers(requesters * each);
  std::vector<std::thread> threads;
  for (std::size_t requester = 0; requester < requesters; ++requester) {
    threads.emplace_back([&, requester] {
      for (std::size_t i = requester * each; i < (requester + 1) * each; ++i) {
        auto answer = session->ask(subject.request(i));
        ASSERT_TRUE(answer) << testing::message_of(answer);
        auto batch = whole_answer(**answer);
        ASSERT_TRUE(batch) << testing::message_of(batch);
        answers[i] = std::move(*batch);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(test::same_batch(answers[i], truth_of(subject.request(i), *subject.field, pool()))) << i;
  }
}

TEST_P(SessionTracking, one_request_is_cancelled_without_the_others) {
  const Subject subject = make_subject(Getter::prob, 8, "mirror321", {}, seeds(), is_emulated(), pool());
  // Batches of 16 seeds, so that there is something left to cancel.
  const auto session = open(subject.field, subject.request(0).plan, {.first_batch_seconds = 0, .batch_seconds = 0});
  ASSERT_NE(session, nullptr);
  // The first one ever has a size of its own.
  ASSERT_OK_AND_ASSIGN(const auto first, session->ask(subject.request(0)));
  ASSERT_OK(whole_answer(*first));

  CancelSource source;
  TrackingRequest cancelled = subject.request(1);
  cancelled.cancel = source.token();
  ASSERT_OK_AND_ASSIGN(const auto ends, session->ask(cancelled));
  ASSERT_OK_AND_ASSIGN(const auto goes_on, session->ask(subject.request(2)));
  if (!is_emulated()) {
    ASSERT_OK_AND_ASSIGN(const StreamlineBatch* const begun, ends->next());
    ASSERT_NE(begun, nullptr);
    EXPECT_EQ(begun->seeds.count, 16u);
  }
  source.cancel();
  EXPECT_TRUE(testing::fails_with(ends->next(), ErrorKind::interrupted, ""));
  EXPECT_TRUE(testing::fails_with(ends->next(), ErrorKind::interrupted, "")) << "for good";
  ASSERT_OK_AND_ASSIGN(const StreamlineBatch batch, whole_answer(*goes_on));
  EXPECT_TRUE(test::same_batch(batch, truth_of(subject.request(2), *subject.field, pool())));
  EXPECT_TRUE(testing::fails_with(session->ask(cancelled), ErrorKind::interrupted, ""));
  // One that is given up in the middle.
  { ASSERT_OK_AND_ASSIGN(const auto given_up, session->ask(subject.request(3))); }
  const TrackingSessionCounts counts = session->counts();
  EXPECT_EQ(counts.requests, 4u);
  EXPECT_EQ(counts.answered, 2u);
  EXPECT_EQ(counts.cancelled, 2u);
  EXPECT_EQ(counts.failed, 0u);
}

TEST_P(SessionTracking, an_answer_outlives_its_session) {
  const Subject subject = make_subject(Getter::det, 8, "mirror321", {}, 10, is_emulated(), pool());
  auto session = open(subject.field, subject.request(0).plan);
  ASSERT_NE(session, nullptr);
  ASSERT_OK_AND_ASSIGN(const auto answer, session->ask(subject.request(1)));
  session.reset();
  ASSERT_OK_AND_ASSIGN(const StreamlineBatch batch, whole_answer(*answer));
  EXPECT_TRUE(test::same_batch(batch, truth_of(subject.request(1), *subject.field, pool())));
}

TEST_P(SessionTracking, what_cannot_be_tracked_is_refused_and_the_session_goes_on) {
  const Subject subject = make_subject(Getter::prob, 8, "mirror321", {}, 5, true, pool());
  const auto session = open(subject.field, subject.request(0).plan, {.lowest_stop_threshold = 0.1f});
  ASSERT_NE(session, nullptr);
  TrackingRequest request = subject.request(2);  // threshold 0.1
  TrackingRequest tensor = request;
  tensor.plan.getter = static_cast<std::uint32_t>(Getter::tensor);
  EXPECT_TRUE(testing::fails_with(session->ask(tensor), ErrorKind::invalid_argument, "needs a tensor field"));
  TrackingRequest lower = request;
  lower.plan.stop_threshold = 0.0999f;
  EXPECT_TRUE(testing::fails_with(session->ask(lower), ErrorKind::invalid_argument, "is lower"));
  lower.plan.stop_threshold = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(testing::fails_with(session->ask(lower), ErrorKind::invalid_argument, "is lower"));
  TrackingRequest other_grid = request;
  ++other_grid.plan.size.x;
  EXPECT_TRUE(testing::fails_with(session->ask(other_grid), ErrorKind::invalid_argument, "the plan is for"));
  TrackingRequest short_of_directions = request;
  short_of_directions.directions = std::make_shared<GivenDirections>();
  EXPECT_TRUE(testing::fails_with(session->ask(short_of_directions), ErrorKind::invalid_argument, "directions"));
  TrackingRequest nothing = request;
  nothing.seeds.reset();
  EXPECT_TRUE(testing::fails_with(session->ask(nothing), ErrorKind::invalid_argument, "without seeds"));
  ASSERT_OK_AND_ASSIGN(const auto answer, session->ask(request));
  ASSERT_OK_AND_ASSIGN(const StreamlineBatch batch, whole_answer(*answer));
  EXPECT_TRUE(test::same_batch(batch, truth_of(request, *subject.field, pool())));
}

// Fibres along x with a turn, and a stopping map that falls towards the faces.
test::SmallSeries make_series() {
  constexpr std::size_t voxels = 16 * 14 * 12;
  std::mt19937 random(21);
  test::SmallSeries series = test::make_small_series({{16, 14, 12}, {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0}, 4, 15},
                                                     random, [](std::size_t v, const numerics::Vec3d& g) {
                                                       const double turn = 0.07 * static_cast<double>(v % 16);
                                                       return std::cos(turn) * g.x + std::sin(turn) * g.y;
                                                     });
  std::uniform_real_distribution<float> jitter(-0.03f, 0.03f);
  for (std::size_t v = 0; v < voxels; ++v) {
    const double x = static_cast<double>(v % 16) - 7.5, y = static_cast<double>(v / 16 % 14) - 6.5,
                 z = static_cast<double>(v / 224) - 5.5;
    series.mask.push_back(1);
    series.stop_map.push_back(static_cast<float>(0.75 - 0.1 * std::hypot(x, y, z)) + jitter(random));
  }
  return series;
}

TEST_P(SessionTracking, a_field_for_the_lowest_threshold_gives_the_bytes_of_fields_for_any_higher_one) {
  const test::SmallSeries series = make_series();
  const ProgressOptions silent = {.style = ProgressStyle::silent, .stream = nullptr, .clock = {}};
  const auto field_at = [&](FieldModel model, bool bootstrap, double threshold) {
    SeriesFieldRequest request;
    request.series.frame = WantedFrame::voxel;
    request.field.model = model;
    request.field.bootstrap = bootstrap;
    request.field.stop_threshold = threshold;
    request.sphere = named_sphere("mirror321").value();
    auto settled = series_of_arrays(series.head, series.values, series.mask, request.series, pool());
    EXPECT_TRUE(settled) << testing::message_of(settled);
    auto made = make_series_field(std::move(*settled), series.stop_map, request, pool(), silent);
    EXPECT_TRUE(made) << testing::message_of(made);
    return std::move(made->prepared.field);
  };
  struct {
    FieldModel model;
    bool bootstrap;
    Getter getter;
  } const cases[] = {{FieldModel::csa, false, Getter::prob},
                     {FieldModel::csa, false, Getter::det},
                     {FieldModel::csa, false, Getter::closest},
                     {FieldModel::opdt, true, Getter::boot},
                     {FieldModel::dti, false, Getter::tensor}};
  constexpr double lowest = 0.1;
  std::mt19937 random(4);
  std::uniform_real_distribution<float> share(0, 1);
  std::vector<numerics::Vec3> places;
  for (std::uint32_t i = 0; i < seeds(); ++i) {
    // A place in the middle, where the highest threshold is passed, too.
    places.push_back({4 + 7 * share(random), 3 + 7 * share(random), 3 + 5 * share(random)});
  }
  for (const auto& each : cases) {
    const auto field = std::make_shared<const Field>(field_at(each.model, each.bootstrap, lowest));
    TrackingOptions options;
    options.getter = each.getter;
    options.stop_threshold = lowest;
    const auto session = open(field, make_tracking_plan(options, field->geometry).value(),
                              {.lowest_stop_threshold = static_cast<float>(lowest)});
    ASSERT_NE(session, nullptr);
    for (const double threshold : {0.1, 0.22, 0.4}) {
      SCOPED_TRACE(fmt::format("{} at {}", getter_name(each.getter), threshold));
      const Field own = field_at(each.model, each.bootstrap, threshold);
      // Tensors are kept of the whole mask.
      EXPECT_EQ(own.record_count() < field->record_count(), threshold > lowest && each.model != FieldModel::dti);
      TrackingRequest request;
      options.stop_threshold = threshold;
      request.plan = make_tracking_plan(options, field->geometry).value();
      request.seeds = listed_seeds(places).value();
      ASSERT_OK_AND_ASSIGN(const auto answer, session->ask(request));
      ASSERT_OK_AND_ASSIGN(const StreamlineBatch batch, whole_answer(*answer));
      const StreamlineBatch truth = truth_of(request, own, pool());
      EXPECT_GT(truth.offsets.back(), places.size() / 2);
      EXPECT_TRUE(test::same_batch(batch, truth));
      // The other way round it would not do.
      request.plan.stop_threshold = static_cast<float>(lowest);
      const bool suffices =
          static_cast<bool>(test::same_batch(truth_of(request, own, pool()), truth_of(request, *field, pool())));
      EXPECT_EQ(suffices, own.record_count() == field->record_count());
    }
  }
}

std::string file_of(Tracker& tracker, const Seeds& seeds, const ImageGeometry& geometry,
                    const TrackingRunOptions& options) {
  const TemporaryFolder folder;
  TractogramLayout layout;
  layout.format = TractogramFormat::trx;
  layout.reference = geometry;
  layout.streamline_fields = seed_fields(seeds.count());
  auto writer = TractogramWriter::create(folder / "run.trx", layout, {});
  EXPECT_TRUE(writer) << testing::message_of(writer);
  if (!writer) return {};
  const auto run = run_tracking(tracker, seeds, geometry, options, **writer, nullptr);
  EXPECT_TRUE(run) << testing::message_of(run);
  EXPECT_TRUE((*writer)->commit());
  std::ifstream stream(folder / "run.trx", std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_P(SessionTracking, files_are_those_of_a_run) {
  const Subject subject = make_subject(Getter::prob, 8, "mirror321", {Getter::det}, seeds(), is_emulated(), pool());
  const auto session = open(subject.field, subject.request(0).plan);
  ASSERT_NE(session, nullptr);
  const TrackingRunOptions options{.selection = {.min_length_mm = 2, .max_length_mm = 400}, .save_seeds = true};
  for (const std::size_t number : {1u, 2u, 6u}) {
    const TrackingRequest request = subject.request(number);
    ASSERT_OK_AND_ASSIGN(const auto answer, session->ask(request));
    const std::string from_session = file_of(answer->tracker(), *request.seeds, subject.field->geometry, options);
    const auto cpu = make_cpu_tracker(pool());
    ASSERT_OK(cpu->prepare(request.plan, *subject.field, *request.seeds, nullptr));
    EXPECT_EQ(from_session, file_of(*cpu, *request.seeds, subject.field->geometry, options)) << number;
    EXPECT_GT(from_session.size(), 5000u);
  }
}

// How often a field was cut into bricks.
struct CountedBricks final : LogSink {
  CountedBricks() { Log::standard().set_sink(this); }
  ~CountedBricks() override { Log::standard().set_sink(nullptr); }
  void write(LogLevel, std::string_view text) override {
    if (text.find("is tracked in") != std::string_view::npos) ++count;
  }
  int count = 0;
};

class SessionInBricks : public SessionTracking {};

TEST_P(SessionInBricks, answers_every_getter) {
  MemoryBudget& budget = device().budget();
  const std::uint64_t base = budget.used_bytes();
  budget.forget_peak();  // of other tests
  test::RandomPlan plan = test::tall_plan(Getter::prob, false, 0);
  if (is_emulated()) plan.seeds.resize(4);
  const auto field = std::make_shared<const Field>(plan.field);
  const TrackingPlan first = make_tracking_plan(plan.options, field->geometry).value();
  ASSERT_NE(open(field, first), nullptr);
  const std::uint64_t need = budget.peak_bytes() - base;
  CountedBricks cut;
  int answered = 0;
  for (const std::uint64_t percent : {60u, 40u, 25u, 15u, 10u, 6u}) {
    SCOPED_TRACE(fmt::format("{} % of {} bytes", percent, need));
    const int before = cut.count;
    budget.set_limit(base + need * percent / 100);
    const auto session = TrackingSession::open(device(), pool(), field, first);
    if (!session) {
      EXPECT_EQ(session.error().kind(), ErrorKind::out_of_memory) << session.error().message();
      continue;
    }
    if (cut.count == before) continue;
    for (const Getter getter : {Getter::prob, Getter::closest, Getter::prob}) {
      plan.options.getter = getter;
      TrackingRequest request;
      request.plan = make_tracking_plan(plan.options, field->geometry).value();
      request.seeds = listed_seeds(plan.seeds).value();
      const auto answer = (*session)->ask(request);
      if (!answer) {
        EXPECT_EQ(answer.error().kind(), ErrorKind::out_of_memory) << answer.error().message();
        continue;
      }
      ASSERT_OK_AND_ASSIGN(const StreamlineBatch batch, whole_answer(**answer));
      EXPECT_TRUE(test::same_batch(batch, truth_of(request, *field, pool()))) << getter_name(getter);
      ++answered;
    }
  }
  budget.set_limit(std::nullopt);
  EXPECT_GE(answered, 3);
  EXPECT_EQ(budget.used_bytes(), base);
}
CGL_FOR_DEVICES(SessionInBricks, "cuda", "webgpu");

CGL_FOR_EACH_DEVICE(SessionTracking);

class TrackingBesideActors : public SessionTracking {};

// A whole run beside a kernel that stays: nothing is freed meanwhile, and what one run gave back the next one takes.
TEST_P(TrackingBesideActors, takes_its_memory_once) {
  const auto kept = WorkingMemory::of(device());
  const Subject subject = make_subject(Getter::prob, 8, "mirror321", {Getter::ptt, Getter::det}, 400, false, pool());
  const Subject on_sphere = make_subject(Getter::ptt, 0, "repulsion724", {Getter::prob}, 100, false, pool());
  // Kernels are loaded before: loading waits for those that run.
  const auto run = [&](const Subject& of, std::size_t number) {
    const TrackingRequest request = of.request(number);
    auto tracker = make_tracker(device(), pool()).value();
    StreamlineBatch batch;
    EXPECT_TRUE(tracker->prepare(request.plan, *of.field, *request.seeds, request.directions.get()));
    EXPECT_TRUE(tracker->track({0, request.seeds->count()}, batch));
    EXPECT_TRUE(test::same_batch(batch, truth_of(request, *of.field, pool())));
  };
  const auto all = [&] {
    for (std::size_t number = 0; number < 3; ++number) run(subject, number);
    for (std::size_t number = 0; number < 2; ++number) run(on_sphere, number);
  };
  all();
  const std::uint64_t before = device().budget().used_bytes();
  {
    auto place = ring::make_cuda_place(device(), {.actors = 4, .lanes = 128});
    ASSERT_TRUE(place) << testing::message_of(place);
    ASSERT_TRUE(device().freeing_waits());
    for (int round = 0; round < 2; ++round) all();
    const std::uint64_t used = device().budget().used_bytes();
    EXPECT_GT(WorkingMemory::kept_on(device()), 0u);
    for (int round = 0; round < 5; ++round) all();
    EXPECT_EQ(device().budget().used_bytes(), used);
  }
  EXPECT_FALSE(device().freeing_waits());
  all();
  EXPECT_EQ(WorkingMemory::kept_on(device()), 0u);
  EXPECT_EQ(device().budget().used_bytes(), before);
}
CGL_FOR_DEVICES(TrackingBesideActors, "cuda");

}  // namespace
}  // namespace cingulum::tracking_session_tests
