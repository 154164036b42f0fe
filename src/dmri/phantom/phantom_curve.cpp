#include "dmri/phantom/phantom_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "numerics/elementary64.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

constexpr double sample_spacing_mm = 0.5;

struct Derivatives {
  Vec3d position;
  Vec3d first;
  Vec3d second;
};

inline Derivatives evaluate(const CurvePiece& piece, double u) {
  if (piece.kind == CurvePiece::Kind::cubic) {
    return {piece.a + u * (piece.b + u * (piece.c + u * piece.d)), piece.b + u * (2.0 * piece.c + (3.0 * u) * piece.d),
            2.0 * piece.c + (6.0 * u) * piece.d};
  }
  const auto angle = numerics::sine_cosine(piece.start_angle + u * piece.sweep);
  const Vec3d outward = piece.b * angle.cosine + piece.c * angle.sine;
  const Vec3d along = piece.c * angle.cosine - piece.b * angle.sine;
  return {piece.a + outward + u * piece.d, piece.sweep * along + piece.d, (-piece.sweep * piece.sweep) * outward};
}

// Gauss and Legendre with three points: over half a millimetre of these curves exact to rounding.
double arc_between(const CurvePiece& piece, double u0, double u1) {
  const bool straight = piece.kind == CurvePiece::Kind::cubic && piece.c == Vec3d{0, 0, 0} && piece.d == Vec3d{0, 0, 0};
  if (straight) return (u1 - u0) * length(piece.b);
  const double middle = 0.5 * (u0 + u1);
  const double half = 0.5 * (u1 - u0);
  const double off = half * 0.7745966692414834;  // sqrt(3/5)
  const auto speed = [&](double u) { return length(evaluate(piece, u).first); };
  return half * ((5.0 / 9.0) * (speed(middle - off) + speed(middle + off)) + (8.0 / 9.0) * speed(middle));
}

// The double reflection of Wang, Juettler, Zheng, Liu: Computation of rotation minimizing frames, ACM TOG 27, 2008.
Vec3d transport(Vec3d normal, Vec3d from, Vec3d from_tangent, Vec3d to, Vec3d to_tangent) {
  const Vec3d v1 = to - from;
  const double c1 = dot(v1, v1);
  if (!(c1 > 1e-24)) return normal;
  const Vec3d reflected = normal - v1 * (2.0 / c1 * dot(v1, normal));
  const Vec3d reflected_tangent = from_tangent - v1 * (2.0 / c1 * dot(v1, from_tangent));
  const Vec3d v2 = to_tangent - reflected_tangent;
  const double c2 = dot(v2, v2);
  return c2 > 1e-24 ? reflected - v2 * (2.0 / c2 * dot(v2, reflected)) : reflected;
}

bool is_finite(Vec3d v) {
  return numerics::is_finite(v.x) && numerics::is_finite(v.y) && numerics::is_finite(v.z);
}

}  // namespace

CurvePiece line_piece(Vec3d from, Vec3d to) {
  return {.a = from, .b = to - from};
}

CurvePiece arc_piece(Vec3d centre, Vec3d e1, Vec3d e2, double radius, double start_angle, double sweep, Vec3d rise) {
  return {.kind = CurvePiece::Kind::helix,
          .a = centre,
          .b = e1 * radius,
          .c = e2 * radius,
          .d = rise,
          .start_angle = start_angle,
          .sweep = sweep};
}

std::vector<CurvePiece> spline_pieces(std::span<const Vec3d> points) {
  const std::size_t n = points.size();
  if (n < 2) return {};
  std::vector<double> h(n - 1);
  for (std::size_t i = 0; i + 1 < n; ++i) h[i] = length(points[i + 1] - points[i]);
  // Second derivatives at the points: tridiagonal, zero at both ends (Thomas' elimination).
  std::vector<Vec3d> second(n, Vec3d{0, 0, 0});
  std::vector<double> upper(n, 0.0);
  for (std::size_t i = 1; i + 1 < n; ++i) {
    const Vec3d right = (points[i + 1] - points[i]) * (1.0 / h[i]);
    const Vec3d left = (points[i] - points[i - 1]) * (1.0 / h[i - 1]);
    const double diagonal = 2.0 * (h[i - 1] + h[i]) - h[i - 1] * upper[i - 1];
    upper[i] = h[i] / diagonal;
    second[i] = (6.0 * (right - left) - h[i - 1] * second[i - 1]) * (1.0 / diagonal);
  }
  for (std::size_t i = n - 1; i-- > 1;) second[i] = second[i] - upper[i] * second[i + 1];
  std::vector<CurvePiece> pieces;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const Vec3d chord = points[i + 1] - points[i];
    const double square = h[i] * h[i];
    pieces.push_back({.a = points[i],
                      .b = chord - (square / 6.0) * (2.0 * second[i] + second[i + 1]),
                      .c = (square / 2.0) * second[i],
                      .d = (square / 6.0) * (second[i + 1] - second[i])});
  }
  return pieces;
}

