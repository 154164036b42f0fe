#include "tract/run/tracking_batches.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/quantity.hpp"
#include "tract/run/finisher.hpp"
#include "tract/run/seed_sharing.hpp"

namespace cingulum {
namespace {

bool needs_wide_index(std::uint64_t seeds) {
  return seeds > std::uint64_t{std::numeric_limits<std::uint32_t>::max()} + 1;
}

std::string note_of(const TrackingStatistics& statistics, const TrackingRunOptions& options) {
  std::string note =
      fmt::format("{} streamlines, {} kept", format_count(statistics.streamlines), format_count(statistics.kept));
  if (options.select > 0) note += fmt::format(" of {}", format_count(options.select));
  return note;
}

}  // namespace

std::vector<DataField> seed_fields(std::uint64_t seeds) {
  const ElementType index =
      needs_wide_index(seeds) ? element_type_of<std::uint64_t>() : element_type_of<std::uint32_t>();
  return {{.name = "seed_index", .type = index, .columns = 1},
          {.name = "seed_point", .type = element_type_of<float>(), .columns = 3},
          {.name = "end_reason", .type = element_type_of<std::uint8_t>(), .columns = 2}};
}

std::uint64_t seeds_of_run(const Seeds& seeds, const TrackingRunOptions& options) {
  if (options.select == 0) return seeds.count();
  const std::uint64_t thousandfold =
      options.select > most_seeds / 1000 ? most_seeds : options.select * std::uint64_t{1000};
  return std::min(seeds.count(), options.max_seeds > 0 ? options.max_seeds : thousandfold);
}

// The tracker's batch is given back once it is finished, so that the next range can be tracked while the caller works
// on what was made of it. Without overlap, or where positions are made of the batch itself, only when the caller is
// done.
struct TrackingBatches::State {
  State(const ImageGeometry& geometry, const TrackingRunOptions& run_options, bool wide_index, Progress* observer)
      : options(run_options), progress(observer), finisher(geometry, run_options, wide_index, statistics) {}

  [[nodiscard]] Result<const TractogramBatch*> next() {
    add_since(statistics.writing_seconds);
    if (failure) return tl::make_unexpected(*failure);
    give_back_written();
    while (true) {
      tell_progress();
      if (!sharing) return nullptr;
      if (finisher.full()) return end();
      auto received = sharing->next();
      add_since(statistics.waiting_seconds);
      if (!received) {
        if (received.error().kind() == ErrorKind::interrupted && options.keep_partial) {
          statistics.interrupted = true;
          return end();
        }
        return fail_for_good(std::move(received.error()));
      }
      batch = std::move(*received);
      if (!batch) return end();
      statistics.steps += batch->steps;
      statistics.seeds_tracked += batch->seeds.count;
      statistics.seeds_outside += batch->seeds_outside;
      statistics.seeds_without_direction += batch->seeds_without_direction;
      if (Status finished = finisher.finish(*batch); !finished) return fail_for_good(std::move(finished.error()));
      finished_seeds = batch->seeds.count;
      add_since(statistics.finishing_seconds);
      const bool kept_some = finisher.kept().streamline_count() > 0;
      if (!kept_some || (options.overlap && !finisher.needs_batches())) sharing->give_back(std::move(batch));
      if (kept_some) return &finisher.kept();
    }
  }

  // The time since the last of these calls.
  void add_since(double& seconds) {
    const auto now = std::chrono::steady_clock::now();
    seconds += std::chrono::duration<double>(now - last_time).count();
    last_time = now;
  }

  // Called once by each next(): with overlap the caller may still write the last batch, and is done with the one
  // before.
  void give_back_written() {
    if (being_written && sharing) sharing->give_back(std::move(being_written));
    if (!batch) return;
    if (options.overlap) {
      being_written = std::move(batch);
    } else if (sharing) {
      sharing->give_back(std::move(batch));
    }
  }

  void tell_progress() {
    const std::uint64_t finished = std::exchange(finished_seeds, 0);
    if (progress == nullptr || finished == 0) return;
    progress->set_note(note_of(statistics, options));
    progress->advance(finished);
  }

  [[nodiscard]] const TractogramBatch* end() {
    statistics.tracking_seconds = sharing->tracking_seconds();
    statistics.seeds_of_trackers = sharing->seeds_of_trackers();
    statistics.select_reached = options.select == 0 || statistics.kept >= options.select;
    sharing.reset();
    return nullptr;
  }

  [[nodiscard]] tl::unexpected<Error> fail_for_good(Error error) {
    sharing.reset();
    failure = std::move(error);
    return tl::make_unexpected(*failure);
  }

  const TrackingRunOptions& options;
  Progress* const progress;
  TrackingStatistics statistics;
  Finisher finisher;
  std::unique_ptr<SeedSharing> sharing;  // null after the end
  std::unique_ptr<StreamlineBatch> batch;
  std::unique_ptr<StreamlineBatch> being_written;  // what was given out before `batch`
  std::chrono::steady_clock::time_point last_time = std::chrono::steady_clock::now();
  std::uint64_t finished_seeds = 0;  // of which the progress does not know yet
  std::optional<Error> failure;
};

TrackingBatches::TrackingBatches(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TrackingBatches::~TrackingBatches() = default;

Result<std::unique_ptr<TrackingBatches>> TrackingBatches::start(std::span<Tracker* const> trackers, const Seeds& seeds,
                                                                const ImageGeometry& geometry,
                                                                const TrackingRunOptions& options, Progress* progress) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TrackingBatches>> {
    std::uint64_t total = seeds_of_run(seeds, options);
    if (total > most_seeds) {
      return fail(ErrorKind::invalid_argument, "tracking {} seeds: a run takes at most 2^32", format_count(total));
    }
    const SeedRange range = options.range.value_or(SeedRange{0, total});
    if (range.first > total || range.count > total - range.first) {
      return fail(ErrorKind::invalid_argument, "tracking the seeds from {} to {}: the run has {}", range.first,
                  range.first + range.count, total);
    }
    total = range.first + range.count;
    auto state = std::make_unique<State>(geometry, options, needs_wide_index(seeds.count()), progress);
    CGL_TRY_ASSIGN(state->sharing, SeedSharing::start(trackers, {.first = range.first,
                                                                 .total = total,
                                                                 .chunk = options.chunk_seeds,
                                                                 .fixed_chunks = options.fixed_chunks,
                                                                 .overlap = options.overlap,
                                                                 .held = state->finisher.needs_batches() ? 2u : 1u,
                                                                 .cancel = options.cancel}));
    return std::unique_ptr<TrackingBatches>(new TrackingBatches(std::move(state)));
  });
}

Result<const TractogramBatch*> TrackingBatches::next() {
  return catch_out_of_memory([&] { return state_->next(); });
}

const TrackingStatistics& TrackingBatches::statistics() const noexcept {
  return state_->statistics;
}

}  // namespace cingulum
