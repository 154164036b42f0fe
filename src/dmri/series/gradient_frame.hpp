// Decides in which frame the b-vectors of a series are read: what the caller says is compared with the check of fibre
// coherence (gradient_check.hpp). Called by dwi_series.cpp, and so by everyone who fits or tracks a series.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/series/dwi_signals.hpp"
#include "dmri/series/gradient_check.hpp"
#include "formats/gradient_table.hpp"

namespace cingulum {

// What the caller knows of the frame of the b-vectors.
enum class WantedFrame {
  of_format,  // fsl for FSL pairs, world for MRtrix tables; another reading that is clearly better is an error
  automatic,  // that of the format, or a frame that is clearly better
  fsl,        // these three are given: the check may warn, it does not stop the run
  voxel,
  world,
};

// Parses fsl, voxel, world or auto; an empty name is of_format.
[[nodiscard]] Result<WantedFrame> parse_wanted_frame(std::string_view name);
[[nodiscard]] std::string_view wanted_frame_name(WantedFrame wanted);

// The frame before any check: what the caller says, else that of the format.
[[nodiscard]] GradientFrame unchecked_frame(WantedFrame wanted, GradientFrame of_format);

struct SettledFrame {
  GradientFrame frame = GradientFrame::fsl;  // in which the b-vectors are to be read
  std::optional<GradientCheck> check;        // none where the frame was given and no tensor can be fitted
  std::string not_checked;                   // why there is none
  std::string warning;                       // for people: a frame was given and another is clearly better
};

// Fails where another reading is clearly better and the frame was neither given nor left to the check, or no frame is
// that reading; and where the check cannot be made though the frame was not given. A check that is undecided stops
// nothing.
[[nodiscard]] Result<SettledFrame> settle_gradient_frame(const DwiSignals& signals, const GradientTable& table,
                                                         WantedFrame wanted, const FitMachine& machine);

}  // namespace cingulum
