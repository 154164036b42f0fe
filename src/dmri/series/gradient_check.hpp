// Whether the b-vectors of a series are read in the right frame. All signed permutations of their axes (24, up to a
// common sign), in image axes and, where the affine is oblique, in world axes too, are compared by fibre coherence: a
// step along a fibre leads to a voxel with the same fibre. The tensor is fitted once; another reading of the b-vectors
// only turns its main directions. Called by gradient_frame.hpp, which decides what follows from it. `signals` should
// hold the brain: voxels outside of its mask count as empty.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/series/dwi_signals.hpp"
#include "formats/gradient_table.hpp"

namespace cingulum {

enum class GradientVerdict {
  agrees,             // no reading is clearly better, and most are clearly worse
  another_is_better,  // clearly, by both rules below
  undecided,          // too few coherent fibres to tell
};

[[nodiscard]] std::string_view gradient_verdict_name(GradientVerdict verdict);

// A reading is clearly better than another when its coherence is greater by this share of it, and by this many standard
// errors (of blocks of 4 x 4 x 4 voxels). Evidence: docs/models-tensor.md.
constexpr double clear_gain = 0.04;
constexpr double clear_standard_errors = 5;

struct GradientReading {
  std::string name;                   // "fsl", "voxel", "world" or "voxel with (x, y, z) read as (-x, z, y)"
  std::vector<GradientFrame> frames;  // those that this reading is: often fsl or world coincide with voxel
  std::array<double, 9> to_image;     // vector of the file to image axes, row by row
  double coherence = 0;        // mean squared cosine between a voxel's fibre and that at the end of a step, 0 to 1
  double gain = 0;             // over the reading in use, where both steps stay in the image, as a share of it
  double standard_errors = 0;  // the gain over its standard error
};

struct GradientCheck {
  GradientVerdict verdict = GradientVerdict::undecided;
  std::vector<GradientReading> readings;
  std::size_t used = 0;  // the reading that was asked for
  std::size_t best = 0;  // the better one; `used` unless the verdict is another_is_better
  std::optional<GradientFrame> better_frame;
  std::size_t voxels = 0;  // with a clear main direction
  std::size_t blocks = 0;
  std::string message;  // for people, one line
};

// `table` has an entry for each volume of `signals`, which should be all of the series. Volumes of b <= 1600 alone are
// used where they suffice, and of large images the planes in the middle. Fails only where a tensor cannot be fitted.
// Deterministic.
[[nodiscard]] Result<GradientCheck> check_gradients(const DwiSignals& signals, const GradientTable& table,
                                                    GradientFrame used, const FitMachine& machine);

}  // namespace cingulum
