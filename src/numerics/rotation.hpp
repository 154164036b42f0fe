// Rotations of directions: a fixed choice of a perpendicular vector, unit quaternions, and the frame (tangent, normal,
// binormal) that parallel transport carries along a curve. Called by direction getters that bend a curve (ptt) and by
// seeds that draw directions in a cone. Frames are made orthonormal again at each step, so rounding does not pile up.
// Mirrored by wgsl/rotation.wgsl.
#pragma once

#include "numerics/classify.hpp"
#include "numerics/elementary.hpp"
#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"

namespace cingulum::numerics {

// A unit vector perpendicular to `v`: v x the axis along which v is shortest, the first of x, y, z among equals. Not
// continuous in v, but fixed. The zero vector gives the zero vector.
CGL_HD inline Vec3 any_perpendicular(Vec3 v) {
  const float x = absolute(v.x);
  const float y = absolute(v.y);
  const float z = absolute(v.z);
  if (x <= y && x <= z) return normalise(Vec3{0.0f, v.z, -v.y});
  if (y <= z) return normalise(Vec3{-v.z, 0.0f, v.x});
  return normalise(Vec3{v.y, -v.x, 0.0f});
}

// w + xi + yj + zk. Rotations are unit quaternions.
struct Quaternion {
  float w;
  float x;
  float y;
  float z;
};

// Right-handed about the unit vector `axis`; |angle| <= 512.
CGL_HD inline Quaternion quaternion_about(Vec3 axis, float angle) {
  const SineCosine<float> half = sine_cosine(0.5f * angle);
  return {half.cosine, half.sine * axis.x, half.sine * axis.y, half.sine * axis.z};
}

// First b, then a (Hamilton's product).
CGL_HD constexpr Quaternion multiply(Quaternion a, Quaternion b) {
  return {((a.w * b.w - a.x * b.x) - a.y * b.y) - a.z * b.z, ((a.w * b.x + a.x * b.w) + a.y * b.z) - a.z * b.y,
          ((a.w * b.y - a.x * b.z) + a.y * b.w) + a.z * b.x, ((a.w * b.z + a.x * b.y) - a.y * b.x) + a.z * b.w};
}

// v + w t + u x t with t = 2 u x v, u the vector part.
CGL_HD constexpr Vec3 rotate(Quaternion q, Vec3 v) {
  const Vec3 u{q.x, q.y, q.z};
  const Vec3 half = cross(u, v);
  const Vec3 t = half + half;
  return (v + t * q.w) + cross(u, t);
}

struct Frame {
  Vec3 tangent;
  Vec3 normal;
  Vec3 binormal;
};

// The frame with this unit tangent whose normal is any_perpendicular.
CGL_HD inline Frame frame_with_tangent(Vec3 tangent) {
  const Vec3 normal = any_perpendicular(tangent);
  return {tangent, normal, cross(tangent, normal)};
}

// Right angles and unit lengths again: the tangent stays, the normal leans the least that it must.
CGL_HD inline Frame straighten(Vec3 tangent, Vec3 normal) {
  const Vec3 upright = normalise(normal - tangent * dot(tangent, normal));
  return {tangent, upright, cross(tangent, upright)};
}

// Parallel transport onto another unit tangent: the frame turned by the smallest rotation that takes its tangent t to
// t'. For n perpendicular to t that rotation is n - (t'.n / (1 + t.t')) (t + t') (Rodrigues' formula, with the angle
// eliminated). Opposite tangents have no smallest rotation; then the normal stays and the binormal turns over.
CGL_HD inline Frame transport_frame(const Frame& frame, Vec3 new_tangent) {
  const float scale = 1.0f + dot(frame.tangent, new_tangent);
  if (!(scale > 0x1p-12f)) return straighten(new_tangent, frame.normal);
  const float share = dot(new_tangent, frame.normal) / scale;
  return straighten(new_tangent, frame.normal - (frame.tangent + new_tangent) * share);
}

struct FrameStep {
  Vec3 displacement;
  Frame frame;
};

// Curvatures below this bend a step of any length that occurs by less than float32 resolves well; they count as none.
inline constexpr float smallest_curvature = 1e-4f;

// Where a curve of constant curvatures k1 (along the normal) and k2 (along the binormal) leads over arc length a, and
// its frame there: the propagator of Aydogan and Shi, Parallel transport tractography, IEEE TMI 40, 2021, with
// 1 - cos = 2 sin^2 of half the angle, which keeps its digits when the angle is small.
CGL_HD inline FrameStep propagate_frame(const Frame& frame, float k1, float k2, float arc) {
  const float k = root(k1 * k1 + k2 * k2);
  if (!(k >= smallest_curvature)) return {frame.tangent * arc, frame};
  const float inverse = 1.0f / k;
  const float u1 = k1 * inverse;
  const float u2 = k2 * inverse;
  const SineCosine<float> half = sine_cosine(0.5f * (k * arc));
  const float sine_value = 2.0f * (half.sine * half.cosine);
  const float versine = 2.0f * (half.sine * half.sine);
  const float along = sine_value * inverse;
  const float aside = versine * inverse;
  const Vec3 displacement = combine(frame.tangent, along, frame.normal, u1 * aside, frame.binormal, u2 * aside);
  const Vec3 tangent =
      normalise(combine(frame.tangent, 1.0f - versine, frame.normal, u1 * sine_value, frame.binormal, u2 * sine_value));
  const Vec3 normal = combine(frame.tangent, -(u1 * sine_value), frame.normal, 1.0f - (u1 * u1) * versine,
                              frame.binormal, -((u1 * u2) * versine));
  return {displacement, straighten(tangent, normal)};
}

}  // namespace cingulum::numerics
