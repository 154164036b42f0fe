// Estimates what a run of tracking takes and gives, from its options and the heads of its files, before any work: a
// bound on memory, and the expected points, bytes and time. For schedulers (`cingulum track --explain`) and for
// `cingulum batch`, which decides by it how many subjects it has under way. Numbers in, numbers out.
#pragma once

#include <cstdint>

#include "formats/tractogram.hpp"
#include "tract/field/dwi_preparation.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {

struct RunFacts {
  std::uint64_t voxels = 0;       // of the image
  std::uint64_t mask_voxels = 0;  // of the mask, or what may be in it
  std::uint64_t volumes = 0;      // of the series; 0: no series is read
  std::uint64_t fitted_volumes = 0;
  FieldModel model = FieldModel::csd;
  std::uint64_t coefficients = 0;    // that are fitted in a voxel
  std::uint64_t record_numbers = 0;  // of the field in a voxel, the stopping value among them
  std::uint64_t image_bytes = 0;     // of a field that is read from a file, as float
  bool amplitudes = false;           // are sampled from coefficients
  bool half = false;                 // the field is stored as float16
  double voxel_mm3 = 8;

  Getter getter = Getter::ptt;
  double step_mm = 1;
  double min_length_mm = 0;
  double max_length_mm = 500;
  bool one_sided = false;
  std::uint64_t seeds = 0;            // that are tracked
  std::uint64_t select = 0;           // streamlines that are enough; 0: all are kept
  std::uint64_t chunk_seeds = 25000;  // at a time, at most
  bool fixed_chunks = false;          // always so many; otherwise as many as take about a second
  std::uint64_t threads = 1;
  bool on_gpu = false;

  TractogramFormat format = TractogramFormat::trx;
  std::uint64_t position_bytes = 4;  // of a coordinate in the file
  bool save_seeds = false;
  double linearise_mm = 0;
};

struct RunEstimate {
  // Bounds.
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;  // of each GPU; 0 on the CPU
  // Expected.
  std::uint64_t streamlines = 0;
  std::uint64_t points = 0;  // that are written
  std::uint64_t bytes = 0;   // of the file
  std::uint64_t fit_bytes = 0;
  double prepare_seconds = 0;  // of one core, roughly
  double track_seconds = 0;
};

[[nodiscard]] RunEstimate estimate_run(const RunFacts& facts);

}  // namespace cingulum
