#include "report/survey.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "numerics/classify.hpp"
#include "streamlines/comparison.hpp"
#include "streamlines/lengths.hpp"
#include "streamlines/midline.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

constexpr std::size_t half_bins = std::size_t{1} << 16U;

// Order statistics of non-negative float32 values in two passes over them, in fixed memory: the bits of such numbers
// are ordered as the numbers are, so the first pass counts their upper halves and the second the lower halves of those
// that matter.
class RankSearch {
 public:
  RankSearch() : upper_counts_(half_bins) {}

  void count_first(float value) {
    ++upper_counts_[std::bit_cast<std::uint32_t>(value) >> 16U];
    ++values_;
  }
  // Called between the passes with the ranks (from 0) that will be asked for.
  void prepare(std::span<const std::uint64_t> ranks) {
    for (const std::uint64_t rank : ranks) lower_counts_.try_emplace(upper_of(rank).first, half_bins);
  }
  void count_second(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const auto found = lower_counts_.find(bits >> 16U);
    if (found != lower_counts_.end()) ++found->second[bits & 0xffffU];
  }
  [[nodiscard]] double value_at(std::uint64_t rank) const {
    auto [upper, before] = upper_of(rank);
    const std::vector<std::uint64_t>& lower = lower_counts_.at(upper);
    std::uint32_t low = 0;
    while (low + 1 < half_bins && before + lower[low] <= rank) before += lower[low++];
    return std::bit_cast<float>((upper << 16U) | low);
  }
  [[nodiscard]] std::uint64_t values() const { return values_; }

 private:
  // The upper half of the value of this rank, and how many values have a smaller one.
  [[nodiscard]] std::pair<std::uint32_t, std::uint64_t> upper_of(std::uint64_t rank) const {
    std::uint64_t before = 0;
    std::uint32_t upper = 0;
    while (upper + 1 < half_bins && before + upper_counts_[upper] <= rank) before += upper_counts_[upper++];
    return {upper, before};
  }

  std::vector<std::uint64_t> upper_counts_;
  std::map<std::uint32_t, std::vector<std::uint64_t>> lower_counts_;
  std::uint64_t values_ = 0;
};

// Coordinates near the end of float32's range make lengths beyond it.
float as_float(double length) {
  return static_cast<float>(std::min<double>(length, std::numeric_limits<float>::max()));
}

struct Quantile {
  std::uint64_t rank = 0;
  double share_of_next = 0;
};

Quantile quantile_of(double q, std::uint64_t count) {
  const double position = q * static_cast<double>(count - 1);
  const double rank = std::floor(position);
  return {static_cast<std::uint64_t>(rank), position - rank};
}

double quantile_value(const RankSearch& search, const Quantile& quantile) {
  const double low = search.value_at(quantile.rank);
  if (quantile.share_of_next == 0) return low;
  return low + (search.value_at(quantile.rank + 1) - low) * quantile.share_of_next;
}

constexpr std::array<double, 3> asked_quantiles = {0.25, 0.5, 0.75};

// What both passes need of each streamline of a batch.
struct BatchMeasures {
  std::vector<double> length_mm;
  std::vector<std::uint8_t> not_finite;
  WorldBox box;
  bool any = false;
};

void extend(WorldBox& box, bool& any, const WorldBox& other) {
  if (!any) box = other;
  any = true;
  box.low = {std::min(box.low.x, other.low.x), std::min(box.low.y, other.low.y), std::min(box.low.z, other.low.z)};
  box.high = {std::max(box.high.x, other.high.x), std::max(box.high.y, other.high.y),
              std::max(box.high.z, other.high.z)};
}

void measure(const TractogramBatch& batch, ThreadPool& pool, BatchMeasures& measures) {
  const std::size_t count = batch.streamline_count();
  measures.length_mm.assign(count, 0);
  measures.not_finite.assign(count, 0);
  measures.any = false;
  std::mutex mutex;
  pool.parallel_for(count, 256, [&](std::size_t begin, std::size_t end) {
    WorldBox box;
    bool any = false;
    for (std::size_t line = begin; line < end; ++line) {
      const std::span<const float> positions = batch.streamline(line);
      const bool finite =
          std::all_of(positions.begin(), positions.end(), [](float value) { return numerics::is_finite(value); });
      measures.not_finite[line] = finite ? 0 : 1;
      if (!finite) continue;
      measures.length_mm[line] = length_in_mm(positions);
      for (std::size_t i = 0; i < positions.size(); i += 3) {
        const Vec3d point = {positions[i], positions[i + 1], positions[i + 2]};
        extend(box, any, {point, point});
      }
    }
    const std::lock_guard lock(mutex);
    if (any) extend(measures.box, measures.any, box);
  });
}

