#include "dmri/phantom/phantom_bundle.hpp"

#include <algorithm>
#include <numbers>

#include "numerics/elementary64.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

using std::numbers::pi;

bool is_sound_name(const std::string& name) {
  if (name.empty() || name.size() > 100 || name[0] == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

Result<Bundle> Bundle::create(BundleShape shape) {
  if (!is_sound_name(shape.name)) {
    return fail(ErrorKind::invalid_argument, "a bundle's name has 1 to 100 letters, digits, '_' and '-'");
  }
  const std::string name = shape.name;
  const auto wrong = [&](std::string text) {
    return tl::make_unexpected(Error(ErrorKind::invalid_argument, fmt::format("bundle {}: {}", name, text)));
  };
  auto curve = add_context(Curve::create(shape.pieces), "bundle {}", name);
  if (!curve) return tl::make_unexpected(std::move(curve.error()));
  if (shape.radius.empty() || shape.radius.size() > 10'000) return wrong("it has no radius");
  for (std::size_t i = 0; i < shape.radius.size(); ++i) {
    const RadiusKnot& knot = shape.radius[i];
    if (!(knot.radius_mm >= 0.1 && knot.radius_mm <= 1e3)) {
      return wrong(fmt::format("a radius of {} mm (0.1 to 1000 are accepted)", knot.radius_mm));
    }
    if (!numerics::is_finite(knot.arc_mm) || (i > 0 && !(knot.arc_mm > shape.radius[i - 1].arc_mm))) {
      return wrong(fmt::format("radius knot {} does not come after the one before", i));
    }
  }
  if (!(shape.end_mm > 0) || 2 * shape.end_mm > curve->length()) {
    return wrong(fmt::format("end regions of {} mm do not fit into {:.3g} mm", shape.end_mm, curve->length()));
  }
  Bundle bundle(std::move(shape), std::move(*curve));
  const auto& knots = bundle.shape_.radius;
  bundle.slopes_.assign(knots.size(), 0.0);
  if (knots.size() > 1) {
    const auto chord = [&](std::size_t i) {
      return (knots[i + 1].radius_mm - knots[i].radius_mm) / (knots[i + 1].arc_mm - knots[i].arc_mm);
    };
    bundle.slopes_.front() = chord(0);
    bundle.slopes_.back() = chord(knots.size() - 2);
    // The harmonic mean, zero at extremes, keeps every cubic monotone (Fritsch and Butland 1984).
    for (std::size_t i = 1; i + 1 < knots.size(); ++i) {
      const double left = chord(i - 1), right = chord(i);
      bundle.slopes_[i] = left * right > 0 ? 2.0 * left * right / (left + right) : 0.0;
    }
  }
  bundle.smallest_radius_ = 1e9;
  for (std::size_t i = 0; i < bundle.curve_.sample_count(); ++i) {
    const double arc = bundle.curve_.sample_arc(i);
    const double radius = bundle.radius_at(arc);
    bundle.largest_radius_ = std::max(bundle.largest_radius_, radius);
    bundle.smallest_radius_ = std::min(bundle.smallest_radius_, radius);
    const double curvature = numerics::length(bundle.curve_.state(bundle.curve_.at_arc(arc)).curvature);
    if (!(curvature * radius < 0.95)) {
      return wrong(
          fmt::format("{:.3g} mm along it the radius is {:.3g} mm, its centre line's radius of curvature {:.3g} mm",
                      arc, radius, 1 / curvature));
    }
  }
  return bundle;
}

double Bundle::radius_at(double arc) const {
  const auto& knots = shape_.radius;
  if (arc <= knots.front().arc_mm) return knots.front().radius_mm;
  if (arc >= knots.back().arc_mm) return knots.back().radius_mm;
  std::size_t i = 0;
  while (arc > knots[i + 1].arc_mm) ++i;
  const double h = knots[i + 1].arc_mm - knots[i].arc_mm;
  const double t = (arc - knots[i].arc_mm) / h;
  const double rise = knots[i + 1].radius_mm - knots[i].radius_mm;
  // Hermite, as deviation from the chord: exact where the profile is linear.
  const double left = slopes_[i] * h - rise;
  const double right = slopes_[i + 1] * h - rise;
  return (knots[i].radius_mm + t * rise) + t * (1 - t) * ((1 - t) * left - t * right);
}

double Bundle::radius_slope_at(double arc) const {
  const auto& knots = shape_.radius;
  if (arc < knots.front().arc_mm || arc > knots.back().arc_mm || knots.size() < 2) return 0;
  std::size_t i = 0;
  while (i + 2 < knots.size() && arc > knots[i + 1].arc_mm) ++i;
  const double h = knots[i + 1].arc_mm - knots[i].arc_mm;
  const double t = (arc - knots[i].arc_mm) / h;
  const double rise = knots[i + 1].radius_mm - knots[i].radius_mm;
  const double left = slopes_[i] * h - rise;
  const double right = slopes_[i + 1] * h - rise;
  return (rise + (1 - t) * (1 - 3 * t) * left - t * (2 - 3 * t) * right) / h;
}

double Bundle::cross_section_mm2() const {
  return pi * smallest_radius_ * smallest_radius_;
}

double Bundle::volume_mm3() const {
  // Simpson over the samples' intervals. Pappus: the centroid of a disc around the centre line runs along it, so
  // curvature does not matter.
  double sum = 0;
  for (std::size_t i = 0; i + 1 < curve_.sample_count(); ++i) {
    const double s0 = curve_.sample_arc(i), s1 = curve_.sample_arc(i + 1);
    const double r0 = radius_at(s0), r1 = radius_at(0.5 * (s0 + s1)), r2 = radius_at(s1);
    sum += (s1 - s0) / 6 * (r0 * r0 + 4 * r1 * r1 + r2 * r2);
  }
  return pi * sum;
}

BundlePosition Bundle::position_of(const CurveFoot& foot) const {
  BundlePosition position;
  position.foot = foot;
  position.distance = foot.distance;
  position.arc = curve_.arc(foot);
  position.radius = radius_at(position.arc);
  position.inside = !foot.beyond && foot.distance <= position.radius;
  position.at_start = position.inside && position.arc <= shape_.end_mm;
  position.at_end = position.inside && position.arc >= length() - shape_.end_mm;
  return position;
}

Vec3d Bundle::direction(Vec3d point, const BundlePosition& position) const {
  const CurveState state = curve_.state(position.foot);
  const Vec3d offset = point - state.position;
  const double along = 1.0 - dot(state.curvature, offset);
  return numerics::normalise(state.tangent * along + offset * (radius_slope_at(position.arc) / position.radius));
}

Bundle::Section Bundle::section(Vec3d point, const BundlePosition& position) const {
  const CurveState state = curve_.state(position.foot);
  const Vec3d normal = curve_.normal(position.foot);
  const Vec3d offset = point - state.position;
  return {dot(offset, normal) / position.radius, dot(offset, cross(state.tangent, normal)) / position.radius};
}

Vec3d Bundle::fibre_point(double arc, Section section) const {
  const CurveFoot foot = curve_.at_arc(arc);
  const CurveState state = curve_.state(foot);
  const Vec3d normal = curve_.normal(foot);
  const double radius = radius_at(arc);
  return state.position + normal * (section.u * radius) + cross(state.tangent, normal) * (section.w * radius);
}

BundleIndex::BundleIndex(std::span<const Bundle> bundles, double margin_mm, double cell_mm)
    : margin_mm_(margin_mm), cell_mm_(cell_mm) {
  if (bundles.empty()) return;
  Vec3d low{1e9, 1e9, 1e9}, high{-1e9, -1e9, -1e9};
  constexpr double spacing_mm = 0.5;  // of the samples, at most
  for (const Bundle& bundle : bundles) {
    const double reach = bundle.largest_radius() + margin_mm + spacing_mm;
    for (std::size_t i = 0; i < bundle.curve().sample_count(); ++i) {
      const Vec3d p = bundle.curve().sample(i);
      low = {std::min(low.x, p.x - reach), std::min(low.y, p.y - reach), std::min(low.z, p.z - reach)};
      high = {std::max(high.x, p.x + reach), std::max(high.y, p.y + reach), std::max(high.z, p.z + reach)};
    }
  }
  low_ = low;
  const Vec3d extent = high - low;
  // A phantom of any extent has at most so many cells.
  constexpr double most_cells_per_axis = 200;
  const double widest = std::max({extent.x, extent.y, extent.z});
  cell_mm_ = std::max(cell_mm, widest / most_cells_per_axis);
  size_[0] = static_cast<std::int64_t>(extent.x / cell_mm_) + 1;
  size_[1] = static_cast<std::int64_t>(extent.y / cell_mm_) + 1;
  size_[2] = static_cast<std::int64_t>(extent.z / cell_mm_) + 1;
  const auto cells = static_cast<std::size_t>(size_[0] * size_[1] * size_[2]);
  std::vector<std::vector<Entry>> lists(cells);
  for (std::uint32_t b = 0; b < bundles.size(); ++b) {
    const Bundle& bundle = bundles[b];
    for (std::uint32_t i = 0; i < bundle.curve().sample_count(); ++i) {
      const Vec3d p = bundle.curve().sample(i) - low_;
      const double reach = bundle.radius_at(bundle.curve().sample_arc(i)) + margin_mm + spacing_mm;
      const auto first = [&](double x) {
        return std::max<std::int64_t>(0, static_cast<std::int64_t>((x - reach) / cell_mm_));
      };
      const auto last = [&](double x, int axis) {
        return std::min(size_[axis] - 1, static_cast<std::int64_t>((x + reach) / cell_mm_));
      };
      const auto gap = [&](double x, std::int64_t cell) {
        const double start = static_cast<double>(cell) * cell_mm_;
        return x < start ? start - x : (x > start + cell_mm_ ? x - (start + cell_mm_) : 0.0);
      };
      for (std::int64_t z = first(p.z); z <= last(p.z, 2); ++z) {
        for (std::int64_t y = first(p.y); y <= last(p.y, 1); ++y) {
          for (std::int64_t x = first(p.x); x <= last(p.x, 0); ++x) {
            const Vec3d apart{gap(p.x, x), gap(p.y, y), gap(p.z, z)};
            if (dot(apart, apart) > reach * reach) continue;
            auto& list = lists[static_cast<std::size_t>(x + size_[0] * (y + size_[1] * z))];
            if (list.empty() || list.back().bundle != b) list.push_back({b, i, i});
            list.back().last_sample = i;
          }
        }
      }
    }
  }
  offsets_.assign(cells + 1, 0);
  for (std::size_t c = 0; c < cells; ++c) {
    entries_.insert(entries_.end(), lists[c].begin(), lists[c].end());
    offsets_[c + 1] = static_cast<std::uint32_t>(entries_.size());
  }
}

std::span<const BundleIndex::Entry> BundleIndex::near(Vec3d point) const {
  if (offsets_.empty()) return {};
  const Vec3d p = point - low_;
  const double limit[3] = {static_cast<double>(size_[0]) * cell_mm_, static_cast<double>(size_[1]) * cell_mm_,
                           static_cast<double>(size_[2]) * cell_mm_};
  if (!(p.x >= 0 && p.x < limit[0] && p.y >= 0 && p.y < limit[1] && p.z >= 0 && p.z < limit[2])) return {};
  const auto cell = [&](double x, int axis) {
    return std::min(size_[axis] - 1, static_cast<std::int64_t>(x / cell_mm_));
  };
  const auto c = static_cast<std::size_t>(cell(p.x, 0) + size_[0] * (cell(p.y, 1) + size_[1] * cell(p.z, 2)));
  return std::span(entries_).subspan(offsets_[c], offsets_[c + 1] - offsets_[c]);
}

const BundleIndex::Entry* BundleIndex::entry(Vec3d point, std::uint32_t bundle) const {
  for (const Entry& entry : near(point)) {
    if (entry.bundle == bundle) return &entry;
  }
  return nullptr;
}

}  // namespace cingulum
