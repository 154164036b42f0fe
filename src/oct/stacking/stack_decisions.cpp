#include "oct/stacking/stack_decisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "numerics/elementary64.hpp"
#include "oct/placement/image_filters.hpp"

namespace cingulum::oct {
namespace {

std::array<double, 2> turned(const std::array<double, 2>& point, double rotation_deg) {
  const numerics::SineCosine<double> turn = numerics::sine_cosine(rotation_deg * radians_per_degree);
  return {turn.cosine * point[0] - turn.sine * point[1], turn.sine * point[0] + turn.cosine * point[1]};
}

// Which part of a registration is believed.
TransformUse judge(const std::optional<SliceRegistration>& found, const std::array<double, 2>& start,
                   const StackOptions& options, std::string& reason) {
  if (!found) {
    reason = "not registered";
    return TransformUse::none;
  }
  const double shift = length_of(found->rigid.shift_px[0] - start[0], found->rigid.shift_px[1] - start[1]);
  if (found->confidence < options.confidence_low) {
    reason = fmt::format("confidence {:.2f} below {}", found->confidence, options.confidence_low);
    return TransformUse::none;
  }
  if (std::abs(found->rigid.rotation_deg) >= 0.95 * options.max_rotation_deg) {
    reason = fmt::format("a turn of {:.2f} degrees ran into the limit", found->rigid.rotation_deg);
    return TransformUse::none;
  }
  if (found->confidence < options.confidence_high) {
    reason = fmt::format("confidence {:.2f} below {}", found->confidence, options.confidence_high);
    return TransformUse::rotation_only;
  }
  if (found->z_ncc < options.min_z_ncc) {
    reason = fmt::format("correlation {:.2f} below {}", found->z_ncc, options.min_z_ncc);
    return TransformUse::rotation_only;
  }
  if (shift >= 0.95 * options.max_shift_px) {
    reason = fmt::format("a shift of {:.1f} pixels ran into the limit", shift);
    return TransformUse::rotation_only;
  }
  reason = fmt::format("confidence {:.2f}", found->confidence);
  return TransformUse::full;
}

// The mean over a window of slices that ends with the stack: shorter at its ends.
std::vector<double> moving_average(const std::vector<double>& values, std::size_t window) {
  if (window < 2) return values;
  std::vector<double> result;
  const std::size_t half = window / 2;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t first = i >= half ? i - half : 0;
    const std::size_t last = std::min(values.size() - 1, i + half);
    double sum = 0;
    for (std::size_t k = first; k <= last; ++k) sum += values[k];
    result.push_back(sum / static_cast<double>(last - first + 1));
  }
  return result;
}

std::vector<double> gaussian_average(const std::vector<double>& values, double sigma) {
  if (!(sigma > 0) || values.size() < 3) return values;
  std::vector<double> result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double sum = 0, weights = 0;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double distance = (static_cast<double>(k) - static_cast<double>(i)) / sigma;
      const double weight = numerics::exponential(-0.5 * distance * distance);
      sum += weight * values[k];
      weights += weight;
    }
    result.push_back(sum / weights);
  }
  return result;
}

// What is believed of the steps from each slice to the next.
struct SliceSteps {
  std::vector<double> intervals;  // planes; one less than there are slices
  std::vector<bool> doubtful;     // of intervals
  std::vector<double> rotation_deg;
  std::vector<std::array<double, 2>> shift_px;  // besides the motors'
};

