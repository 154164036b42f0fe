// Tracking actors answer with the bits of a tracker that was prepared for the
// request alone: on a host thread around a session of every device, as blocks
// of an emulated grid, and as blocks of a kernel that stays on a GPU.
#include "examples/tracking_actors/tracking_actors.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "device/cpu/cpu_device.hpp"
#include "examples/tracking_actors/resident_tracking_body.hpp"
#include "examples/tracking_actors/tracked_parts.hpp"
#include "numerics/lanes_portable.hpp"
#include "ring/resident/emulated_backend.hpp"
#include "support/each_tracker.hpp"
#include "support/shaped_plan.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum::tracking_actors_tests {
namespace {

// A host thread in the place of a warp: the portable lanes take the ways of
// lanes that run together.
struct WarpLikeLanes : numerics::PortableLanesOf<32> {
  static constexpr bool serial = false;
  using Narrow = WarpLikeLanes;
  using Wide = WarpLikeLanes;
};
struct ThreadGroups {
  using Lanes = WarpLikeLanes;
  struct Machine {
    static std::uint32_t take(std::uint32_t* counter) { return (*counter)++; }
  };
  template <class Context>
  static std::uint32_t group(Context&) {
    return 0;
  }
  template <class Context>
  static std::uint32_t groups(Context&) {
    return 1;
  }
  template <class Context>
  static std::uint32_t lane_of_group(Context&) {
    return 0;
  }
  static std::uint32_t lanes_of_group() { return 1; }
};

struct Question {
  std::shared_ptr<const Field> field;
  TrackingPlan plan{};
  std::vector<numerics::Vec3> seeds;
  std::vector<numerics::Vec3> directions;

  [[nodiscard]] TrackingQuestion view(std::uint32_t channel = 0) const { return {plan, seeds, directions, channel}; }
  [[nodiscard]] StreamlineBatch truth(ThreadPool& pool) const {
    const auto cpu = make_cpu_tracker(pool);
    const auto listed = listed_seeds(seeds).value();
    const GivenDirections given{directions};
    StreamlineBatch batch;
    EXPECT_TRUE(cpu->prepare(plan, *field, *listed, directions.empty() ? nullptr : &given));
    EXPECT_TRUE(cpu->track({0, listed->count()}, batch));
    return batch;
  }
};

Question question_of(std::shared_ptr<const Field> field, TrackingOptions options, Getter getter,
                     std::vector<numerics::Vec3> seeds, std::uint32_t number) {
  Question question;
  options.getter = getter;
  options.random_key = number;
  options.max_angle_deg = number % 2 == 0 ? 60 : 40;
  options.one_sided = number % 5 == 3;
  question.plan = make_tracking_plan(options, field->geometry).value();
  question.field = std::move(field);
  question.seeds = std::move(seeds);
  if (number % 4 == 2) {
    for (std::size_t i = 0; i < question.seeds.size(); ++i) question.directions.push_back({0, 0.6f, 0.8f});
  }
  return question;
}

struct Subject {
  std::shared_ptr<const Field> field;
  TrackingOptions options;
  std::vector<numerics::Vec3> seeds;
  std::vector<Getter> getters;

