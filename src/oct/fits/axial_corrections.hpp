// Corrections along the A-lines of a stitched slice: the axial profile of the beam from agarose, attenuation in tissue,
// and levels of planes. Small numbers are found on the host in float64; voxels are changed in place, a few planes or
// rows at a time where the slice is not in memory. Called by `oct run`, `oct profile`, `oct attenuation` and
// `oct normalise`.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/volume/host_volume.hpp"
#include "oct/volume/slab_volume.hpp"

namespace cingulum::oct {

// A-lines whose mean is below Otsu's threshold: agarose around the tissue. `smoothing_px` of the projection first.
[[nodiscard]] std::vector<bool> agarose_lines(const HostImage& mean_projection, double smoothing_px = 0);

// The mean of agarose lines for each plane. Fails where there are none, or a plane of them is not above zero.
[[nodiscard]] Result<std::vector<double>> axial_profile(const SlabVolume& volume, const std::vector<bool>& agarose,
                                                        ThreadPool* pool = nullptr);
// v / (1 + (p - min p) / min p).
[[nodiscard]] Status divide_by_profile(SlabVolume& volume, std::span<const double> profile, ThreadPool* pool = nullptr);

enum class AttenuationMethod : std::uint8_t { vermeer, smith, liu, li };
[[nodiscard]] Result<AttenuationMethod> parse_attenuation_method(std::string_view name);

struct AttenuationOptions {
  AttenuationMethod method = AttenuationMethod::li;
  double strength = 0.3;                   // 1 is theory
  double least_transmission = 0.05;        // the correction grows no further
  std::uint32_t end_planes = 20;           // through which the end of a line is fitted
  std::optional<double> noise_floor = {};  // li: absent, the median of voxels outside tissue
  double least_db = 6;                     // li: above the noise floor; a line ends where it is lower
  std::size_t window = 1;                  // lateral median before attenuation is measured; 1: voxels as they are
  // Where not 0: attenuation of means over blocks of so many pixels, between their centres linear, instead. The decay
  // at the end is then one for all blocks, through the lower three quarters of the planes.
  std::size_t block_px = 0;
  ThreadPool* pool = nullptr;
};
struct AttenuationReport {
  double noise_floor = 0;
  double mean_attenuation = 0;  // per plane, over lines and planes that were measured
};
// The volume with v / max(exp(-2 strength OD), least), li: of v less the noise floor.
[[nodiscard]] Result<AttenuationReport> compensate_attenuation(SlabVolume& volume, const AttenuationOptions& options);

struct NormaliseOptions {
  double smoothing_px = 2;
  double cap_share = 0.999;  // of a plane's values
  double span_share = 0.9;   // of the planes' spans
  ThreadPool* pool = nullptr;
};
struct NormaliseReport {
  double span = 0;                  // all planes were divided by it
  std::vector<double> backgrounds;  // that were subtracted, by plane
};
// Caps the values of each plane and subtracts the agarose's median, not below 0; then divides all by one span.
[[nodiscard]] Result<NormaliseReport> normalise_planes(SlabVolume& volume, const NormaliseOptions& options);

}  // namespace cingulum::oct
