// How one streamline stands against a phantom's bundles: valid, wrong path, invalid connection or no connection, and
// the measures taken along it. Membership is analytic (phantom_bundle.hpp), so the judgement does not depend on any
// image. Called by score.*.
//
// valid: one end in the start region and the other in the end region of the same bundle, and at least 95 % of the
// length within rho + v/2 of its centre line (v: smallest voxel edge). wrong path: the ends are right, the way is not.
// invalid: both ends in end regions, of no true pair (the same region twice counts too). no connection: the rest.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dmri/phantom/phantom_bundle.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

enum class ConnectionVerdict : std::uint8_t { valid, wrong_path, invalid, no_connection };

constexpr std::uint32_t no_region = 0xffffffffu;

struct Judgement {
  ConnectionVerdict verdict = ConnectionVerdict::no_connection;
  std::uint32_t bundle = no_region;        // of valid and wrong_path
  std::uint32_t start_region = no_region;  // 2 b at a bundle's start, 2 b + 1 at its end
  std::uint32_t end_region = no_region;
  double length_mm = 0;
  double share_inside = 0;  // of the length within rho + v/2 of the bundle; valid and wrong_path
  // The angle to the nearest true direction among the tubes around each piece of the streamline; pieces outside count
  // for nothing.
  double angle_sum = 0;  // degrees times mm
  double angle_length = 0;
  // max(0, d - rho) of valid and wrong_path, mm times mm.
  double distance_sum = 0;
  double distance_length = 0;
  // Positions in the cross-sections at the bundle's start and end; valid only.
  Bundle::Section start_section;
  Bundle::Section end_section;
  bool ends_apart = false;      // its ends lie on different sides of x = 0
  bool crosses_middle = false;  // points of it do
  bool not_finite = false;      // a coordinate is not a number, or farther than 10 m: no connection
};

// Lengths by value, for medians and percentiles. Integer weights: the order of adding does not matter.
class LengthWeightedHistogram {
 public:
  LengthWeightedHistogram(double bin, std::size_t bins) : bin_(bin), weights_(bins + 1, 0), sums_(bins + 1, 0) {}
  void add(double value, double length_mm);
  void add(const LengthWeightedHistogram& other);
  // The value below which this share of the length lies: the mean of the bin that it falls in; 0 where there is
  // nothing.
  [[nodiscard]] double quantile(double share) const;

 private:
  double bin_;
  std::vector<std::int64_t> weights_;  // 2^-20 mm; the last collects what is beyond
  std::vector<std::int64_t> sums_;     // of value times length, in the same unit
};

struct JudgeHistograms {
  LengthWeightedHistogram angle{0.01, 9000};       // degrees
  LengthWeightedHistogram distance{0.005, 20000};  // mm
};

class StreamlineJudge {
 public:
  // An end counts where the last `end_tolerance_mm` of the streamline touch an end region: a tracker's last step may
  // lead out of it.
  StreamlineJudge(std::span<const Bundle> bundles, double smallest_edge_mm, double end_tolerance_mm);

  // x y z of each point, world mm.
  [[nodiscard]] Judgement judge(std::span<const float> points, JudgeHistograms& histograms) const;

 private:
  struct EndRegion {
    std::uint32_t region;
    double closeness;  // distance from the centre line over the radius
    numerics::Vec3d point;
  };
  void end_regions(std::span<const numerics::Vec3d> from_end, std::vector<EndRegion>& regions) const;
  [[nodiscard]] BundlePosition position(numerics::Vec3d point, std::uint32_t bundle) const;
  void measure_angles(std::span<const numerics::Vec3d> points, Judgement& judgement,
                      LengthWeightedHistogram& histogram) const;

  std::span<const Bundle> bundles_;
  double edge_mm_;
  double end_tolerance_mm_;
  BundleIndex index_;
};

constexpr double required_share_inside = 0.95;

}  // namespace cingulum
