#include "tract/run/tracking_batches.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "support/analytic_field.hpp"
#include "support/analytic_tracker.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum {
namespace {

using namespace std::chrono_literals;
using test::AnalyticTracker;
using test::geometry;
using test::MemoryWriter;
using test::positions_of;
using test::some_seeds;

std::size_t threads_of_this_process() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

Result<TrackingStatistics> pull_all(Tracker& tracker, const Seeds& seeds, const TrackingRunOptions& options,
                                    MemoryWriter& to) {
  Tracker* const alone[] = {&tracker};
  CGL_TRY_ASSIGN(const auto batches, TrackingBatches::start(alone, seeds, geometry(), options));
  for (;;) {
    CGL_TRY_ASSIGN(const TractogramBatch* batch, batches->next());
    if (batch == nullptr) break;
    EXPECT_GT(batch->streamline_count(), 0u);
    CGL_TRY(to.append(*batch));
  }
  CGL_TRY_ASSIGN(const TractogramBatch* again, batches->next());
  EXPECT_EQ(again, nullptr) << "the end stays the end";
  return batches->statistics();
}

// The thread that writes a batch may still be at it while the next one is made, and ranges between keep nothing.
TEST(tracking_batches, a_batch_stays_as_it_is_until_the_next_call_but_one) {
  const auto seeds = some_seeds(300);
  for (const auto& [linearise_mm, late] : {std::pair{0.0, false}, {0.5, false}, {0.0, true}}) {
    for (const std::uint64_t chunk : {1u, 2u, 5u}) {
      AnalyticTracker tracker(*seeds);
      Tracker* const alone[] = {&tracker};
      TrackingRunOptions options;
      options.chunk_seeds = chunk;
      options.fixed_chunks = true;
      options.linearise_mm = linearise_mm;
      options.late_positions = late;
      options.selection.min_length_mm = 4;
      const auto batches = TrackingBatches::start(alone, *seeds, geometry(), options).value();
      const TractogramBatch* before = nullptr;
      TractogramBatch copy;
      std::size_t count = 0;
      while (const TractogramBatch* const batch = batches->next().value()) {
        if (before != nullptr) {
          ASSERT_NE(before, batch);
          ASSERT_EQ(before->offsets, copy.offsets) << count;
          ASSERT_EQ(positions_of(*before), copy.positions) << count;
        }
        before = batch;
        copy.offsets = batch->offsets;
        copy.positions = positions_of(*batch);
        ASSERT_EQ(batch->positions.empty(), late);
        ++count;
      }
      EXPECT_GT(count, 30u);
      if (chunk == 1) {
        EXPECT_LT(count, 200u);
      }
    }
  }
}

TEST(TrackingBatches, pulled_one_after_the_other_are_what_is_pushed_into_a_file) {
  const auto pool = ThreadPool::create(2).value();
  const auto seeds = some_seeds(3000);
  for (const bool overlap : {false, true}) {
    for (const std::uint64_t select : {0u, 700u}) {
      for (const bool wide : {false, true}) {
        TrackingRunOptions options;
        options.pool = pool.get();
        options.overlap = overlap;
        options.select = select;
        options.double_positions = wide;
        options.save_seeds = true;
        options.chunk_seeds = 130;
        options.selection.min_length_mm = 3;
        AnalyticTracker pushing(*seeds), pulling(*seeds);
        MemoryWriter pushed, pulled;
        const auto expected = run_tracking(pushing, *seeds, geometry(), options, pushed, nullptr);
        const auto found = pull_all(pulling, *seeds, options, pulled);
        ASSERT_TRUE(expected && found);
        EXPECT_EQ(pulled.offsets, pushed.offsets);
        EXPECT_EQ(pulled.positions, pushed.positions);
        EXPECT_EQ(pulled.positions64, pushed.positions64);
        EXPECT_EQ(pulled.data, pushed.data);
        EXPECT_EQ(found->kept, expected->kept);
        EXPECT_EQ(found->seeds, expected->seeds);
        EXPECT_EQ(found->points_written, expected->points_written);
        EXPECT_EQ(found->select_reached, expected->select_reached);
        EXPECT_EQ(pulled.offsets.size(), found->kept + 1);
      }
    }
  }
}

TEST(TrackingBatches, are_bounded_by_the_chunk_and_go_ahead_by_a_window_only) {
  const auto seeds = some_seeds(100000);
  AnalyticTracker tracker(*seeds);
  Tracker* const alone[] = {&tracker};
  TrackingRunOptions options;
  options.chunk_seeds = 10;
  options.fixed_chunks = true;
  const auto batches = TrackingBatches::start(alone, *seeds, geometry(), options).value();
  const TractogramBatch* const batch = batches->next().value();
  ASSERT_NE(batch, nullptr);
  EXPECT_LE(batch->streamline_count(), 20u);
  std::this_thread::sleep_for(20ms);
  EXPECT_LE(tracker.calls, 3) << "nobody asks for more";
}

TEST(TrackingBatches, dropped_in_the_middle_end_soon_and_leave_no_thread) {
  const std::size_t threads_before = threads_of_this_process();
  const auto seeds = some_seeds(100000);
  for (const bool after_one : {false, true}) {
    AnalyticTracker tracker(*seeds);
    Tracker* const alone[] = {&tracker};
    TrackingRunOptions options;
    options.chunk_seeds = 100;
    options.fixed_chunks = true;
    tracker.delay = 1h;
    tracker.slow_from_call = after_one ? 2 : 1;
    auto batches = TrackingBatches::start(alone, *seeds, geometry(), options).value();
    if (after_one) {
      ASSERT_NE(batches->next().value(), nullptr);
    }
    while (tracker.calls < tracker.slow_from_call) std::this_thread::sleep_for(1ms);
    const auto begin = std::chrono::steady_clock::now();
    batches.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    EXPECT_EQ(threads_of_this_process(), threads_before);
  }
}

TEST(TrackingBatches, a_failure_in_a_tracker_comes_out_behind_what_was_finished_and_stays) {
  const auto seeds = some_seeds(1000);
  AnalyticTracker tracker(*seeds);
  tracker.fail_at_call = 3;
  Tracker* const alone[] = {&tracker};
  TrackingRunOptions options;
  options.chunk_seeds = 100;
  options.fixed_chunks = true;
  const auto batches = TrackingBatches::start(alone, *seeds, geometry(), options).value();
  ASSERT_NE(batches->next().value(), nullptr);
  ASSERT_NE(batches->next().value(), nullptr);
  for (int i = 0; i < 2; ++i) {
    const auto failed = batches->next();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind(), ErrorKind::device);
    EXPECT_EQ(failed.error().message(), "the device is gone");
  }
  EXPECT_EQ(batches->statistics().seeds, 200u);
}