Result<Curve> Curve::create(std::vector<CurvePiece> pieces) {
  if (pieces.empty() || pieces.size() > 10'000) {
    return fail(ErrorKind::invalid_argument, "a centre line of {} pieces (1 to 10 000 are accepted)", pieces.size());
  }
  Curve curve;
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    const CurvePiece& piece = pieces[index];
    constexpr double largest_mm = 1e4;
    bool sound = numerics::absolute(piece.sweep) <= 100 && numerics::absolute(piece.start_angle) <= 100;
    for (const Vec3d& v : {piece.a, piece.b, piece.c, piece.d})
      sound = sound && is_finite(v) && numerics::length(v) < largest_mm;
    if (!sound) {
      return fail(ErrorKind::invalid_argument, "centre line, piece {}: a number is not finite or too large", index);
    }
    constexpr int rough = 64;
    double rough_length = 0;
    double slowest = numerics::length(evaluate(piece, 0).first);
    for (int i = 0; i < rough; ++i) {
      rough_length += arc_between(piece, double(i) / rough, double(i + 1) / rough);
      slowest = std::min(slowest, numerics::length(evaluate(piece, double(i + 1) / rough).first));
    }
    if (!(rough_length > 1e-3) || rough_length > largest_mm || !(slowest > 1e-3 * rough_length)) {
      return fail(ErrorKind::invalid_argument, "centre line, piece {}: its length is {:.3g} mm, or it stops within",
                  index, rough_length);
    }
    const Derivatives start = evaluate(piece, 0);
    if (index == 0) {
      curve.positions_.push_back(start.position);
      curve.tangents_.push_back(normalise(start.first));
      curve.arc_.push_back(0);
    } else if (!(numerics::length(start.position - curve.positions_.back()) <= 1e-6) ||
               !(dot(normalise(start.first), curve.tangents_.back()) > 0.9999985)) {
      return fail(ErrorKind::invalid_argument, "centre line: piece {} does not continue piece {}", index, index - 1);
    }
    const auto count = static_cast<std::size_t>(rough_length / sample_spacing_mm) + 1;
    for (std::size_t i = 0; i < count; ++i) {
      const double u0 = static_cast<double>(i) / static_cast<double>(count);
      const double u1 = static_cast<double>(i + 1) / static_cast<double>(count);
      const Derivatives end = evaluate(piece, u1);
      curve.piece_.push_back(static_cast<std::uint32_t>(index));
      curve.u_begin_.push_back(u0);
      curve.u_end_.push_back(u1);
      curve.arc_.push_back(curve.arc_.back() + arc_between(piece, u0, u1));
      curve.positions_.push_back(end.position);
      curve.tangents_.push_back(normalise(end.first));
    }
  }
  curve.pieces_ = std::move(pieces);
  if (!(curve.length() >= 1) || curve.length() > 1e4) {
    return fail(ErrorKind::invalid_argument, "a centre line of {:.3g} mm (1 mm to 10 m are accepted)", curve.length());
  }
  const Vec3d t = curve.tangents_[0];
  const double ax = numerics::absolute(t.x), ay = numerics::absolute(t.y), az = numerics::absolute(t.z);
  const Vec3d least = ax <= ay && ax <= az ? Vec3d{1, 0, 0} : ay <= az ? Vec3d{0, 1, 0} : Vec3d{0, 0, 1};
  curve.normals_.push_back(normalise(least - t * dot(least, t)));
  for (std::size_t i = 0; i + 1 < curve.positions_.size(); ++i) {
    curve.normals_.push_back(normalise(transport(curve.normals_[i], curve.positions_[i], curve.tangents_[i],
                                                 curve.positions_[i + 1], curve.tangents_[i + 1])));
  }
  return curve;
}

double Curve::piece_end_arc(std::size_t piece) const {
  const auto after = std::upper_bound(piece_.begin(), piece_.end(), static_cast<std::uint32_t>(piece));
  return arc_[static_cast<std::size_t>(after - piece_.begin())];
}

