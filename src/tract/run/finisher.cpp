#include "tract/run/finisher.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "base/bulk_memory.hpp"
#include "streamlines/lengths.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

template <class T>
void store(std::vector<std::byte>& bytes, std::size_t index, const T& value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

std::span<const float> points_of(const StreamlineBatch& batch, const StreamlineCut& cut) {
  return std::span(batch.points).subspan(3 * cut.first_point, 3 * cut.point_count);
}

}  // namespace

Finisher::Finisher(const ImageGeometry& geometry, const TrackingRunOptions& options, bool wide_index,
                   TrackingStatistics& statistics)
    : geometry_(geometry),
      options_(options),
      wide_index_(wide_index),
      late_(options.late_positions && !options.double_positions && options.linearise_mm <= 0),
      statistics_(statistics),
      lineariser_({.tolerance_mm = options.linearise_mm, .max_segment_mm = options.max_segment_mm}, options.pool) {
  if (options.save_seeds) layout_.streamline_fields = seed_fields(wide_index ? most_seeds + 1 : 0);
}

template <class Body>
void Finisher::share(std::size_t count, const Body& body) const {
  constexpr std::size_t streamlines_at_once = 64;
  const auto some = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) body(i);
  };
  if (options_.pool == nullptr) return some(0, count);
  options_.pool->parallel_for(count, streamlines_at_once, some);
}

// All streamlines are judged; those that are kept are counted and get their places; their points go there. The first
// and the last are shared.
Status Finisher::finish(const StreamlineBatch& batch) {
  judged_.resize(batch.streamline_count());
  share(judged_.size(), [&](std::size_t s) { judged_[s] = judge_one(batch, s); });
  // What was empty was given to nobody.
  if (kept().streamline_count() > 0) last_ = 1 - last_;
  const bool thins_out = options_.linearise_mm > 0;
  TractogramBatch& out = thins_out ? placed_ : result_[last_];
  count_all(batch, out.offsets);
  const std::size_t numbers = 3 * out.point_count();
  if (late_) {
    out.make_positions = late_positions(batch);
  } else if (options_.double_positions) {
    make_room(out.positions64, numbers);
  } else {
    make_room(out.positions, numbers);
  }
  const std::size_t kept_count = kept_[last_].size();
  out.streamline_data.resize(layout_.streamline_fields.size());
  for (std::size_t f = 0; f < layout_.streamline_fields.size(); ++f) {
    const DataField& field = layout_.streamline_fields[f];
    out.streamline_data[f].resize(kept_count * field.type.bytes() * static_cast<std::size_t>(field.columns));
  }
  if (!late_ || options_.save_seeds) {
    share(kept_count, [&](std::size_t i) {
      if (!late_) place_one(batch, i, out);
      if (options_.save_seeds) add_seed_data(batch, i, out);
    });
  }
  if (thins_out) CGL_TRY(lineariser_.apply(out, layout_, result_[last_]));
  statistics_.points_written += kept().point_count();
  return {};
}

Finisher::Judged Finisher::judge_one(const StreamlineBatch& batch, std::size_t s) const {
  Judged judged;
  judged.cut = cut_at_stop_regions(options_.selection.regions.stop, batch, s);
  const std::span<const float> points = points_of(batch, judged.cut);
  judged.length = length_in_mm(points, geometry_.voxel_to_world);
  judged.verdict = judge(options_.selection, points, judged.length);
  return judged;
}

void Finisher::count_all(const StreamlineBatch& batch, std::vector<std::uint64_t>& offsets) {
  kept_[last_].clear();
  offsets.assign(1, 0);
  std::uint64_t last_seed = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t first_seed = options_.range ? options_.range->first : 0;
  statistics_.seeds = batch.seeds.first + batch.seeds.count - first_seed;
  for (std::size_t s = 0; s < judged_.size(); ++s) {
    if (batch.seed_index[s] != last_seed) ++statistics_.seeds_with_streamlines;
    last_seed = batch.seed_index[s];
    count_one(batch, s, offsets);
    if (!full()) continue;
    statistics_.seeds = last_seed + 1 - first_seed;
    break;
  }
}

void Finisher::count_one(const StreamlineBatch& batch, std::size_t s, std::vector<std::uint64_t>& offsets) {
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
  if (options_.keep_trail) add_to_trail(batch.seed_index[s], judged);
  kept_[last_].push_back({s, judged.cut});
  offsets.push_back(offsets.back() + judged.cut.point_count);
}

void Finisher::add_to_trail(std::uint64_t seed, const Judged& judged) {
  const auto since = [](std::uint64_t now, std::uint64_t& before) { return now - std::exchange(before, now); };
  statistics_.trail.push_back(
      {.seed = seed,
       .seeds_with_streamlines = since(statistics_.seeds_with_streamlines, on_trail_.seeds_with_streamlines),
       .streamlines = since(statistics_.streamlines, on_trail_.streamlines),
       .too_short = since(statistics_.too_short, on_trail_.too_short),
       .too_long = since(statistics_.too_long, on_trail_.too_long),
       .too_few_points = since(statistics_.too_few_points, on_trail_.too_few_points),
       .too_many_points = since(statistics_.too_many_points, on_trail_.too_many_points),
       .refused_by_regions = since(statistics_.refused_by_regions, on_trail_.refused_by_regions),
       .points = judged.cut.point_count,
       .start_reason = judged.cut.start_reason,
       .end_reason = judged.cut.end_reason,
       .length_mm = judged.length});
}

void Finisher::place_one(const StreamlineBatch& batch, std::size_t i, TractogramBatch& out) const {
  const StreamlineCut& cut = kept_[last_][i].cut;
  const std::size_t to = 3 * static_cast<std::size_t>(out.offsets[i]);
  const std::size_t numbers = 3 * cut.point_count;
  if (options_.double_positions) {
    map_to_world(points_of(batch, cut), geometry_.voxel_to_world, std::span(out.positions64).subspan(to, numbers));
  } else {
    map_to_world(points_of(batch, cut), geometry_.voxel_to_world, std::span(out.positions).subspan(to, numbers));
  }
}

// The positions of what was kept last; batch and list stay until those are written.
TractogramBatch::MakePositions Finisher::late_positions(const StreamlineBatch& batch) const {
  return [this, &batch, &kept = kept_[last_]](std::size_t first, std::size_t last, std::span<float> out) {
    for (std::size_t i = first; i < last; ++i) {
      const std::span<const float> points = points_of(batch, kept[i].cut);
      map_to_world(points, geometry_.voxel_to_world, out.first(points.size()));
      out = out.subspan(points.size());
    }
  };
}

void Finisher::add_seed_data(const StreamlineBatch& batch, std::size_t i, TractogramBatch& out) const {
  const auto& [s, cut] = kept_[last_][i];
  if (wide_index_) {
    store(out.streamline_data[0], i, batch.seed_index[s]);
  } else {
    store(out.streamline_data[0], i, static_cast<std::uint32_t>(batch.seed_index[s]));
  }
  const float* const p = batch.points.data() + 3 * (cut.first_point + cut.seed_point);
  const Vec3d seed = geometry_.voxel_to_world.apply({p[0], p[1], p[2]});
  store(out.streamline_data[1], i,
        std::array{static_cast<float>(seed.x), static_cast<float>(seed.y), static_cast<float>(seed.z)});
  store(out.streamline_data[2], i,
        std::array{static_cast<std::uint8_t>(cut.start_reason), static_cast<std::uint8_t>(cut.end_reason)});
}

}  // namespace cingulum
