// How a half takes its steps (the policy `Steps` of kernel/walk.hpp): reads a point, then finds the move from it.
// `Held` is what stays in registers between the two, and from step to step. The steps here are those of any getter on
// any field; boot_in_registers.hpp, prob_in_registers.hpp and kept_corners.hpp have other ways to the same bits.
#pragma once

#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/prob.hpp"
#include "tract/kernel/ptt.hpp"
#include "tract/kernel/sample.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/track.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

// Moves by `Steps::move` where there is a `Steps::Moves`, or along what `Steps::step` finds; false where there is
// nothing.
CGL_HD_GENERIC
template <class Lanes, class Steps>
CGL_HD inline bool move(const TrackingInput& input, const Slab& slab, typename Steps::template Held<Lanes>& held,
                        const numerics::DrawCounter& counter, numerics::Vec3& position, numerics::Frame& frame,
                        float& bound) {
  if constexpr (requires { typename Steps::Moves; }) {
    return Steps::template move<Lanes>(input, slab, held, counter, position, frame, bound);
  } else {
    return follow(input.plan, Steps::template step<Lanes>(input, slab, held, counter, position, frame.tangent),
                  position, frame);
  }
}

// The record lies in the slab, nothing is held.
struct ReadingSteps {
  template <class Lanes>
  struct Held {
    static CGL_HD Held begin(const TrackingInput&) { return {}; }
  };

  // Returns the stopping value. Where it forbids to go on, nothing else needs to be there.
  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD float read(const TrackingInput& input, const Slab& slab, numerics::Vec3 position, Held<Lanes>&) {
    return read_record<Lanes>(input, slab, position);
  }
};

// Whether a step of ptt asks the record for nothing but the stopping value.
CGL_HD inline bool reads_along_probes_alone(const TrackingInput& input) {
  return static_cast<Getter>(input.plan.getter) == Getter::ptt && threshold_is_absolute(input.plan);
}

// Steps by the getter of the plan.
struct AnySteps : ReadingSteps {
  using Moves = void;

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD float read(const TrackingInput& input, const Slab& slab, numerics::Vec3 position, Held<Lanes>& held) {
    if (reads_along_probes_alone(input)) {
      return interpolate_channel(corners_at(input.field, input.plan.size, position), input.field.channels);
    }
    return ReadingSteps::read<Lanes>(input, slab, position, held);
  }

  // `bound` is HalfWalk's.
  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD bool move(const TrackingInput& input, const Slab& slab, const Held<Lanes>&,
                          const numerics::DrawCounter& counter, numerics::Vec3& position, numerics::Frame& frame,
                          float& bound) {
    if (static_cast<Getter>(input.plan.getter) == Getter::ptt) {
      return follow(input.plan, draw_curvature<Lanes>(input, slab, counter, position, frame, bound), position, frame);
    }
    return follow(input.plan, next_step<Lanes>(input, slab, counter, position, frame.tangent), position, frame);
  }
};

// Steps by the getter of the plan, from corners that the caller has found ahead, asking meanwhile for the records of
// the walk whose turn is next. prob on amplitudes interpolates row by row within the step, where each is needed, and
// puts nothing into the slab.
struct StepsFromCorners {
  using Moves = void;
  template <class Lanes>
  struct Held {
    const Corners& corners;  // of the position; any where it lies outside
    const ExpectedRecords& expected;
  };

  static CGL_HD bool interpolates_in_step(const TrackingInput& input) {
    return static_cast<Getter>(input.plan.getter) == Getter::prob && input.field.kind == field_of_amplitudes;
  }

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD float read(const TrackingInput& input, const Slab& slab, numerics::Vec3 position,
                           const Held<Lanes>& held) {
    if (interpolates_in_step(input) || reads_along_probes_alone(input)) {
      return interpolate_channel(held.corners, input.field.channels);
    }
    return read_record<Lanes>(input, slab, position, held.corners, held.expected);
  }

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD bool move(const TrackingInput& input, const Slab& slab, const Held<Lanes>& held,
                          const numerics::DrawCounter& counter, numerics::Vec3& position, numerics::Frame& frame,
                          float& bound) {
    if (interpolates_in_step(input)) {
      const Step next = prob_step_at<Lanes>(input, slab, held.corners, held.expected, counter, frame.tangent);
      return follow(input.plan, next, position, frame);
    }
    return AnySteps::move<Lanes>(input, slab, {}, counter, position, frame, bound);
  }
};

// The same from corners that are found as the point is read.
struct StepsFromField {
  using Moves = void;
  template <class Lanes>
  struct Held {
    Corners corners;
    ExpectedRecords expected;

    static CGL_HD Held begin(const TrackingInput&) { return {{}, nothing_expected()}; }
  };

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD float read(const TrackingInput& input, const Slab& slab, numerics::Vec3 position, Held<Lanes>& held) {
    held.corners = corners_at(input.field, input.plan.size, position);
    return StepsFromCorners::read<Lanes>(input, slab, position, {held.corners, held.expected});
  }

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD bool move(const TrackingInput& input, const Slab& slab, const Held<Lanes>& held,
                          const numerics::DrawCounter& counter, numerics::Vec3& position, numerics::Frame& frame,
                          float& bound) {
    return StepsFromCorners::move<Lanes>(input, slab, {held.corners, held.expected}, counter, position, frame, bound);
  }
};

}  // namespace cingulum::kernel
