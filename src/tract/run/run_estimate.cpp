#include "tract/run/run_estimate.hpp"

#include <algorithm>
#include <cmath>

namespace cingulum {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;

// Measured on phantoms, one core of 2.x GHz: points that a core tracks in a second.
double points_per_second(Getter getter) {
  switch (getter) {
    case Getter::prob: return 2.0e6;
    case Getter::tensor: return 2.0e6;
    case Getter::det: return 0.8e6;
    case Getter::closest: return 0.9e6;
    case Getter::boot: return 0.5e6;
    case Getter::ptt: return 0.3e6;
  }
  return 1e6;
}

// Measured in the same way: seconds that a core takes to fit a voxel.
double seconds_per_fitted_voxel(FieldModel model, std::uint64_t coefficients) {
  switch (model) {
    // Normal equations of the coefficients, again and again (`bench/scale.py --only model`).
    case FieldModel::csd: return 9e-9 * static_cast<double>(coefficients * coefficients);
    case FieldModel::opdt:
    case FieldModel::csa: return 4e-6;
    case FieldModel::dti: return 0;
  }
  return 0;
}
constexpr double seconds_per_read_number = 1.2e-8;
constexpr double seconds_per_tensor_number = 4e-8;

// Lengths follow from the size of what is tracked, up to that of a brain.
double expected_length_mm(const RunFacts& facts) {
  const double volume = static_cast<double>(facts.mask_voxels) * facts.voxel_mm3;
  const double length = std::min(0.7 * std::cbrt(volume), 75.0) * (facts.one_sided ? 0.5 : 1.0);
  return std::clamp(length, std::min(facts.min_length_mm, facts.max_length_mm), facts.max_length_mm);
}

// What linearisation leaves of the points: by how much a step leaves the line grows with its square (measured with prob
// on the brain phantom, steps of 1 mm: 0.28 within 0.3 mm).
double share_after_linearisation(const RunFacts& facts) {
  if (facts.linearise_mm <= 0) return 1;
  const double square = facts.step_mm * facts.step_mm;
  return square / (square + 8.6 * facts.linearise_mm);
}

std::uint64_t record_bytes(const RunFacts& facts) {
  constexpr std::uint64_t numbers_of_a_line = 16;
  const std::uint64_t stride = (facts.record_numbers + numbers_of_a_line - 1) / numbers_of_a_line * numbers_of_a_line;
  return stride * (facts.half ? 2 : 4);
}

// Every voxel of the mask may be in reach of the stopping map.
std::uint64_t field_bytes(const RunFacts& facts) {
  return facts.mask_voxels * record_bytes(facts) + facts.voxels * sizeof(std::uint32_t);
}

// The most that lies in memory before anything is tracked: as the series is read, as voxels out of reach are left out
// (old and new signals are there at once), and as the field is made of what was fitted.
std::uint64_t preparing_bytes(const RunFacts& facts) {
  constexpr std::uint64_t maps_per_voxel = 24;  // masks, stopping map, tensors' FA, sums of b0
  const std::uint64_t maps = facts.voxels * maps_per_voxel;
  const std::uint64_t float_field = field_bytes(facts) + (facts.half ? facts.mask_voxels * record_bytes(facts) * 2 : 0);
  if (facts.volumes == 0) return maps + facts.image_bytes + float_field;
  const std::uint64_t signals = facts.mask_voxels * facts.volumes * sizeof(float);
  const std::uint64_t fitted_signals = facts.mask_voxels * facts.fitted_volumes * sizeof(float);
  const std::uint64_t read_at_once = std::min<std::uint64_t>(facts.volumes, 16) * facts.voxels * sizeof(float);
  const std::uint64_t tensors = facts.mask_voxels * 8 * sizeof(float);
  const std::uint64_t coefficients = facts.mask_voxels * facts.coefficients * sizeof(float);
  const std::uint64_t sampled = facts.amplitudes ? facts.mask_voxels * facts.record_numbers * sizeof(float) : 0;
  // The bootstrap's records are made of the signals, by way of residuals.
  const std::uint64_t residuals = facts.mask_voxels * facts.record_numbers * sizeof(float);
  const std::uint64_t made_of = facts.getter == Getter::boot ? fitted_signals + residuals : coefficients + sampled;
  return maps + std::max({signals + read_at_once, signals + fitted_signals + tensors,
                          fitted_signals + coefficients + tensors, made_of + float_field + tensors});
}

// Seeds that are tracked at a time. Ranges double from a first one, so that the last has about half of the seeds, until
// one takes about a second of all threads.
double range_seeds(const RunFacts& facts, double points_per_seed) {
  constexpr std::uint64_t first_range = 2048;
  const std::uint64_t grown = std::max(std::min(facts.seeds, first_range), facts.seeds / 20 * 11);
  const auto most = static_cast<double>(std::min(facts.fixed_chunks ? facts.seeds : grown, facts.chunk_seeds));
  if (facts.on_gpu || facts.fixed_chunks) return most;
  constexpr double faster_machine = 2;
  const double points_of_second = faster_machine * points_per_second(facts.getter) * static_cast<double>(facts.threads);
  return std::min(most, points_of_second / points_per_seed);
}

// Ranges that are tracked, wait, are judged and are written; no more than three copies of all there is. With one thread
// nothing overlaps: three of them, and half as much again for lines that are longer than expected (tensors' on a brain
// are by a quarter).
std::uint64_t batch_bytes(const RunFacts& facts, double points_per_seed) {
  const bool overlap = facts.threads > 1 || facts.on_gpu;
  const double range = range_seeds(facts, points_per_seed);
  const double seeds = std::min((overlap ? 6.0 : 4.5) * range, 3.5 * static_cast<double>(facts.seeds));
  // Other types than float32 are made of float64.
  const double made = facts.position_bytes != sizeof(float) ? 2 * range * 3 * sizeof(double) : 0;
  return static_cast<std::uint64_t>(points_per_seed * (seeds * 3 * sizeof(float) + made));
}

std::uint64_t bytes_of_file(const RunFacts& facts, std::uint64_t streamlines, std::uint64_t points) {
  constexpr std::uint64_t head = 1000;
  const std::uint64_t seed_bytes = facts.save_seeds ? 4 + 12 + 2 : 0;
  switch (facts.format) {
    case TractogramFormat::tck: return head + 12 * points + 12 * streamlines;
    case TractogramFormat::trk: return head + 12 * points + 4 * streamlines;
    case TractogramFormat::trx:
    case TractogramFormat::trx_folder: break;
  }
  return head + 3 * facts.position_bytes * points + (8 + seed_bytes) * streamlines;
}

}  // namespace

