#include "tract/run/seed_sharing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/interrupt.hpp"

namespace cingulum {
namespace {

// One streamline of one point per seed, which is the seed's number; slow or failing as told.
class FakeTracker final : public Tracker {
 public:
  explicit FakeTracker(std::uint32_t callers = 1) : callers_(callers) {}

  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] TrackerHints hints() const override { return {.callers = callers_, .first_range = 16}; }
  [[nodiscard]] Status supports(const TrackingPlan&, const Field&) const override { return {}; }
  [[nodiscard]] Status prepare(const TrackingPlan&, const Field&, const Seeds&, const GivenDirections*) override {
    return {};
  }
  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) override {
    const std::uint32_t now = ++inside;
    std::uint32_t most = most_inside;
    while (now > most && !most_inside.compare_exchange_weak(most, now)) {
    }
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    if (calls == 0) std::this_thread::sleep_for(first_delay);
    --inside;
    CGL_TRY(cancel.check());
    const std::uint32_t call = ++calls;
    if (call == fail_at_call) return fail(ErrorKind::device, "the device is gone");
    batch = {};
    batch.seeds = range;
    for (std::uint64_t i = 0; i < range.count; ++i) {
      batch.seed_index.push_back(range.first + i);
      batch.offsets.push_back(i + 1);
      batch.points.insert(batch.points.end(), 3, static_cast<float>(range.first + i));
    }
    return {};
  }

  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds first_delay{0};  // and more in the first call
  std::uint32_t fail_at_call = 0;
  std::atomic<std::uint32_t> calls = 0;
  std::atomic<std::uint32_t> inside = 0;
  std::atomic<std::uint32_t> most_inside = 0;

 private:
  std::uint32_t callers_;
};

// Takes all batches and returns the seeds in the order in which they came; stops at a failure.
std::vector<std::uint64_t> drain(SeedSharing& sharing, std::string* failure = nullptr) {
  std::vector<std::uint64_t> seeds;
  for (;;) {
    auto received = sharing.next();
    if (!received) {
      if (failure != nullptr) *failure = received.error().message();
      break;
    }
    if (!*received) break;
    seeds.insert(seeds.end(), (*received)->seed_index.begin(), (*received)->seed_index.end());
    sharing.give_back(std::move(*received));
  }
  return seeds;
}

std::vector<std::uint64_t> first_seeds(std::uint64_t count) {
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t i = 0; i < count; ++i) seeds.push_back(i);
  return seeds;
}

TEST(SeedSharing, batches_come_in_order_from_any_mix) {
  for (const std::uint64_t chunk : {1u, 7u, 64u, 100000u}) {
    for (const bool fixed : {false, true}) {
      for (const bool overlap : {false, true}) {
        FakeTracker a, b(3), c;
        Tracker* const all[] = {&a, &b, &c};
        for (std::size_t count = 1; count <= 3; ++count) {
          const auto sharing = SeedSharing::start(
              std::span(all).first(count), {.total = 1234, .chunk = chunk, .fixed_chunks = fixed, .overlap = overlap});
          ASSERT_TRUE(sharing);
          EXPECT_EQ(drain(**sharing), first_seeds(1234));
          std::uint64_t taken = 0;
          for (const std::uint64_t seeds : (*sharing)->seeds_of_trackers()) taken += seeds;
          EXPECT_EQ(taken, 1234u);
        }
      }
    }
  }
}

TEST(SeedSharing, a_slow_tracker_takes_less_and_the_order_stays) {
  FakeTracker fast, slow;
  fast.delay = std::chrono::milliseconds(1);
  slow.delay = std::chrono::milliseconds(60);
  Tracker* const both[] = {&slow, &fast};
  const auto sharing = SeedSharing::start(both, {.total = 600, .chunk = 4, .fixed_chunks = true});
  ASSERT_TRUE(sharing);
  EXPECT_EQ(drain(**sharing), first_seeds(600));
  const std::vector<std::uint64_t> taken = (*sharing)->seeds_of_trackers();
  EXPECT_GT(taken[1], 4 * taken[0]);
  EXPECT_GT(taken[0], 0u);
}

