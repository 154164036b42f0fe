#include "oct/registration/slice_registration.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "numerics/elementary64.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/ncc_window.hpp"

namespace cingulum::oct {
namespace {

// Where a pixel of fixed lies in moving, the inverse of what is reported: q = R(turn) (x - centre) + centre + move.
struct PullBack {
  double turn = 0;
  std::array<double, 2> move = {0, 0};
};

// An image and where it shows something: 1 there, 0 where no tile was. What lies outside is no edge to be matched.
struct SeenImage {
  HostImage image;
  HostImage seen;
};
constexpr double fully_seen = 0.999;  // of a value between pixels, or of several of them

SeenImage all_seen(const HostImage& image) {
  SeenImage result{image, image};
  std::fill(result.seen.values.begin(), result.seen.values.end(), 1.0);
  return result;
}

HostImage halve(const HostImage& image, std::size_t factor) {
  HostImage result(std::max<std::size_t>(1, image.rows / factor), std::max<std::size_t>(1, image.columns / factor));
  for (std::size_t r = 0; r < result.rows; ++r) {
    for (std::size_t c = 0; c < result.columns; ++c) {
      double sum = 0;
      for (std::size_t y = 0; y < factor; ++y) {
        for (std::size_t x = 0; x < factor; ++x) {
          sum += image.at(std::min(r * factor + y, image.rows - 1), std::min(c * factor + x, image.columns - 1));
        }
      }
      result.at(r, c) = sum / static_cast<double>(factor * factor);
    }
  }
  return result;
}

SeenImage halve(const SeenImage& image, std::size_t factor) {
  return {halve(image.image, factor), halve(image.seen, factor)};
}

// Moving as it looks in fixed's frame, with the correlation where both are.
struct Warped {
  HostImage image;
  std::vector<bool> inside;
  double ncc = 0;
  double pixels = 0;
};

Warped warp(const SeenImage& fixed_seen, const SeenImage& moving_seen, const PullBack& pull) {
  const HostImage& fixed = fixed_seen.image;
  const HostImage& moving = moving_seen.image;
  Warped warped{HostImage(fixed.rows, fixed.columns), std::vector<bool>(fixed.values.size(), false), 0, 0};
  const numerics::SineCosine<double> turn = numerics::sine_cosine(pull.turn);
  const double row_centre = static_cast<double>(fixed.rows - 1) / 2;
  const double column_centre = static_cast<double>(fixed.columns - 1) / 2;
  double a = 0, b = 0, aa = 0, bb = 0, ab = 0;
  for (std::size_t r = 0; r < fixed.rows; ++r) {
    const double y = static_cast<double>(r) - row_centre;
    for (std::size_t c = 0; c < fixed.columns; ++c) {
      const double x = static_cast<double>(c) - column_centre;
      const std::size_t i = r * fixed.columns + c;
      const double row = turn.cosine * y - turn.sine * x + row_centre + pull.move[0];
      const double column = turn.sine * y + turn.cosine * x + column_centre + pull.move[1];
      double value = 0, seen = 0;
      if (fixed_seen.seen.values[i] < fully_seen || !sample_image(moving_seen.seen, row, column, seen) ||
          seen < fully_seen || !sample_image(moving, row, column, value)) {
        continue;
      }
      warped.inside[i] = true;
      warped.image.values[i] = value;
      const double f = fixed.values[i];
      a += f, b += value, aa += f * f, bb += value * value, ab += f * value;
      warped.pixels += 1;
    }
  }
  const double n = warped.pixels;
  if (n < 16) return warped;
  const double spread = (aa - a * a / n) * (bb - b * b / n);
  if (spread > 0) warped.ncc = (ab - a * b / n) / std::sqrt(spread);
  return warped;
}

// Gauss-Newton on fixed = gain moving(pull) + offset: gain and offset are fitted beside the three numbers.
bool refine(const SeenImage& fixed_seen, const SeenImage& moving_seen, PullBack& pull) {
  constexpr int most_steps = 40;
  const HostImage& fixed = fixed_seen.image;
  const HostImage& moving = moving_seen.image;
  const double row_centre = static_cast<double>(fixed.rows - 1) / 2;
  const double column_centre = static_cast<double>(fixed.columns - 1) / 2;
  const double radius = std::max(row_centre, column_centre);
  double last = warp(fixed_seen, moving_seen, pull).ncc;
  for (int step = 0; step < most_steps; ++step) {
    const numerics::SineCosine<double> turn = numerics::sine_cosine(pull.turn);
    Eigen::Matrix<double, 5, 5> normal = Eigen::Matrix<double, 5, 5>::Zero();
    Eigen::Matrix<double, 5, 1> right = Eigen::Matrix<double, 5, 1>::Zero();
    // The gain is that of the step before: a plain regression of fixed on moving.
    const Warped warped = warp(fixed_seen, moving_seen, pull);
    double a = 0, b = 0, bb = 0, ab = 0;
    for (std::size_t i = 0; i < fixed.values.size(); ++i) {
      if (!warped.inside[i]) continue;
      a += fixed.values[i], b += warped.image.values[i];
      bb += warped.image.values[i] * warped.image.values[i];
      ab += fixed.values[i] * warped.image.values[i];
    }
    if (warped.pixels < 16) return false;
    const double spread = bb - b * b / warped.pixels;
    const double gain = spread > 0 ? (ab - a * b / warped.pixels) / spread : 0;
    const double offset = (a - gain * b) / warped.pixels;
    if (!(gain > 0)) return false;
    for (std::size_t r = 0; r < fixed.rows; ++r) {
      const double y = static_cast<double>(r) - row_centre;
      for (std::size_t c = 0; c < fixed.columns; ++c) {
        const std::size_t i = r * fixed.columns + c;
        if (!warped.inside[i]) continue;
        const double x = static_cast<double>(c) - column_centre;
        const double row = turn.cosine * y - turn.sine * x + row_centre + pull.move[0];
        const double column = turn.sine * y + turn.cosine * x + column_centre + pull.move[1];
        double above = 0, below = 0, left = 0, beside = 0;
        if (!sample_image(moving, row - 0.5, column, above) || !sample_image(moving, row + 0.5, column, below) ||
            !sample_image(moving, row, column - 0.5, left) || !sample_image(moving, row, column + 0.5, beside)) {
          continue;
        }
        const double by_row = below - above;
        const double by_column = beside - left;
        const double d_row = -turn.sine * y - turn.cosine * x;
        const double d_column = turn.cosine * y - turn.sine * x;
        Eigen::Matrix<double, 5, 1> terms;
        terms << gain * (by_row * d_row + by_column * d_column) / radius, gain * by_row, gain * by_column,
            warped.image.values[i], 1.0;
        const double residual = fixed.values[i] - gain * warped.image.values[i] - offset;
        normal += terms * terms.transpose();
        right += residual * terms;
      }
    }
    normal += Eigen::Matrix<double, 5, 5>::Identity() * (1e-12 * normal.trace());
    const Eigen::Matrix<double, 5, 1> change = normal.ldlt().solve(right);
    PullBack next = pull;
    next.turn += change(0) / radius;
    next.move[0] += change(1);
    next.move[1] += change(2);
    const double ncc = warp(fixed_seen, moving_seen, next).ncc;
    if (ncc < last - 1e-9) return true;  // no better: where it stood is the place
    pull = next;
    last = ncc;
    if (std::abs(change(0)) < 1e-3 && std::abs(change(1)) < 1e-3 && std::abs(change(2)) < 1e-3) return true;
  }
  return false;
}

// A rough start: for some angles the best whole-pixel shift.
PullBack search_start(const SeenImage& fixed_seen, const SeenImage& moving, const RegistrationOptions& options,
                      double factor) {
  const HostImage& fixed = fixed_seen.image;
  PullBack best;
  double best_ncc = -2;
  const double mean = median(fixed.values);
  std::vector<float> fixed_values;
  for (std::size_t i = 0; i < fixed.values.size(); ++i) {
    fixed_values.push_back(static_cast<float>(fixed_seen.seen.values[i] < fully_seen ? mean : fixed.values[i]));
  }
  const double most = options.max_rotation_deg;
  const int steps = std::max(0, static_cast<int>(std::ceil(most)));
  for (int i = -steps; i <= steps; ++i) {
    const double turn = (steps > 0 ? most * i / steps : 0.0) * radians_per_degree;
    PullBack pull{turn, {0, 0}};
    // Fixed's frame, moving turned about its centre; outside it holds the mean.
    const Warped turned = warp(all_seen(fixed), moving, pull);
    std::vector<float> values(turned.image.values.size());
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<float>(turned.inside[k] ? turned.image.values[k] : mean);
    }
    ShiftWindow window;
    window.row = std::lround(options.start_px[0] / factor);
    window.column = std::lround(options.start_px[1] / factor);
    window.row_reach = window.column_reach = static_cast<std::size_t>(std::ceil(options.max_shift_px / factor));
    const ImagePair pair{{fixed_values.data(), fixed.rows, fixed.columns}, {values.data(), fixed.rows, fixed.columns}};
    const NccPeak peak = find_peak({&pair, 1}, static_cast<float>(mean), window,
                                   std::max<std::uint64_t>(16, fixed.values.size() / 4), plane_terms_on_host);
    if (!peak.found || peak.ncc <= best_ncc) continue;
    best_ncc = peak.ncc;
    // Moving's pixel p lies over p + shift of fixed, after the turn: q = R(turn) (x - shift - centre) + centre.
    const numerics::SineCosine<double> by = numerics::sine_cosine(turn);
    best.turn = turn;
    best.move = {-(by.cosine * peak.shift[0] - by.sine * peak.shift[1]),
                 -(by.sine * peak.shift[0] + by.cosine * peak.shift[1])};
  }
  return best;
}

// The logarithm of the mean of some planes, smoothed. A pixel that is empty in one of them, or near to such a one, is
// not seen.
SeenImage slab(const HostVolume& volume, std::size_t first, std::size_t count, double smoothing_px) {
  SeenImage slab = all_seen(HostImage(volume.rows, volume.columns));
  for (std::size_t z = first; z < first + count; ++z) {
    const std::span<const float> plane = volume.plane(z);
    for (std::size_t i = 0; i < plane.size(); ++i) {
      slab.image.values[i] += static_cast<double>(plane[i]);
      if (!(plane[i] > 0)) slab.seen.values[i] = 0;
    }
  }
  std::vector<double> logarithms;
  for (std::size_t i = 0; i < slab.image.values.size(); ++i) {
    if (slab.seen.values[i] == 0) continue;
    slab.image.values[i] = numerics::logarithm(slab.image.values[i]);
    logarithms.push_back(slab.image.values[i]);
  }
  const double middle = median(std::move(logarithms));
  for (std::size_t i = 0; i < slab.image.values.size(); ++i) {
    if (slab.seen.values[i] == 0) slab.image.values[i] = middle;
  }
  slab.image = smooth_image(slab.image, smoothing_px);
  // A smoothed mask is 1 where the window meets seen pixels alone.
  slab.seen = smooth_image(slab.seen, smoothing_px);
  for (double& value : slab.seen.values) value = value < fully_seen ? 0 : 1;
  return slab;
}

// 5 % to 95 % of the values count, what is beyond is cut.
void stretch(SeenImage& slab) {
  std::vector<double> values;
  for (std::size_t i = 0; i < slab.image.values.size(); ++i) {
    if (slab.seen.values[i] > 0) values.push_back(slab.image.values[i]);
  }
  const double low = percentile(values, 0.05);
  const double high = percentile(std::move(values), 0.95);
  for (double& value : slab.image.values) value = std::clamp(value, low, high);
}

// The correlation of the middle half, where both are seen.
double middle_correlation(const HostImage& image, const Warped& other) {
  double n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0;
  const std::size_t rows = std::max<std::size_t>(1, image.rows / 2);
  const std::size_t columns = std::max<std::size_t>(1, image.columns / 2);
  for (std::size_t r = image.rows / 4; r < image.rows / 4 + rows; ++r) {
    for (std::size_t c = image.columns / 4; c < image.columns / 4 + columns; ++c) {
      if (!other.inside[r * image.columns + c]) continue;
      const double x = image.at(r, c), y = other.image.at(r, c);
      n += 1, a += x, b += y, aa += x * x, bb += y * y, ab += x * y;
    }
  }
  constexpr double least_pixels = 16;
  if (n < least_pixels) return 0;
  const double spread = (aa - a * a / n) * (bb - b * b / n);
  return spread > 0 ? (ab - a * b / n) / std::sqrt(spread) : 0;
}

PullBack inverse_of(const RigidFit& fit) {
  const double angle = fit.rotation_deg * radians_per_degree;
  const numerics::SineCosine<double> turn = numerics::sine_cosine(-angle);
  return {-angle,
          {-(turn.cosine * fit.shift_px[0] - turn.sine * fit.shift_px[1]),
           -(turn.sine * fit.shift_px[0] + turn.cosine * fit.shift_px[1])}};
}

RigidFit register_seen(const SeenImage& fixed, const SeenImage& moving, const RegistrationOptions& options) {
  PullBack pull;
  bool started = false;
  bool converged = false;
  for (const std::size_t factor : {std::size_t{4}, std::size_t{2}, std::size_t{1}}) {
    const std::size_t smallest =
        std::min({fixed.image.rows, fixed.image.columns, moving.image.rows, moving.image.columns});
    if (smallest < 16 * factor) continue;
    const SeenImage fixed_level = factor == 1 ? fixed : halve(fixed, factor);
    const SeenImage moving_level = factor == 1 ? moving : halve(moving, factor);
    const double f = static_cast<double>(factor);
    if (!started) {
      pull = search_start(fixed_level, moving_level, options, f);
      pull.move = {pull.move[0] * f, pull.move[1] * f};
      started = true;
    }
    PullBack level{pull.turn, {pull.move[0] / f, pull.move[1] / f}};
    converged = refine(fixed_level, moving_level, level);
    pull = {level.turn, {level.move[0] * f, level.move[1] * f}};
  }
  RigidFit fit;
  fit.converged = converged;
  fit.ncc = warp(fixed, moving, pull).ncc;
  fit.rotation_deg = -pull.turn / radians_per_degree;
  const numerics::SineCosine<double> turn = numerics::sine_cosine(-pull.turn);
  fit.shift_px = {-(turn.cosine * pull.move[0] - turn.sine * pull.move[1]),
                  -(turn.sine * pull.move[0] + turn.cosine * pull.move[1])};
  return fit;
}

}  // namespace

