// How a kernel that follows a half takes its steps: reads the point, then asks for a direction. `Held` is what stays in
// registers between the two, and from step to step. Called by paged_half.hpp; others (boot_in_registers.hpp,
// prob_in_registers.hpp) have other ways to the same bits.
#pragma once

#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/sample.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/track.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

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

// By the getter of the plan.
struct AnySteps : ReadingSteps {
  using Moves = void;

  CGL_HD_GENERIC
  template <class Lanes>
  static CGL_HD bool move(const TrackingInput& input, const Slab& slab, const Held<Lanes>&,
                          const numerics::DrawCounter& counter, numerics::Vec3& position, numerics::Frame& frame) {
    if (static_cast<Getter>(input.plan.getter) == Getter::ptt) {
      return follow(input.plan, draw_curvature<Lanes>(input, slab, counter, position, frame), position, frame);
    }
    return follow(input.plan, next_step<Lanes>(input, slab, counter, position, frame.tangent), position, frame);
  }
};

}  // namespace cingulum::kernel