CurveFoot Curve::refine(Vec3d point, std::size_t nearest) const {
  const std::size_t last = positions_.size() - 1;
  // Positive: the curve at the sample is past the point.
  const double slope = dot(positions_[nearest] - point, tangents_[nearest]);
  CurveFoot foot;
  if ((nearest == 0 && slope > 0) || (nearest == last && slope < 0)) {
    foot.interval = nearest == 0 ? 0 : last - 1;
    foot.u = nearest == 0 ? u_begin_[0] : u_end_[last - 1];
    foot.distance = numerics::length(point - positions_[nearest]);
    foot.beyond = true;
    return foot;
  }
  foot.interval = slope > 0 || nearest == last ? nearest - 1 : nearest;
  const CurvePiece& piece = pieces_[piece_[foot.interval]];
  double low = u_begin_[foot.interval];
  double high = u_end_[foot.interval];
  double u = foot.interval == nearest ? low : high;
  Derivatives at = evaluate(piece, u);
  // Newton on (x(u) - p) . x'(u) = 0, kept inside the interval by bisection. The steps are the same on every machine.
  for (int iteration = 0; iteration < 40; ++iteration) {
    const Vec3d off = at.position - point;
    const double g = dot(off, at.first);
    if (g > 0) {
      high = u;
    } else {
      low = u;
    }
    const double g_slope = dot(at.first, at.first) + dot(off, at.second);
    double next = g_slope > 0 ? u - g / g_slope : 0.5 * (low + high);
    if (!(next >= low && next <= high)) next = 0.5 * (low + high);
    const double moved = numerics::absolute(next - u);
    u = next;
    at = evaluate(piece, u);
    if (moved <= 1e-8) break;  // Newton squares its error: the next step would not be seen
  }
  foot.u = u;
  foot.distance = numerics::length(point - at.position);
  return foot;
}

CurveFoot Curve::foot_near(Vec3d point, std::size_t hint) const {
  const auto square = [&](std::size_t i) {
    const Vec3d off = positions_[i] - point;
    return dot(off, off);
  };
  std::size_t best = hint;
  double smallest = square(best);
  while (best + 1 < positions_.size()) {
    const double next = square(best + 1);
    if (!(next < smallest)) break;
    smallest = next;
    ++best;
  }
  while (best > 0) {
    const double next = square(best - 1);
    if (!(next < smallest)) break;
    smallest = next;
    --best;
  }
  return refine(point, best);
}

CurveFoot Curve::foot(Vec3d point, std::size_t first, std::size_t last) const {
  constexpr std::size_t stride = 4;
  std::size_t best = first;
  double smallest = 1e300;
  const auto consider = [&](std::size_t i) {
    const Vec3d off = positions_[i] - point;
    const double square = dot(off, off);
    if (square < smallest) {
      smallest = square;
      best = i;
    }
  };
  for (std::size_t i = first; i <= last; i += stride) consider(i);
  consider(last);
  return foot_near(point, best);
}

CurveState Curve::state(const CurveFoot& foot) const {
  const Derivatives at = evaluate(pieces_[piece_[foot.interval]], foot.u);
  const double inverse_square = 1.0 / dot(at.first, at.first);
  const Vec3d tangent = at.first * numerics::root(inverse_square);
  return {at.position, tangent, (at.second - tangent * dot(at.second, tangent)) * inverse_square};
}

double Curve::arc(const CurveFoot& foot) const {
  return arc_[foot.interval] + arc_between(pieces_[piece_[foot.interval]], u_begin_[foot.interval], foot.u);
}

CurveFoot Curve::at_arc(double arc) const {
  CurveFoot foot;
  const auto after = std::upper_bound(arc_.begin(), arc_.end(), arc);
  const auto index = static_cast<std::size_t>(after - arc_.begin());
  foot.interval = index == 0 ? 0 : std::min(index - 1, piece_.size() - 1);
  const CurvePiece& piece = pieces_[piece_[foot.interval]];
  const double low = u_begin_[foot.interval];
  const double high = u_end_[foot.interval];
  const double share = (arc - arc_[foot.interval]) / (arc_[foot.interval + 1] - arc_[foot.interval]);
  double u = low + std::clamp(share, 0.0, 1.0) * (high - low);
  for (int iteration = 0; iteration < 4; ++iteration) {
    const double excess = arc_[foot.interval] + arc_between(piece, low, u) - arc;
    u = std::clamp(u - excess / numerics::length(evaluate(piece, u).first), low, high);
  }
  foot.u = u;
  return foot;
}

Vec3d Curve::normal(const CurveFoot& foot) const {
  const Derivatives at = evaluate(pieces_[piece_[foot.interval]], foot.u);
  const Vec3d tangent = numerics::normalise(at.first);
  const Vec3d carried =
      transport(normals_[foot.interval], positions_[foot.interval], tangents_[foot.interval], at.position, tangent);
  return numerics::normalise(carried - tangent * dot(carried, tangent));
}

}  // namespace cingulum
