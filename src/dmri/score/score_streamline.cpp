#include "dmri/score/score_streamline.hpp"

#include <algorithm>

#include "numerics/elementary64.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

// Coordinates beyond belong to no phantom, and a segment to them would have no end of pieces.
constexpr double farthest_mm = 1e4;
constexpr double degrees_per_radian = 57.295779513082323;

// Calls body(middle, length, unit direction) for pieces of at most `longest` mm.
template <class Body>
void for_each_piece(std::span<const Vec3d> points, double longest, Body&& body) {
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const Vec3d step = points[i + 1] - points[i];
    const double length = numerics::length(step);
    if (!(length > 0)) continue;
    const double count = numerics::floor_of(length / longest * (1 - 1e-9)) + 1;
    const double piece = length / count;
    const Vec3d unit = step * (1 / length);
    for (double k = 0; k < count; k += 1) body(points[i] + step * ((k + 0.5) / count), piece, unit);
  }
}

}  // namespace

void LengthWeightedHistogram::add(double value, double length_mm) {
  const double index = value / bin_;
  const std::size_t last = weights_.size() - 1;
  const std::size_t bin = index >= static_cast<double>(last) ? last : static_cast<std::size_t>(index < 0 ? 0 : index);
  weights_[bin] += static_cast<std::int64_t>(length_mm * 0x1p20 + 0.5);
  sums_[bin] += static_cast<std::int64_t>(value * length_mm * 0x1p20 + 0.5);
}

void LengthWeightedHistogram::add(const LengthWeightedHistogram& other) {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    weights_[i] += other.weights_[i];
    sums_[i] += other.sums_[i];
  }
}

double LengthWeightedHistogram::quantile(double share) const {
  std::int64_t total = 0;
  for (const std::int64_t weight : weights_) total += weight;
  if (total == 0) return 0;
  const double wanted = share * static_cast<double>(total);
  double below = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const auto weight = static_cast<double>(weights_[i]);
    if (weight > 0 && below + weight >= wanted) return static_cast<double>(sums_[i]) / weight;
    below += weight;
  }
  return bin_ * static_cast<double>(weights_.size() - 1);
}

StreamlineJudge::StreamlineJudge(std::span<const Bundle> bundles, double smallest_edge_mm, double end_tolerance_mm)
    : bundles_(bundles),
      edge_mm_(smallest_edge_mm),
      end_tolerance_mm_(end_tolerance_mm),
      index_(bundles, 0.5 * smallest_edge_mm) {}

BundlePosition StreamlineJudge::position(Vec3d point, std::uint32_t bundle) const {
  const Curve& curve = bundles_[bundle].curve();
  const BundleIndex::Entry* const entry = index_.entry(point, bundle);
  // Without an entry the point is farther than rho + v/2, and how far is asked of the whole centre line.
  const CurveFoot foot =
      entry != nullptr ? curve.foot(point, entry->first_sample, entry->last_sample) : curve.foot(point);
  return bundles_[bundle].position_of(foot);
}

void StreamlineJudge::end_regions(std::span<const Vec3d> from_end, std::vector<EndRegion>& regions) const {
  regions.clear();
  const auto look = [&](Vec3d point) {
    for (const BundleIndex::Entry& entry : index_.near(point)) {
      const Bundle& bundle = bundles_[entry.bundle];
      const BundlePosition at = bundle.position_of(bundle.curve().foot(point, entry.first_sample, entry.last_sample));
      if (!at.at_start && !at.at_end) continue;
      const std::uint32_t region = 2 * entry.bundle + (at.at_end ? 1 : 0);
      const bool known =
          std::any_of(regions.begin(), regions.end(), [&](const EndRegion& r) { return r.region == region; });
      if (!known) regions.push_back({region, at.distance / at.radius, point});
    }
  };
  // The end itself and quarters of the tolerance before it.
  look(from_end[0]);
  std::size_t next = 1;
  Vec3d here = from_end[0];
  double walked = 0;
  for (int quarter = 1; quarter <= 4; ++quarter) {
    const double target = 0.25 * quarter * end_tolerance_mm_;
    while (next < from_end.size()) {
      const Vec3d step = from_end[next] - here;
      const double length = numerics::length(step);
      if (walked + length >= target) {
        if (length > 0) here = here + step * ((target - walked) / length);
        walked = target;
        break;
      }
      walked += length;
      here = from_end[next++];
    }
    if (walked < target) return;  // a streamline shorter than the tolerance
    look(here);
  }
}

