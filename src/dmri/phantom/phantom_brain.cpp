// The phantom `brain`: a head of the size of the Stanford HARDI set with commissural, projection, association and short
// bundles on both sides. The places are those of a schematic brain, not of any atlas; what matters is that the bundles
// bend, fan, touch and cross as the named ones do.
#include <algorithm>
#include <array>
#include <span>

#include "dmri/phantom/phantom_presets.hpp"
#include "numerics/elementary64.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

constexpr Vec3d brain_half_mm{72, 92, 66};
constexpr double rim_mm = 4;  // of grey matter around the white matter

// The point in this direction from the brain's middle, at this share of the way to its surface.
Vec3d towards(double x, double y, double z, double share) {
  const Vec3d unit = numerics::normalise(Vec3d{x, y, z});
  return {brain_half_mm.x * unit.x * share, brain_half_mm.y * unit.y * share, brain_half_mm.z * unit.z * share};
}

// Bundles end inside the rim.
constexpr double cortex = 0.945;

// Widens all but the short ones, so that white matter fills the share of the box that it has in the real set.
constexpr double widening = 1.19;

struct Plan {
  std::string name;
  std::vector<TubePoint> points;  // of the left one, x < 0
};

std::vector<Plan> commissures() {
  std::vector<Plan> plans;
  struct Segment {
    const char* name;
    double y, z;      // in the middle
    Vec3d direction;  // of the left cortex it leads to
    double middle_radius, cortex_radius;
  };
  // Neighbours lie a diameter apart in the middle plane.
  const std::vector<Segment> segments = {
      {"callosum_genu", 34, 0, {-0.36, 1.0, 0.10}, 5.5, 11},
      {"callosum_prefrontal", 25, 13, {-0.55, 0.85, 0.62}, 5.5, 12},
      {"callosum_premotor", 12, 21, {-0.55, 0.38, 0.95}, 5.5, 12},
      {"callosum_motor", -2, 24, {-0.60, 0.02, 1.0}, 5.5, 12},
      {"callosum_sensory", -16, 22, {-0.60, -0.34, 0.95}, 5.5, 12},
      {"callosum_parietal", -28, 15, {-0.60, -0.74, 0.75}, 5.5, 12},
      {"callosum_occipital", -36, 3, {-0.34, -1.0, 0.16}, 5.5, 10},
      {"callosum_temporal", -30, -9, {-0.92, -0.55, -0.30}, 4.5, 9},
  };
  for (const Segment& segment : segments) {
    const Vec3d end = towards(segment.direction.x, segment.direction.y, segment.direction.z, cortex);
    const Vec3d middle{0, segment.y, segment.z};
    const Vec3d shoulder{-15, segment.y + 0.12 * (end.y - segment.y), segment.z + 0.06 * (end.z - segment.z)};
    const Vec3d half_way = shoulder + (end - shoulder) * 0.52 + Vec3d{-5, 0, -1};
    plans.push_back({segment.name,
                     {{end, segment.cortex_radius},
                      {half_way, 0.5 * (segment.middle_radius + segment.cortex_radius) - 1},
                      {shoulder, segment.middle_radius + 0.5},
                      {middle, segment.middle_radius}}});
  }
  plans.push_back(
      {"anterior_commissure",
       {{towards(-0.95, 0.25, -0.55, cortex), 5}, {{-38, 10, -19}, 3.5}, {{-16, 6, -12}, 2.5}, {{0, 4, -10}, 2.5}}});
  return plans;
}