RigidFit register_images(const HostImage& fixed, const HostImage& moving, const RegistrationOptions& options) {
  return register_seen(all_seen(fixed), all_seen(moving), options);
}

Result<SliceRegistration> register_slices(const HostVolume& fixed, const HostVolume& moving,
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
  const SeenImage moving_image = slab(moving, options.moving_plane, options.planes, options.smoothing_px);
  SeenImage moving_stretched = moving_image;
  stretch(moving_stretched);
  SliceRegistration found;
  std::ptrdiff_t plane = std::clamp(expected, low, high);
  // Depth and turn are found in turns, since each needs the other: two rounds, and the turn once more at its depth.
  for (int round = 0; round < 3; ++round) {
    const SeenImage fixed_image = slab(fixed, static_cast<std::size_t>(plane), options.planes, options.smoothing_px);
    found.rigid = register_seen(fixed_image, moving_image, options);
    if (round == 2) break;
    const PullBack pull = inverse_of(found.rigid);
    std::vector<double> correlation;
    std::ptrdiff_t best = low;
    for (std::ptrdiff_t z = low; z <= high; ++z) {
      SeenImage candidate = slab(fixed, static_cast<std::size_t>(z), options.planes, options.smoothing_px);
      stretch(candidate);
      correlation.push_back(middle_correlation(candidate.image, warp(candidate, moving_stretched, pull)));
      if (correlation.back() > correlation[static_cast<std::size_t>(best - low)]) best = z;
    }
    const auto at = static_cast<std::size_t>(best - low);
    found.z_ncc = correlation[at];
    found.at_border = best == low || best == high;
    double part = 0;
    if (!found.at_border) {
      const double bend = correlation[at - 1] - 2 * correlation[at] + correlation[at + 1];
      if (bend < 0) part = std::clamp(0.5 * (correlation[at - 1] - correlation[at + 1]) / bend, -0.5, 0.5);
    }
    found.interval_planes = static_cast<double>(best) + part - static_cast<double>(options.moving_plane);
    if (best == plane && round == 0) break;
    plane = best;
  }
  const double shift =
      length_of(found.rigid.shift_px[0] - options.start_px[0], found.rigid.shift_px[1] - options.start_px[1]);
  const double shift_share = std::min(1.0, shift / std::max(1e-9, options.max_shift_px));
  const double turn_share =
      std::min(1.0, std::abs(found.rigid.rotation_deg) / std::max(1e-9, options.max_rotation_deg));
  found.confidence = 0.5 * std::clamp(found.z_ncc, 0.0, 1.0) + 0.3 * (1 - shift_share) + 0.2 * (1 - turn_share);
  return found;
}

}  // namespace cingulum::oct
