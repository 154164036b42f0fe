// What filters and samplers take for the samples beyond the ends of a line. Plain C++, since nvcc compiles it, too.
#pragma once

#include <cstdint>

namespace cingulum::oct {

// Where a filter or a sampler reads beyond the first and the last sample, by SciPy's names.
enum class Boundary : std::uint32_t {
  reflect,   // d c b a | a b c d | d c b a
  mirror,    // d c b | a b c d | c b a
  nearest,   // a a a | a b c d | d d d
  constant,  // k k k | a b c d | k k k
  wrap,      // b c d | a b c d | a b c (SciPy's grid-wrap)
};

}  // namespace cingulum::oct
