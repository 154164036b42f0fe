#include "tract/run/tracking_run.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/interrupt.hpp"
#include "support/analytic_tracker.hpp"

namespace cingulum {
namespace {

using test::AnalyticTracker;
using test::geometry;
using test::InterruptGuard;
using test::MemoryWriter;
using test::some_seeds;
using test::step_mm;

template <class T>
T value_at(const std::vector<std::byte>& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

TEST(tracking_run, the_result_does_not_depend_on_chunks_overlap_or_threads) {
  const auto pool = ThreadPool::create(3).value();
  const auto seeds = some_seeds(5000);
  TrackingRunOptions options;
  options.save_seeds = true;
  options.selection.min_length_mm = 2;
  options.selection.tolerance_mm = 1e-3 * step_mm;
  options.chunk_seeds = 5000;
  options.overlap = false;
  MemoryWriter reference;
  AnalyticTracker tracker(*seeds);
  const auto expected = run_tracking(tracker, *seeds, geometry(), options, reference, nullptr).value();
  EXPECT_EQ(expected.seeds, 5000u);
  EXPECT_EQ(expected.streamlines, 1667u * 1 + 1666u * 2);
  EXPECT_EQ(expected.seeds_outside, 1667u);
  EXPECT_GT(expected.too_short, 0u);
  EXPECT_EQ(expected.kept + expected.too_short, expected.streamlines);
  for (const std::uint64_t chunk : {1u, 7u, 64u, 999u, 4999u, 100000u}) {
    for (const bool overlap : {false, true}) {
      for (const bool fixed : {false, true}) {
        options.chunk_seeds = chunk;
        options.overlap = overlap;
        options.fixed_chunks = fixed;
        options.pool = fixed ? pool.get() : nullptr;
        // A writer that makes positions itself gets the same, unless they are not to be had so.
        for (const bool wide : {false, true}) {
          options.double_positions = wide;
          MemoryWriter making;
          making.makes = true;
          ASSERT_TRUE(run_tracking(tracker, *seeds, geometry(), options, making, nullptr));
          EXPECT_EQ(making.made_batches > 0, !wide);
          ASSERT_EQ(making.offsets, reference.offsets) << chunk;
          ASSERT_EQ(wide ? std::vector<float>(making.positions64.begin(), making.positions64.end()) : making.positions,
                    reference.positions)
              << chunk;
          ASSERT_EQ(making.data, reference.data) << chunk;
        }
        options.double_positions = false;
        MemoryWriter writer;
        const auto statistics = run_tracking(tracker, *seeds, geometry(), options, writer, nullptr).value();
        ASSERT_EQ(writer.offsets, reference.offsets) << chunk;
        ASSERT_EQ(writer.positions, reference.positions);
        ASSERT_EQ(writer.data, reference.data);
        EXPECT_EQ(statistics.end_reasons, expected.end_reasons);
        EXPECT_EQ(statistics.seeds_outside, expected.seeds_outside);
        EXPECT_EQ(statistics.lengths.quantile_mm(0.5), expected.lengths.quantile_mm(0.5));
        if (fixed && chunk < 5000) {
          EXPECT_LT(writer.largest_batch, chunk * 2 * 30 + 1);
        }
      }
    }
  }
}

TEST(tracking_run, select_gives_the_first_kept_streamlines_whatever_the_chunk) {
  const auto all_seeds = some_seeds(5000);
  TrackingRunOptions options;
  options.save_seeds = true;
  options.selection.min_length_mm = 6;
  options.overlap = false;
  MemoryWriter everything;
  AnalyticTracker tracker(*all_seeds);
  ASSERT_TRUE(run_tracking(tracker, *all_seeds, geometry(), options, everything, nullptr));
  const auto endless = some_seeds(0);
  for (const std::uint64_t wanted : {1u, 2u, 3u, 100u, 777u}) {
    std::uint64_t seeds_used = 0;
    for (const std::uint64_t chunk : {1u, 10u, 333u, 25000u}) {
      for (const bool overlap : {false, true}) {
        if (chunk == 1 && overlap) continue;
        options.select = wanted;
        options.chunk_seeds = chunk;
        options.overlap = overlap;
        AnalyticTracker endless_tracker(*endless);
        MemoryWriter writer;
        const auto statistics = run_tracking(endless_tracker, *endless, geometry(), options, writer, nullptr).value();
        EXPECT_TRUE(statistics.select_reached);
        EXPECT_EQ(statistics.kept, wanted);
        ASSERT_EQ(writer.offsets.size(), wanted + 1);
        for (std::size_t i = 0; i <= wanted; ++i) ASSERT_EQ(writer.offsets[i], everything.offsets[i]);
        ASSERT_TRUE(std::equal(writer.positions.begin(), writer.positions.end(), everything.positions.begin()));
        EXPECT_EQ(statistics.seeds, value_at<std::uint32_t>(writer.data[0], wanted - 1) + 1u);
        if (seeds_used != 0) {
          EXPECT_EQ(statistics.seeds, seeds_used);
        }
        seeds_used = statistics.seeds;
      }
    }
  }
}

TEST(tracking_run, select_gives_up_at_max_seeds_and_says_so) {
  const auto seeds = some_seeds(0);
  AnalyticTracker tracker(*seeds);
  TrackingRunOptions options;
  options.selection.min_length_mm = 400;
  options.select = 2;
  MemoryWriter writer;
  auto statistics = run_tracking(tracker, *seeds, geometry(), options, writer, nullptr).value();
  EXPECT_FALSE(statistics.select_reached);
  EXPECT_EQ(statistics.seeds, 2000u);
  options.max_seeds = 123;
  statistics = run_tracking(tracker, *seeds, geometry(), options, writer, nullptr).value();
  EXPECT_EQ(statistics.seeds, 123u);
  EXPECT_EQ(statistics.kept, 0u);
}

TEST(tracking_run, points_are_mapped_to_the_world_and_rounded_once) {
  const auto seeds = some_seeds(20);
  AnalyticTracker tracker(*seeds);
  TrackingRunOptions options;
  options.save_seeds = true;
  MemoryWriter writer;
  ASSERT_TRUE(run_tracking(tracker, *seeds, geometry(), options, writer, nullptr));
  StreamlineBatch batch;
  ASSERT_TRUE(tracker.track({0, 20}, batch));
  ASSERT_EQ(writer.positions.size(), batch.points.size());
  const Affine m = geometry().voxel_to_world;
  for (std::size_t i = 0; i < batch.points.size(); i += 3) {
    const auto world = m.apply({batch.points[i], batch.points[i + 1], batch.points[i + 2]});
    ASSERT_EQ(writer.positions[i], static_cast<float>(world.x));
    ASSERT_EQ(writer.positions[i + 1], static_cast<float>(world.y));
    ASSERT_EQ(writer.positions[i + 2], static_cast<float>(world.z));
  }
  for (std::size_t s = 0; s < batch.streamline_count(); ++s) {
    ASSERT_EQ(value_at<std::uint32_t>(writer.data[0], s), batch.seed_index[s]);
    const auto at = static_cast<std::size_t>(batch.offsets[s]) + batch.seed_point[s];
    for (std::size_t c = 0; c < 3; ++c) {
      ASSERT_EQ(value_at<float>(writer.data[1], 3 * s + c), writer.positions[3 * at + c]);
    }
    ASSERT_EQ(value_at<std::uint8_t>(writer.data[2], 2 * s), 1);
    ASSERT_EQ(value_at<std::uint8_t>(writer.data[2], 2 * s + 1), 3);
  }
}

TEST(tracking_run, an_interrupted_run_fails_unless_what_is_finished_counts) {
  const InterruptGuard guard;
  const auto seeds = some_seeds(1000);
  TrackingRunOptions options;
  options.chunk_seeds = 100;
  options.fixed_chunks = true;
  for (const bool overlap : {false, true}) {
    options.overlap = overlap;
    options.keep_partial = false;
    AnalyticTracker tracker(*seeds);
    tracker.interrupt_at_call = 4;
    MemoryWriter writer;
    const auto failed = run_tracking(tracker, *seeds, geometry(), options, writer, nullptr);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind(), ErrorKind::interrupted);
    clear_interrupt();

    options.keep_partial = true;
    AnalyticTracker again(*seeds);
    again.interrupt_at_call = 4;
    MemoryWriter partial;
    const auto statistics = run_tracking(again, *seeds, geometry(), options, partial, nullptr);
    ASSERT_TRUE(statistics);
    EXPECT_TRUE(statistics->interrupted);
    EXPECT_EQ(statistics->seeds, 300u);
    EXPECT_EQ(partial.offsets.size(), 1u + 100 + 2 * 100);
    clear_interrupt();
  }
}

TEST(tracking_run, failures_of_tracker_and_writer_end_the_run) {
  const auto seeds = some_seeds(1000);
  TrackingRunOptions options;
  options.chunk_seeds = 100;
  options.keep_partial = true;
  for (const bool overlap : {false, true}) {
    options.overlap = overlap;
    AnalyticTracker tracker(*seeds);
    tracker.fail_at_call = 2;
    MemoryWriter writer;
    EXPECT_EQ(run_tracking(tracker, *seeds, geometry(), options, writer, nullptr).error().kind(), ErrorKind::device);
    AnalyticTracker healthy(*seeds);
    writer.fail_append = true;
    EXPECT_EQ(run_tracking(healthy, *seeds, geometry(), options, writer, nullptr).error().kind(), ErrorKind::io);
  }
}

TEST(tracking_run, stop_regions_act_before_lengths_are_judged) {
  const auto seeds = some_seeds(300);
  AnalyticTracker tracker(*seeds);
  TrackingRunOptions options;
  std::vector<std::uint8_t> all(50 * 50 * 50, 1);
  for (std::size_t i = 0; i < all.size(); i += 2) all[i] = 0;  // every other voxel along x
  options.selection.regions.stop.push_back(Region::of_mask("stripes", geometry(), all, geometry()).value());
  options.selection.max_length_mm = 1.75 * 2;
  MemoryWriter writer;
  const auto statistics = run_tracking(tracker, *seeds, geometry(), options, writer, nullptr).value();
  EXPECT_GT(statistics.end_reasons[static_cast<std::size_t>(EndReason::stop_region)], 100u);
  EXPECT_GT(statistics.kept, 0u);
}

TEST(tracking_run, an_index_beyond_32_bits_is_written_in_64) {
  EXPECT_EQ(seed_fields(100)[0].type.bits, 32);
  EXPECT_EQ(seed_fields(std::uint64_t{1} << 32U)[0].type.bits, 32);
  EXPECT_EQ(seed_fields((std::uint64_t{1} << 32U) + 1)[0].type.bits, 64);
}

}  // namespace
}  // namespace cingulum
