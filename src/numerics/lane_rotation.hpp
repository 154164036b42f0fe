// Vectors and frames of which each lane has its own, with the operations of vec3.hpp and rotation.hpp: every lane has
// the bits of the scalar functions. Called by ptt, which follows a probe per lane.
#pragma once

#include "numerics/lane_elementary.hpp"
#include "numerics/portable.hpp"
#include "numerics/rotation.hpp"
#include "numerics/vec3.hpp"

namespace cingulum::numerics {

template <class Lanes>
struct LaneVec3 {
  typename Lanes::Float x;
  typename Lanes::Float y;
  typename Lanes::Float z;
};

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneVec3<Lanes> spread(Vec3 v) {
  return {Lanes::broadcast(v.x), Lanes::broadcast(v.y), Lanes::broadcast(v.z)};
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneVec3<Lanes> lane_add(const LaneVec3<Lanes>& a, const LaneVec3<Lanes>& b) {
  return {Lanes::add(a.x, b.x), Lanes::add(a.y, b.y), Lanes::add(a.z, b.z)};
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneVec3<Lanes> lane_scale(const LaneVec3<Lanes>& a, const typename Lanes::Float& s) {
  return {Lanes::multiply(a.x, s), Lanes::multiply(a.y, s), Lanes::multiply(a.z, s)};
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline typename Lanes::Float lane_dot(const LaneVec3<Lanes>& a, const LaneVec3<Lanes>& b) {
  return Lanes::add(Lanes::add(Lanes::multiply(a.x, b.x), Lanes::multiply(a.y, b.y)), Lanes::multiply(a.z, b.z));
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneVec3<Lanes> lane_cross(const LaneVec3<Lanes>& a, const LaneVec3<Lanes>& b) {
  return {Lanes::subtract(Lanes::multiply(a.y, b.z), Lanes::multiply(a.z, b.y)),
          Lanes::subtract(Lanes::multiply(a.z, b.x), Lanes::multiply(a.x, b.z)),
          Lanes::subtract(Lanes::multiply(a.x, b.y), Lanes::multiply(a.y, b.x))};
}

// The unit vectors along vectors that are not near zero (normalise gives the zero vector there, this does not).
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneVec3<Lanes> lane_normalise(const LaneVec3<Lanes>& a) {
  return lane_scale<Lanes>(a, Lanes::divide(Lanes::broadcast(1.0f), Lanes::square_root(lane_dot<Lanes>(a, a))));
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneVec3<Lanes> lane_select(const typename Lanes::Mask& mask, const LaneVec3<Lanes>& if_set,
                                          const LaneVec3<Lanes>& otherwise) {
  return {Lanes::select(mask, if_set.x, otherwise.x), Lanes::select(mask, if_set.y, otherwise.y),
          Lanes::select(mask, if_set.z, otherwise.z)};
}

template <class Lanes>
struct LaneFrame {
  LaneVec3<Lanes> tangent;
  LaneVec3<Lanes> normal;
  LaneVec3<Lanes> binormal;
};

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneFrame<Lanes> spread(const Frame& frame) {
  return {spread<Lanes>(frame.tangent), spread<Lanes>(frame.normal), spread<Lanes>(frame.binormal)};
}

// What propagate_frame multiplies a frame with, for one pair of curvatures and one arc: made once per probe, applied at
// each of its points.
template <class Lanes>
struct LaneArc {
  typename Lanes::Mask bent;  // else the curve is straight
  typename Lanes::Float length;
  typename Lanes::Float along, aside_1, aside_2;
  typename Lanes::Float keep, turn_1, turn_2;
  typename Lanes::Float minus_turn_1, normal_normal, normal_binormal;
};

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneArc<Lanes> lane_arc(const typename Lanes::Float& k1, const typename Lanes::Float& k2, float arc) {
  using Float = typename Lanes::Float;
  const auto negative = [](const Float& a) {
    return Lanes::float_of_bits(Lanes::bits_xor(Lanes::bits_of(a), Lanes::broadcast(sign_bit)));
  };
  const Float one = Lanes::broadcast(1.0f);
  const Float two = Lanes::broadcast(2.0f);
  LaneArc<Lanes> result;
  const Float curvature = Lanes::square_root(Lanes::add(Lanes::multiply(k1, k1), Lanes::multiply(k2, k2)));
  result.bent = Lanes::at_least(curvature, Lanes::broadcast(smallest_curvature));
  result.length = Lanes::broadcast(arc);
  const Float k = Lanes::select(result.bent, curvature, one);
  const Float inverse = Lanes::divide(one, k);
  const Float u1 = Lanes::multiply(k1, inverse);
  const Float u2 = Lanes::multiply(k2, inverse);
  const LaneSineCosine<Lanes> half =
      lane_sine_cosine<Lanes>(Lanes::multiply(Lanes::broadcast(0.5f), Lanes::multiply(k, result.length)));
  const Float sine_value = Lanes::multiply(two, Lanes::multiply(half.sine, half.cosine));
  const Float versine = Lanes::multiply(two, Lanes::multiply(half.sine, half.sine));
  const Float aside = Lanes::multiply(versine, inverse);
  result.along = Lanes::multiply(sine_value, inverse);
  result.aside_1 = Lanes::multiply(u1, aside);
  result.aside_2 = Lanes::multiply(u2, aside);
  result.keep = Lanes::subtract(one, versine);
  result.turn_1 = Lanes::multiply(u1, sine_value);
  result.turn_2 = Lanes::multiply(u2, sine_value);
  result.minus_turn_1 = negative(result.turn_1);
  result.normal_normal = Lanes::subtract(one, Lanes::multiply(Lanes::multiply(u1, u1), versine));
  result.normal_binormal = negative(Lanes::multiply(Lanes::multiply(u1, u2), versine));
  return result;
}

template <class Lanes>
struct LaneFrameStep {
  LaneVec3<Lanes> displacement;
  LaneFrame<Lanes> frame;
};

// `normalise` is lane_normalise or another way to its bits; both vectors that it gets are unit vectors but for
// rounding.
CGL_HD_GENERIC
template <class Lanes, class Normalise>
CGL_HD inline LaneFrameStep<Lanes> lane_propagate(const LaneFrame<Lanes>& frame, const LaneArc<Lanes>& arc,
                                                  Normalise&& normalise) {
  using Float = typename Lanes::Float;
  const auto combined = [&](const Float& a, const Float& b, const Float& c) {
    return lane_add<Lanes>(lane_add<Lanes>(lane_scale<Lanes>(frame.tangent, a), lane_scale<Lanes>(frame.normal, b)),
                           lane_scale<Lanes>(frame.binormal, c));
  };
  const LaneVec3<Lanes> tangent = normalise(combined(arc.keep, arc.turn_1, arc.turn_2));
  const LaneVec3<Lanes> leaning = combined(arc.minus_turn_1, arc.normal_normal, arc.normal_binormal);
  const LaneVec3<Lanes> excess = lane_scale<Lanes>(tangent, lane_dot<Lanes>(tangent, leaning));
  const LaneVec3<Lanes> normal =
      normalise(LaneVec3<Lanes>{Lanes::subtract(leaning.x, excess.x), Lanes::subtract(leaning.y, excess.y),
                                Lanes::subtract(leaning.z, excess.z)});
  const LaneVec3<Lanes> displacement = combined(arc.along, arc.aside_1, arc.aside_2);
  return {lane_select<Lanes>(arc.bent, displacement, lane_scale<Lanes>(frame.tangent, arc.length)),
          {lane_select<Lanes>(arc.bent, tangent, frame.tangent), lane_select<Lanes>(arc.bent, normal, frame.normal),
           lane_select<Lanes>(arc.bent, lane_cross<Lanes>(tangent, normal), frame.binormal)}};
}

CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline LaneFrameStep<Lanes> lane_propagate(const LaneFrame<Lanes>& frame, const LaneArc<Lanes>& arc) {
  return lane_propagate<Lanes>(frame, arc, [](const LaneVec3<Lanes>& v) { return lane_normalise<Lanes>(v); });
}

}  // namespace cingulum::numerics