// Two runs at the same time, of which the first is cancelled in its middle.
template <class Run>
void expect_one_cancelled_and_the_other_whole(Run&& run) {
  CancelSource first, second;
  Result<TrackingStatistics> cancelled, whole;
  std::thread one([&] { cancelled = run(first.token(), [&] { first.cancel(); }); });
  std::thread other([&] { whole = run(second.token(), [] {}); });
  one.join();
  other.join();
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().kind(), ErrorKind::interrupted);
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_FALSE(whole->interrupted);
  EXPECT_GT(whole->kept, 100u);
}

// Calls `then` at the first batch.
class TellingWriter final : public TractogramWriter {
 public:
  explicit TellingWriter(std::function<void()> then) : then_(std::move(then)) {}
  [[nodiscard]] Status append(const TractogramBatch&) override {
    then_();
    return {};
  }
  [[nodiscard]] Status add_group(TractogramGroup) override { return {}; }
  [[nodiscard]] Status commit() override { return {}; }

 private:
  std::function<void()> then_;
};

TEST(TrackingBatches, of_two_runs_in_one_process_one_can_be_cancelled) {
  const auto seeds = some_seeds(2000);
  expect_one_cancelled_and_the_other_whole([&](CancelToken cancel, std::function<void()> at_first_batch) {
    AnalyticTracker tracker(*seeds);
    tracker.delay = 2ms;
    TrackingRunOptions options;
    options.chunk_seeds = 50;
    options.fixed_chunks = true;
    options.cancel = std::move(cancel);
    TellingWriter writer(std::move(at_first_batch));
    return run_tracking(tracker, *seeds, geometry(), options, writer, nullptr);
  });
}

TEST(TrackingBatches, of_two_runs_on_one_cpu_pool_one_can_be_cancelled) {
  const ImageGeometry grid = test::grid(20, 20, 20);
  const Field field = test::tensor_field(grid, [](numerics::Vec3d) { return numerics::Vec3d{1, 0, 0}; });
  const TrackingPlan plan = make_tracking_plan({.getter = Getter::tensor, .step_mm = 0.1}, grid).value();
  const std::vector<std::uint8_t> mask(20 * 20 * 20, 1);
  const auto seeds = random_seeds(grid, mask, 20000, numerics::philox_key(5)).value();
  const auto pool = ThreadPool::create(2).value();
  expect_one_cancelled_and_the_other_whole(
      [&](CancelToken cancel, std::function<void()> at_first_batch) -> Result<TrackingStatistics> {
        const auto tracker = make_cpu_tracker(*pool);
        CGL_TRY(tracker->prepare(plan, field, *seeds, nullptr));
        TrackingRunOptions options;
        options.pool = pool.get();
        options.chunk_seeds = 100;
        options.fixed_chunks = true;
        options.cancel = std::move(cancel);
        TellingWriter writer(std::move(at_first_batch));
        return run_tracking(*tracker, *seeds, grid, options, writer, nullptr);
      });
}

TEST(TrackingBatches, a_cpu_tracker_goes_on_after_a_cancelled_range) {
  const ImageGeometry grid = test::grid(20, 20, 20);
  const Field field = test::tensor_field(grid, [](numerics::Vec3d) { return numerics::Vec3d{1, 0, 0}; });
  const TrackingPlan plan = make_tracking_plan({.getter = Getter::tensor}, grid).value();
  const std::vector<std::uint8_t> mask(20 * 20 * 20, 1);
  const auto seeds = random_seeds(grid, mask, 100, numerics::philox_key(5)).value();
  const auto pool = ThreadPool::create(2).value();
  const auto tracker = make_cpu_tracker(*pool);
  ASSERT_TRUE(tracker->prepare(plan, field, *seeds, nullptr));
  CancelSource source;
  source.cancel();
  StreamlineBatch batch;
  EXPECT_EQ(tracker->track({0, 100}, batch, source.token()).error().kind(), ErrorKind::interrupted);
  ASSERT_TRUE(tracker->track({0, 100}, batch));
  EXPECT_EQ(batch.streamline_count(), 100u);
}

}  // namespace
}  // namespace cingulum
