// The turn and the shift of one image on another, by the correlation where both are seen: a rough search, then
// Gauss-Newton from coarse to fine. Called by slice_registration.cpp, which finds the depth.
#pragma once

#include <array>
#include <cstddef>

#include "numerics/elementary64.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/registration/seen_slab.hpp"
#include "oct/registration/slice_registration.hpp"

namespace cingulum::oct {

// Where a pixel of fixed lies in moving, the inverse of what is reported: q = R(turn) (x - centre) + centre + move.
struct PullBack {
  double turn = 0;
  std::array<double, 2> move = {0, 0};
};

// The place in moving of a pixel of fixed, and what moving shows there.
class MovingSampler {
 public:
  MovingSampler(const SeenImage& fixed, const SeenImage& moving, const PullBack& pull)
      : fixed_(fixed),
        moving_(moving),
        pull_(pull),
        turn_(numerics::sine_cosine(pull.turn)),
        row_centre_(static_cast<double>(fixed.image.rows - 1) / 2),
        column_centre_(static_cast<double>(fixed.image.columns - 1) / 2) {}

  // False where one of both is not seen.
  [[nodiscard]] bool sample(std::size_t r, std::size_t c, double& value) const {
    const double y = static_cast<double>(r) - row_centre_;
    const double x = static_cast<double>(c) - column_centre_;
    const double row = turn_.cosine * y - turn_.sine * x + row_centre_ + pull_.move[0];
    const double column = turn_.sine * y + turn_.cosine * x + column_centre_ + pull_.move[1];
    double seen = 0;
    return !(fixed_.seen.at(r, c) < fully_seen) && sample_image(moving_.seen, row, column, seen) &&
           !(seen < fully_seen) && sample_image(moving_.image, row, column, value);
  }

 private:
  const SeenImage& fixed_;
  const SeenImage& moving_;
  const PullBack& pull_;
  numerics::SineCosine<double> turn_;
  double row_centre_, column_centre_;
};

[[nodiscard]] PullBack inverse_of(const RigidFit& fit);
[[nodiscard]] RigidFit register_seen(const SeenImage& fixed, const SeenImage& moving,
                                     const RegistrationOptions& options);

}  // namespace cingulum::oct
