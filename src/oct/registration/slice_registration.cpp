#include "oct/registration/slice_registration.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/bulk_memory.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack_elementary.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/ncc_window.hpp"
#include "oct/volume/shared_loop.hpp"

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
  std::vector<std::uint8_t> inside;
  double ncc = 0;
  double pixels = 0;
};

// The place in moving of a pixel of fixed, and what moving shows there.
class MovingSampler {
 public:
  MovingSampler(const SeenImage& fixed, const SeenImage& moving, const PullBack& pull)
      : fixed_(fixed),
        moving_(moving),
        pull_(pull),
        turn_(numerics::sine_cosine(pull.turn)),
        row_centre_(static_cast<double>(fixed.image.rows - 1) / 2),
        column_centre_(static_cast<double>(fixed.image.columns - 1) / 2) {}

  // False where one of both is not seen.
  [[nodiscard]] bool sample(std::size_t r, std::size_t c, double& value) const {
    const double y = static_cast<double>(r) - row_centre_;
    const double x = static_cast<double>(c) - column_centre_;
    const double row = turn_.cosine * y - turn_.sine * x + row_centre_ + pull_.move[0];
    const double column = turn_.sine * y + turn_.cosine * x + column_centre_ + pull_.move[1];
    double seen = 0;
    return !(fixed_.seen.at(r, c) < fully_seen) && sample_image(moving_.seen, row, column, seen) &&
           !(seen < fully_seen) && sample_image(moving_.image, row, column, value);
  }

 private:
  const SeenImage& fixed_;
  const SeenImage& moving_;
  const PullBack& pull_;
  numerics::SineCosine<double> turn_;
  double row_centre_, column_centre_;
};

Warped warp(const SeenImage& fixed_seen, const SeenImage& moving_seen, const PullBack& pull, ThreadPool* pool) {
  const HostImage& fixed = fixed_seen.image;
  Warped warped{HostImage(fixed.rows, fixed.columns), std::vector<std::uint8_t>(fixed.values.size(), 0), 0, 0};
  const MovingSampler sampler(fixed_seen, moving_seen, pull);
  for_each_index(pool, fixed.rows, [&](std::size_t r) {
    for (std::size_t c = 0; c < fixed.columns; ++c) {
      double value = 0;
      if (!sampler.sample(r, c, value)) continue;
      warped.inside[r * fixed.columns + c] = 1;
      warped.image.at(r, c) = value;
    }
  });
  // One sum over all pixels in their order, whatever the threads.
  double a = 0, b = 0, aa = 0, bb = 0, ab = 0;
  for (std::size_t i = 0; i < fixed.values.size(); ++i) {
    if (warped.inside[i] == 0) continue;
    const double f = fixed.values[i], value = warped.image.values[i];
    a += f, b += value, aa += f * f, bb += value * value, ab += f * value;
    warped.pixels += 1;
  }
  const double n = warped.pixels;
  if (n < 16) return warped;
  const double spread = (aa - a * a / n) * (bb - b * b / n);
  if (spread > 0) warped.ncc = (ab - a * b / n) / std::sqrt(spread);
  return warped;
}

// Gauss-Newton on fixed = gain moving(pull) + offset: gain and offset are fitted beside the three numbers. What a pixel
// adds to the equations is made by all threads, a band of rows at a time; each sum then goes through the pixels in
// their order, whatever the threads, and different sums by different threads.
class StepEquations {
 public:
  static constexpr std::size_t unknowns = 5;
  using Matrix = Eigen::Matrix<double, unknowns, unknowns>;
  using Vector = Eigen::Matrix<double, unknowns, 1>;

  StepEquations(const HostImage& fixed, const HostImage& moving, const PullBack& pull, double radius)
      : fixed_(fixed),
        moving_(moving),
        pull_(pull),
        turn_(numerics::sine_cosine(pull.turn)),
        row_centre_(static_cast<double>(fixed.rows - 1) / 2),
        column_centre_(static_cast<double>(fixed.columns - 1) / 2),
        radius_(radius) {}

  void sum(const Warped& warped, double gain, double offset, ThreadPool* pool, Matrix& normal, Vector& right) {
    normal.setZero();
    right.setZero();
    for (auto& term : terms_) term.resize(rows_of_band * fixed_.columns);
    for (std::size_t first = 0; first < fixed_.rows; first += rows_of_band) {
      const std::size_t rows = std::min(rows_of_band, fixed_.rows - first);
      for_each_index(pool, rows, [&](std::size_t row) { make_row(warped, gain, offset, first + row, row); });
      const std::size_t pixels = rows * fixed_.columns;
      for_each_index(pool, unknowns, [&](std::size_t i) {
        for (std::size_t j = 0; j <= i; ++j) {
          normal(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
              sum_of_products(terms_[i].data(), terms_[j].data(), pixels,
                              normal(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)));
        }
        right(static_cast<Eigen::Index>(i)) =
            sum_of_products(terms_[unknowns].data(), terms_[i].data(), pixels, right(static_cast<Eigen::Index>(i)));
      });
    }
    normal = Matrix(normal.selfadjointView<Eigen::Lower>());
  }

