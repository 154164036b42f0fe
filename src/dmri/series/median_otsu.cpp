#include "dmri/series/median_otsu.hpp"

#include <algorithm>

#include "numerics/classify.hpp"
#include "numerics/elementary64.hpp"

namespace cingulum {

namespace {

constexpr int largest_radius = 15;  // 31^3 values: counts stay below 2^16

struct Grid {
  std::size_t x;
  std::size_t y;
  std::size_t z;
};

// Position -1 is 0, -2 is 1, n is n - 1 and so on, however far outside.
std::size_t mirrored(std::int64_t position, std::size_t size) {
  const auto period = static_cast<std::int64_t>(2 * size);
  std::int64_t wrapped = position % period;
  if (wrapped < 0) wrapped += period;
  const auto index = static_cast<std::size_t>(wrapped);
  return index < size ? index : 2 * size - 1 - index;
}

// How often each rank occurs in a window that moves, and the rank in its middle: Huang's running histogram (IEEE Trans.
// Acoust. Speech Signal Process. 27, 1979) in two levels, since there may be as many ranks as voxels.
class RunningMedian {
 public:
  RunningMedian(std::size_t ranks, std::uint32_t middle)
      : fine_(((ranks + fine_per_coarse - 1) / fine_per_coarse) * fine_per_coarse, 0),
        coarse_(fine_.size() / fine_per_coarse, 0),
        middle_(middle) {}

  void add(std::uint32_t rank) {
    ++fine_[rank];
    const std::uint32_t bin = rank / fine_per_coarse;
    ++coarse_[bin];
    below_ += bin < bin_ ? 1 : 0;
  }
  void remove(std::uint32_t rank) {
    --fine_[rank];
    const std::uint32_t bin = rank / fine_per_coarse;
    --coarse_[bin];
    below_ -= bin < bin_ ? 1 : 0;
  }
  [[nodiscard]] std::uint32_t median() {
    while (below_ > middle_) below_ -= coarse_[--bin_];
    while (below_ + coarse_[bin_] <= middle_) below_ += coarse_[bin_++];
    std::uint32_t rank = bin_ * fine_per_coarse;
    for (std::uint32_t seen = below_ + fine_[rank]; seen <= middle_; seen += fine_[rank]) ++rank;
    return rank;
  }

 private:
  static constexpr std::uint32_t fine_per_coarse = 64;

