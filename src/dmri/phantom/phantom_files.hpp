// A phantom in a folder: writing all its files, and reading back what the score needs. The folder holds
//   dwi.nii.gz dwi.bval dwi.bvec   the series, b-vectors in the `fsl` frame
//   mask.nii.gz                    where half of a voxel or more is tissue
//   tissue.nii.gz                  fractions of white matter, grey matter, fluid
//   bundles/NAME.nii.gz            the fraction of each voxel inside the tube (tubes that overlap both count in full)
//   ends/NAME_a.nii.gz, _b         the same for the end regions at the start and at the end
//   fod.nii.gz                     the true fODF; convention and frame stand in fod.nii.gz.json
//   truth.trx                      true fibres, a group per bundle whose first streamline is the centre line
//   phantom.json                   every parameter and the shapes of the bundles; written last
// Called by `cingulum phantom` and `cingulum score`. The same request gives the same bytes on every machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/element_type.hpp"
#include "base/result.hpp"
#include "base/run_context.hpp"
#include "base/thread_pool.hpp"
#include "dmri/phantom/phantom_bundle.hpp"
#include "dmri/phantom/phantom_grid.hpp"
#include "dmri/phantom/phantom_presets.hpp"
#include "dmri/phantom/phantom_scheme.hpp"
#include "dmri/phantom/phantom_signal.hpp"

namespace cingulum {

enum class SeriesType {
  automatic,  // int16 where there is noise, else float32
  int16,      // scaled by a power of two, 1/32 of the noise or finer
  float32,
};

struct PhantomRequest {
  PhantomModel model;
  GridOptions grid;
  PhantomScheme scheme;
  PhantomTissueSignals signals;
  double snr = 30;  // of white matter without weighting; 0: no noise
  std::uint64_t seed = 0;
  int subsamples = 5;
  SeriesType type = SeriesType::automatic;
  int truth_fibres = 19;  // per bundle, the centre line among them
  double truth_step_mm = 0.5;
};

struct PhantomSummary {
  std::size_t bundles = 0;
  std::size_t fibres = 0;  // streamlines in truth.trx
  std::size_t volumes = 0;
  ImageGeometry geometry;
  double white_share = 0;     // of the box
  double brain_share = 0;     // of the box: all tissue
  double crossing_share = 0;  // of the voxels with white matter: those with two bundles or more
  std::uint64_t bytes = 0;    // of all files
};

// Creates `folder` where it is missing. A folder that is not empty is refused without options.force; with it the files
// of an earlier phantom are replaced, and those that the new one does not have are removed.
[[nodiscard]] Result<PhantomSummary> write_phantom(const PhantomRequest& request, const std::filesystem::path& folder,
                                                   const WriteOptions& options, ThreadPool& pool,
                                                   const RunContext& context);

// b-vectors of world directions for images of this geometry, in the `fsl` frame.
[[nodiscard]] std::vector<numerics::Vec3d> fsl_vectors(std::span<const numerics::Vec3d> world,
                                                       const Affine& voxel_to_world);

}  // namespace cingulum