  [[nodiscard]] Question question(std::uint32_t number) const {
    return question_of(field, options, getters[number % getters.size()], seeds, number);
  }
};
Subject make_subject(Getter getter, int degree, const char* sphere, std::vector<Getter> getters, std::uint32_t seeds,
                     bool brief, ThreadPool& pool) {
  test::RandomPlan plan = test::shaped_plan(getter, degree, sphere, seeds, pool);
  plan.options.max_length_mm = brief ? 20 : 100;
  plan.options.ptt_tries = brief ? 40 : 100;
  return {std::make_shared<const Field>(std::move(plan.field)), plan.options, std::move(plan.seeds),
          std::move(getters)};
}
std::vector<Subject> every_kind(std::uint32_t seeds, bool brief, ThreadPool& pool) {
  std::vector<Subject> subjects;
  using enum Getter;
  subjects.push_back(make_subject(prob, 8, "mirror321", {prob, det, closest, ptt}, seeds, brief, pool));
  subjects.push_back(make_subject(ptt, 0, "repulsion724", {ptt, prob, closest, det}, seeds, brief, pool));
  subjects.push_back(make_subject(boot, 4, "mirror321", {boot}, seeds, brief, pool));
  subjects.push_back(make_subject(tensor, 0, nullptr, {tensor}, seeds, brief, pool));
  subjects.push_back(make_subject(closest, 0, nullptr, {closest}, seeds, brief, pool));
  return subjects;
}

Result<StreamlineBatch> whole_answer(StreamlineStream& stream) {
  StreamlineBatch whole;
  for (;;) {
    CGL_TRY_ASSIGN(std::optional<StreamlineBatch> batch, stream.next());
    if (!batch) return whole;
    EXPECT_EQ(batch->seeds.first, whole.seeds.count) << "batches follow each other";
    std::vector<std::byte> bytes(bytes_of_part(*batch));
    write_part(*batch, bytes);
    const std::uint64_t first = whole.seeds.count, outside = whole.seeds_outside,
                        without = whole.seeds_without_direction;
    CGL_TRY(read_part(bytes, whole));
    whole.seeds = {0, first + batch->seeds.count};
    whole.seeds_outside += outside;
    whole.seeds_without_direction += without;
  }
}

// What is asked of actors of any kind.
void expect_bits_of_the_cpu(TrackingActors& actors, const Subject& subject, std::uint32_t questions, ThreadPool& pool) {
  for (std::uint32_t number = 0; number < questions; ++number) {
    const Question question = subject.question(number);
    SCOPED_TRACE(fmt::format("question {} by {}", number, getter_name(static_cast<Getter>(question.plan.getter))));
    ASSERT_OK_AND_ASSIGN(const auto stream, actors.ask(question.view()));
    ASSERT_OK_AND_ASSIGN(const StreamlineBatch batch, whole_answer(*stream));
    const StreamlineBatch truth = question.truth(pool);
    EXPECT_TRUE(test::same_batch(batch, truth));
    EXPECT_GT(truth.offsets.back(), question.seeds.size() / 2);
    ASSERT_OK_AND_ASSIGN(const auto after, stream->next());
    EXPECT_FALSE(after.has_value()) << "the end stays the end";
  }
}

void expect_bits_of_several_at_once(TrackingActors& actors, const Subject& subject, std::uint32_t each,
                                    ThreadPool& pool) {
  constexpr std::uint32_t requesters = 3;
  std::vector<StreamlineBatch> answers(requesters * each);
  std::vector<std::thread> threads;
  for (std::uint32_t requester = 0; requester < requesters; ++requester) {
    threads.emplace_back([&, requester] {
      for (std::uint32_t i = requester * each; i < (requester + 1) * each; ++i) {
        const Question question = subject.question(i);
        const auto stream = actors.ask(question.view());
        ASSERT_TRUE(stream) << testing::message_of(stream);
        auto batch = whole_answer(**stream);
        ASSERT_TRUE(batch) << testing::message_of(batch);
        answers[i] = std::move(*batch);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(test::same_batch(answers[i], subject.question(i).truth(pool))) << i;
  }
}

// What was on its way may come still; the end is what counts.
Result<std::optional<StreamlineBatch>> end_of(StreamlineStream& stream) {
  Result<std::optional<StreamlineBatch>> last = std::optional<StreamlineBatch>();
  do last = stream.next();
  while (last && last->has_value());
  return last;
}

void expect_cancelling_one_alone(TrackingActors& actors, const Subject& subject, ThreadPool& pool) {
  const Question cancelled = subject.question(0), other = subject.question(1);
  ASSERT_OK_AND_ASSIGN(const auto ends, actors.ask(cancelled.view()));
  ASSERT_OK_AND_ASSIGN(const auto goes_on, actors.ask(other.view()));
  ends->cancel();
  EXPECT_TRUE(testing::fails_with(end_of(*ends), ErrorKind::interrupted, "cancelled"));
  ASSERT_OK_AND_ASSIGN(const StreamlineBatch batch, whole_answer(*goes_on));
  EXPECT_TRUE(test::same_batch(batch, other.truth(pool)));
}

void expect_newest_of_a_channel(TrackingActors& actors, const Subject& subject, ThreadPool& pool) {
  std::vector<std::unique_ptr<StreamlineStream>> streams;
  const Question apart = subject.question(4);
  ASSERT_OK_AND_ASSIGN(const auto other_channel, actors.ask(apart.view(6)));
  for (std::uint32_t number = 0; number < 5; ++number) {
    const Question question = subject.question(number);
    ASSERT_OK_AND_ASSIGN(streams.emplace_back(), actors.ask(question.view(7)));
  }
  ASSERT_OK_AND_ASSIGN(const StreamlineBatch newest, whole_answer(*streams.back()));
  EXPECT_TRUE(test::same_batch(newest, subject.question(4).truth(pool)));
  std::uint32_t superseded = 0;
  for (std::size_t i = 0; i + 1 < streams.size(); ++i) {
    const Result<StreamlineBatch> older = whole_answer(*streams[i]);
    if (older) continue;  // it was done before the next one came
    ++superseded;
    EXPECT_TRUE(testing::fails_with(older, ErrorKind::interrupted, "newer request"));
  }
  EXPECT_GT(superseded, 0u);
  // One that is under way: it has more batches than may wait for a reader.
  Question longer = subject.question(0);
  while (longer.seeds.size() < 480) longer.seeds.insert(longer.seeds.end(), subject.seeds.begin(), subject.seeds.end());
  ASSERT_OK_AND_ASSIGN(const auto under_way, actors.ask(longer.view(7)));
  ASSERT_OK_AND_ASSIGN(const auto begun, under_way->next());
  EXPECT_TRUE(begun.has_value());
  ASSERT_OK_AND_ASSIGN(const auto newer, actors.ask(subject.question(1).view(7)));
  EXPECT_TRUE(testing::fails_with(end_of(*under_way), ErrorKind::interrupted, "newer request"));
  ASSERT_OK_AND_ASSIGN(const StreamlineBatch of_newer, whole_answer(*newer));
  EXPECT_TRUE(test::same_batch(of_newer, subject.question(1).truth(pool)));
  ASSERT_OK_AND_ASSIGN(const StreamlineBatch of_other, whole_answer(*other_channel));
  EXPECT_TRUE(test::same_batch(of_other, apart.truth(pool)));
}

void expect_refusals(TrackingActors& actors, const Subject& subject, ThreadPool& pool) {
  const auto refused = [&](const TrackingQuestion& question, std::string_view text) {
    auto stream = actors.ask(question);
    if (!stream) {
      EXPECT_TRUE(testing::fails_with(stream, ErrorKind::invalid_argument, text));
    } else {
      EXPECT_TRUE(testing::fails_with(whole_answer(**stream), ErrorKind::invalid_argument, text));
    }
  };
  const Question question = subject.question(0);
  TrackingQuestion tensor = question.view();
  tensor.plan.getter = static_cast<std::uint32_t>(Getter::tensor);
  refused(tensor, "needs a tensor field");
  TrackingQuestion grid = question.view();
  ++grid.plan.size.y;
  refused(grid, "the plan is for");
  TrackingQuestion directions = question.view();
  const std::vector<numerics::Vec3> one(1);
  directions.directions = one;
  refused(directions, "initial directions");
  TrackingQuestion none = question.view();
  none.seeds = {};
  ASSERT_OK_AND_ASSIGN(const auto empty, actors.ask(none));
  ASSERT_OK_AND_ASSIGN(const StreamlineBatch nothing, whole_answer(*empty));
  EXPECT_EQ(nothing.streamline_count(), 0u);
  ASSERT_OK_AND_ASSIGN(const auto stream, actors.ask(question.view()));
  ASSERT_OK_AND_ASSIGN(const StreamlineBatch batch, whole_answer(*stream));
  EXPECT_TRUE(test::same_batch(batch, question.truth(pool)));
}

class TrackingActorOn : public testing::EachTracker {
 protected:
  [[nodiscard]] std::uint32_t seeds() const { return is_emulated() ? 20 : 100; }
  [[nodiscard]] Subject series() {
    return make_subject(Getter::prob, 8, "mirror321", {Getter::prob, Getter::det}, seeds(), is_emulated(), pool());
  }
  [[nodiscard]] std::unique_ptr<TrackingActors> start(ring::Runtime& runtime, const Subject& subject) {
    // Small batches, so that there are several.
    auto session = TrackingSession::open(device(), pool(), subject.field, subject.question(0).plan,
                                         {.first_batch_seconds = 0, .batch_seconds = 0});
    EXPECT_TRUE(session) << testing::message_of(session);
    auto actors = start_tracking_actor(runtime, "track", *session);
    EXPECT_TRUE(actors) << testing::message_of(actors);
    return std::move(*actors);
  }
};

TEST_P(TrackingActorOn, has_the_bits_of_a_fresh_tracker_for_every_getter) {
  for (const Subject& subject : every_kind(seeds(), is_emulated(), pool())) {
    const auto runtime = ring::Runtime::create().value();
    const auto actors = start(*runtime, subject);
    expect_bits_of_the_cpu(*actors, subject, static_cast<std::uint32_t>(subject.getters.size()) + 1, pool());
    EXPECT_EQ(runtime->buffers().statistics().live, 0u) << "every buffer was given back";
  }
}

TEST_P(TrackingActorOn, answers_several_askers_cancels_one_alone_and_lets_the_newest_win) {
  const Subject subject = series();
  const auto runtime = ring::Runtime::create().value();
  {
    const auto actors = start(*runtime, subject);
    expect_bits_of_several_at_once(*actors, subject, is_emulated() ? 1 : 4, pool());
    expect_cancelling_one_alone(*actors, subject, pool());
    expect_newest_of_a_channel(*actors, subject, pool());
    expect_refusals(*actors, subject, pool());
    // One that is given up with answers unread, and one that outlives its
    // actor.
    { ASSERT_OK_AND_ASSIGN(const auto given_up, actors->ask(subject.question(2).view())); }
    EXPECT_EQ(runtime->buffers().statistics().live, 0u);
  }
  EXPECT_TRUE(runtime->names().empty());
}
CGL_FOR_EACH_DEVICE(TrackingActorOn);

using EmulatedTracking = ring::EmulatedBackend<ResidentTrackingBody<ThreadGroups>>;

struct EmulatedSetting {
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(2).value();
  std::unique_ptr<CpuDevice> device = CpuDevice::create(1).value();

  [[nodiscard]] std::unique_ptr<TrackingActors> start(const Subject& subject, ResidentTrackingOptions options) {
    options.lanes = 32;
    auto actors = start_resident_tracking(
        *device, std::make_unique<EmulatedTracking>(std::vector<std::string>{resident_tracking_body}), subject.field,
        subject.question(0).plan, options);
    EXPECT_TRUE(actors) << testing::message_of(actors);
    return actors ? std::move(*actors) : nullptr;
  }
};

TEST(ResidentTracking, has_the_bits_of_a_fresh_tracker_for_every_getter) {
  EmulatedSetting setting;
  for (const Subject& subject : every_kind(40, true, *setting.pool)) {
    const auto actors = setting.start(subject, {.actors = 3});
    ASSERT_NE(actors, nullptr);
    expect_bits_of_the_cpu(*actors, subject, static_cast<std::uint32_t>(subject.getters.size()) + 4, *setting.pool);
  }
  EXPECT_EQ(setting.device->budget().used_bytes(), 0u);
}

// Pages for a streamline or two, buffers for a few: chunks are asked for again
// and again.
TEST(ResidentTracking, goes_on_where_pages_or_a_buffer_are_too_small_for_a_chunk) {
  EmulatedSetting setting;
  const Subject subject =
      make_subject(Getter::prob, 8, "mirror321", {Getter::prob, Getter::closest}, 40, true, *setting.pool);
  const TrackingPlan plan = subject.question(0).plan;
  const std::uint32_t pages = 2 * (plan.max_steps / kernel::page_points + 1);
  const std::uint64_t bytes = tracked_part_bytes(1, 2 * std::uint64_t{plan.max_steps} + 1);
  for (const bool short_of_pages : {true, false}) {
    SCOPED_TRACE(short_of_pages ? "pages" : "buffers");
    ResidentTrackingOptions options{.actors = 2};
    (short_of_pages ? options.most_pages : options.requests) = short_of_pages ? pages : 2;
    if (!short_of_pages) options.part_bytes = bytes;
    const auto actors = setting.start(subject, options);
    ASSERT_NE(actors, nullptr);
    expect_bits_of_the_cpu(*actors, subject, 4, *setting.pool);
    TrackingQuestion longer = subject.question(0).view();
    longer.plan.max_steps += 64;
    EXPECT_TRUE(testing::fails_with(actors->ask(longer), ErrorKind::invalid_argument, "more than the buffers"));
  }
}

TEST(ResidentTracking, answers_several_askers_cancels_one_alone_and_lets_the_newest_win) {
  EmulatedSetting setting;
  const Subject subject =
      make_subject(Getter::prob, 8, "mirror321", {Getter::prob, Getter::det}, 40, true, *setting.pool);
  const auto actors = setting.start(subject, {.actors = 2, .most_request_seeds = 600, .requests = 12});
  ASSERT_NE(actors, nullptr);
  expect_bits_of_several_at_once(*actors, subject, 3, *setting.pool);
  expect_cancelling_one_alone(*actors, subject, *setting.pool);
  expect_newest_of_a_channel(*actors, subject, *setting.pool);
  expect_refusals(*actors, subject, *setting.pool);
  { ASSERT_OK_AND_ASSIGN(const auto given_up, actors->ask(subject.question(2).view())); }
  const std::vector<numerics::Vec3> many(601);
  TrackingQuestion question = subject.question(0).view();
  question.seeds = many;
  EXPECT_TRUE(testing::fails_with(actors->ask(question), ErrorKind::invalid_argument, "at most"));
}

class ResidentTrackingOn : public TrackingActorOn {
 protected:
  [[nodiscard]] std::unique_ptr<TrackingActors> start_resident(const Subject& subject,
                                                               const ResidentTrackingOptions& options = {}) {
    auto actors = start_cuda_tracking(device(), subject.field, subject.question(0).plan, options);
    EXPECT_TRUE(actors) << testing::message_of(actors);
    return actors ? std::move(*actors) : nullptr;
  }
};

TEST_P(ResidentTrackingOn, has_the_bits_of_track_for_every_getter) {
  for (const Subject& subject : every_kind(300, false, pool())) {
    const auto actors = start_resident(subject);
    ASSERT_NE(actors, nullptr);
    expect_bits_of_the_cpu(*actors, subject, 2 * static_cast<std::uint32_t>(subject.getters.size()) + 3, pool());
  }
}

TEST_P(ResidentTrackingOn, answers_several_askers_cancels_one_alone_and_lets_the_newest_win) {
  const Subject subject = make_subject(Getter::prob, 8, "mirror321", {Getter::prob, Getter::det}, 2000, false, pool());
  const auto actors = start_resident(subject, {.actors = 8, .requests = 12});
  ASSERT_NE(actors, nullptr);
  expect_bits_of_several_at_once(*actors, subject, 4, pool());
  expect_cancelling_one_alone(*actors, subject, pool());
  expect_newest_of_a_channel(*actors, subject, pool());
  expect_refusals(*actors, subject, pool());
}

TEST_P(ResidentTrackingOn, goes_on_where_pages_are_too_few_for_a_chunk) {
  const Subject subject = make_subject(Getter::prob, 8, "mirror321", {Getter::prob}, 300, true, pool());
  const std::uint32_t pages = 2 * (subject.question(0).plan.max_steps / kernel::page_points + 1);
  const auto actors = start_resident(subject, {.actors = 4, .most_pages = pages});
  ASSERT_NE(actors, nullptr);
  expect_bits_of_the_cpu(*actors, subject, 4, pool());
}
CGL_FOR_DEVICES(ResidentTrackingOn, "cuda");

// The bytes of requests and parts that are too short are told, not read.
TEST(TrackedParts, that_are_cut_short_are_refused) {
  StreamlineBatch batch;
  batch.seeds = {5, 2};
  batch.offsets = {0, 2, 3};
  batch.points = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  batch.seed_index = {5, 6};
  batch.seed_point = {1, 0};
  batch.end_reason = {1, 2, 0, 4};
  batch.steps = 9;
  batch.seeds_outside = 1;
  std::vector<std::byte> bytes(bytes_of_part(batch));
  write_part(batch, bytes);
  StreamlineBatch read;
  ASSERT_OK(read_part(bytes, read));
  EXPECT_TRUE(test::same_batch(read, batch));
  EXPECT_EQ(read.seeds.first, 5u);
  EXPECT_EQ(read.seeds.count, 2u);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    StreamlineBatch none;
    EXPECT_TRUE(testing::fails_with(read_part(std::span(bytes).first(size), none), ErrorKind::corrupt, "too short"));
  }
  // Lines of other lengths than the points there.
  bytes[sizeof(TrackedPartHead) + offsetof(TrackedLine, points)] = std::byte{1};
  StreamlineBatch none;
  EXPECT_TRUE(testing::fails_with(read_part(bytes, none), ErrorKind::corrupt, "streamlines of 2 points"));

  const std::vector<numerics::Vec3> seeds(3);
  const TrackingQuestion question{.plan = {}, .seeds = seeds, .directions = seeds, .channel = 4};
  std::vector<std::byte> request(bytes_of_request(question));
  write_request(question, request);
  ASSERT_OK_AND_ASSIGN(const TrackingRequestHead head, read_request_head(request));
  EXPECT_EQ(head.seeds, 3u);
  EXPECT_EQ(head.channel, 4u);
  for (std::size_t size = 0; size < request.size(); ++size) {
    EXPECT_FALSE(read_request_head(std::span(request).first(size)));
  }
}

}  // namespace
}  // namespace cingulum::tracking_actors_tests
