// What is decided before slices become one volume: where each lies, how it is turned, where it begins in depth, which
// of what registration found is believed, and by what it is multiplied. Plain numbers with a reason each, so that a
// report can show them; stack_slices.hpp acts on them. Called by `oct stack`.
//
// What differs from the scripts that it replaces: transforms are composed, not added; the canvas holds all slices,
// whatever their sizes; depth is kept in fractions and rounded once, so that it does not drift; the planes that are
// left out of a slice's top count in its overlap; outliers are judged against what was measured, not against what was
// just replaced.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oct/registration/slice_registration.hpp"
#include "oct/tiles/motor_shifts.hpp"

namespace cingulum::oct {

struct SliceFacts {
  std::size_t id = 0;
  std::size_t planes = 0, rows = 0, columns = 0;
  double interval_planes = 0;  // expected to the slice before
};

struct StackOptions {
  std::size_t first_plane = 4;   // planes above are left out of every slice but the first
  double confidence_high = 0.6;  // from there on, rotation and shift of a registration are used
  double confidence_low = 0.3;   // from there on, its rotation alone
  double min_z_ncc = 0.2;        // of a depth and a shift that are used
  double max_rotation_deg = 5;
  double max_shift_px = 20;              // a shift of 0.95 of it or more ran into the limit and is not used
  double max_drift_px = 50;              // of composed shifts from the motors' place
  std::size_t rotation_window = 5;       // slices, of a moving average; 0 or 1: none
  double shift_smoothing = 0;            // slices, of a Gaussian; 0: none
  double interval_tolerance = 0.30;      // of the median; beyond it a doubtful interval is replaced
  double gain_low = 0.5, gain_high = 2;  // between neighbours
};

enum class TransformUse : std::uint8_t { none, rotation_only, full };
[[nodiscard]] std::string_view transform_use_name(TransformUse use);

struct SliceDecision {
  std::size_t id = 0;
  std::size_t planes = 0, rows = 0, columns = 0;
  std::array<double, 2> motor_px = {0, 0};  // of the first pixel, on the canvas: row, column
  TransformUse transform = TransformUse::none;
  double rotation_deg = 0;                  // in all, about the slice's middle
  std::array<double, 2> shift_px = {0, 0};  // in all, besides the motors'
  double interval_planes = 0;               // to the slice before
  double start_plane = 0;                   // of plane 0, in the volume
  double gain = 1;
  std::string reason;  // why the transform is used so, and the interval
};

struct StackPlan {
  std::vector<SliceDecision> slices;
  std::size_t planes = 0, rows = 0, columns = 0;  // of the volume
  std::size_t first_plane = 0;
};

// `shifts` pair the slices in their order, `registrations` too (one less than slices; a missing one is absent). Fails
// where they do not fit.
[[nodiscard]] Result<StackPlan> decide_stack(std::span<const SliceFacts> slices, std::span<const SliceShift> shifts,
                                             std::span<const std::optional<SliceRegistration>> registrations,
                                             const VoxelSize& voxel_um, const StackOptions& options);

// Gains from the ratios between neighbours (median of the upper over median of the lower where both are), limited, and
// with a geometric mean of 1: no slice is the measure of all.
void decide_gains(std::span<const double> ratios, const StackOptions& options, StackPlan& plan);

[[nodiscard]] std::string decisions_csv(const StackPlan& plan);

}  // namespace cingulum::oct
