#include "tract/run/tracking_batches.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "base/quantity.hpp"
#include "streamlines/linearise.hpp"
#include "tract/run/seed_sharing.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

template <class T>
void append_bytes(std::vector<std::byte>& bytes, const T& value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

// Judges the streamlines of one batch after the other, in order, and makes a batch of those that are kept.
class Finisher {
 public:
  Finisher(const ImageGeometry& geometry, const TrackingRunOptions& options, bool wide_index,
           TrackingStatistics& statistics)
      : geometry_(geometry), options_(options), wide_index_(wide_index), statistics_(statistics) {}

  // Whether `select` streamlines were kept.
  [[nodiscard]] bool full() const { return options_.select > 0 && statistics_.kept >= options_.select; }

  // What was kept of the last batch.
  [[nodiscard]] const TractogramBatch& kept() const { return out_; }

  // In three rounds: all streamlines are judged, those that are kept are counted and get their places, their points are
  // mapped. The first and the last are shared by the threads of the pool.
  [[nodiscard]] Status finish(const StreamlineBatch& batch) {
    out_.clear();
    if (options_.save_seeds) out_.streamline_data.resize(3);
    const std::size_t count = batch.streamline_count();
    judged_.resize(count);
    share(count, [&](std::size_t s) { judged_[s] = judge_one(batch, s); });
    kept_.clear();
    std::uint64_t last_seed = std::numeric_limits<std::uint64_t>::max();
    statistics_.seeds = batch.seeds.first + batch.seeds.count;
    for (std::size_t s = 0; s < count; ++s) {
      if (batch.seed_index[s] != last_seed) ++statistics_.seeds_with_streamlines;
      last_seed = batch.seed_index[s];
      count_one(s);
      if (!full()) continue;
      statistics_.seeds = last_seed + 1;
      break;
    }
    const std::size_t numbers = 3 * static_cast<std::size_t>(out_.offsets.back());
    if (options_.double_positions) {
      out_.positions64.resize(numbers);
    } else {
      out_.positions.resize(numbers);
    }
    share(kept_.size(), [&](std::size_t i) { place_one(batch, i); });
    if (options_.save_seeds) {
      for (const std::size_t s : kept_) add_seed_data(batch, s);
    }
    return thin_out();
  }

 private:
  [[nodiscard]] Status thin_out() {
    if (out_.streamline_count() == 0) return {};
    if (options_.linearise_mm > 0) {
      TractogramLayout layout;
      if (options_.save_seeds) layout.streamline_fields = seed_fields(wide_index_ ? most_seeds + 1 : 0);
      CGL_TRY_ASSIGN(
          out_,
          linearise(out_, layout, {.tolerance_mm = options_.linearise_mm, .max_segment_mm = options_.max_segment_mm}));
    }
    statistics_.points_written += out_.point_count();
    return {};
  }

  struct Judged {
    StreamlineCut cut;
    double length = 0;
    SelectionVerdict verdict = SelectionVerdict::kept;
  };

  template <class Body>
  void share(std::size_t count, Body&& body) {
    constexpr std::size_t streamlines_at_once = 256;
    if (options_.pool == nullptr || count < 2 * streamlines_at_once) {
      for (std::size_t i = 0; i < count; ++i) body(i);
      return;
    }
    options_.pool->parallel_for(count, streamlines_at_once, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(i);
    });
  }

  static std::span<const float> points_of(const StreamlineBatch& batch, const StreamlineCut& cut) {
    return std::span(batch.points).subspan(3 * cut.first_point, 3 * cut.point_count);
  }

  [[nodiscard]] Judged judge_one(const StreamlineBatch& batch, std::size_t s) const {
    Judged judged;
    judged.cut = cut_at_stop_regions(options_.selection.regions.stop, batch, s);
    const std::span<const float> points = points_of(batch, judged.cut);
    judged.length = length_in_mm(points, geometry_.voxel_to_world);
    judged.verdict = judge(options_.selection, points, judged.length);
    return judged;
  }

  void count_one(std::size_t s) {
    const Judged& judged = judged_[s];
    ++statistics_.streamlines;
    switch (judged.verdict) {
      case SelectionVerdict::too_short: ++statistics_.too_short; return;
      case SelectionVerdict::too_long: ++statistics_.too_long; return;
      case SelectionVerdict::too_few_points: ++statistics_.too_few_points; return;
      case SelectionVerdict::too_many_points: ++statistics_.too_many_points; return;
      case SelectionVerdict::region_rules: ++statistics_.refused_by_regions; return;
      case SelectionVerdict::kept: break;
    }
    ++statistics_.kept;
    statistics_.points += judged.cut.point_count;
    ++statistics_.end_reasons[static_cast<std::size_t>(judged.cut.start_reason)];
    ++statistics_.end_reasons[static_cast<std::size_t>(judged.cut.end_reason)];
    statistics_.lengths.add(judged.length);
    kept_.push_back(s);
    out_.offsets.push_back(out_.offsets.back() + judged.cut.point_count);
  }

  [[nodiscard]] Vec3d world_point(const StreamlineBatch& batch, std::size_t point) const {
    const float* const p = batch.points.data() + 3 * point;
    return geometry_.voxel_to_world.apply({p[0], p[1], p[2]});
  }

  void place_one(const StreamlineBatch& batch, std::size_t i) {
    const StreamlineCut& cut = judged_[kept_[i]].cut;
    std::size_t to = 3 * static_cast<std::size_t>(out_.offsets[i]);
    for (std::size_t p = 0; p < cut.point_count; ++p, to += 3) {
      const Vec3d world = world_point(batch, cut.first_point + p);
      if (options_.double_positions) {
        out_.positions64[to] = world.x;
        out_.positions64[to + 1] = world.y;
        out_.positions64[to + 2] = world.z;
      } else {
        out_.positions[to] = static_cast<float>(world.x);
        out_.positions[to + 1] = static_cast<float>(world.y);
        out_.positions[to + 2] = static_cast<float>(world.z);
      }
    }
  }

  void add_seed_data(const StreamlineBatch& batch, std::size_t s) {
    const StreamlineCut& cut = judged_[s].cut;
    if (wide_index_) {
      append_bytes(out_.streamline_data[0], batch.seed_index[s]);
    } else {
      append_bytes(out_.streamline_data[0], static_cast<std::uint32_t>(batch.seed_index[s]));
    }
    const Vec3d seed = world_point(batch, cut.first_point + cut.seed_point);
    for (const double x : {seed.x, seed.y, seed.z}) append_bytes(out_.streamline_data[1], static_cast<float>(x));
    append_bytes(out_.streamline_data[2], static_cast<std::uint8_t>(cut.start_reason));
    append_bytes(out_.streamline_data[2], static_cast<std::uint8_t>(cut.end_reason));
  }

  const ImageGeometry geometry_;
  const TrackingRunOptions& options_;
  const bool wide_index_;
  TrackingStatistics& statistics_;
  TractogramBatch out_;
  std::vector<Judged> judged_;
  std::vector<std::size_t> kept_;
};

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

