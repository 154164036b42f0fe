// tensor: the principal eigenvector of the interpolated tensor, by Euler steps or by the Runge-Kutta method of fourth
// order.
#pragma once

#include <cstdint>

#include "numerics/classify.hpp"
#include "numerics/portable.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/sample.hpp"
#include "tract/kernel/step.hpp"
#include "tract/kernel/views.hpp"

namespace cingulum::kernel {

struct SymmetricMatrix {
  float xx, yy, zz, xy, xz, yz;
};

// Five sweeps of Jacobi's rotations bring the other numbers of a symmetric 3 x 3 matrix below rounding (Golub and Van
// Loan, Matrix Computations, 8.5; convergence is quadratic).
inline constexpr int jacobi_sweeps = 5;

struct JacobiRotation {
  float cosine;
  float sine;
  float tangent;
};

// The rotation that makes the number `off` between the diagonal numbers p and q zero. The matrix is scaled to 1.
CGL_HD inline JacobiRotation jacobi_rotation(float p, float q, float off) {
  if (!(numerics::absolute(off) >= 0x1p-40f)) return {1.0f, 0.0f, 0.0f};
  const float theta = (q - p) / (2.0f * off);
  const float size = numerics::absolute(theta);
  // Beyond 2^30 theta^2 is all that counts, and 1 / (2 theta) the tangent.
  const float t = size > 0x1p30f ? 0.5f / size : 1.0f / (size + numerics::root(theta * theta + 1.0f));
  const float tangent = theta < 0.0f ? -t : t;
  const float cosine = 1.0f / numerics::root(tangent * tangent + 1.0f);
  return {cosine, tangent * cosine, tangent};
}

// Turns the plane of the axes p and q so that the number between them becomes zero; r is the third axis. The vectors of
// both axes turn along.
CGL_HD inline void rotate_plane(float& pp, float& qq, float& pq, float& pr, float& qr, numerics::Vec3& p_vector,
                                numerics::Vec3& q_vector) {
  const JacobiRotation r = jacobi_rotation(pp, qq, pq);
  pp = pp - r.tangent * pq;
  qq = qq + r.tangent * pq;
  const float to_p = r.cosine * pr - r.sine * qr;
  qr = r.sine * pr + r.cosine * qr;
  pr = to_p;
  pq = 0.0f;
  const numerics::Vec3 turned = p_vector * r.cosine - q_vector * r.sine;
  q_vector = p_vector * r.sine + q_vector * r.cosine;
  p_vector = turned;
}

// The unit eigenvector of the largest eigenvalue, of either sign; zero for the zero matrix.
CGL_HD inline numerics::Vec3 principal_eigenvector(const SymmetricMatrix& matrix) {
  float largest = numerics::absolute(matrix.xx);
  const float others[5] = {numerics::absolute(matrix.yy), numerics::absolute(matrix.zz), numerics::absolute(matrix.xy),
                           numerics::absolute(matrix.xz), numerics::absolute(matrix.yz)};
  for (int i = 0; i < 5; ++i) {
    if (others[i] > largest) largest = others[i];
  }
  if (!(largest >= 0x1p-80f)) return {0.0f, 0.0f, 0.0f};
  const float scale = 1.0f / largest;
  float xx = matrix.xx * scale, yy = matrix.yy * scale, zz = matrix.zz * scale;
  float xy = matrix.xy * scale, xz = matrix.xz * scale, yz = matrix.yz * scale;
  numerics::Vec3 v1{1.0f, 0.0f, 0.0f}, v2{0.0f, 1.0f, 0.0f}, v3{0.0f, 0.0f, 1.0f};
  for (int sweep = 0; sweep < jacobi_sweeps; ++sweep) {
    rotate_plane(xx, yy, xy, xz, yz, v1, v2);
    rotate_plane(xx, zz, xz, xy, yz, v1, v3);
    rotate_plane(yy, zz, yz, xy, xz, v2, v3);
  }
  numerics::Vec3 best = v1;
  float value = xx;
  if (yy > value) {
    best = v2;
    value = yy;
  }
  if (zz > value) best = v3;
  return numerics::normalise(best);
}

CGL_HD inline SymmetricMatrix tensor_of_record(const float* record) {
  return {record[0], record[1], record[2], record[3], record[4], record[5]};
}

// The eigenvector on the side of `ahead`.
CGL_HD inline numerics::Vec3 tensor_direction(const float* record, numerics::Vec3 ahead) {
  const numerics::Vec3 vector = principal_eigenvector(tensor_of_record(record));
  return numerics::dot(vector, ahead) < 0.0f ? -vector : vector;
}

// Kutta 1901. The direction at each trial point is taken on the side of the one before; trial points outside of the
// image read its border. The displacement is the mean itself, a little shorter than a step where the path bends.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline Step tensor_step(const TrackingInput& input, const Slab& slab, numerics::Vec3 position,
                               numerics::Vec3 ahead) {
  const numerics::Vec3 k1 = tensor_direction(slab.record, ahead);
  if (!(numerics::dot(k1, k1) > 0.0f)) return no_step();
  if (input.plan.rk4 == 0u) return numerics::dot(k1, ahead) >= input.plan.cos_max_angle ? step_along(k1) : no_step();
  const TrackingPlan& plan = input.plan;
  const auto direction_at = [&](numerics::Vec3 towards, float share) {
    const numerics::Vec3 offset{(towards.x * plan.step_in_voxels[0]) * share,
                                (towards.y * plan.step_in_voxels[1]) * share,
                                (towards.z * plan.step_in_voxels[2]) * share};
    read_record<Lanes>(input, slab, position + offset);
    return tensor_direction(slab.record, towards);
  };
  const numerics::Vec3 k2 = direction_at(k1, 0.5f);
  const numerics::Vec3 k3 = direction_at(k2, 0.5f);
  const numerics::Vec3 k4 = direction_at(k3, 1.0f);
  const bool complete = numerics::dot(k2, k2) > 0.0f && numerics::dot(k3, k3) > 0.0f && numerics::dot(k4, k4) > 0.0f;
  if (!complete) return no_step();
  const numerics::Vec3 mean = ((k1 + (k2 + k2)) + ((k3 + k3) + k4)) * (1.0f / 6.0f);
  const numerics::Vec3 direction = numerics::normalise(mean);
  if (!(numerics::dot(direction, ahead) >= plan.cos_max_angle)) return no_step();
  return {true, direction, mean};
}

}  // namespace cingulum::kernel