std::vector<Plan> one_sided() {
  return {
      // Projection
      {"corticospinal",
       {{{-7, -22, -60}, 4.5},
        {{-9, -20, -38}, 4.5},
        {{-17, -13, -12}, 5},
        {{-24, -8, 12}, 6},
        {{-30, -8, 36}, 9},
        {towards(-0.52, -0.10, 0.95, cortex), 13}}},
      {"frontopontine",
       {{{-10, -13, -54}, 3.5},
        {{-12, -11, -34}, 3.5},
        {{-17, -2, -12}, 4},
        {{-23, 14, 6}, 5},
        {{-29, 36, 20}, 8},
        {towards(-0.42, 0.72, 0.42, cortex), 11}}},
      {"parietopontine",
       {{{-11, -31, -52}, 3.5},
        {{-13, -30, -34}, 3.5},
        {{-21, -25, -12}, 4},
        {{-27, -26, 10}, 5},
        {{-32, -34, 32}, 8},
        {towards(-0.50, -0.55, 0.78, cortex), 11}}},
      {"thalamic_anterior",
       {{{-9, -4, 4}, 4}, {{-14, 8, 5}, 4.5}, {{-20, 28, 9}, 6}, {towards(-0.30, 0.95, 0.32, cortex), 12}}},
      {"thalamic_superior",
       {{{-11, -12, 9}, 4}, {{-17, -11, 16}, 4.5}, {{-23, -8, 30}, 6}, {towards(-0.30, 0.06, 0.98, cortex), 12}}},
      {"thalamic_posterior",
       {{{-13, -22, 4}, 4}, {{-20, -30, 6}, 4.5}, {{-25, -48, 13}, 6}, {towards(-0.36, -0.90, 0.42, cortex), 11}}},
      {"optic_radiation",
       {{{-20, -22, -4}, 3.5},
        {{-29, -15, -12}, 3.5},
        {{-38, -22, -14}, 4},
        {{-37, -46, -8}, 5},
        {{-25, -68, -2}, 6},
        {towards(-0.16, -1.0, -0.02, cortex), 8}}},
      {"cerebellar", {{{-9, -27, -6}, 3}, {{-9, -30, -28}, 4}, {{-16, -40, -44}, 7}, {{-25, -52, -46}, 8.5}}},
      // Association
      {"cingulum",
       {{{-8, 52, -10}, 4},
        {{-8, 54, 8}, 4},
        {{-8, 36, 28}, 4},
        {{-8, 6, 38}, 4.5},
        {{-8, -26, 35}, 4.5},
        {{-10, -48, 20}, 4},
        {{-14, -50, 0}, 3.5},
        {{-23, -36, -18}, 3.5},
        {{-26, -16, -26}, 3.5}}},
      {"slf_superior",
       {{towards(-0.50, -0.72, 0.60, cortex), 9},
        {{-30, -36, 39}, 6},
        {{-27, -4, 44}, 5.5},
        {{-27, 26, 38}, 6},
        {towards(-0.40, 0.80, 0.52, cortex), 9}}},
      {"slf_middle",
       {{towards(-0.85, -0.62, 0.46, cortex), 9},
        {{-42, -30, 28}, 6},
        {{-40, -2, 30}, 5.5},
        {{-37, 26, 26}, 6},
        {towards(-0.66, 0.82, 0.32, cortex), 9}}},
      {"arcuate",
       {{towards(-1.0, -0.12, -0.34, cortex), 8},
        {{-53, -26, -12}, 5.5},
        {{-45, -46, 6}, 5.5},
        {{-42, -36, 21}, 5.5},
        {{-43, -8, 19}, 5.5},
        {{-45, 16, 15}, 6},
        {towards(-0.85, 0.62, 0.16, cortex), 9}}},
      {"inferior_fronto_occipital",
       {{towards(-0.26, -0.98, -0.14, cortex), 8},
        {{-33, -52, -6}, 5},
        {{-35, -20, -9}, 4},
        {{-31, 8, -10}, 3.5},
        {{-28, 30, -5}, 5},
        {towards(-0.42, 0.92, -0.06, cortex), 10}}},
      {"inferior_longitudinal",
       {{towards(-0.42, -0.92, -0.34, cortex), 8},
        {{-42, -50, -20}, 6},
        {{-46, -20, -27}, 6},
        {{-41, 12, -35}, 6},
        {towards(-0.62, 0.42, -0.72, cortex), 7}}},
      {"middle_longitudinal",
       {{towards(-0.66, -0.80, 0.16, cortex), 8},
        {{-47, -40, 4}, 5.5},
        {{-54, -10, -6}, 5.5},
        {towards(-0.92, 0.34, -0.34, cortex), 8}}},
      {"uncinate",
       {{towards(-0.52, 0.30, -0.86, cortex), 7},
        {{-32, 10, -28}, 4},
        {{-29, 20, -15}, 3.5},
        {{-25, 38, -16}, 5},
        {towards(-0.28, 0.86, -0.40, cortex), 9}}},
      {"frontal_aslant",
       {{towards(-0.92, 0.50, 0.06, cortex), 8},
        {{-44, 28, 20}, 5},
        {{-27, 24, 38}, 5},
        {towards(-0.16, 0.36, 0.96, cortex), 8}}},
      {"vertical_occipital",
       {{towards(-0.62, -0.74, -0.42, cortex), 7},
        {{-43, -56, -8}, 5},
        {{-43, -56, 14}, 5},
        {towards(-0.58, -0.72, 0.56, cortex), 8}}},
      {"fornix",
       {{{-4, 6, -14}, 2},
        {{-3.5, 4, -2}, 2},
        {{-3.5, -10, 9}, 2},
        {{-8, -26, 7}, 2},
        {{-19, -34, -4}, 2.2},
        {{-26, -26, -16}, 2.5},
        {{-26, -12, -20}, 2.8}}},
  };
}

