// The score of a tractogram against a phantom: shares of valid, invalid and lost streamlines, bundles found, overlap,
// overreach and F1 of voxels, angular error, distance to the tube, connectivity, topography, lengths, with bootstrap
// intervals. Definitions: docs/phantom.md; they follow the Tractometer (Cote et al., Medical Image Analysis 17, 2013)
// and DiSCo (Rafael-Patino et al., Data in Brief 38, 2021), made exact by analytic bundles. Called by `cingulum score`.
//
// Streamlines are read in batches; memory holds the voxels that each bundle's valid streamlines cross, the sums of the
// replicates and 4 bytes per streamline (its length, for the median).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/run_context.hpp"
#include "base/thread_pool.hpp"
#include "dmri/phantom/phantom_description.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

struct ScoreOptions {
  double end_tolerance_mm = 0;  // 0: half the smallest voxel edge
  int bootstrap = 1000;         // replicates, at most 10 000; 0: no intervals
  std::uint64_t seed = 0;
};

// A value with its 95 % interval. NaN where it is not defined.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// A = {f > 0} or {f >= 0.5}; B = voxels that valid streamlines pass through.
struct VoxelScore {
  std::uint64_t true_voxels = 0;   // |A|
  std::uint64_t found_voxels = 0;  // |A and B|
  std::uint64_t extra_voxels = 0;  // |B without A|
  double overlap = 0;              // |A and B| / |A|
  double overreach = 0;            // |B without A| / |A|
  double overreach_share = 0;      // |B without A| / |B|; 0 where B is empty
  double f1 = 0;                   // 2 |A and B| / (|A| + |B|)
};

struct BundleScore {
  std::string name;
  std::uint64_t valid_count = 0;
  std::uint64_t wrong_path_count = 0;
  VoxelScore any;               // f > 0
  VoxelScore half_filled;       // f >= 0.5
  double endpoint_overlap = 0;  // of the voxels of both end regions
  double length_mean_mm = 0;    // of valid ones; NaN without any
  double topography = 0;        // correlation of (u, w) at both ends; NaN below three valid streamlines
};

struct FalseConnection {
  std::string from;
  std::string to;
  std::uint64_t count = 0;
};

struct Score {
  std::string preset;
  std::uint64_t streamlines = 0;
  std::uint64_t valid_count = 0, wrong_path_count = 0, invalid_count = 0, no_connection_count = 0;
  std::uint64_t not_finite_count = 0;
  Estimate valid, wrong_path, invalid, no_connection;  // shares of all
  Estimate valid_of_connections;                       // valid / (valid + invalid)
  std::uint64_t bundles_found = 0;
  Estimate bundles_found_share;
  std::uint64_t invalid_bundles = 0;  // distinct false pairs of end regions
  // Means over all true bundles, a missing one counting 0.
  struct Means {
    Estimate overlap, overreach, overreach_share, f1;
  };
  Means any, half_filled;
  double endpoint_overlap = 0;
  Estimate angular_error_deg;
  double angular_error_median_deg = 0;
  double share_in_tubes = 0;  // of the length: where the angular error is defined
  Estimate distance_mm;
  double distance_p95_mm = 0;
  Estimate connectivity_correlation;
  double topography = 0;  // mean over bundles where it is defined
  Estimate length_mm;
  double length_median_mm = 0;
  std::uint64_t commissural_count = 0;  // ends on opposite sides of x = 0
  Estimate commissural;
  std::uint64_t crossing_midline_count = 0;  // points on both sides, wherever the ends are
  Estimate crossing_midline;
  std::vector<BundleScore> bundles;
  std::vector<FalseConnection> false_connections;  // most frequent first
  double end_tolerance_mm = 0;
  int replicates = 0;
};

class Scorer {
 public:
  // Reads the description and the voxel fractions of a phantom.
  [[nodiscard]] static Result<Scorer> create(const std::filesystem::path& truth, const ScoreOptions& options);
  Scorer(Scorer&&) noexcept;
  Scorer& operator=(Scorer&&) noexcept;
  ~Scorer();

  void add(const TractogramBatch& batch, ThreadPool& pool);  // float positions
  [[nodiscard]] Score finish(ThreadPool& pool) const;

 private:
  struct State;
  explicit Scorer(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

[[nodiscard]] Result<Score> score_tractogram(const std::filesystem::path& tractogram,
                                             const std::filesystem::path& truth, const ScoreOptions& options,
                                             ThreadPool& pool, const RunContext& context);

}  // namespace cingulum
