// Corrections along the depth of a slice that was cropped at its surface: the beam's axial profile where there is
// agarose to show it, attenuation, levels of planes; each with the reason why it was done or left out. Called by
// slice_maker.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/fits/axial_corrections.hpp"
#include "oct/volume/slab_volume.hpp"

namespace cingulum::oct {

// What was decided, about what, and why.
struct RunDecision {
  std::string subject;  // "axial profile"
  std::string choice;   // "left out"
  std::string reason;
};

struct DepthCorrections {
  bool axial_profile = true;                           // where agarose shows it
  std::optional<AttenuationOptions> attenuation = {};  // its floor: given, or that of the planes above the surface
  bool normalise = false;
};

struct CorrectedSlice {
  std::vector<RunDecision> decisions;
  std::vector<double> profile;  // by which planes were divided; empty: they were not
  double noise_floor = 0;
  double mean_attenuation = 0;  // per plane
};

// `floor` is what voxels have where there is no tissue, where that is known.
[[nodiscard]] Result<CorrectedSlice> correct_depth(SlabVolume& slice, std::optional<double> floor,
                                                   const DepthCorrections& corrections, ThreadPool* pool);

}  // namespace cingulum::oct
