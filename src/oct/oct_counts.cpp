// Percentiles by counts, medians, blending, axial profiles and attenuation.
#include <algorithm>
#include <map>
#include <numeric>

#include "numerics/portable.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/ordered_key.hpp"
#include "oct/kernel_backend.hpp"
#include "oct/oct_kernels.hpp"

namespace cingulum::oct {
namespace {

constexpr std::uint64_t most_median_samples = 1331;
// Enough threads to fill a GPU; each counts many values.
constexpr std::uint32_t most_counting_threads = 2048 * 256;

Status check_shapes_equal(const VolumeShape& a, const VolumeShape& b, std::string_view what) {
  if (a == b) return {};
  return fail(ErrorKind::invalid_argument, "{}: volumes of {} x {} x {} and of {} x {} x {}", what, a.z, a.y, a.x, b.z,
              b.y, b.x);
}

}  // namespace

// A digit of the keys of one prefix: how often each value of it occurs.
Result<std::vector<std::uint32_t>> OctKernels::count_keys(Queue& queue, const DeviceVolume& volume, std::uint32_t shift,
                                                          std::uint32_t bins, std::uint32_t prefix,
                                                          std::uint32_t prefix_shift, std::uint32_t least_key) {
  CGL_TRY_ASSIGN(const auto totals, pool_->acquire(std::uint64_t{bins} * 4));
  CGL_TRY(queue.fill(**totals, 0, std::uint64_t{bins} * 4, std::byte{0}));
  const std::uint64_t voxels = volume.shape.voxels();
  const std::uint64_t most = std::min<std::uint64_t>(most_elements_, std::uint64_t{1} << 30);
  for (std::uint64_t first = 0; first < voxels; first += most) {
    const auto count = static_cast<std::uint32_t>(std::min(most, voxels - first));
    const CountKeysRecord record{count, shift, bins, prefix, prefix_shift, least_key};
    CGL_TRY(backend_->launch(queue, OctKernel::count_keys, record,
                             {{volume.buffer.get(), first, count}, {totals->get(), 0, bins}},
                             {std::min(count, most_counting_threads), 1, 1}));
  }
  std::vector<std::uint32_t> counts(bins);
  CGL_TRY(cingulum::download(queue, std::span(counts), **totals));
  CGL_TRY(queue.synchronise());
  return counts;
}

Result<std::vector<double>> OctKernels::percentiles(Queue& queue, const DeviceVolume& volume,
                                                    std::span<const double> percents, bool positive_only) {
  if (volume.shape.voxels() > UINT32_MAX) {
    return fail(ErrorKind::invalid_argument, "percentiles of {} voxels: at most 2^32 at a time", volume.shape.voxels());
  }
  // Digits of 11, 11 and 10 bits; keys above that of zero are positive values.
  const std::uint32_t least = positive_only ? ordered_key(0.0f) + 1 : 0;
  struct Digit {
    std::uint32_t shift, bins, prefix_shift;
  };
  constexpr Digit digits[] = {{21, 2048, 32}, {10, 2048, 21}, {0, 1024, 10}};
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<std::uint32_t>> counted;
  const auto value_at_rank = [&](std::uint64_t rank) -> Result<double> {
    std::uint32_t prefix = 0;
    for (std::size_t d = 0; d < std::size(digits); ++d) {
      auto found = counted.find({d, prefix});
      if (found == counted.end()) {
        CGL_TRY_ASSIGN(auto counts, count_keys(queue, volume, digits[d].shift, digits[d].bins, prefix,
                                               digits[d].prefix_shift, least));
        found = counted.emplace(std::pair{d, prefix}, std::move(counts)).first;
      }
      std::uint32_t bin = 0;
      while (bin + 1 < digits[d].bins && rank >= found->second[bin]) rank -= found->second[bin++];
      prefix = prefix * digits[d].bins + bin;
    }
    return static_cast<double>(value_of_key(prefix));
  };
  CGL_TRY_ASSIGN(const auto first_digit, count_keys(queue, volume, digits[0].shift, digits[0].bins, 0, 32, least));
  const std::uint64_t total = std::accumulate(first_digit.begin(), first_digit.end(), std::uint64_t{0});
  counted[{0, 0}] = first_digit;
  std::vector<double> values;
  for (const double percent : percents) {
    if (!(percent >= 0.0 && percent <= 100.0)) {
      return fail_argument("percentile", "percentile {}: 0 to 100", percent);
    }
    if (total == 0) return fail(ErrorKind::invalid_argument, "percentiles: no value is positive");
    const double at = percent / 100.0 * static_cast<double>(total - 1);
    const double below = numerics::floor_of(at);
    const auto rank = static_cast<std::uint64_t>(below);
    CGL_TRY_ASSIGN(const double low, value_at_rank(rank));
    double high = low;
    if (rank + 1 < total && at > below) {
      CGL_TRY_ASSIGN(high, value_at_rank(rank + 1));
    }
    values.push_back(low + (high - low) * (at - below));
  }
  return values;
}

Status OctKernels::filter_median(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                 const std::array<std::uint32_t, 3>& sizes) {
  CGL_TRY(check_shapes_equal(from.shape, to.shape, "median"));
  const std::uint64_t samples = std::uint64_t{sizes[0]} * sizes[1] * sizes[2];
  if (samples == 0 || samples > most_median_samples || from.buffer == to.buffer) {
    return fail_argument("size", "median of {} x {} x {}: 1 to {} samples, to another volume", sizes[0], sizes[1],
                         sizes[2], most_median_samples);
  }
  CGL_TRY(check_binds(from.shape));
  const MedianBoxRecord record{from.shape.z, from.shape.y, from.shape.x, sizes[0], sizes[1], sizes[2]};
  return backend_->launch(queue, OctKernel::median_box, record, {whole_range(from), whole_range(to)},
                          {from.shape.x, from.shape.y, from.shape.z});
}

Status OctKernels::blend_add(Queue& queue, const DeviceVolume& tile, const DeviceVolume& weights, Offset3 at,
                             DeviceVolume& sum, DeviceVolume& weight_sum) {
  CGL_TRY(check_shapes_equal(weights.shape, {1, tile.shape.y, tile.shape.x}, "blending, the weights"));
  CGL_TRY(check_shapes_equal(sum.shape, weight_sum.shape, "blending, the sums"));
  struct Part {
    std::uint32_t tile_first, sum_first, count;
  };
  const auto part = [](std::uint32_t tile_size, std::uint32_t sum_size, std::int32_t first) -> Part {
    const std::int64_t begin = std::max<std::int64_t>(0, first);
    const std::int64_t end = std::min<std::int64_t>(sum_size, std::int64_t{first} + tile_size);
    if (end <= begin) return {0, 0, 0};
    return {static_cast<std::uint32_t>(begin - first), static_cast<std::uint32_t>(begin),
            static_cast<std::uint32_t>(end - begin)};
  };
  const Part z = part(tile.shape.z, sum.shape.z, at.z);
  const Part y = part(tile.shape.y, sum.shape.y, at.y);
  const Part x = part(tile.shape.x, sum.shape.x, at.x);
  if (z.count == 0 || y.count == 0 || x.count == 0) return {};
  const std::uint64_t widest = std::max(tile.shape.plane(), sum.shape.plane());
  if (widest > most_elements_) return check_binds({1, sum.shape.y, sum.shape.x});
  return for_each_slab(z.count, widest, most_elements_, [&](std::uint32_t first, std::uint32_t planes) {
    const BlendAddRecord record{planes,       y.count,     x.count,     y.tile_first, x.tile_first, tile.shape.y,
                                tile.shape.x, y.sum_first, x.sum_first, sum.shape.y,  sum.shape.x};
    return backend_->launch(
        queue, OctKernel::blend_add, record,
        {planes_range(tile, z.tile_first + first, planes), whole_range(weights),
         planes_range(sum, z.sum_first + first, planes), planes_range(weight_sum, z.sum_first + first, planes)},
        {x.count, y.count, planes});
  });
}

Status OctKernels::blend_finish(Queue& queue, const DeviceVolume& sum, const DeviceVolume& weight_sum,
                                DeviceVolume& to) {
  CGL_TRY(check_shapes_equal(sum.shape, weight_sum.shape, "blending"));
  CGL_TRY(check_shapes_equal(sum.shape, to.shape, "blending"));
  CGL_TRY(check_binds({1, to.shape.y, to.shape.x}));
  return for_each_slab(to.shape.z, to.shape.plane(), most_elements_, [&](std::uint32_t first, std::uint32_t planes) {
    const auto range = [&](const DeviceVolume& volume) { return planes_range(volume, first, planes); };
    return backend_->launch(queue, OctKernel::blend_finish, BlendFinishRecord{planes, to.shape.y, to.shape.x},
                            {range(sum), range(weight_sum), range(to)}, {to.shape.x, to.shape.y, planes});
  });
}

Result<std::vector<double>> OctKernels::axial_profile(Queue& queue, const DeviceVolume& volume,
                                                      const DeviceVolume& weights) {
  const VolumeShape& shape = volume.shape;
  CGL_TRY(check_shapes_equal(weights.shape, {1, shape.y, shape.x}, "profile, the weights"));
  PlaneProduct one;
  one.rows = shape.y;
  one.columns = shape.x;
  std::vector<PlaneProduct> products(shape.z, one);
  for (std::uint32_t z = 0; z < shape.z; ++z) products[z].a_z = z;
  one.kind = ProductKind::sum;
  CGL_TRY_ASSIGN(const std::vector<float> total,
                 plane_products(queue, weights, weights, 0.0f, 0.0f, std::span(&one, 1)));
  if (!(total[0] > 0.0f)) return fail(ErrorKind::invalid_argument, "profile: no A-line has a weight");
  CGL_TRY_ASSIGN(const std::vector<float> sums, plane_products(queue, volume, weights, 0.0f, 0.0f, products));
  std::vector<double> profile;
  for (const float sum : sums) profile.push_back(static_cast<double>(sum) / static_cast<double>(total[0]));
  return profile;
}

Status OctKernels::find_attenuation(Queue& queue, const DeviceVolume& volume, const DeviceVolume& tails,
                                    double tail_factor, double step, DeviceVolume& to) {
  const VolumeShape& shape = volume.shape;
  CGL_TRY(check_shapes_equal(tails.shape, {1, shape.y, shape.x}, "attenuation, the tails"));
  CGL_TRY(check_shapes_equal(shape, to.shape, "attenuation"));
  if (!(step > 0.0)) return fail_argument("step", "attenuation: steps of {}; above 0", step);
  CGL_TRY(check_binds(shape));
  const AttenuationRecord record{shape.z, shape.y, shape.x, static_cast<float>(tail_factor),
                                 static_cast<float>(1.0 / (2.0 * step))};
  return backend_->launch(queue, OctKernel::attenuation_lines, record,
                          {whole_range(volume), whole_range(tails), whole_range(to)}, {shape.x, shape.y, 1});
}

Status OctKernels::compensate_attenuation(Queue& queue, const DeviceVolume& volume, const DeviceVolume& attenuation,
                                          double step, double strength, double least, DeviceVolume& to) {
  const VolumeShape& shape = volume.shape;
  CGL_TRY(check_shapes_equal(shape, attenuation.shape, "compensation"));
  CGL_TRY(check_shapes_equal(shape, to.shape, "compensation"));
  if (!(least > 0.0)) return fail_argument("least", "compensation: least share {}; above 0", least);
  CGL_TRY(check_binds(shape));
  const CompensationRecord record{shape.z,
                                  shape.y,
                                  shape.x,
                                  static_cast<float>(step),
                                  static_cast<float>(-2.0 * strength),
                                  static_cast<float>(least)};
  return backend_->launch(queue, OctKernel::compensate_lines, record,
                          {whole_range(volume), whole_range(attenuation), whole_range(to)}, {shape.x, shape.y, 1});
}

}  // namespace cingulum::oct
