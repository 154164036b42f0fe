#include "oct/placement/ncc_window.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace cingulum::oct {
namespace {

constexpr std::size_t lane_count = 32;
using Lanes = std::array<float, lane_count>;

// The tree that ends a lane sum of the contract. Steps are constants, so that each is a few vector additions.
template <std::size_t step = lane_count / 2>
float fold_lanes(Lanes& lanes) {
  for (std::size_t l = 0; l < step; ++l) lanes[l] = lanes[l] + lanes[l + step];
  if constexpr (step > 1) return fold_lanes<step / 2>(lanes);
  return lanes[0];
}

// An image less an offset, whose rows are followed by as many zeros as there are lanes.
class PaddedImage {
 public:
  PaddedImage(const ImageView& image, float offset) : stride_(image.columns + lane_count) {
    values_.assign(image.rows * stride_, 0.0f);
    for (std::size_t r = 0; r < image.rows; ++r) {
      const float* const from = image.values + r * image.columns;
      std::transform(from, from + image.columns, values_.begin() + static_cast<std::ptrdiff_t>(r * stride_),
                     [&](float value) { return value - offset; });
    }
    sums_.resize(image.rows);
  }

  // The pixels that shifts share from here on, up to another call. What was summed of others is forgotten.
  void begin(std::size_t first_column, std::size_t columns) {
    first_column_ = first_column;
    columns_ = columns;
    std::fill(sums_.begin(), sums_.end(), RowSums{});
  }
  [[nodiscard]] const float* row(std::size_t r) const { return values_.data() + r * stride_ + first_column_; }

  // Sums over a row. They do not depend on how far the other image is shifted along rows.
  struct RowSums {
    float sum = 0, square = 0;
    bool made = false;
  };
  [[nodiscard]] const RowSums& sums_of(std::size_t r) {
    if (!sums_[r].made) sums_[r] = sum_row(row(r));
    return sums_[r];
  }

 private:
  // Lanes begin at +0.0 where the contract's begin with their first term: equal but for the sign of a sum of zeros,
  // which no quotient sees.
  [[nodiscard]] RowSums sum_row(const float* values) const {
    Lanes sums{}, squares{};
    for (std::size_t first = 0; first < columns_; first += lane_count) {
      for (std::size_t lane = 0; lane < std::min(lane_count, columns_ - first); ++lane) {
        const float value = values[first + lane];
        sums[lane] += value;
        squares[lane] += value * value;
      }
    }
    return {fold_lanes(sums), fold_lanes(squares), true};
  }

  std::size_t stride_;
  std::vector<float> values_;
  std::size_t first_column_ = 0, columns_ = 0;
  std::vector<RowSums> sums_;
};

// The pixels that two images share end where one of them ends: behind them it holds zeros, whatever the other has, and
// lanes take whole vectors.
float row_product(const float* fixed, const float* moving, std::size_t count) {
  Lanes lanes{};
  for (std::size_t first = 0; first < count; first += lane_count) {
    for (std::size_t lane = 0; lane < lane_count; ++lane) lanes[lane] += fixed[first + lane] * moving[first + lane];
  }
  return fold_lanes(lanes);
}

// Where a parabola through three equally spaced values has its top, from -0.5 to 0.5.
double parabola_top(double before, double at, double behind) {
  const double bend = before - 2 * at + behind;
  if (!(bend < 0)) return 0;
  return std::clamp(0.5 * (before - behind) / bend, -0.5, 0.5);
}

}  // namespace

double ncc_of(std::span<const NccSums> images) {
  double fixed_spread = 0, moving_spread = 0, product = 0;
  for (const NccSums& sums : images) {
    if (sums.pixels < 2) return 0;
    const double n = static_cast<double>(sums.pixels);
    const double fixed = static_cast<double>(sums.fixed);
    const double moving = static_cast<double>(sums.moving);
    fixed_spread += static_cast<double>(sums.fixed_square) - fixed * fixed / n;
    moving_spread += static_cast<double>(sums.moving_square) - moving * moving / n;
    product += static_cast<double>(sums.product) - fixed * moving / n;
  }
  if (!(fixed_spread > 0 && moving_spread > 0)) return 0;
  return product / std::sqrt(fixed_spread * moving_spread);
}

void for_each_shift(std::array<std::size_t, 2> fixed, std::array<std::size_t, 2> moving, const ShiftWindow& window,
                    const std::function<void(const SharedPixels&)>& take) {
  const auto signed_of = [](std::size_t value) { return static_cast<std::ptrdiff_t>(value); };
  const auto unsigned_of = [](std::ptrdiff_t value) { return static_cast<std::size_t>(value); };
  for (std::ptrdiff_t dr = window.row - signed_of(window.row_reach); dr <= window.row + signed_of(window.row_reach);
       ++dr) {
    for (std::ptrdiff_t dc = window.column - signed_of(window.column_reach);
         dc <= window.column + signed_of(window.column_reach); ++dc) {
      const std::ptrdiff_t first_row = std::max<std::ptrdiff_t>(0, -dr);
      const std::ptrdiff_t end_row = std::min(signed_of(moving[0]), signed_of(fixed[0]) - dr);
      const std::ptrdiff_t first_column = std::max<std::ptrdiff_t>(0, -dc);
      const std::ptrdiff_t end_column = std::min(signed_of(moving[1]), signed_of(fixed[1]) - dc);
      if (first_row >= end_row || first_column >= end_column) {
        take({});
        continue;
      }
      take({unsigned_of(first_row + dr), unsigned_of(first_column + dc), unsigned_of(first_row),
            unsigned_of(first_column), unsigned_of(end_row - first_row), unsigned_of(end_column - first_column)});
    }
  }
}

