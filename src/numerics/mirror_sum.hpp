// The mirror sum of the contract, section 2: an even spherical-harmonic series at the four mirror images of a direction
// for little more than the price of one: four class sums give four directions with eight additions. Called by the
// getters on mirror-symmetric spheres. It does not build spheres. `Lanes` is PortableLanes, Avx2Lanes
// or WarpLanes. Mirrored by wgsl/mirror_sum.wgsl.
//
// Layout. The coefficients are sorted by mirror class A, B, C, D, within a class by their index in the file
// (sort_by_mirror_class); n is their number. The matrix holds for orbit o = 32 group + lane and sorted coefficient j
// the value of that harmonic at the orbit's first member at [(32 n) group + 32 j + lane]; orbits past the last are
// zero. Member q of orbit o, in the order (x,y,z), (x,y,-z), (x,-y,z), (-x,y,z), has slot 128 group + 32 q + lane.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/lanes_portable.hpp"
#include "numerics/portable.hpp"
#include "numerics/spherical_harmonics.hpp"

namespace cingulum::numerics {

// How many coefficients each of the classes A, B, C, D has.
struct MirrorClassSizes {
  std::uint32_t of_class[4];
};

// degree is even: 6/3/3/3 at degree 4, 15/10/10/10 at degree 8.
CGL_HD constexpr MirrorClassSizes mirror_class_sizes(int degree) {
  const auto half = static_cast<std::uint32_t>(degree / 2);
  const std::uint32_t odd = half * (half + 1u) / 2u;
  return {{odd + half + 1u, odd, odd, odd}};
}

// order[j] becomes the index of the coefficient that is number j in the sorting by class.
CGL_HD inline void sort_by_mirror_class(HarmonicConvention convention, int degree, std::uint32_t* order) {
  const int count = coefficient_count(degree, false);
  std::uint32_t sorted = 0;
  for (std::uint32_t of_class = 0; of_class < 4u; ++of_class) {
    for (int index = 0; index < count; ++index) {
      const int m = harmonic_of_coefficient(index, false).m;
      if (static_cast<std::uint32_t>(mirror_class(convention, m)) == of_class) {
        order[sorted++] = static_cast<std::uint32_t>(index);
      }
    }
  }
}

CGL_HD constexpr std::uint32_t mirror_slot(std::uint32_t orbit, std::uint32_t member) {
  return 128u * (orbit / lane_count) + lane_count * member + orbit % lane_count;
}

CGL_HD constexpr std::size_t mirror_matrix_index(std::uint32_t orbit, std::uint32_t coefficient,
                                                 std::uint32_t coefficients) {
  return std::size_t{lane_count} * coefficients * (orbit / lane_count) + lane_count * coefficient + orbit % lane_count;
}

// The values at the four members of each lane's orbit.
template <class Lanes>
struct MirrorMembers {
  typename Lanes::Float member[4];
};

// The values at the members, from the class sums A, B, C, D.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline MirrorMembers<Lanes> mirror_members(const typename Lanes::Float (&of_class)[4]) {
  const typename Lanes::Float a = Lanes::add(of_class[0], of_class[1]);
  const typename Lanes::Float b = Lanes::subtract(of_class[0], of_class[1]);
  const typename Lanes::Float c = Lanes::add(of_class[2], of_class[3]);
  const typename Lanes::Float d = Lanes::subtract(of_class[2], of_class[3]);
  return {{Lanes::add(a, c), Lanes::subtract(a, c), Lanes::add(b, d), Lanes::subtract(b, d)}};
}

// One group of 32 orbits. `group_matrix` is the matrix from the group's first entry on, `coefficients` are sorted by
// class. A class sum runs in sequence from its first term; an empty class (degree 0) is +0.0.
CGL_HD_GENERIC
template <class Lanes>
CGL_HD inline MirrorMembers<Lanes> mirror_sum(const MirrorClassSizes& sizes, const float* group_matrix,
                                              const float* coefficients) {
  typename Lanes::Float sums[4];
  std::uint32_t j = 0;
  for (std::uint32_t of_class = 0; of_class < 4u; ++of_class) {
    typename Lanes::Float sum = Lanes::broadcast(0.0f);
    for (std::uint32_t i = 0; i < sizes.of_class[of_class]; ++i, ++j) {
      const typename Lanes::Float entry = Lanes::load(group_matrix + std::size_t{lane_count} * j);
      const typename Lanes::Float term = Lanes::multiply(Lanes::broadcast(coefficients[j]), entry);
      sum = i == 0u ? term : Lanes::add(sum, term);
    }
    sums[of_class] = sum;
  }
  return mirror_members<Lanes>(sums);
}

}  // namespace cingulum::numerics