// 1, 2 or 5 times a power of ten: the smallest that covers `largest` with at most 50 bins.
double bin_width(double largest) {
  double width = 1e-3;
  for (int step = 0; largest / width >= 50 && width < 1e30; ++step) width *= step % 3 == 1 ? 2.5 : 2.0;
  return width;
}

std::optional<std::size_t> end_reason_field(const TractogramLayout& layout) {
  for (std::size_t i = 0; i < layout.streamline_fields.size(); ++i) {
    const DataField& field = layout.streamline_fields[i];
    if (field.name == "end_reason" && field.columns == 2 && field.type == element_type_of<std::uint8_t>()) return i;
  }
  return std::nullopt;
}

using TakeBatch = std::function<void(const TractogramBatch& batch, const BatchMeasures& measures)>;

Status read_through(TractogramReader& reader, ThreadPool& pool, const CancelToken& cancel,
                    const std::function<void(std::uint64_t)>& advance, const TakeBatch& take) {
  TractogramBatch batch;
  BatchMeasures measures;
  for (;;) {
    CGL_TRY(cancel.check());
    CGL_TRY_ASSIGN(const bool more, reader.next(batch, default_batch_points, true));
    if (!more) return {};
    measure(batch, pool, measures);
    take(batch, measures);
    if (advance) advance(batch.streamline_count());
  }
}

// The anatomy's grid where there is one; else the file's own; else one around the streamlines.
Status choose_density_grid(const SurveyOptions& options, TractogramSurvey& survey) {
  if (options.density_grid) {
    CGL_TRY_ASSIGN(survey.density, DensityMap::create(*options.density_grid));
    survey.density_grid = "the grid of the anatomy";
    return {};
  }
  if (survey.layout.reference) {
    if (auto map = DensityMap::create(*survey.layout.reference)) {
      survey.density = std::move(*map);
      survey.density_grid = "the tractogram's own grid";
      return {};
    } else {
      survey.warnings.push_back(map.error().message() + "; a grid around the streamlines was used instead");
    }
  }
  const ImageGeometry grid = grid_around(survey.box);
  CGL_TRY_ASSIGN(survey.density, DensityMap::create(grid));
  survey.density_grid = fmt::format("a grid of {:g} mm around the streamlines", grid.smallest_edge_mm());
  return {};
}

void take_drawn(const TractogramBatch& batch, const BatchMeasures& measures, std::uint64_t first_index,
                TractogramSurvey& survey) {
  for (std::size_t line = 0; line < batch.streamline_count(); ++line) {
    if ((first_index + line) % survey.drawn_every != 0 || measures.not_finite[line] != 0) continue;
    const std::span<const float> positions = batch.streamline(line);
    if (positions.empty()) continue;
    survey.drawn.positions.insert(survey.drawn.positions.end(), positions.begin(), positions.end());
    survey.drawn.offsets.push_back(survey.drawn.positions.size() / 3);
  }
}