// Judges each registration, and says so in the plan.
Result<SliceSteps> believed_steps(std::span<const SliceFacts> slices, std::span<const SliceShift> shifts,
                                  std::span<const std::optional<SliceRegistration>> registrations,
                                  const VoxelSize& voxel_um, const StackOptions& options, StackPlan& plan) {
  SliceSteps steps;
  for (const SliceFacts& slice : slices.subspan(1)) steps.intervals.push_back(slice.interval_planes);
  steps.doubtful.assign(registrations.size(), true);
  steps.rotation_deg.assign(slices.size(), 0.0);
  steps.shift_px.assign(slices.size(), {0, 0});
  for (std::size_t i = 1; i < slices.size(); ++i) {
    SliceDecision& slice = plan.slices[i];
    slice.id = slices[i].id;
    if (slices[i].id <= slices[i - 1].id) {
      return fail(ErrorKind::corrupt, "stacking: slice {} comes after slice {}; each id once, ascending", slices[i].id,
                  slices[i - 1].id);
    }
    const auto pair = std::find_if(shifts.begin(), shifts.end(), [&](const SliceShift& shift) {
      return shift.fixed == slices[i - 1].id && shift.moving == slices[i].id;
    });
    if (pair == shifts.end()) {
      return fail(ErrorKind::corrupt, "stacking: the shifts hold no pair of slices {} and {}", slices[i - 1].id,
                  slices[i].id);
    }
    for (std::size_t d = 0; d < 2; ++d) {
      slice.motor_px[d] = plan.slices[i - 1].motor_px[d] - pair->shift_mm[d] * 1000.0 / voxel_um[d + 1];
    }
    const std::array<double, 2> start = {slice.motor_px[0] - plan.slices[i - 1].motor_px[0],
                                         slice.motor_px[1] - plan.slices[i - 1].motor_px[1]};
    const auto& found = registrations[i - 1];
    slice.transform = judge(found, start, options, slice.reason);
    if (slice.transform != TransformUse::none) steps.rotation_deg[i] = found->rigid.rotation_deg;
    if (slice.transform == TransformUse::full) {
      steps.shift_px[i] = {found->rigid.shift_px[0] - start[0], found->rigid.shift_px[1] - start[1]};
    }
    if (found && !found->at_border && found->z_ncc >= options.min_z_ncc) {
      steps.intervals[i - 1] = found->interval_planes;
      steps.doubtful[i - 1] = found->confidence < options.confidence_high;
    }
  }
  return steps;
}

// A doubtful interval far from the median becomes the median of its neighbours as they were measured.
void replace_intervals(SliceSteps& steps, double tolerance, StackPlan& plan) {
  if (steps.intervals.size() < 3) return;
  const std::vector<double> measured = steps.intervals;
  const double middle = median(measured);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (!steps.doubtful[i] || !(std::abs(measured[i] - middle) > tolerance * std::max(middle, 1.0))) continue;
    std::vector<double> neighbours;
    if (i > 0) neighbours.push_back(measured[i - 1]);
    if (i + 1 < measured.size()) neighbours.push_back(measured[i + 1]);
    steps.intervals[i] = median(neighbours);
    plan.slices[i + 1].reason += fmt::format("; interval {:.1f} replaced by {:.1f}", measured[i], steps.intervals[i]);
  }
}

// Turns and places of all slices in the frame of the first: composed, then smoothed. With x = R (p - c) + c + t from a
// slice to the one before it, and X = Q (x - c) + c + a from there to the canvas, the slice lies at a + Q t, and by
// what its own middle differs from c.
void compose_steps(std::span<const SliceFacts> slices, const SliceSteps& steps, const StackOptions& options,
                   StackPlan& plan) {
  std::vector<double> rotation(slices.size(), 0.0), row_shift(slices.size(), 0.0), column_shift(slices.size(), 0.0);
  std::array<double, 2> place = {0, 0};
  for (std::size_t i = 1; i < slices.size(); ++i) {
    rotation[i] = rotation[i - 1] + steps.rotation_deg[i];
    const auto& motor = plan.slices[i].motor_px;
    const auto& motor_before = plan.slices[i - 1].motor_px;
    const auto& shift = steps.shift_px[i];
    const std::array<double, 2> step =
        turned({motor[0] - motor_before[0] + shift[0], motor[1] - motor_before[1] + shift[1]}, rotation[i - 1]);
    const std::array<double, 2> apart = {
        (static_cast<double>(slices[i].rows) - static_cast<double>(slices[i - 1].rows)) / 2,
        (static_cast<double>(slices[i].columns) - static_cast<double>(slices[i - 1].columns)) / 2};
    const std::array<double, 2> turned_apart = turned(apart, rotation[i]);
    for (std::size_t d = 0; d < 2; ++d) place[d] += step[d] + turned_apart[d] - apart[d];
    row_shift[i] = place[0] - motor[0];
    column_shift[i] = place[1] - motor[1];
  }
  rotation = moving_average(rotation, options.rotation_window);
  row_shift = gaussian_average(row_shift, options.shift_smoothing);
  column_shift = gaussian_average(column_shift, options.shift_smoothing);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    SliceDecision& slice = plan.slices[i];
    slice.rotation_deg = rotation[i];
    slice.shift_px = {row_shift[i], column_shift[i]};
    const double drift = length_of(row_shift[i], column_shift[i]);
    if (options.max_drift_px > 0 && drift > options.max_drift_px) {
      for (double& value : slice.shift_px) value *= options.max_drift_px / drift;
      slice.reason += fmt::format("; drift {:.1f} pixels cut to {}", drift, options.max_drift_px);
    }
  }
}

