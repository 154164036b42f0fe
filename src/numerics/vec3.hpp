// Vectors of three numbers, with sums taken in sequence x, y, z. Used by everything geometric; float in tracking,
// double in set-up. Mirrored by wgsl/vec3.wgsl on vec3<f32>, where the built-ins dot, cross and normalize are not used:
// their rounding is the driver's.
#pragma once

#include "numerics/portable.hpp"

namespace cingulum::numerics {

template <class Real>
struct BasicVec3 {
  Real x;
  Real y;
  Real z;

  friend CGL_HD constexpr BasicVec3 operator+(BasicVec3 a, BasicVec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend CGL_HD constexpr BasicVec3 operator-(BasicVec3 a, BasicVec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend CGL_HD constexpr BasicVec3 operator-(BasicVec3 a) { return {-a.x, -a.y, -a.z}; }
  friend CGL_HD constexpr BasicVec3 operator*(BasicVec3 a, Real s) { return {a.x * s, a.y * s, a.z * s}; }
  friend CGL_HD constexpr BasicVec3 operator*(Real s, BasicVec3 a) { return a * s; }
  friend CGL_HD constexpr bool operator==(BasicVec3 a, BasicVec3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
};

using Vec3 = BasicVec3<float>;
using Vec3d = BasicVec3<double>;

template <class Real>
CGL_HD constexpr Real dot(BasicVec3<Real> a, BasicVec3<Real> b) {
  return (a.x * b.x + a.y * b.y) + a.z * b.z;
}

template <class Real>
CGL_HD constexpr BasicVec3<Real> cross(BasicVec3<Real> a, BasicVec3<Real> b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

template <class Real>
CGL_HD inline Real length(BasicVec3<Real> a) {
  return root(dot(a, a));
}

// The unit vector along `a`: one division, then three products. A vector shorter than 2^-60 gives the zero vector (its
// square could be subnormal, which devices treat differently); components are below 2^63.
template <class Real>
CGL_HD inline BasicVec3<Real> normalise(BasicVec3<Real> a) {
  const Real square = dot(a, a);
  if (!(square >= Real(0x1p-120))) return {Real(0), Real(0), Real(0)};
  return a * (Real(1) / root(square));
}

// a x + b y + c z in sequence: a vector given by its components along three others.
template <class Real>
CGL_HD constexpr BasicVec3<Real> combine(BasicVec3<Real> x, Real a, BasicVec3<Real> y, Real b, BasicVec3<Real> z,
                                         Real c) {
  return (x * a + y * b) + z * c;
}

}  // namespace cingulum::numerics
