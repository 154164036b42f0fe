#include "oct/run/depth_corrections.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "oct/placement/image_filters.hpp"

namespace cingulum::oct {
namespace {

// Otsu's threshold splits tissue alone, too. Agarose is far darker than tissue.
constexpr double darkest_tissue = 0.5;   // of the mean of brighter A-lines
constexpr double least_agarose = 0.005;  // of all A-lines

struct AgaroseLines {
  std::vector<bool> lines;
  double share = 0;  // of A-lines that have light
  double level = 1;  // of their mean over that of the others
};

Result<AgaroseLines> find_agarose(const SlabVolume& slice, ThreadPool* pool) {
  AgaroseLines found;
  constexpr double smoothing_px = 2;
  CGL_TRY_ASSIGN(const HostImage mean, mean_projection(slice, pool));
  found.lines = agarose_lines(mean, smoothing_px);
  double dark = 0, bright = 0, dark_count = 0, bright_count = 0;
  for (std::size_t i = 0; i < mean.values.size(); ++i) {
    if (!(mean.values[i] > 0)) continue;
    (found.lines[i] ? dark : bright) += mean.values[i];
    (found.lines[i] ? dark_count : bright_count) += 1;
  }
  if (dark_count == 0 || bright_count == 0) return found;
  found.share = dark_count / (dark_count + bright_count);
  found.level = dark / dark_count / (bright / bright_count);
  return found;
}

}  // namespace

Result<CorrectedSlice> correct_depth(SlabVolume& slice, std::optional<double> floor,
                                     const DepthCorrections& corrections, ThreadPool* pool) {
  CorrectedSlice corrected;
  const auto decide = [&](const char* subject, const char* choice, std::string reason) {
    corrected.decisions.push_back({subject, choice, std::move(reason)});
  };
  if (!corrections.axial_profile) {
    decide("axial profile", "left out", "asked for");
  } else {
    CGL_TRY_ASSIGN(const AgaroseLines agarose, find_agarose(slice, pool));
    if (agarose.share < least_agarose || agarose.level > darkest_tissue) {
      decide("axial profile", "left out",
             fmt::format("no agarose: the darker {:.1f} % of A-lines have {:.2f} of the others' light",
                         100 * agarose.share, agarose.level));
    } else {
      auto profile = axial_profile(slice, agarose.lines, pool);
      if (profile) {
        CGL_TRY(divide_by_profile(slice, *profile, pool));
        // The floor was divided with everything else.
        double divisor = 0;
        const double least = *std::min_element(profile->begin(), profile->end());
        for (const double value : *profile) divisor += value / least / static_cast<double>(profile->size());
        if (floor) floor = *floor / divisor;
        corrected.profile = std::move(*profile);
        decide("axial profile", "divided out",
               fmt::format("{:.1f} % of A-lines are agarose, with {:.2f} of the others' light", 100 * agarose.share,
                           agarose.level));
      } else if (profile.error().kind() != ErrorKind::corrupt) {
        return tl::make_unexpected(profile.error());
      } else {
        decide("axial profile", "left out", profile.error().message());
      }
    }
  }
  if (!corrections.attenuation) {
    decide("attenuation", "left as it is", "asked for");
  } else {
    AttenuationOptions options = *corrections.attenuation;
    options.pool = pool;
    std::string reason = "noise floor as given";
    if (!options.noise_floor) {
      options.noise_floor = floor.value_or(0.0);
      reason =
          floor ? "noise floor of the planes above the surface" : "no plane lies above the surface: no noise floor";
    }
    CGL_TRY_ASSIGN(const AttenuationReport report, compensate_attenuation(slice, options));
    corrected.noise_floor = report.noise_floor;
    corrected.mean_attenuation = report.mean_attenuation;
    decide("attenuation", "compensated",
           fmt::format("{}: {:.4g}; mean {:.4f} per plane", reason, report.noise_floor, report.mean_attenuation));
  }
  if (corrections.normalise) {
    NormaliseOptions options;
    options.pool = pool;
    CGL_TRY_ASSIGN(const NormaliseReport report, normalise_planes(slice, options));
    decide("levels of planes", "normalised", fmt::format("asked for; span {:.4g}", report.span));
  }
  return corrected;
}

}  // namespace cingulum::oct
