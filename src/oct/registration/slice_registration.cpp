#include "oct/registration/slice_registration.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "oct/registration/rigid_fit.hpp"
#include "oct/registration/seen_slab.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

// The middle half of an image.
struct MiddleHalf {
  std::size_t first_row, rows, first_column, columns;
  explicit MiddleHalf(const HostImage& image)
      : first_row(image.rows / 4),
        rows(std::max<std::size_t>(1, image.rows / 2)),
        first_column(image.columns / 4),
        columns(std::max<std::size_t>(1, image.columns / 2)) {}
};

// What an image shows in it, row by row.
struct MiddleValues {
  std::vector<double> values;
  std::vector<std::uint8_t> seen;
  explicit MiddleValues(const MiddleHalf& half) : values(half.rows * half.columns), seen(values.size(), 0) {}
};

MiddleValues middle_of(const SeenImage& image) {
  const MiddleHalf half(image.image);
  MiddleValues middle(half);
  for (std::size_t r = 0; r < half.rows; ++r) {
    for (std::size_t c = 0; c < half.columns; ++c) {
      const std::size_t i = r * half.columns + c;
      middle.values[i] = image.image.at(half.first_row + r, half.first_column + c);
      middle.seen[i] = image.seen.at(half.first_row + r, half.first_column + c) < fully_seen ? 0 : 1;
    }
  }
  return middle;
}

// Moving as it looks there: `frame` has the size of fixed, and all of it is seen.
MiddleValues moving_in_middle(const SeenImage& frame, const SeenImage& moving, const PullBack& pull, ThreadPool* pool) {
  const MiddleHalf half(frame.image);
  MiddleValues middle(half);
  const MovingSampler sampler(frame, moving, pull);
  for_each_index(pool, half.rows, [&](std::size_t r) {
    for (std::size_t c = 0; c < half.columns; ++c) {
      const std::size_t i = r * half.columns + c;
      middle.seen[i] = sampler.sample(half.first_row + r, half.first_column + c, middle.values[i]) ? 1 : 0;
    }
  });
  return middle;
}

// The correlation where both are seen.
double middle_correlation(const MiddleValues& fixed, const MiddleValues& moving) {
  double n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0;
  for (std::size_t i = 0; i < fixed.values.size(); ++i) {
    if (fixed.seen[i] == 0 || moving.seen[i] == 0) continue;
    const double x = fixed.values[i], y = moving.values[i];
    n += 1, a += x, b += y, aa += x * x, bb += y * y, ab += x * y;
  }
  constexpr double least_pixels = 16;
  if (n < least_pixels) return 0;
  const double spread = (aa - a * a / n) * (bb - b * b / n);
  return spread > 0 ? (ab - a * b / n) / std::sqrt(spread) : 0;
}

// The depth search: planes of fixed as many at a time as are allowed, and what their middles show, which is kept for
// the next round where memory is no concern.
class DepthSearch {
 public:
  // Planes [low, high] of fixed.
  DepthSearch(const SlicePlanes& fixed, std::ptrdiff_t low, std::ptrdiff_t high, const RegistrationOptions& options)
      : fixed_(fixed),
        options_(options),
        low_(static_cast<std::size_t>(low)),
        candidates_(static_cast<std::size_t>(high - low + 1)),
        group_(options.planes_at_a_time == 0 ? candidates_
                                             : std::clamp<std::size_t>(options.planes_at_a_time, 1, candidates_)),
        middles_(candidates_) {}

  // Reads all planes at once where that is allowed.
  [[nodiscard]] Status start() {
    return group_ == candidates_ ? hold(low_, candidates_ + options_.planes - 1) : Status();
  }

  // Fixed from a plane on, as it is registered.
  [[nodiscard]] Result<SeenImage> slab_at(std::size_t first) {
    CGL_TRY(hold(first, options_.planes));
    return seen_slab(held_, first - held_first_, options_.planes, options_.smoothing_px, options_.pool);
  }

  // The correlation of each candidate with what moving shows.
  [[nodiscard]] Result<std::vector<double>> correlate(const MiddleValues& moved) {
    std::vector<double> correlation(candidates_, 0.0);
    for (std::size_t begin = 0; begin < candidates_; begin += group_) {
      const std::size_t count = std::min(group_, candidates_ - begin);
      const std::size_t first = low_ + begin;
      CGL_TRY(hold(first, count + options_.planes - 1));
      for_each_index(options_.pool, count, [&](std::size_t i) {
        std::optional<MiddleValues>& middle = middles_[begin + i];
        if (!middle) {
          SeenImage candidate =
              seen_slab(held_, first + i - held_first_, options_.planes, options_.smoothing_px, nullptr);
          stretch(candidate);
          middle = middle_of(candidate);
        }
        correlation[begin + i] = middle_correlation(*middle, moved);
        if (options_.planes_at_a_time > 0) middle.reset();
      });
    }
    return correlation;
  }