// Sleeping longer than told makes no range larger.
TEST(SeedSharing, ranges_that_took_long_enough_do_not_grow_at_one_that_was_a_little_quick) {
  FakeTracker tracker;
  tracker.delay = std::chrono::milliseconds(130);
  tracker.first_delay = std::chrono::milliseconds(130);
  Tracker* const alone[] = {&tracker};
  const auto sharing = SeedSharing::start(alone, {.total = 64});
  ASSERT_TRUE(sharing);
  EXPECT_EQ(drain(**sharing), first_seeds(64));
  EXPECT_GE(tracker.calls, 4u);
}

TEST(SeedSharing, a_tracker_is_called_by_as_many_threads_as_it_likes) {
  FakeTracker tracker(3);
  tracker.delay = std::chrono::milliseconds(5);
  Tracker* const alone[] = {&tracker};
  const auto sharing = SeedSharing::start(alone, {.total = 300, .chunk = 10, .fixed_chunks = true});
  ASSERT_TRUE(sharing);
  EXPECT_EQ(drain(**sharing), first_seeds(300));
  EXPECT_EQ(tracker.most_inside, 3u);
}

TEST(SeedSharing, a_failure_names_the_device_and_comes_after_the_batches_before_it) {
  FakeTracker good, bad;
  good.delay = std::chrono::milliseconds(2);
  bad.delay = std::chrono::milliseconds(2);
  bad.fail_at_call = 3;
  Tracker* const both[] = {&good, &bad};
  const auto sharing = SeedSharing::start(both, {.total = 100000, .chunk = 10, .fixed_chunks = true});
  ASSERT_TRUE(sharing);
  std::string failure;
  const std::vector<std::uint64_t> seeds = drain(**sharing, &failure);
  EXPECT_EQ(failure, "fake: the device is gone");
  EXPECT_EQ(seeds, first_seeds(seeds.size()));
  EXPECT_LT(seeds.size(), 100000u);
  EXPECT_GE(seeds.size(), 20u);
}

TEST(SeedSharing, nothing_is_tracked_after_a_failure) {
  FakeTracker tracker(2);
  tracker.delay = std::chrono::milliseconds(20);
  tracker.fail_at_call = 3;
  Tracker* const alone[] = {&tracker};
  const auto sharing = SeedSharing::start(alone, {.total = 1000, .chunk = 1, .fixed_chunks = true});
  ASSERT_TRUE(sharing);
  // No batch is given back: with three ranges out, the other thread waits for room while the third fails.
  std::vector<std::unique_ptr<StreamlineBatch>> kept;
  auto received = (*sharing)->next();
  for (; received; received = (*sharing)->next()) kept.push_back(std::move(*received));
  EXPECT_EQ(received.error().message(), "the device is gone");
  EXPECT_EQ(tracker.calls, 3u);
}

TEST(SeedSharing, memory_is_bounded_when_the_caller_is_slow) {
  FakeTracker tracker(2);
  Tracker* const alone[] = {&tracker};
  const auto sharing = SeedSharing::start(alone, {.total = 1000, .chunk = 1, .fixed_chunks = true});
  ASSERT_TRUE(sharing);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(tracker.calls, 3u);
  EXPECT_EQ(drain(**sharing), first_seeds(1000));
}

TEST(SeedSharing, ending_early_waits_for_the_trackers_and_leaves_the_rest) {
  FakeTracker tracker(2);
  tracker.delay = std::chrono::milliseconds(1);
  Tracker* const alone[] = {&tracker};
  {
    auto sharing = SeedSharing::start(alone, {.total = 1000000, .chunk = 1, .fixed_chunks = true});
    ASSERT_TRUE(sharing);
    auto batch = (*sharing)->next();
    ASSERT_TRUE(batch && *batch);
    EXPECT_EQ((*batch)->seed_index.front(), 0u);
  }
  EXPECT_EQ(tracker.inside, 0u);
  EXPECT_LT(tracker.calls, 10u);
}

TEST(SeedSharing, an_interrupt_ends_it) {
  FakeTracker a, b;
  Tracker* const both[] = {&a, &b};
  request_interrupt();
  const auto sharing = SeedSharing::start(both, {.total = 100, .chunk = 10});
  ASSERT_TRUE(sharing);
  const auto received = (*sharing)->next();
  clear_interrupt();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().kind(), ErrorKind::interrupted);
}

}  // namespace
}  // namespace cingulum