// The canvas holds all slices; places are then counted from its corner.
void fit_canvas(StackPlan& plan) {
  std::array<double, 2> low = {0, 0};
  std::array<double, 2> high = {0, 0};
  double end = 0;
  for (std::size_t i = 0; i < plan.slices.size(); ++i) {
    const SliceDecision& slice = plan.slices[i];
    end = std::max(end, slice.start_plane + static_cast<double>(slice.planes));
    const std::array<double, 2> half = {static_cast<double>(slice.rows - 1) / 2,
                                        static_cast<double>(slice.columns - 1) / 2};
    for (const double r : {-half[0], half[0]}) {
      for (const double c : {-half[1], half[1]}) {
        const std::array<double, 2> corner = turned({r, c}, slice.rotation_deg);
        for (std::size_t d = 0; d < 2; ++d) {
          const double at = corner[d] + half[d] + slice.motor_px[d] + slice.shift_px[d];
          low[d] = i == 0 ? std::min(0.0, at) : std::min(low[d], at);
          high[d] = std::max(high[d], at);
        }
      }
    }
  }
  for (SliceDecision& slice : plan.slices) {
    for (std::size_t d = 0; d < 2; ++d) slice.motor_px[d] -= std::floor(low[d]);
  }
  plan.rows = static_cast<std::size_t>(std::ceil(high[0] - std::floor(low[0]))) + 1;
  plan.columns = static_cast<std::size_t>(std::ceil(high[1] - std::floor(low[1]))) + 1;
  plan.planes = static_cast<std::size_t>(std::floor(end + 1e-6));
}

}  // namespace

std::string_view transform_use_name(TransformUse use) {
  switch (use) {
    case TransformUse::none: return "none";
    case TransformUse::rotation_only: return "rotation";
    case TransformUse::full: return "full";
  }
  return "";
}

Result<StackPlan> decide_stack(std::span<const SliceFacts> slices, std::span<const SliceShift> shifts,
                               std::span<const std::optional<SliceRegistration>> registrations,
                               const VoxelSize& voxel_um, const StackOptions& options) {
  if (slices.empty()) return fail(ErrorKind::corrupt, "stacking: no slice is given");
  if (registrations.size() + 1 != slices.size()) {
    return fail(ErrorKind::corrupt, "stacking: {} registrations for {} slices", registrations.size(), slices.size());
  }
  StackPlan plan;
  plan.first_plane = options.first_plane;
  plan.slices.resize(slices.size());
  plan.slices[0].id = slices[0].id;
  plan.slices[0].reason = "first slice";
  CGL_TRY_ASSIGN(SliceSteps steps, believed_steps(slices, shifts, registrations, voxel_um, options, plan));
  replace_intervals(steps, options.interval_tolerance, plan);
  compose_steps(slices, steps, options, plan);
  double start_plane = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    SliceDecision& slice = plan.slices[i];
    if (i > 0) {
      slice.interval_planes = steps.intervals[i - 1];
      start_plane += slice.interval_planes;
    }
    slice.start_plane = start_plane;
    slice.planes = slices[i].planes;
    slice.rows = slices[i].rows;
    slice.columns = slices[i].columns;
  }
  fit_canvas(plan);
  return plan;
}

void decide_gains(std::span<const double> ratios, const StackOptions& options, StackPlan& plan) {
  std::vector<double> logarithms(plan.slices.size(), 0.0);
  double mean = 0;
  for (std::size_t i = 1; i < logarithms.size(); ++i) {
    const double ratio = std::clamp(ratios[i - 1] > 0 ? ratios[i - 1] : 1.0, options.gain_low, options.gain_high);
    logarithms[i] = logarithms[i - 1] + numerics::logarithm(ratio);
    mean += logarithms[i];
  }
  mean /= static_cast<double>(logarithms.size());
  for (std::size_t i = 0; i < logarithms.size(); ++i) {
    plan.slices[i].gain = numerics::exponential(logarithms[i] - mean);
  }
}

std::string decisions_csv(const StackPlan& plan) {
  std::string text =
      "slice_id,row_px,column_px,rotation_deg,shift_row_px,shift_column_px,interval_planes,start_plane,gain,transform,"
      "reason\n";
  for (const SliceDecision& slice : plan.slices) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},\"{}\"\n", slice.id, slice.motor_px[0], slice.motor_px[1],
                        slice.rotation_deg, slice.shift_px[0], slice.shift_px[1], slice.interval_planes,
                        slice.start_plane, slice.gain, transform_use_name(slice.transform), slice.reason);
  }
  return text;
}

}  // namespace cingulum::oct