  std::vector<std::uint16_t> fine_;
  std::vector<std::uint16_t> coarse_;
  std::uint32_t middle_;     // the median is the value with this many before it in sorted order
  std::uint32_t bin_ = 0;    // coarse bin of the last median
  std::uint32_t below_ = 0;  // values in coarse bins before it
};

// One pass over ranks; `padded` is mirrored by `radius` on all sides.
void median_pass(const std::vector<std::uint32_t>& padded, Grid size, std::size_t radius, std::size_t rank_count,
                 std::vector<std::uint32_t>& result, ThreadPool& pool, const CancelToken& cancel) {
  const std::size_t window = 2 * radius + 1;
  const std::size_t padded_x = size.x + 2 * radius;
  const std::size_t plane = padded_x * (size.y + 2 * radius);
  const auto middle = static_cast<std::uint32_t>(window * window * window / 2);
  pool.parallel_for(size.y, 0, [&](std::size_t begin, std::size_t end) {
    RunningMedian values(rank_count, middle);
    for (std::size_t y = begin; y < end; ++y) {
      if (cancel.cancelled()) return;
      for (std::size_t x = 0; x < size.x; ++x) {
        // The window of voxel z covers the planes z to z + window - 1 of the padded volume.
        const std::uint32_t* corner = padded.data() + y * padded_x + x;
        const auto for_plane = [&](std::size_t z, auto&& apply) {
          for (std::size_t j = 0; j < window; ++j) {
            const std::uint32_t* row = corner + z * plane + j * padded_x;
            for (std::size_t i = 0; i < window; ++i) apply(row[i]);
          }
        };
        const auto add = [&](std::uint32_t rank) { values.add(rank); };
        const auto remove = [&](std::uint32_t rank) { values.remove(rank); };
        for (std::size_t z = 0; z + 1 < window; ++z) for_plane(z, add);
        for (std::size_t z = 0; z < size.z; ++z) {
          for_plane(z + window - 1, add);
          result[x + size.x * (y + size.y * z)] = values.median();
          for_plane(z, remove);
        }
        for (std::size_t z = size.z; z < size.z + window - 1; ++z) for_plane(z, remove);
      }
    }
  });
}

std::vector<std::uint32_t> pad(const std::vector<std::uint32_t>& volume, Grid size, std::size_t radius) {
  const Grid outer = {size.x + 2 * radius, size.y + 2 * radius, size.z + 2 * radius};
  std::vector<std::size_t> from_x(outer.x);
  const auto shift = static_cast<std::int64_t>(radius);
  for (std::size_t x = 0; x < outer.x; ++x) from_x[x] = mirrored(static_cast<std::int64_t>(x) - shift, size.x);
  std::vector<std::uint32_t> padded(outer.x * outer.y * outer.z);
  std::uint32_t* to = padded.data();
  for (std::size_t z = 0; z < outer.z; ++z) {
    const std::size_t from_z = mirrored(static_cast<std::int64_t>(z) - shift, size.z);
    for (std::size_t y = 0; y < outer.y; ++y) {
      const std::size_t from_y = mirrored(static_cast<std::int64_t>(y) - shift, size.y);
      const std::uint32_t* row = volume.data() + size.x * (from_y + size.y * from_z);
      for (const std::size_t x : from_x) *to++ = row[x];
    }
  }
  return padded;
}

// The lower edge of the bin, of 256 between the smallest and the largest value, after which the variance between the
// two classes is greatest. As in DIPY a bin counts with its upper edge, and the first of equal maxima is taken.
double otsu_threshold(const std::vector<double>& values) {
  constexpr std::size_t bins = 256;
  const auto [smallest, largest] = std::minmax_element(values.begin(), values.end());
  const double first = *smallest;
  const double last = *largest;
  const double step = (last - first) / static_cast<double>(bins);
  std::array<double, bins + 1> edges;
  for (std::size_t i = 0; i < bins; ++i) edges[i] = static_cast<double>(i) * step + first;
  edges[bins] = last;
  std::array<double, bins> count = {};
  for (const double value : values) {
    const auto above = std::upper_bound(edges.begin(), edges.end() - 1, value);
    ++count[static_cast<std::size_t>(above - edges.begin()) - 1];
  }
  std::array<double, bins> weight_above = {};
  std::array<double, bins> sum_above = {};
  double weight = 0;
  double sum = 0;
  for (std::size_t i = bins; i-- > 0;) {
    weight_above[i] = weight += count[i];
    sum_above[i] = sum += count[i] * edges[i + 1];
  }
  weight = 0;
  sum = 0;
  double best = -1;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i + 1 < bins; ++i) {
    weight += count[i];
    sum += count[i] * edges[i + 1];
    const double difference = sum / weight - sum_above[i + 1] / weight_above[i + 1];
    const double variance = weight * weight_above[i + 1] * (difference * difference);
    if (variance > best) {
      best = variance;
      chosen = i;
    }
  }
  return edges[chosen];
}

template <class Visit>
void for_six_neighbours(std::size_t index, Grid size, Visit&& visit) {
  const std::size_t x = index % size.x;
  const std::size_t y = index / size.x % size.y;
  const std::size_t z = index / (size.x * size.y);
  if (x > 0) visit(index - 1);
  if (x + 1 < size.x) visit(index + 1);
  if (y > 0) visit(index - size.x);
  if (y + 1 < size.y) visit(index + size.x);
  if (z > 0) visit(index - size.x * size.y);
  if (z + 1 < size.z) visit(index + size.x * size.y);
}

void dilate(std::vector<std::uint8_t>& mask, Grid size) {
  const std::vector<std::uint8_t> before = mask;
  for (std::size_t index = 0; index < mask.size(); ++index) {
    if (before[index] == 0) continue;
    for_six_neighbours(index, size, [&](std::size_t neighbour) { mask[neighbour] = 1; });
  }
}

// Leaves of the voxels that are 1 only their largest connected part; the first in memory order of two of one size in
// the order of DIPY's labels, whose last axis runs fastest.
void keep_largest_part(std::vector<std::uint8_t>& mask, Grid size) {
  std::vector<std::uint32_t> label(mask.size(), 0);
  std::vector<std::size_t> pending;
  std::uint32_t labels = 0;
  std::uint32_t best_label = 0;
  std::size_t best_size = 0;
  for (std::size_t x = 0; x < size.x; ++x) {
    for (std::size_t y = 0; y < size.y; ++y) {
      for (std::size_t z = 0; z < size.z; ++z) {
        const std::size_t start = x + size.x * (y + size.y * z);
        if (mask[start] == 0 || label[start] != 0) continue;
        label[start] = ++labels;
        pending.assign(1, start);
        std::size_t part_size = 0;
        while (!pending.empty()) {
          const std::size_t index = pending.back();
          pending.pop_back();
          ++part_size;
          for_six_neighbours(index, size, [&](std::size_t neighbour) {
            if (mask[neighbour] == 0 || label[neighbour] != 0) return;
            label[neighbour] = labels;
            pending.push_back(neighbour);
          });
        }
        if (part_size > best_size) {
          best_size = part_size;
          best_label = labels;
        }
      }
    }
  }
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = best_label != 0 && label[i] == best_label ? 1 : 0;
}

void invert(std::vector<std::uint8_t>& mask) {
  for (std::uint8_t& value : mask) value = value == 0 ? 1 : 0;
}

}  // namespace