 private:
  static constexpr std::size_t rows_of_band = 64;

  static double sum_of_products(const double* a, const double* b, std::size_t count, double sum) {
    for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }

  // A pixel that is not compared adds zeros, which change no sum.
  void make_row(const Warped& warped, double gain, double offset, std::size_t r, std::size_t row_of_band) {
    const double y = static_cast<double>(r) - row_centre_;
    for (std::size_t c = 0; c < fixed_.columns; ++c) {
      const std::size_t i = r * fixed_.columns + c;
      const std::size_t to = row_of_band * fixed_.columns + c;
      for (auto& term : terms_) term[to] = 0;
      if (!warped.inside[i]) continue;
      const double x = static_cast<double>(c) - column_centre_;
      const double row = turn_.cosine * y - turn_.sine * x + row_centre_ + pull_.move[0];
      const double column = turn_.sine * y + turn_.cosine * x + column_centre_ + pull_.move[1];
      double above = 0, below = 0, left = 0, beside = 0;
      if (!sample_image(moving_, row - 0.5, column, above) || !sample_image(moving_, row + 0.5, column, below) ||
          !sample_image(moving_, row, column - 0.5, left) || !sample_image(moving_, row, column + 0.5, beside)) {
        continue;
      }
      const double by_row = below - above;
      const double by_column = beside - left;
      const double d_row = -turn_.sine * y - turn_.cosine * x;
      const double d_column = turn_.cosine * y - turn_.sine * x;
      terms_[0][to] = gain * (by_row * d_row + by_column * d_column) / radius_;
      terms_[1][to] = gain * by_row;
      terms_[2][to] = gain * by_column;
      terms_[3][to] = warped.image.values[i];
      terms_[4][to] = 1.0;
      terms_[unknowns][to] = fixed_.values[i] - gain * warped.image.values[i] - offset;
    }
  }

  const HostImage& fixed_;
  const HostImage& moving_;
  const PullBack& pull_;
  numerics::SineCosine<double> turn_;
  double row_centre_, column_centre_, radius_;
  std::array<BulkVector<double>, unknowns + 1> terms_;  // of a band; the residual last
};

bool refine(const SeenImage& fixed_seen, const SeenImage& moving_seen, PullBack& pull, ThreadPool* pool) {
  constexpr int most_steps = 40;
  const HostImage& fixed = fixed_seen.image;
  const HostImage& moving = moving_seen.image;
  const double radius = std::max(static_cast<double>(fixed.rows - 1) / 2, static_cast<double>(fixed.columns - 1) / 2);
  Warped warped = warp(fixed_seen, moving_seen, pull, pool);
  for (int step = 0; step < most_steps; ++step) {
    // The gain is that of the step before: a plain regression of fixed on moving.
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
    StepEquations::Matrix normal;
    StepEquations::Vector right;
    StepEquations(fixed, moving, pull, radius).sum(warped, gain, offset, pool, normal, right);
    normal += StepEquations::Matrix::Identity() * (1e-12 * normal.trace());
    const StepEquations::Vector change = normal.ldlt().solve(right);
    PullBack next = pull;
    next.turn += change(0) / radius;
    next.move[0] += change(1);
    next.move[1] += change(2);
    const double last = warped.ncc;
    warped = warp(fixed_seen, moving_seen, next, pool);
    if (warped.ncc < last - 1e-9) return true;  // no better: where it stood is the place
    pull = next;
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
  const SeenImage frame = all_seen(fixed);
  const auto turn_at = [&](std::size_t angle) {
    const int i = static_cast<int>(angle) - steps;
    return (steps > 0 ? most * i / steps : 0.0) * radians_per_degree;
  };
  std::vector<NccPeak> peaks(2 * static_cast<std::size_t>(steps) + 1);
  for_each_index(options.pool, peaks.size(), [&](std::size_t angle) {
    const PullBack pull{turn_at(angle), {0, 0}};
    // Fixed's frame, moving turned about its centre; outside it holds the mean.
    const Warped turned = warp(frame, moving, pull, options.pool);
    std::vector<float> values(turned.image.values.size());
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<float>(turned.inside[k] ? turned.image.values[k] : mean);
    }
    ShiftWindow window;
    window.row = std::lround(options.start_px[0] / factor);
    window.column = std::lround(options.start_px[1] / factor);
    window.row_reach = window.column_reach = static_cast<std::size_t>(std::ceil(options.max_shift_px / factor));
    const ImagePair pair{{fixed_values.data(), fixed.rows, fixed.columns}, {values.data(), fixed.rows, fixed.columns}};
    peaks[angle] =
        find_peak({&pair, 1}, static_cast<float>(mean), window, std::max<std::uint64_t>(16, fixed.values.size() / 4));
  });
  for (std::size_t angle = 0; angle < peaks.size(); ++angle) {
    const NccPeak& peak = peaks[angle];
    if (!peak.found || peak.ncc <= best_ncc) continue;
    best_ncc = peak.ncc;
    // Moving's pixel p lies over p + shift of fixed, after the turn: q = R(turn) (x - shift - centre) + centre.
    const numerics::SineCosine<double> by = numerics::sine_cosine(turn_at(angle));
    best.turn = turn_at(angle);
    best.move = {-(by.cosine * peak.shift[0] - by.sine * peak.shift[1]),
                 -(by.sine * peak.shift[0] + by.cosine * peak.shift[1])};
  }
  return best;
}

