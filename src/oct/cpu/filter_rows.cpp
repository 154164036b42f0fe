// Filters along an axis on the CPU: neighbours in x are the lanes; along x, rows are.
#include <algorithm>

#include "numerics/pack.hpp"
#include "oct/cpu/host_kernels.hpp"
#include "oct/cpu/row_tile.hpp"
#include "oct/kernel/filter_item.hpp"
#include "oct/kernel/spline_line.hpp"

namespace cingulum::oct {
namespace {

// Values of a plane that one piece filters along z: the planes of a window stay in the nearest cache.
constexpr std::uint32_t values_per_piece = 1024;
constexpr std::uint32_t rows_per_piece = 64;

// One output of `width` lines that are neighbours: `samples` is sample 0 of the first line.
template <class Number>
CGL_INLINE void filter_lines(const std::uint32_t* table, std::uint32_t outputs, std::uint32_t output,
                             const float* samples, std::ptrdiff_t stride, std::uint64_t width, float* to) {
  constexpr std::uint64_t lanes = static_cast<std::uint64_t>(Number::width);
  const std::uint32_t first = table[output];
  const std::uint32_t count = table[outputs + output];
  const std::uint32_t* const weights = table + 4 * std::size_t{outputs} + table[2 * std::size_t{outputs} + output];
  const float bias = numerics::bits_float(table[3 * std::size_t{outputs} + output]);
  const float* const from = samples + static_cast<std::ptrdiff_t>(first) * stride;
  std::uint64_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes) {
    Number a = Number(bias), b = a, c = a, d = a;
    const float* at = from + i;
    for (std::uint32_t k = 0; k < count; ++k, at += stride) {
      const Number weight = Number(numerics::bits_float(weights[k]));
      a = a + weight * Number::load(at);
      b = b + weight * Number::load(at + lanes);
      c = c + weight * Number::load(at + 2 * lanes);
      d = d + weight * Number::load(at + 3 * lanes);
    }
    a.store(to + i);
    b.store(to + i + lanes);
    c.store(to + i + 2 * lanes);
    d.store(to + i + 3 * lanes);
  }
  for (; i < width; ++i) to[i] = filtered_sample(table, outputs, output, samples + i, stride);
}

std::uint32_t filter_pieces(const KernelPointers& call) {
  const auto record = call.record<FilterAxisRecord>();
  const std::uint64_t plane = std::uint64_t{record.out_y} * record.out_x;
  if (record.axis == 0) return static_cast<std::uint32_t>((plane + values_per_piece - 1) / values_per_piece);
  if (record.axis == 1) return record.out_z;
  const std::uint64_t rows = std::uint64_t{record.out_z} * record.out_y;
  return static_cast<std::uint32_t>((rows + rows_per_piece - 1) / rows_per_piece);
}

void filter_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<FilterAxisRecord>();
  const std::uint32_t* const table = call.words_at(1);
  const float* const in = call.at[0];
  float* const out = call.at[2];
  const std::uint64_t in_plane = std::uint64_t{record.in_y} * record.in_x;
  const std::uint64_t out_plane = std::uint64_t{record.out_y} * record.out_x;
  numerics::with_packs<float>([&]<class Number>() {
    if (record.axis == 0) {
      const std::uint64_t first = std::uint64_t{piece} * values_per_piece;
      const std::uint64_t width = std::min<std::uint64_t>(values_per_piece, out_plane - first);
      const float* const samples = in - std::ptrdiff_t{record.in_first_z} * static_cast<std::ptrdiff_t>(in_plane) +
                                   static_cast<std::ptrdiff_t>(first);
      for (std::uint32_t o = 0; o < record.out_z; ++o) {
        filter_lines<Number>(table, record.outputs, record.out_first_z + o, samples,
                             static_cast<std::ptrdiff_t>(in_plane), width, out + o * out_plane + first);
      }
    } else if (record.axis == 1) {
      const float* const samples =
          in + static_cast<std::ptrdiff_t>(std::uint64_t{record.out_first_z} + piece - record.in_first_z) *
                   static_cast<std::ptrdiff_t>(in_plane);
      for (std::uint32_t o = 0; o < record.out_y; ++o) {
        filter_lines<Number>(table, record.outputs, o, samples, record.in_x, record.out_x,
                             out + piece * out_plane + std::uint64_t{o} * record.out_x);
      }
    } else {
      constexpr auto lanes = static_cast<std::uint64_t>(Number::width);
      const std::uint64_t rows = std::uint64_t{record.out_z} * record.out_y;
      const std::uint64_t first = std::uint64_t{piece} * rows_per_piece;
      const std::uint64_t end = std::min(first + rows_per_piece, rows);
      std::vector<float> tile(lanes * (std::uint64_t{record.in_x} + record.out_x));
      float* const filtered = tile.data() + lanes * record.in_x;
      const float* const rows_in = in + (record.out_first_z - record.in_first_z) * in_plane;
      for (std::uint64_t row = first; row < end; row += lanes) {
        load_rows<Number>(rows_in, row, end, record.in_x, tile.data());
        for (std::uint32_t o = 0; o < record.out_x; ++o) {
          const std::uint32_t* const weights =
              table + 4 * std::size_t{record.outputs} + table[2 * std::size_t{record.outputs} + o];
          Number sum = Number(numerics::bits_float(table[3 * std::size_t{record.outputs} + o]));
          const float* at = tile.data() + lanes * table[o];
          const std::uint32_t count = table[record.outputs + o];
          for (std::uint32_t k = 0; k < count; ++k, at += lanes) {
            sum = sum + Number(numerics::bits_float(weights[k])) * Number::load(at);
          }
          sum.store(filtered + lanes * o);
        }
        store_rows<Number>(filtered, row, end, record.out_x, out);
      }
    }
  });
}