Result<std::vector<double>> median_filtered(std::span<const double> volume, const std::array<std::int64_t, 3>& size,
                                            int radius, int passes, ThreadPool& pool, const CancelToken& cancel) {
  if (radius < 0 || radius > largest_radius || passes < 0) {
    return fail(ErrorKind::invalid_argument, "filtering by medians: radius {}, {} passes; possible are radii up to {}",
                radius, passes, largest_radius);
  }
  const Grid grid = {static_cast<std::size_t>(size[0]), static_cast<std::size_t>(size[1]),
                     static_cast<std::size_t>(size[2])};
  if (volume.size() != grid.x * grid.y * grid.z || volume.empty()) {
    return fail(ErrorKind::invalid_argument, "filtering by medians: {} values for {} x {} x {} voxels", volume.size(),
                size[0], size[1], size[2]);
  }
  for (const double value : volume) {
    if (!numerics::is_finite(value)) {
      return fail(ErrorKind::invalid_argument, "filtering by medians: a value is not finite");
    }
  }
  return catch_out_of_memory([&]() -> Result<std::vector<double>> {
    // A median is one of the values, so the passes run on ranks.
    std::vector<double> values(volume.begin(), volume.end());
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::vector<std::uint32_t> ranks(volume.size());
    pool.parallel_for(volume.size(), 0, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        ranks[i] =
            static_cast<std::uint32_t>(std::lower_bound(values.begin(), values.end(), volume[i]) - values.begin());
      }
    });
    for (int pass = 0; pass < passes && radius > 0; ++pass) {
      const std::vector<std::uint32_t> padded = pad(ranks, grid, static_cast<std::size_t>(radius));
      median_pass(padded, grid, static_cast<std::size_t>(radius), values.size(), ranks, pool, cancel);
      CGL_TRY(cancel.check());
    }
    std::vector<double> result(volume.size());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = values[ranks[i]];
    return result;
  });
}

Result<BrainMask> median_otsu(std::span<const double> volume, const std::array<std::int64_t, 3>& size,
                              const MedianOtsuOptions& options, ThreadPool& pool, const CancelToken& cancel) {
  return catch_out_of_memory([&]() -> Result<BrainMask> {
    CGL_TRY_ASSIGN(const std::vector<double> filtered,
                   add_context(median_filtered(volume, size, options.median_radius, options.passes, pool, cancel),
                               "making a brain mask"));
    const auto [smallest, largest] = std::minmax_element(filtered.begin(), filtered.end());
    if (!(*largest > *smallest)) {
      return fail(ErrorKind::invalid_argument,
                  "making a brain mask: all voxels of the filtered b0 have the value {}; give a mask", *smallest);
    }
    BrainMask result;
    result.threshold = otsu_threshold(filtered);
    result.mask.resize(filtered.size());
    for (std::size_t i = 0; i < filtered.size(); ++i) result.mask[i] = filtered[i] > result.threshold ? 1 : 0;
    const Grid grid = {static_cast<std::size_t>(size[0]), static_cast<std::size_t>(size[1]),
                       static_cast<std::size_t>(size[2])};
    for (int i = 0; i < options.dilations; ++i) dilate(result.mask, grid);
    if (options.finalise) {
      keep_largest_part(result.mask, grid);
      invert(result.mask);
      keep_largest_part(result.mask, grid);
      invert(result.mask);
    }
    result.voxels = static_cast<std::size_t>(std::count(result.mask.begin(), result.mask.end(), 1));
    if (result.voxels == 0) {
      return fail_argument("mask", "making a brain mask: no voxel is above the threshold {}; give a mask",
                           result.threshold);
    }
    return result;
  });
}

void add_to_sum(std::vector<double>& sum, std::span<const float> volume) {
  if (sum.empty()) sum.resize(volume.size(), 0.0);
  for (std::size_t i = 0; i < volume.size(); ++i) {
    if (numerics::is_finite(volume[i])) sum[i] += static_cast<double>(volume[i]);
  }
}

void divide_sum(std::vector<double>& sum, std::size_t count) {
  for (double& value : sum) value /= static_cast<double>(count);
}

}  // namespace cingulum