// Short bundles from gyrus to gyrus: each leaves the rim, bends below it and comes back further on.
std::vector<Plan> short_ones() {
  constexpr int count = 46;
  constexpr double golden_angle = 2.39996322972865332;
  std::vector<Plan> plans;
  int number = 0;
  for (int i = 0; i < count; ++i) {
    // A spiral over the hemisphere x < 0, without the strip along the middle plane.
    const double height = -0.40 - 0.58 * (i + 0.5) / count;
    const double radius = numerics::root(1 - height * height);
    const auto turn = numerics::sine_cosine(golden_angle * i);
    const Vec3d middle{height, radius * turn.cosine, radius * turn.sine};
    if (middle.z < -0.62) continue;  // cerebellum and brain stem
    // Alternately along the front-to-back and the up-and-down tangent of the surface.
    const Vec3d front{0, 1, 0};
    const Vec3d tangent_front = numerics::normalise(front - middle * dot(front, middle));
    const Vec3d aside = cross(middle, tangent_front);
    const double mix = (i % 3) * 1.0471975511965976;  // 0, 60 or 120 degrees
    const auto angle = numerics::sine_cosine(mix);
    const Vec3d along = tangent_front * angle.cosine + aside * angle.sine;
    constexpr double spread = 0.30;  // of the unit sphere, to either side
    const auto at = [&](double offset, double share) {
      const Vec3d p = middle + along * offset;
      return towards(p.x, p.y, p.z, share);
    };
    plans.push_back({fmt::format("short_{:02}", ++number),
                     {{at(-spread, 0.955), 6.5},
                      {at(-0.62 * spread, 0.86), 5},
                      {at(0, 0.80), 4.5},
                      {at(0.62 * spread, 0.86), 5},
                      {at(spread, 0.955), 6.5}}});
  }
  return plans;
}

Vec3d mirrored(Vec3d point) {
  return {-point.x, point.y, point.z};
}

}  // namespace

Result<PhantomModel> brain_phantom() {
  PhantomModel model{.preset = "brain",
                     .meaning = "a schematic whole brain: commissural, projection, association and short bundles",
                     .extent_mm = {162, 212, 152},
                     .scheme = "dirs150-b2000"};
  const auto widened = [](Plan plan) {
    for (TubePoint& point : plan.points) point.radius_mm = point.radius_mm * widening;
    return plan;
  };
  for (const Plan& narrow : commissures()) {
    const Plan plan = widened(narrow);
    std::vector<TubePoint> points = plan.points;
    for (std::size_t i = plan.points.size() - 1; i-- > 0;) {
      points.push_back({mirrored(plan.points[i].position), plan.points[i].radius_mm});
    }
    CGL_TRY_ASSIGN(BundleShape shape, spline_tube(plan.name, points));
    model.bundles.push_back(std::move(shape));
  }
  std::vector<Plan> pairs = one_sided();
  for (Plan& plan : pairs) plan = widened(plan);
  for (Plan& plan : short_ones()) pairs.push_back(std::move(plan));
  for (const Plan& plan : pairs) {
    CGL_TRY_ASSIGN(BundleShape left, spline_tube(plan.name + "_left", plan.points));
    std::vector<TubePoint> points = plan.points;
    for (TubePoint& point : points) point.position = mirrored(point.position);
    CGL_TRY_ASSIGN(BundleShape right, spline_tube(plan.name + "_right", points));
    model.bundles.push_back(std::move(left));
    model.bundles.push_back(std::move(right));
  }
  const auto fluid = [&](Vec3d centre, Vec3d half) {
    model.regions.push_back({Tissue::fluid, TissueRegion::Form::ellipsoid, centre, half});
  };
  model.regions.push_back({Tissue::grey_matter,
                           TissueRegion::Form::ellipsoid,
                           {0, 0, 0},
                           brain_half_mm + Vec3d{rim_mm, rim_mm, rim_mm} * 0.75});
  // Lateral ventricles with their horns, the third ventricle, the fissure between the hemispheres.
  for (const double side : {-1.0, 1.0}) {
    fluid({side * 9, 0, 13}, {5, 30, 6});
    fluid({side * 18, -36, 4}, {5, 14, 7});
    fluid({side * 30, -16, -14}, {4, 14, 4});
  }
  fluid({0, -6, -2}, {2.5, 14, 9});
  fluid({0, 0, 52}, {1.5, 90, 22});
  fluid({0, 72, 8}, {1.5, 24, 30});
  return model;
}

}  // namespace cingulum