 private:
  [[nodiscard]] Status hold(std::size_t first, std::size_t count) {
    if (first >= held_first_ && first + count <= held_first_ + held_.planes) return {};
    held_ = {};
    held_first_ = first;
    CGL_TRY_ASSIGN(held_, fixed_.read(first, count));
    return {};
  }

  const SlicePlanes& fixed_;
  const RegistrationOptions& options_;
  std::size_t low_, candidates_, group_;
  HostVolume held_;
  std::size_t held_first_ = 0;
  std::vector<std::optional<MiddleValues>> middles_;
};

// How far the greatest of three correlations lies behind the middle one, by the parabola through them.
double peak_part(const std::vector<double>& correlation, std::size_t at) {
  const double bend = correlation[at - 1] - 2 * correlation[at] + correlation[at + 1];
  return bend < 0 ? std::clamp(0.5 * (correlation[at - 1] - correlation[at + 1]) / bend, -0.5, 0.5) : 0;
}

double confidence_of(const SliceRegistration& found, const RegistrationOptions& options) {
  const double shift =
      length_of(found.rigid.shift_px[0] - options.start_px[0], found.rigid.shift_px[1] - options.start_px[1]);
  const double shift_share = std::min(1.0, shift / std::max(1e-9, options.max_shift_px));
  const double turn_share =
      std::min(1.0, std::abs(found.rigid.rotation_deg) / std::max(1e-9, options.max_rotation_deg));
  return 0.5 * std::clamp(found.z_ncc, 0.0, 1.0) + 0.3 * (1 - shift_share) + 0.2 * (1 - turn_share);
}

}  // namespace

SlicePlanes planes_of_volume(const HostVolume& volume) {
  return {volume.planes, [&volume](std::size_t first, std::size_t count) -> Result<HostVolume> {
            HostVolume planes(count, volume.rows, volume.columns);
            std::copy_n(volume.plane(first).begin(), planes.values.size(), planes.values.begin());
            return planes;
          }};
}

Result<SliceRegistration> register_slices(const SlicePlanes& fixed, const SlicePlanes& moving,
                                          const RegistrationOptions& options) {
  if (options.moving_plane + options.planes > moving.planes || options.planes == 0) {
    return fail(ErrorKind::corrupt, "registering slices: planes {} to {} are compared, the slice has {}",
                options.moving_plane, options.moving_plane + options.planes, moving.planes);
  }
  const auto reach = static_cast<std::ptrdiff_t>(options.search_planes);
  const std::ptrdiff_t expected =
      std::lround(options.expected_planes) + static_cast<std::ptrdiff_t>(options.moving_plane);
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(fixed.planes) - static_cast<std::ptrdiff_t>(options.planes);
  const std::ptrdiff_t low = std::max<std::ptrdiff_t>(0, expected - reach);
  const std::ptrdiff_t high = std::min(last, expected + reach);
  if (low > high) {
    return fail(ErrorKind::corrupt, "registering slices: an interval of {} planes leaves no overlap of {} planes",
                options.expected_planes, fixed.planes);
  }
  SeenImage moving_image;
  {
    CGL_TRY_ASSIGN(const HostVolume planes, moving.read(options.moving_plane, options.planes));
    moving_image = seen_slab(planes, 0, options.planes, options.smoothing_px, options.pool);
  }
  SeenImage moving_stretched = moving_image;
  stretch(moving_stretched);
  SliceRegistration found;
  std::ptrdiff_t plane = std::clamp(expected, low, high);
  DepthSearch search(fixed, low, high, options);
  CGL_TRY(search.start());
  SeenImage frame;  // of fixed
  // Depth and turn are found in turns, since each needs the other: two rounds, and the turn once more at its depth.
  for (int round = 0; round < 3; ++round) {
    {
      CGL_TRY_ASSIGN(const SeenImage fixed_image, search.slab_at(static_cast<std::size_t>(plane)));
      found.rigid = register_seen(fixed_image, moving_image, options);
      if (round == 0) frame = all_seen(HostImage(fixed_image.image.rows, fixed_image.image.columns));
    }
    if (round == 2) break;
    const MiddleValues moved = moving_in_middle(frame, moving_stretched, inverse_of(found.rigid), options.pool);
    CGL_TRY_ASSIGN(const std::vector<double> correlation, search.correlate(moved));
    const std::ptrdiff_t best = low + (std::max_element(correlation.begin(), correlation.end()) - correlation.begin());
    const auto at = static_cast<std::size_t>(best - low);
    found.z_ncc = correlation[at];
    found.at_border = best == low || best == high;
    const double part = found.at_border ? 0 : peak_part(correlation, at);
    found.interval_planes = static_cast<double>(best) + part - static_cast<double>(options.moving_plane);
    if (best == plane && round == 0) break;
    plane = best;
  }
  found.confidence = confidence_of(found, options);
  return found;
}

}  // namespace cingulum::oct
