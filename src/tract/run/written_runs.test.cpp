// Whole runs into files: tracker, finisher and writer together, by one thread and by many, into a disk's files and into
// files in memory. The bytes are the same; what fails or is interrupted in the middle leaves nothing.
#include <gtest/gtest.h>

#include "support/analytic_tracker.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum {
namespace written_runs_tests {

using test::AnalyticTracker;
using test::geometry;
using test::InterruptGuard;
using test::some_seeds;

struct Form {
  const char* name;
  bool float16 = false;
  double linearise_mm = 0;
  bool save_seeds = false;
};

struct Way {
  ThreadPool* pool = nullptr;
  bool in_memory = false;
  bool overlap = true;
};

Result<TrackingStatistics> write_run(const std::filesystem::path& file, const Form& form, const Way& way,
                                     TrackingRunOptions options, const Seeds& seeds, AnalyticTracker& tracker,
                                     FaultyFileLayer& layer) {
  if (way.in_memory) layer.put_into_memory();
  layer.skip_real_syncs();
  options.pool = way.pool;
  options.overlap = way.overlap;
  options.fixed_chunks = true;
  options.double_positions = form.float16;
  options.linearise_mm = form.linearise_mm;
  options.save_seeds = form.save_seeds;
  TractogramLayout layout;
  CGL_TRY_ASSIGN(layout.format, format_of_name(file));
  layout.reference = geometry();
  layout.position_type = form.float16 ? ElementType{ElementType::Code::floating, 16} : element_type_of<float>();
  if (form.save_seeds) layout.streamline_fields = seed_fields(seeds.count());
  CGL_TRY_ASSIGN(const auto writer,
                 TractogramWriter::create(file, layout, {.force = true, .layer = &layer, .pool = way.pool}));
  CGL_TRY_ASSIGN(TrackingStatistics statistics, run_tracking(tracker, seeds, geometry(), options, *writer, nullptr));
  CGL_TRY(writer->commit());
  return statistics;
}

constexpr Form forms[] = {{.name = "a.trx", .save_seeds = true},
                          {.name = "a.tck"},
                          {.name = "a.trk"},
                          {.name = "a.trx", .float16 = true, .linearise_mm = 0.2, .save_seeds = true},
                          {.name = "a.trx", .linearise_mm = 1},
                          {.name = "a.trx.d"}};

std::string content_of(const TemporaryFolder& folder, const std::string& name) {
  if (!std::filesystem::is_directory(folder / name)) return folder.content(name);
  std::string all;
  for (const char* const part : {"header.json", "positions.3.float32", "offsets.uint64"}) {
    all += folder.content(name + "/" + part);
  }
  return all;
}

TEST(WrittenRuns, the_bytes_depend_on_neither_threads_chunks_nor_where_the_file_lies) {
  const auto pool = ThreadPool::create(4).value();
  // Enough for files that are written through maps, in one part or in many.
  const auto seeds = some_seeds(40000);
  TrackingRunOptions options;
  options.selection.min_length_mm = 8;  // most go, and with them all of many a chunk
  for (const Form& form : forms) {
    std::string expected;
    TrackingStatistics first;
    const auto run = [&](const Way& way, std::uint64_t chunk, bool must_map) {
      const TemporaryFolder folder;
      FaultyFileLayer layer;
      AnalyticTracker tracker(*seeds);
      options.chunk_seeds = chunk;
      const auto statistics = write_run(folder / form.name, form, way, options, *seeds, tracker, layer);
      ASSERT_TRUE(statistics) << statistics.error().message();
      const std::string found = content_of(folder, form.name);
      if (expected.empty()) {
        expected = found;
        first = *statistics;
        EXPECT_GT(first.kept, 3000u);
        EXPECT_GT(first.too_short, first.kept);
        return;
      }
      ASSERT_TRUE(found == expected) << form.name << ", chunks of " << chunk << ", in memory " << way.in_memory;
      EXPECT_EQ(statistics->points, first.points);
      EXPECT_EQ(statistics->points_written, first.points_written);
      EXPECT_EQ(statistics->seeds_with_streamlines, first.seeds_with_streamlines);
      EXPECT_EQ(statistics->lengths.mean_mm(), first.lengths.mean_mm());
      if (!must_map) return;
      EXPECT_TRUE(std::any_of(layer.trace().begin(), layer.trace().end(), [](const RecordedCall& call) {
        return call.call == FileCall::map;
      })) << form.name;
    };
    run({.pool = nullptr, .in_memory = false, .overlap = false}, 40000, false);
    for (const bool in_memory : {false, true}) {
      for (const std::uint64_t chunk : {7u, 777u, 15000u, 40000u}) {
        run({.pool = pool.get(), .in_memory = in_memory}, chunk, in_memory && chunk == 40000 && form.linearise_mm == 0);
      }
      run({.pool = nullptr, .in_memory = in_memory}, 5000, false);
    }
  }
}

TEST(WrittenRuns, select_that_is_reached_inside_a_chunk_ends_the_file_there) {
  const auto pool = ThreadPool::create(4).value();
  const auto seeds = some_seeds(0);
  TrackingRunOptions options;
  options.selection.min_length_mm = 9;
  options.select = 3001;
  for (const Form& form : forms) {
    std::string expected;
    for (const std::uint64_t chunk : {50000u, 4000u, 100u}) {
      for (const bool in_memory : {false, true}) {
        const TemporaryFolder folder;
        FaultyFileLayer layer;
        AnalyticTracker tracker(*seeds);
        options.chunk_seeds = chunk;
        const auto statistics =
            write_run(folder / form.name, form, {pool.get(), in_memory}, options, *seeds, tracker, layer);
        ASSERT_TRUE(statistics) << statistics.error().message();
        EXPECT_EQ(statistics->kept, 3001u);
        if (expected.empty()) expected = content_of(folder, form.name);
        ASSERT_TRUE(content_of(folder, form.name) == expected) << form.name << chunk;
      }
    }
  }
}

TEST(WrittenRuns, a_run_that_keeps_nothing_writes_an_empty_tractogram) {
  const auto pool = ThreadPool::create(4).value();
  const auto seeds = some_seeds(1000);
  TrackingRunOptions options;
  options.selection.min_length_mm = 1000;
  options.chunk_seeds = 100;
  for (const Form& form : forms) {
    for (const bool in_memory : {false, true}) {
      const TemporaryFolder folder;
      FaultyFileLayer layer;
      AnalyticTracker tracker(*seeds);
      const auto statistics =
          write_run(folder / form.name, form, {pool.get(), in_memory}, options, *seeds, tracker, layer);
      ASSERT_TRUE(statistics) << statistics.error().message();
      EXPECT_EQ(statistics->kept, 0u);
      const auto read = read_tractogram(folder / form.name);
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(read->streamlines.streamline_count(), 0u);
    }
  }
}

TEST(WrittenRuns, a_full_disk_at_any_call_ends_the_run_and_leaves_nothing) {
  const auto pool = ThreadPool::create(4).value();
  const auto seeds = some_seeds(20000);
  TrackingRunOptions options;
  options.chunk_seeds = 9000;
  for (const Form& form : {forms[0], forms[1], forms[2]}) {
    for (const bool in_memory : {false, true}) {
      std::size_t failures = 0;
      // Beyond the creation of the file, at which writing has not begun.
      for (std::size_t call = 6; failures < 6 && call < 60; ++call) {
        const TemporaryFolder folder;
        FaultyFileLayer layer({.at_call = call, .error = ENOSPC, .lasting = true});
        AnalyticTracker tracker(*seeds);
        const auto statistics =
            write_run(folder / form.name, form, {pool.get(), in_memory}, options, *seeds, tracker, layer);
        if (statistics) continue;
        ++failures;
        EXPECT_EQ(statistics.error().kind(), ErrorKind::io);
        EXPECT_NE(statistics.error().message().find("no space left"), std::string::npos)
            << statistics.error().message();
        EXPECT_EQ(folder.names(), std::vector<std::string>{}) << call;
      }
      EXPECT_GT(failures, 2u) << form.name << in_memory;
    }
  }
}

TEST(WrittenRuns, an_interrupt_in_the_middle_leaves_nothing_or_what_was_finished) {
  const InterruptGuard guard;
  const auto pool = ThreadPool::create(4).value();
  const auto seeds = some_seeds(20000);
  TrackingRunOptions options;
  options.chunk_seeds = 5000;
  for (const bool keep : {false, true}) {
    for (const bool in_memory : {false, true}) {
      const TemporaryFolder folder;
      FaultyFileLayer layer;
      AnalyticTracker tracker(*seeds);
      tracker.interrupt_at_call = 3;
      options.keep_partial = keep;
      const auto statistics =
          write_run(folder / "a.trx", forms[0], {pool.get(), in_memory}, options, *seeds, tracker, layer);
      clear_interrupt();
      EXPECT_EQ(statistics.has_value(), keep);
      if (!keep) {
        EXPECT_EQ(statistics.error().kind(), ErrorKind::interrupted);
        EXPECT_EQ(folder.names(), std::vector<std::string>{});
        continue;
      }
      EXPECT_EQ(statistics->seeds, 10000u);
      const auto reader = TractogramReader::open(folder / "a.trx").value();
      EXPECT_TRUE(reader->verify());
      EXPECT_EQ(static_cast<std::uint64_t>(reader->layout().streamline_count), statistics->kept);
    }
  }
}

}  // namespace written_runs_tests
}  // namespace cingulum
