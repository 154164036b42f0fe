// The centre line of a phantom's bundle: a smooth curve of cubic and helical pieces with its arc length, the point on
// it nearest to any other point, and a frame that is carried along without turning. Used by phantom_bundle.*; it knows
// nothing of tubes. Lengths in mm, float64, no libm: every machine gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

// One piece, u in [0, 1]. cubic: a + u (b + u (c + u d)). helix: a + b cos(angle) + c sin(angle) + d u with
// angle = start_angle + u sweep; b and c are perpendicular and of one length, d is the rise over the whole piece. An
// arc is a helix without rise, a line a cubic without c and d.
struct CurvePiece {
  enum class Kind { cubic, helix };
  Kind kind = Kind::cubic;
  numerics::Vec3d a = {0, 0, 0};
  numerics::Vec3d b = {0, 0, 0};
  numerics::Vec3d c = {0, 0, 0};
  numerics::Vec3d d = {0, 0, 0};
  double start_angle = 0;  // radians
  double sweep = 0;        // radians, at most 100 either way

  friend bool operator==(const CurvePiece&, const CurvePiece&) = default;
};

[[nodiscard]] CurvePiece line_piece(numerics::Vec3d from, numerics::Vec3d to);
// An arc that begins at centre + radius (cos, sin) of start_angle, in the plane of the perpendicular unit vectors e1,
// e2.
[[nodiscard]] CurvePiece arc_piece(numerics::Vec3d centre, numerics::Vec3d e1, numerics::Vec3d e2, double radius,
                                   double start_angle, double sweep, numerics::Vec3d rise = {0, 0, 0});
// The natural cubic spline through the points, parametrised by chord length: tangent and curvature are continuous. At
// least two points, no two neighbours equal.
[[nodiscard]] std::vector<CurvePiece> spline_pieces(std::span<const numerics::Vec3d> points);

struct CurveState {
  numerics::Vec3d position;
  numerics::Vec3d tangent;    // unit
  numerics::Vec3d curvature;  // towards the centre of curvature, 1/mm
};

// Where on the curve a point is nearest.
struct CurveFoot {
  std::size_t interval = 0;  // between samples `interval` and `interval` + 1
  double u = 0;              // parameter of the piece
  double distance = 0;
  bool beyond = false;  // the point lies before the start's plane or after the end's
};

class Curve {
 public:
  // Samples every half millimetre or closer. Fails when pieces do not join (ends further than 1e-6 mm apart or tangents
  // more than 0.1 degree off), or when the curve is shorter than 1 mm, longer than 10 m, or not finite.
  [[nodiscard]] static Result<Curve> create(std::vector<CurvePiece> pieces);

  [[nodiscard]] const std::vector<CurvePiece>& pieces() const { return pieces_; }
  [[nodiscard]] double length() const { return arc_.back(); }
  [[nodiscard]] double piece_end_arc(std::size_t piece) const;  // arc length at which the piece ends
  [[nodiscard]] std::size_t sample_count() const { return positions_.size(); }
  [[nodiscard]] numerics::Vec3d sample(std::size_t index) const { return positions_[index]; }
  [[nodiscard]] double sample_arc(std::size_t index) const { return arc_[index]; }

  // The nearest point, sought among samples first..last and then refined. With the whole range it is the nearest of
  // all.
  [[nodiscard]] CurveFoot foot(numerics::Vec3d point, std::size_t first, std::size_t last) const;
  [[nodiscard]] CurveFoot foot(numerics::Vec3d point) const { return foot(point, 0, sample_count() - 1); }
  // The nearest point reached downhill from sample `hint`.
  [[nodiscard]] CurveFoot foot_near(numerics::Vec3d point, std::size_t hint) const;

  [[nodiscard]] CurveState state(const CurveFoot& foot) const;
  [[nodiscard]] double arc(const CurveFoot& foot) const;  // arc length from the start
  [[nodiscard]] CurveFoot at_arc(double arc) const;
  // The normal of the rotation-minimising frame (Bishop, Am. Math. Monthly 82, 1975); the binormal is tangent x normal.
  [[nodiscard]] numerics::Vec3d normal(const CurveFoot& foot) const;

 private:
  Curve() = default;
  [[nodiscard]] CurveFoot refine(numerics::Vec3d point, std::size_t nearest) const;

  std::vector<CurvePiece> pieces_;
  // Samples along the curve; the last of a piece is the first of the next one.
  std::vector<numerics::Vec3d> positions_;
  std::vector<numerics::Vec3d> tangents_;
  std::vector<numerics::Vec3d> normals_;
  std::vector<double> arc_;
  // Intervals between samples.
  std::vector<std::uint32_t> piece_;
  std::vector<double> u_begin_;
  std::vector<double> u_end_;
};

}  // namespace cingulum