// The logarithm of the sum over some planes of a row; `seen` is 1 where none of them is empty, else 0. The value is how
// many pixels are not seen.
std::size_t log_of_sum(const float* from, std::size_t plane, std::size_t planes, std::size_t columns, double* to,
                       double* seen) {
  std::size_t unseen = 0;
  numerics::with_packs<double>([=, &unseen]<class Number>() {
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0, here = 1;
      for (std::size_t z = 0; z < planes; ++z) {
        const float value = from[z * plane + c];
        sum += static_cast<double>(value);
        here = value > 0.0f ? here : 0.0;
      }
      to[c] = sum;
      seen[c] = here;
    }
    std::size_t c = 0;
    for (; c + Number::width <= columns; c += Number::width) numerics::logarithm(Number::load(to + c)).store(to + c);
    for (; c < columns; ++c) to[c] = numerics::logarithm(to[c]);
    for (c = 0; c < columns; ++c) unseen += seen[c] == 0.0 ? 1U : 0U;
  });
  return unseen;
}

// The logarithm of the mean of some planes, smoothed. A pixel that is empty in one of them, or near to such a one, is
// not seen.
SeenImage slab(const HostVolume& volume, std::size_t first, std::size_t count, double smoothing_px, ThreadPool* pool) {
  SeenImage slab = all_seen(HostImage(volume.rows, volume.columns));
  std::vector<std::size_t> unseen(volume.rows, 0);
  for_each_index(pool, volume.rows, [&](std::size_t row) {
    const std::size_t begin = row * volume.columns;
    unseen[row] = log_of_sum(volume.values.data() + first * volume.plane_size() + begin, volume.plane_size(), count,
                             volume.columns, slab.image.values.data() + begin, slab.seen.values.data() + begin);
  });
  const bool all = std::all_of(unseen.begin(), unseen.end(), [](std::size_t pixels) { return pixels == 0; });
  if (!all) {
    std::vector<double> logarithms;
    logarithms.reserve(slab.image.values.size());
    for (std::size_t i = 0; i < slab.image.values.size(); ++i) {
      if (slab.seen.values[i] != 0) logarithms.push_back(slab.image.values[i]);
    }
    const double middle = median(std::move(logarithms));
    for (std::size_t i = 0; i < slab.image.values.size(); ++i) {
      if (slab.seen.values[i] == 0) slab.image.values[i] = middle;
    }
  }
  slab.image = smooth_image(slab.image, smoothing_px, pool);
  // A smoothed mask is 1 where the window meets seen pixels alone.
  if (all) return slab;
  slab.seen = smooth_image(slab.seen, smoothing_px, pool);
  for (double& value : slab.seen.values) value = value < fully_seen ? 0 : 1;
  return slab;
}

// 5 % to 95 % of the values count, what is beyond is cut.
void stretch(SeenImage& slab) {
  std::vector<double> values;
  values.reserve(slab.image.values.size());
  for (std::size_t i = 0; i < slab.image.values.size(); ++i) {
    if (slab.seen.values[i] > 0) values.push_back(slab.image.values[i]);
  }
  const std::vector<double> ends = percentiles(values, std::array{0.05, 0.95});
  for (double& value : slab.image.values) value = std::clamp(value, ends[0], ends[1]);
}

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
    converged = refine(fixed_level, moving_level, level, options.pool);
    pull = {level.turn, {level.move[0] * f, level.move[1] * f}};
  }
  RigidFit fit;
  fit.converged = converged;
  fit.ncc = warp(fixed, moving, pull, options.pool).ncc;
  fit.rotation_deg = -pull.turn / radians_per_degree;
  const numerics::SineCosine<double> turn = numerics::sine_cosine(-pull.turn);
  fit.shift_px = {-(turn.cosine * pull.move[0] - turn.sine * pull.move[1]),
                  -(turn.sine * pull.move[0] + turn.cosine * pull.move[1])};
  return fit;
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
    return slab(held_, first - held_first_, options_.planes, options_.smoothing_px, options_.pool);
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
          SeenImage candidate = slab(held_, first + i - held_first_, options_.planes, options_.smoothing_px, nullptr);
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
    moving_image = slab(planes, 0, options.planes, options.smoothing_px, options.pool);
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