void StreamlineJudge::measure_angles(std::span<const Vec3d> points, Judgement& judgement,
                                     LengthWeightedHistogram& histogram) const {
  for_each_piece(points, edge_mm_, [&](Vec3d middle, double length, Vec3d unit) {
    double best = -1;
    for (const BundleIndex::Entry& entry : index_.near(middle)) {
      const Bundle& bundle = bundles_[entry.bundle];
      const BundlePosition at = bundle.position_of(bundle.curve().foot(middle, entry.first_sample, entry.last_sample));
      if (!at.inside) continue;
      best = std::max(best, numerics::absolute(dot(bundle.direction(middle, at), unit)));
    }
    if (best < 0) return;
    const double angle = numerics::arc_cosine(std::min(best, 1.0)) * degrees_per_radian;
    judgement.angle_sum += angle * length;
    judgement.angle_length += length;
    histogram.add(angle, length);
  });
}

Judgement StreamlineJudge::judge(std::span<const float> values, JudgeHistograms& histograms) const {
  Judgement judgement;
  std::vector<Vec3d> points;
  points.reserve(values.size() / 3);
  for (std::size_t i = 0; i + 2 < values.size(); i += 3) {
    const Vec3d point{values[i], values[i + 1], values[i + 2]};
    const bool sound = numerics::absolute(point.x) <= farthest_mm && numerics::absolute(point.y) <= farthest_mm &&
                       numerics::absolute(point.z) <= farthest_mm;
    if (!sound) {
      judgement.not_finite = true;
      return judgement;
    }
    points.push_back(point);
  }
  if (points.empty()) return judgement;
  for (std::size_t i = 0; i + 1 < points.size(); ++i)
    judgement.length_mm += numerics::length(points[i + 1] - points[i]);
  judgement.ends_apart = (points.front().x < 0 && points.back().x > 0) || (points.front().x > 0 && points.back().x < 0);
  judgement.crosses_middle = std::any_of(points.begin(), points.end(), [](Vec3d point) { return point.x < 0; }) &&
                             std::any_of(points.begin(), points.end(), [](Vec3d point) { return point.x > 0; });
  measure_angles(points, judgement, histograms.angle);

  std::vector<EndRegion> starts, ends;
  end_regions(points, starts);
  std::vector<Vec3d> backwards(points.rbegin(), points.rend());
  end_regions(backwards, ends);
  if (starts.empty() || ends.empty()) return judgement;

  struct Walk {
    double inside = 0, sum = 0, length = 0;
    std::vector<std::pair<double, double>> distances;
  };
  const auto walk_along = [&](std::uint32_t bundle) {
    Walk walk;
    for_each_piece(points, 0.25 * edge_mm_, [&](Vec3d middle, double length, Vec3d) {
      const BundlePosition at = position(middle, bundle);
      const double outside = std::max(0.0, at.distance - at.radius);
      if (outside <= 0.5 * edge_mm_) walk.inside += length;
      walk.sum += outside * length;
      walk.length += length;
      walk.distances.emplace_back(outside, length);
    });
    return walk;
  };
  Walk best_walk;
  for (const EndRegion& start : starts) {
    for (const EndRegion& end : ends) {
      if (start.region / 2 != end.region / 2 || start.region == end.region) continue;
      Walk walk = walk_along(start.region / 2);
      const double share = walk.length > 0 ? walk.inside / walk.length : 0;
      const bool better = judgement.bundle == no_region || share > judgement.share_inside ||
                          (share == judgement.share_inside && start.region / 2 < judgement.bundle);
      if (!better) continue;
      judgement.bundle = start.region / 2;
      judgement.share_inside = share;
      judgement.start_region = start.region;
      judgement.end_region = end.region;
      const Bundle& bundle = bundles_[judgement.bundle];
      const bool forwards = start.region % 2 == 0;
      const Vec3d at_start = forwards ? start.point : end.point;
      const Vec3d at_end = forwards ? end.point : start.point;
      judgement.start_section = bundle.section(at_start, position(at_start, judgement.bundle));
      judgement.end_section = bundle.section(at_end, position(at_end, judgement.bundle));
      best_walk = std::move(walk);
    }
  }
  if (judgement.bundle != no_region) {
    judgement.verdict =
        judgement.share_inside >= required_share_inside ? ConnectionVerdict::valid : ConnectionVerdict::wrong_path;
    judgement.distance_sum = best_walk.sum;
    judgement.distance_length = best_walk.length;
    for (const auto& [distance, length] : best_walk.distances) histograms.distance.add(distance, length);
    return judgement;
  }
  judgement.verdict = ConnectionVerdict::invalid;
  const auto closest = [](const std::vector<EndRegion>& regions) {
    return std::min_element(regions.begin(), regions.end(),
                            [](const EndRegion& a, const EndRegion& b) {
                              return a.closeness < b.closeness || (a.closeness == b.closeness && a.region < b.region);
                            })
        ->region;
  };
  judgement.start_region = closest(starts);
  judgement.end_region = closest(ends);
  return judgement;
}

}  // namespace cingulum
