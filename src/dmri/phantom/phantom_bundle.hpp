// A bundle of the phantom: a tube around a centre line whose radius may vary, filled with fibres that are offset curves
// of the centre line. Every question about it (inside? which direction? which end?) has an analytic answer, so that a
// tractogram can be scored exactly. Called by the phantom's writer and by the score. World coordinates in mm.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "dmri/phantom/phantom_curve.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct RadiusKnot {
  double arc_mm = 0;
  double radius_mm = 0;

  friend bool operator==(const RadiusKnot&, const RadiusKnot&) = default;
};

// What a bundle is made of, as phantom.json holds it.
struct BundleShape {
  std::string name;  // letters, digits, '_' and '-'
  std::vector<CurvePiece> pieces = {};
  // Ascending arc lengths; between them a cubic without overshoot, beyond them constant.
  std::vector<RadiusKnot> radius = {};
  double end_mm = 4;  // the length of each end region

  friend bool operator==(const BundleShape&, const BundleShape&) = default;
};

// A point as the bundle sees it.
struct BundlePosition {
  CurveFoot foot;
  double arc = 0;         // of the foot
  double radius = 0;      // of the tube at the foot
  double distance = 0;    // from the centre line
  bool inside = false;    // within the radius and between the two flat ends
  bool at_start = false;  // inside, and in the first end_mm
  bool at_end = false;
};

class Bundle {
 public:
  // Fails, with the bundle's name, when the centre line is unsound, the radius is not positive, the end regions overlap
  // or the tube is wider than the centre line's radius of curvature (its fibres would cross).
  [[nodiscard]] static Result<Bundle> create(BundleShape shape);

  [[nodiscard]] const BundleShape& shape() const { return shape_; }
  [[nodiscard]] const std::string& name() const { return shape_.name; }
  [[nodiscard]] const Curve& curve() const { return curve_; }
  [[nodiscard]] double length() const { return curve_.length(); }
  [[nodiscard]] double radius_at(double arc) const;
  [[nodiscard]] double radius_slope_at(double arc) const;
  [[nodiscard]] double largest_radius() const { return largest_radius_; }
  [[nodiscard]] double smallest_radius() const { return smallest_radius_; }
  // The area where it is narrowest: the weight of the connection in the true matrix.
  [[nodiscard]] double cross_section_mm2() const;
  [[nodiscard]] double volume_mm3() const;  // of the tube: the integral of pi rho^2 (Pappus)

  // How the bundle sees a point, given by itself or by its foot on the centre line.
  [[nodiscard]] BundlePosition position_of(const CurveFoot& foot) const;
  [[nodiscard]] BundlePosition position(numerics::Vec3d point) const { return position_of(curve_.foot(point)); }
  // The direction of the fibre through the point, a unit vector from the start to the end. With x(s) the centre line, T
  // its tangent, k its curvature vector and o = p - x the offset, the offset curve x + rho(s) (u N + w B) in a
  // rotation-minimising frame has the derivative T (1 - k . o) + rho'/rho o.
  [[nodiscard]] numerics::Vec3d direction(numerics::Vec3d point, const BundlePosition& position) const;
  // Where a fibre lies in the cross-section, in the unit disc: its name, the same at both of its ends.
  struct Section {
    double u = 0;
    double w = 0;
  };
  [[nodiscard]] Section section(numerics::Vec3d point, const BundlePosition& position) const;
  // The point of the fibre (u, w) at this arc length of the centre line.
  [[nodiscard]] numerics::Vec3d fibre_point(double arc, Section section) const;

 private:
  Bundle(BundleShape shape, Curve curve) : shape_(std::move(shape)), curve_(std::move(curve)) {}

  BundleShape shape_;
  Curve curve_;
  std::vector<double> slopes_;  // at the knots
  double largest_radius_ = 0;
  double smallest_radius_ = 0;
};

// Which bundles may be near a point: a grid of cells, each with the bundles whose tube, widened by a margin, can meet
// it and the samples of their centre lines to look at.
class BundleIndex {
 public:
  struct Entry {
    std::uint32_t bundle = 0;
    std::uint32_t first_sample = 0;
    std::uint32_t last_sample = 0;
  };

  BundleIndex(std::span<const Bundle> bundles, double margin_mm, double cell_mm = 4);

  // Ascending by bundle; empty outside the grid. A point within radius + margin of a centre line has its entry here.
  [[nodiscard]] std::span<const Entry> near(numerics::Vec3d point) const;
  [[nodiscard]] const Entry* entry(numerics::Vec3d point, std::uint32_t bundle) const;
  [[nodiscard]] double margin_mm() const { return margin_mm_; }

 private:
  double margin_mm_;
  double cell_mm_;
  numerics::Vec3d low_ = {0, 0, 0};
  std::int64_t size_[3] = {0, 0, 0};
  std::vector<std::uint32_t> offsets_;
  std::vector<Entry> entries_;
};

}  // namespace cingulum