std::uint32_t spline_pieces(const KernelPointers& call) {
  const auto record = call.record<SplineAxisRecord>();
  if (record.axis == 0) {
    const std::uint64_t plane = std::uint64_t{record.y} * record.x;
    return static_cast<std::uint32_t>((plane + values_per_piece - 1) / values_per_piece);
  }
  if (record.axis == 1) return record.z;
  const std::uint64_t rows = std::uint64_t{record.z} * record.y;
  return static_cast<std::uint32_t>((rows + rows_per_piece - 1) / rows_per_piece);
}

// Lines that are neighbours in x, `stride` from sample to sample.
template <class Number>
CGL_INLINE void spline_lines(float* first, std::uint64_t width, std::uint32_t count, std::uint64_t stride,
                             bool half_sample) {
  std::uint64_t i = 0;
  for (; i + static_cast<std::uint64_t>(Number::width) <= width; i += static_cast<std::uint64_t>(Number::width)) {
    spline_coefficients<Number>(
        count, half_sample, [&](std::uint32_t k) { return Number::load(first + i + k * stride); },
        [&](std::uint32_t k, Number value) { value.store(first + i + k * stride); });
  }
  for (; i < width; ++i) {
    spline_coefficients<float>(
        count, half_sample, [&](std::uint32_t k) { return first[i + k * stride]; },
        [&](std::uint32_t k, float value) { first[i + k * stride] = value; });
  }
}

void spline_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<SplineAxisRecord>();
  float* const volume = call.at[0];
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const bool half_sample = record.half_sample != 0;
  numerics::with_packs<float>([&]<class Number>() {
    if (record.axis == 0) {
      const std::uint64_t first = std::uint64_t{piece} * values_per_piece;
      spline_lines<Number>(volume + first, std::min<std::uint64_t>(values_per_piece, plane - first), record.z, plane,
                           half_sample);
    } else if (record.axis == 1) {
      spline_lines<Number>(volume + piece * plane, record.x, record.y, record.x, half_sample);
    } else {
      constexpr auto lanes = static_cast<std::uint64_t>(Number::width);
      const std::uint64_t rows = std::uint64_t{record.z} * record.y;
      const std::uint64_t first = std::uint64_t{piece} * rows_per_piece;
      const std::uint64_t end = std::min(first + rows_per_piece, rows);
      std::vector<float> tile(lanes * record.x);
      for (std::uint64_t row = first; row < end; row += lanes) {
        load_rows<Number>(volume, row, end, record.x, tile.data());
        spline_coefficients<Number>(
            record.x, half_sample, [&](std::uint32_t k) { return Number::load(tile.data() + lanes * k); },
            [&](std::uint32_t k, Number value) { value.store(tile.data() + lanes * k); });
        store_rows<Number>(tile.data(), row, end, record.x, volume);
      }
    }
  });
}

}  // namespace

constinit const HostKernel host_filter_axis = {filter_pieces, filter_piece};
constinit const HostKernel host_spline_axis = {spline_pieces, spline_piece};

}  // namespace cingulum::oct