std::vector<NccSums> plane_terms_on_host(const ImageView& fixed, const ImageView& moving, float offset,
                                         const ShiftWindow& window, std::span<const float> products) {
  std::vector<SharedPixels> shifts;
  shifts.reserve(window.count());
  for_each_shift({fixed.rows, fixed.columns}, {moving.rows, moving.columns}, window,
                 [&](const SharedPixels& shared) { shifts.push_back(shared); });
  std::vector<NccSums> terms(shifts.size());
  // Shifts along rows one after the other: but for the product they sum the same rows.
  PaddedImage fixed_rows(fixed, offset), moving_rows(moving, offset);
  const std::size_t column_shifts = 2 * window.column_reach + 1;
  for (std::size_t first = 0; first < column_shifts; ++first) {
    bool begun = false;
    for (std::size_t i = first; i < shifts.size(); i += column_shifts) {
      const SharedPixels& shared = shifts[i];
      if (shared.rows == 0) continue;
      if (!begun) {
        fixed_rows.begin(shared.fixed_column, shared.columns);
        moving_rows.begin(shared.moving_column, shared.columns);
        begun = true;
      }
      Lanes fixed_sum{}, fixed_square{}, moving_sum{}, moving_square{}, product{};
      for (std::size_t r = 0; r < shared.rows; ++r) {
        const std::size_t lane = r % lane_count, a = shared.fixed_row + r, b = shared.moving_row + r;
        const PaddedImage::RowSums& of_fixed = fixed_rows.sums_of(a);
        const PaddedImage::RowSums& of_moving = moving_rows.sums_of(b);
        fixed_sum[lane] += of_fixed.sum;
        fixed_square[lane] += of_fixed.square;
        moving_sum[lane] += of_moving.sum;
        moving_square[lane] += of_moving.square;
        if (products.empty()) {
          product[lane] += row_product(fixed_rows.row(a), moving_rows.row(b), shared.columns);
        }
      }
      terms[i] = {std::uint64_t{shared.rows} * shared.columns,
                  fold_lanes(fixed_sum),
                  fold_lanes(moving_sum),
                  fold_lanes(fixed_square),
                  fold_lanes(moving_square),
                  products.empty() ? fold_lanes(product) : products[i]};
    }
  }
  return terms;
}

NccPeak find_peak(std::span<const ImagePair> pairs, float offset, const ShiftWindow& window, std::uint64_t least_pixels,
                  std::span<const float> products) {
  // The sums of all pairs follow each other, shift by shift.
  std::vector<NccSums> sums(window.count() * pairs.size());
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const auto given = products.empty() ? products : products.subspan(p * window.count(), window.count());
    const std::vector<NccSums> own = plane_terms_on_host(pairs[p].fixed, pairs[p].moving, offset, window, given);
    for (std::size_t i = 0; i < own.size(); ++i) sums[i * pairs.size() + p] = own[i];
  }
  const std::size_t columns = 2 * window.column_reach + 1;
  const std::size_t rows = 2 * window.row_reach + 1;
  std::vector<double> ncc(window.count(), -1.0);
  NccPeak peak;
  std::size_t best = 0;
  for (std::size_t i = 0; i < ncc.size(); ++i) {
    const auto own = std::span<const NccSums>(sums).subspan(i * pairs.size(), pairs.size());
    if (own.front().pixels < least_pixels) continue;
    ncc[i] = ncc_of(own);
    if (!peak.found || ncc[i] > peak.ncc) {
      peak.found = true;
      peak.ncc = ncc[i];
      best = i;
    }
  }
  if (!peak.found) return peak;
  const std::size_t row = best / columns;
  const std::size_t column = best % columns;
  peak.at_border =
      (rows > 1 && (row == 0 || row + 1 == rows)) || (columns > 1 && (column == 0 || column + 1 == columns));
  const auto value = [&](std::size_t r, std::size_t c) { return ncc[r * columns + c]; };
  double row_part = 0, column_part = 0;
  if (row > 0 && row + 1 < rows) row_part = parabola_top(value(row - 1, column), peak.ncc, value(row + 1, column));
  if (column > 0 && column + 1 < columns) {
    column_part = parabola_top(value(row, column - 1), peak.ncc, value(row, column + 1));
  }
  peak.shift = {static_cast<double>(window.row - static_cast<std::ptrdiff_t>(window.row_reach)) +
                    static_cast<double>(row) + row_part,
                static_cast<double>(window.column - static_cast<std::ptrdiff_t>(window.column_reach)) +
                    static_cast<double>(column) + column_part};
  return peak;
}

}  // namespace cingulum::oct