Result<TractogramSurvey> survey_in_two_passes(const std::filesystem::path& path, const SurveyOptions& options,
                                              ThreadPool& pool, const std::function<void(std::uint64_t)>& advance) {
  TractogramSurvey survey;
  RankSearch ranks;
  bool any_point = false;
  {
    CGL_TRY_ASSIGN(const std::unique_ptr<TractogramReader> reader, TractogramReader::open(path));
    survey.layout = reader->layout();
    survey.warnings = survey.layout.warnings;
    const auto reasons = end_reason_field(survey.layout);
    if (reasons) survey.end_reasons.emplace();
    CGL_TRY(read_through(*reader, pool, options.cancel, advance,
                         [&](const TractogramBatch& batch, const BatchMeasures& measures) {
                           survey.streamlines += batch.streamline_count();
                           survey.points += batch.point_count();
                           if (measures.any) extend(survey.box, any_point, measures.box);
                           for (std::size_t line = 0; line < batch.streamline_count(); ++line) {
                             if (measures.not_finite[line] != 0) {
                               ++survey.not_finite;
                               continue;
                             }
                             const double length = measures.length_mm[line];
                             LengthSummary& lengths = survey.lengths;
                             lengths.smallest_mm = ranks.values() == 0 ? length : std::min(lengths.smallest_mm, length);
                             lengths.largest_mm = std::max(lengths.largest_mm, length);
                             lengths.total_mm += length;
                             ranks.count_first(as_float(length));
                           }
                           if (reasons) {
                             const std::vector<std::byte>& codes = batch.streamline_data[*reasons];
                             for (std::size_t line = 0; line < batch.streamline_count(); ++line) {
                               ++survey.end_reasons->start[std::to_integer<std::size_t>(codes[2 * line])];
                               ++survey.end_reasons->end[std::to_integer<std::size_t>(codes[2 * line + 1])];
                             }
                           }
                         }));
  }
  if (!any_point) survey.box = bounding_box({});
  if (survey.not_finite > 0) {
    survey.warnings.push_back(
        fmt::format("{} streamlines have coordinates that are not finite; they are counted, and "
                    "left out of lengths, pictures and maps",
                    survey.not_finite));
  }
  CGL_TRY(choose_density_grid(options, survey));
  survey.midline_mm = options.midline_mm.value_or(
      middle_world_x(survey.layout.reference ? *survey.layout.reference : survey.density->geometry()));
  const auto every_for = [](std::uint64_t count, std::uint64_t most) {
    return std::max<std::uint64_t>(1, (count + most - 1) / std::max<std::uint64_t>(1, most));
  };
  survey.drawn_every =
      std::max(every_for(survey.streamlines, options.max_drawn), every_for(survey.points, options.max_drawn_points));
  survey.histogram.bin_mm = bin_width(survey.lengths.largest_mm);
  survey.histogram.counts.assign(
      static_cast<std::size_t>(std::min(survey.lengths.largest_mm / survey.histogram.bin_mm, 50.0)) + 1, 0);
  std::array<Quantile, asked_quantiles.size()> quantiles;
  if (ranks.values() > 0) {
    std::vector<std::uint64_t> wanted;
    for (std::size_t i = 0; i < quantiles.size(); ++i) {
      quantiles[i] = quantile_of(asked_quantiles[i], ranks.values());
      wanted.push_back(quantiles[i].rank);
      if (quantiles[i].share_of_next > 0) wanted.push_back(quantiles[i].rank + 1);
    }
    ranks.prepare(wanted);
  }

  CGL_TRY_ASSIGN(const std::unique_ptr<TractogramReader> reader, TractogramReader::open(path));
  std::uint64_t index = 0;
  CGL_TRY(read_through(
      *reader, pool, options.cancel, advance, [&](const TractogramBatch& batch, const BatchMeasures& measures) {
        for (std::size_t line = 0; line < batch.streamline_count(); ++line) {
          if (measures.not_finite[line] != 0) continue;
          const MidlineSides sides = midline_sides(batch.streamline(line), survey.midline_mm);
          if (sides.ends_apart) ++survey.commissural;
          if (sides.crosses) ++survey.crossing_midline;
          const double length = measures.length_mm[line];
          ranks.count_second(as_float(length));
          const double bin =
              std::min(length / survey.histogram.bin_mm, static_cast<double>(survey.histogram.counts.size() - 1));
          ++survey.histogram.counts[static_cast<std::size_t>(bin)];
        }
        survey.density->add(batch, measures.not_finite, pool);
        take_drawn(batch, measures, index, survey);
        index += batch.streamline_count();
      }));
  if (index != survey.streamlines) {
    return fail(ErrorKind::corrupt, "the file had {} streamlines when it was read first and {} the second time",
                survey.streamlines, index);
  }
  if (ranks.values() > 0) {
    survey.lengths.mean_mm = survey.lengths.total_mm / static_cast<double>(ranks.values());
    survey.lengths.lower_quartile_mm = quantile_value(ranks, quantiles[0]);
    survey.lengths.median_mm = quantile_value(ranks, quantiles[1]);
    survey.lengths.upper_quartile_mm = quantile_value(ranks, quantiles[2]);
  }
  return survey;
}

}  // namespace

Result<TractogramSurvey> survey_tractogram(const std::filesystem::path& path, const SurveyOptions& options,
                                           ThreadPool& pool, const std::function<void(std::uint64_t)>& advance) {
  return catch_out_of_memory(
      [&] { return add_file_context(survey_in_two_passes(path, options, pool, advance), "reading", path.string()); });
}

}  // namespace cingulum