RunEstimate estimate_run(const RunFacts& facts) {
  // A seed has about one streamline that is kept.
  RunEstimate estimate;
  const double points_per_seed = expected_length_mm(facts) / facts.step_mm + 1;
  estimate.streamlines = facts.select > 0 ? std::min(facts.select, facts.seeds) : facts.seeds;
  const double tracked_points = static_cast<double>(estimate.streamlines) * points_per_seed;
  estimate.points = static_cast<std::uint64_t>(tracked_points * share_after_linearisation(facts));
  estimate.bytes = bytes_of_file(facts, estimate.streamlines, estimate.points);

  constexpr std::uint64_t program_bytes = 28 * mebibyte;
  const std::uint64_t maps = facts.voxels * 9;
  const std::uint64_t batches = batch_bytes(facts, points_per_seed);
  const std::uint64_t tracking = field_bytes(facts) + maps + batches + facts.threads * mebibyte;
  estimate.host_bytes = program_bytes + std::max(preparing_bytes(facts), tracking);
  if (facts.volumes > 0) {
    estimate.fit_bytes = field_bytes(facts) + facts.voxels * (sizeof(float) + 1);
    const double numbers = static_cast<double>(facts.voxels) * static_cast<double>(facts.volumes);
    const double masked = static_cast<double>(facts.mask_voxels);
    estimate.prepare_seconds = numbers * seconds_per_read_number +
                               masked * static_cast<double>(facts.volumes) * seconds_per_tensor_number +
                               masked * seconds_per_fitted_voxel(facts.model, facts.coefficients);
  }
  estimate.track_seconds = tracked_points / points_per_second(facts.getter);
  if (facts.on_gpu) {
    // The library of the device, its tables and pinned memory; what callers work with grows with a range.
    constexpr std::uint64_t library_host_bytes = 400 * mebibyte;
    // ptt keeps the numbers of its probes in memory of each thread's own, which CUDA sets aside for all threads that
    // the GPU can have (500 MB on an H200).
    const std::uint64_t library_device_bytes = (facts.getter == Getter::ptt ? 1150 : 600) * mebibyte;
    estimate.host_bytes += library_host_bytes + batches;
    const std::uint64_t fitting = facts.mask_voxels * (facts.fitted_volumes + facts.coefficients) * sizeof(float);
    estimate.device_bytes =
        library_device_bytes + std::max(fitting + field_bytes(facts), field_bytes(facts) + 2 * batches);
  }
  return estimate;
}

}  // namespace cingulum
