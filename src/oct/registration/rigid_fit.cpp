#include "oct/registration/rigid_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/bulk_memory.hpp"
#include "oct/placement/ncc_window.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

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

}  // namespace

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

}  // namespace cingulum::oct
