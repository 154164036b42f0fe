// The tissue interface of an A-line: the logarithm that goes before, and the peak of the derivative along z, found
// while the responses are made. `Number` is float, or a Pack of neighbouring lines. Mirrored by webgpu/log_box.wgsl and
// webgpu/derivative_peak.wgsl.
#pragma once

#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/pack.hpp"
#include "numerics/portable.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/line_index.hpp"

namespace cingulum::oct {

// Zero and negative values pass through.
CGL_HD inline float tissue_log(float value) {
  return value > 0.0f ? numerics::logarithm(value) : value;
}

// The first of the greatest responses, by `>`, and those beside it.
template <class Number, class Mask>
struct PeakOf {
  Number best;
  Number at;
  Number before;
  Number after;
  Number previous;
  Mask fresh;  // the peak is the response before this one

  CGL_HD inline void begin(Number response) {
    best = response;
    at = Number(0.0f);
    before = response;
    after = response;
    previous = response;
    fresh = Number(0.0f) < Number(1.0f);
  }
  CGL_HD inline void consider(float position, Number response) {
    using numerics::select;
    const Mask better = response > best;
    after = select(fresh & !better, response, after);
    before = select(better, previous, before);
    best = select(better, response, best);
    at = select(better, Number(position), at);
    fresh = better;
    previous = response;
  }
};
using LinePeak = PeakOf<float, bool>;

// Responses of a line of `count` samples to `padded` weights: peak_batch - 1 zeros, 2 radius + 1 weights, as many
// zeros. load(i) gives sample i.
CGL_HD_GENERIC
template <class Number, class Mask, class Load>
CGL_HD inline PeakOf<Number, Mask> find_peak(std::uint32_t count, std::uint32_t radius, const float* padded,
                                             bool magnitude, Load&& load) {
  using numerics::select;
  PeakOf<Number, Mask> peak{};
  for (std::uint32_t first = 0; first < count; first += peak_batch) {
    Number sums[peak_batch];
    Number weights[peak_batch];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t b = 0; b < peak_batch; ++b) {
      sums[b] = Number(0.0f);
      weights[b] = Number(0.0f);
    }
    const std::uint32_t samples = peak_batch + 2 * radius;
    const auto add_samples = [&](auto&& index_of) {
#if defined(__CUDA_ARCH__)
#pragma unroll 8
#endif
      for (std::uint32_t j = 0; j < samples; ++j) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (std::uint32_t b = peak_batch - 1; b > 0; --b) weights[b] = weights[b - 1];
        weights[0] = Number(padded[j + peak_batch - 1]);
        const Number sample = load(index_of(j));
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (std::uint32_t b = 0; b < peak_batch; ++b) sums[b] = sums[b] + weights[b] * sample;
      }
    };
    // Away from the ends nothing is reflected, and loads run ahead.
    if (first >= radius && first + peak_batch + radius <= count) {
      add_samples([&](std::uint32_t j) { return first - radius + j; });
    } else {
      add_samples([&](std::uint32_t j) {
        return static_cast<std::uint32_t>(
            reflected(static_cast<std::int32_t>(first + j) - static_cast<std::int32_t>(radius),
                      static_cast<std::int32_t>(count)));
      });
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t b = 0; b < peak_batch; ++b) {
      if (first + b >= count) continue;
      const Number response = magnitude ? select(sums[b] < Number(0.0f), -sums[b], sums[b]) : sums[b];
      if (first + b == 0) {
        peak.begin(response);
      } else {
        peak.consider(static_cast<float>(first + b), response);
      }
    }
  }
  return peak;
}

// How far the parabola through the peak and its neighbours lies from the peak.
CGL_HD inline float parabola_offset(const LinePeak& peak, std::uint32_t count) {
  if (!(peak.at > 0.0f) || !(peak.at < static_cast<float>(count) - 1.0f)) return 0.0f;
  const float curvature = (peak.before - peak.best) + (peak.after - peak.best);
  if (!(curvature < 0.0f)) return 0.0f;
  return (0.5f * (peak.before - peak.after)) / curvature;
}

CGL_HD inline float interface_depth(const LinePeak& peak, std::uint32_t count, bool sub_voxel, float lift) {
  if (sub_voxel) return (peak.at + parabola_offset(peak, count)) + lift;
  return -numerics::floor_of(-(peak.at + lift));
}

// Where the peak of a compressed line stands in the whole line of `depth` samples, given that all samples that were
// left out respond with 0. place(j) is where sample j of the compressed line stood.
CGL_HD_GENERIC
template <class Place>
CGL_HD inline float masked_peak(const LinePeak& peak, std::uint32_t count, std::uint32_t depth, Place&& place) {
  if (count == 0u) return 0.0f;
  const float found = static_cast<float>(place(static_cast<std::uint32_t>(peak.at)));
  if (count == depth || peak.best > 0.0f) return found;
  std::uint32_t left_out = 0;
  while (left_out < count && place(left_out) == left_out) ++left_out;
  const float zero_at = static_cast<float>(left_out);
  return peak.best < 0.0f || zero_at < found ? zero_at : found;
}

}  // namespace cingulum::oct
