// What the residual bootstrap keeps of one voxel, or of one voxel per lane: c = B^+ s, r = R s and the mean b0, of raw
// signals. Sums are sequential in the order of the volumes. Called by bootstrap.cpp with packs and on CUDA with
// `double`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dmri/models/voxel_lanes.hpp"
#include "numerics/pack.hpp"

namespace cingulum {

struct BootstrapPreparationView {
  std::size_t count;       // coefficients
  std::size_t directions;  // diffusion-weighted volumes
  std::size_t b0_count;
  const std::uint32_t* volumes;
  const std::uint32_t* b0_volumes;
  const double* inverse;   // B^+, count x directions
  const double* residual;  // R, directions x directions
};

template <class Number, class Record, class Numbers>
CGL_HD CGL_INLINE void take_weighted_signals(const BootstrapPreparationView& view, const Record& record,
                                             const Numbers& signal) {
  for (std::size_t g = 0; g < view.directions; ++g) signal[g] = record[view.volumes[g]];
}

template <class Number, class Record>
CGL_HD CGL_INLINE Number mean_b0_signal(const BootstrapPreparationView& view, const Record& record) {
  Number sum = record[view.b0_volumes[0]];
  for (std::size_t i = 1; i < view.b0_count; ++i) sum = sum + Number(record[view.b0_volumes[i]]);
  return sum / Number(static_cast<double>(view.b0_count));
}

}  // namespace cingulum