// The tracker's batch is given back when the caller is done with what was made of it: without overlap nothing is
// tracked meanwhile, with overlap the batches that exist at the same time are as many as without a caller that takes
// long.
struct TrackingBatches::State {
  State(const ImageGeometry& geometry, const TrackingRunOptions& run_options, bool wide_index, Progress* observer)
      : options(run_options), progress(observer), finisher(geometry, run_options, wide_index, statistics) {}

  [[nodiscard]] Result<const TractogramBatch*> next() {
    while (true) {
      if (failure) return tl::make_unexpected(*failure);
      put_back();
      if (!sharing) return nullptr;
      if (finisher.full()) return end();
      auto received = sharing->next();
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
      if (finisher.kept().streamline_count() > 0) return &finisher.kept();
    }
  }

  // What the caller has done with the last batch is done.
  void put_back() {
    if (!batch) return;
    const std::uint64_t finished = batch->seeds.count;
    sharing->give_back(std::move(batch));
    if (progress == nullptr) return;
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
  std::optional<Error> failure;
};

TrackingBatches::TrackingBatches(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TrackingBatches::~TrackingBatches() = default;

Result<std::unique_ptr<TrackingBatches>> TrackingBatches::start(std::span<Tracker* const> trackers, const Seeds& seeds,
                                                                const ImageGeometry& geometry,
                                                                const TrackingRunOptions& options, Progress* progress) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TrackingBatches>> {
    std::uint64_t total = seeds.count();
    if (options.select > 0) {
      const std::uint64_t thousandfold =
          options.select > most_seeds / 1000 ? most_seeds : options.select * std::uint64_t{1000};
      total = std::min(total, options.max_seeds > 0 ? options.max_seeds : thousandfold);
    }
    if (total > most_seeds) {
      return fail(ErrorKind::invalid_argument, "tracking {} seeds: a run takes at most 2^32", format_count(total));
    }
    auto state = std::make_unique<State>(geometry, options, needs_wide_index(seeds.count()), progress);
    CGL_TRY_ASSIGN(state->sharing, SeedSharing::start(trackers, {.total = total,
                                                                 .chunk = options.chunk_seeds,
                                                                 .fixed_chunks = options.fixed_chunks,
                                                                 .overlap = options.overlap,
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
