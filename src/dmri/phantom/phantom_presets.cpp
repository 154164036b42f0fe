#include "dmri/phantom/phantom_presets.hpp"

#include <algorithm>
#include <numbers>
#include <span>
#include <utility>

#include "base/result.hpp"
#include "numerics/elementary64.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

using std::numbers::pi;
constexpr Vec3d x_axis{1, 0, 0};
constexpr Vec3d y_axis{0, 1, 0};
constexpr Vec3d z_axis{0, 0, 1};

double radians(double degrees) {
  return degrees * (pi / 180);
}

BundleShape even_tube(std::string name, std::vector<CurvePiece> pieces, double radius_mm) {
  return {.name = std::move(name), .pieces = std::move(pieces), .radius = {{0, radius_mm}}};
}

BundleShape straight_tube(std::string name, Vec3d direction, double length_mm, double radius_mm,
                          Vec3d middle = {0, 0, 0}) {
  const Vec3d half = direction * (0.5 * length_mm);
  return even_tube(std::move(name), {line_piece(middle - half, middle + half)}, radius_mm);
}

PhantomModel straight() {
  return {.preset = "straight",
          .meaning = "a straight bundle of 60 mm along x",
          .bundles = {straight_tube("straight", x_axis, 60, 4)}};
}

PhantomModel arcs() {
  PhantomModel model{.preset = "arcs", .meaning = "a quarter circle of radius 30 mm and half circles of 15 and 8 mm"};
  model.bundles.push_back(even_tube("arc30", {arc_piece({-22, -22, -14}, x_axis, y_axis, 30, 0, radians(90))}, 4));
  model.bundles.push_back(
      even_tube("arc15", {arc_piece({-8, -6, 14}, x_axis, y_axis, 15, radians(-90), radians(180))}, 4));
  model.bundles.push_back(
      even_tube("arc8", {arc_piece({22, 12, -2}, x_axis, z_axis, 8, radians(-90), radians(180))}, 3));
  return model;
}

PhantomModel helix() {
  constexpr double turns = 1.25;
  constexpr double pitch_mm = 30;
  const Vec3d rise = z_axis * (turns * pitch_mm);
  return {.preset = "helix",
          .meaning = "a helix of radius 15 mm and pitch 30 mm, one and a quarter turns",
          .bundles = {even_tube("helix", {arc_piece(rise * -0.5, x_axis, y_axis, 15, 0, turns * 2 * pi, rise)}, 4)}};
}

PhantomModel crossing(double angle_deg) {
  const auto half = numerics::sine_cosine(radians(0.5 * angle_deg));
  const Vec3d a{half.cosine, half.sine, 0};
  const Vec3d b{half.cosine, -half.sine, 0};
  return {.preset = fmt::format("crossing{:g}", angle_deg),
          .meaning = fmt::format("two straight bundles that cross at {:g} degrees", angle_deg),
          .bundles = {straight_tube("first", a, 60, 5), straight_tube("second", b, 60, 5)}};
}

PhantomModel crossing3() {
  return {.preset = "crossing3",
          .meaning = "three straight bundles that cross at right angles",
          .bundles = {straight_tube("along_x", x_axis, 60, 5), straight_tube("along_y", y_axis, 60, 5),
                      straight_tube("along_z", z_axis, 44, 5)}};
}

PhantomModel kissing(double gap_mm) {
  constexpr double radius_mm = 4;
  constexpr double bend_mm = 30;
  const double away = bend_mm + radius_mm + 0.5 * gap_mm;
  const double half = radians(60);
  PhantomModel model{
      .preset = "kissing",
      .meaning = fmt::format("two mirrored arcs of radius 30 mm that touch with a gap of {:g} mm", gap_mm)};
  // Both run from -x to +x; their tangents are parallel where they touch.
  model.bundles.push_back(
      even_tube("upper", {arc_piece({0, away, 0}, y_axis * -1.0, x_axis, bend_mm, -half, 2 * half)}, radius_mm));
  model.bundles.push_back(
      even_tube("lower", {arc_piece({0, -away, 0}, y_axis, x_axis, bend_mm, -half, 2 * half)}, radius_mm));
  return model;
}

PhantomModel fanning() {
  BundleShape fan = straight_tube("fan", x_axis, 60, 2);
  fan.radius = {{0, 2}, {60, 10}};
  return {.preset = "fanning", .meaning = "a bundle whose radius grows from 2 to 10 mm over 60 mm", .bundles = {fan}};
}

PhantomModel commissural() {
  constexpr double bend_mm = 25;
  constexpr double root_half = 0.70710678118654752;
  const double low = 8;  // the arc's centre; its lowest point is at z = -17
  PhantomModel model{
      .preset = "commissural",
      .meaning = "a U-shaped commissure, crossed on both sides by a vertical and a front-to-back bundle"};
  model.bundles.push_back(even_tube("callosum",
                                    {line_piece({-bend_mm, 0, 24}, {-bend_mm, 0, low}),
                                     arc_piece({0, 0, low}, x_axis, z_axis, bend_mm, radians(180), radians(180)),
                                     line_piece({bend_mm, 0, low}, {bend_mm, 0, 24})},
                                    5));
  // Where the commissure runs at 45 degrees.
  const double aside = bend_mm * root_half;
  const double height = low - aside;
  for (const auto& [side, x] : {std::pair("left", -aside), std::pair("right", aside)}) {
    model.bundles.push_back(even_tube(fmt::format("corticospinal_{}", side), {line_piece({x, 0, -26}, {x, 0, 26})}, 4));
    model.bundles.push_back(even_tube(fmt::format("slf_{}", side), {line_piece({x, -32, height}, {x, 32, height})}, 4));
  }
  return model;
}

PhantomModel bottleneck() {
  constexpr double bend_mm = 24;
  constexpr double half_trunk_mm = 5;
  const double sweep = radians(60);
  PhantomModel model{.preset = "bottleneck",
                     .meaning = "two bundles that share a straight trunk of 10 mm: four ends, two true pairs"};
  for (const int side : {1, -1}) {
    // From the left end down (or up) into the trunk, and out again on the same side.
    const Vec3d away = y_axis * side;
    model.bundles.push_back(
        even_tube(side > 0 ? "upper" : "lower",
                  {arc_piece(away * bend_mm - x_axis * half_trunk_mm, away * -1.0, x_axis, bend_mm, -sweep, sweep),
                   line_piece({-half_trunk_mm, 0, 0}, {half_trunk_mm, 0, 0}),
                   arc_piece(away * bend_mm + x_axis * half_trunk_mm, away * -1.0, x_axis, bend_mm, 0, sweep)},
                  4));
  }
  return model;
}

PhantomModel deadend(double gap_mm) {
  const double half = 0.5 * gap_mm;
  PhantomModel model{
      .preset = "deadend",
      .meaning = fmt::format("a bundle that ends {:g} mm of grey matter before the end of another", gap_mm)};
  model.bundles.push_back(even_tube("ending", {line_piece({-32, 0, 0}, {-half, 0, 0})}, 4));
  model.bundles.push_back(even_tube("beyond",
                                    {line_piece({half, 0, 0}, {half + 8, 0, 0}),
                                     arc_piece({half + 8, 20, 0}, y_axis * -1.0, x_axis, 20, 0, radians(70))},
                                    4));
  return model;
}

// Every other small phantom in a tile of its own.
Result<PhantomModel> all_of_them() {
  PhantomModel model{.preset = "all", .meaning = "the small phantoms side by side", .extent_mm = {320, 240, 60}};
  const std::vector<PhantomModel> tiles = {straight(),   arcs(),        helix(),      crossing(90),
                                           crossing(60), crossing(45),  crossing3(),  kissing(1),
                                           fanning(),    commissural(), bottleneck(), deadend(1)};
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const Vec3d shift{-120.0 + 80.0 * static_cast<double>(i % 4), -80.0 + 80.0 * static_cast<double>(i / 4), 0};
    for (BundleShape bundle : tiles[i].bundles) {
      bundle.name = tiles[i].preset + "_" + bundle.name;
      for (CurvePiece& piece : bundle.pieces) piece.a = piece.a + shift;
      model.bundles.push_back(std::move(bundle));
    }
  }
  return model;
}

}  // namespace

std::string_view tissue_name(Tissue tissue) {
  switch (tissue) {
    case Tissue::air: return "air";
    case Tissue::grey_matter: return "grey_matter";
    case Tissue::fluid: return "fluid";
  }
  return "air";
}

bool TissueRegion::contains(Vec3d point) const {
  const Vec3d off = point - centre;
  const Vec3d share{off.x / half.x, off.y / half.y, off.z / half.z};
  if (form == Form::ellipsoid) return dot(share, share) <= 1;
  return numerics::absolute(share.x) <= 1 && numerics::absolute(share.y) <= 1 && numerics::absolute(share.z) <= 1;
}

Result<BundleShape> spline_tube(std::string name, std::span<const TubePoint> points) {
  std::vector<Vec3d> positions;
  for (const TubePoint& point : points) positions.push_back(point.position);
  BundleShape shape{.name = std::move(name), .pieces = spline_pieces(positions)};
  CGL_TRY_ASSIGN(const Curve curve, add_context(Curve::create(shape.pieces), "bundle {}", shape.name));
  for (std::size_t i = 0; i < points.size(); ++i) {
    shape.radius.push_back({i == 0 ? 0 : curve.piece_end_arc(i - 1), points[i].radius_mm});
  }
  return shape;
}

const std::vector<std::string>& phantom_preset_names() {
  static const std::vector<std::string> names = {
      "straight",  "arcs",    "helix",   "crossing",    "crossing90", "crossing60", "crossing45", "crossing30",
      "crossing3", "kissing", "fanning", "commissural", "bottleneck", "deadend",    "all",        "brain"};
  return names;
}

Result<PhantomModel> phantom_preset(std::string_view name, const PresetOptions& options) {
  if (!(options.angle_deg >= 5 && options.angle_deg <= 90)) {
    return fail_argument("angle", "bundles that cross at {} degrees (5 to 90 are accepted)", options.angle_deg);
  }
  if (!(options.gap_mm >= 0 && options.gap_mm <= 10)) {
    return fail_argument("gap", "a gap of {} mm (0 to 10 are accepted)", options.gap_mm);
  }
  Result<PhantomModel> model = [&]() -> Result<PhantomModel> {
    if (name == "straight") return straight();
    if (name == "arcs") return arcs();
    if (name == "helix") return helix();
    if (name == "crossing") return crossing(options.angle_deg);
    if (name == "crossing90") return crossing(90);
    if (name == "crossing60") return crossing(60);
    if (name == "crossing45") return crossing(45);
    if (name == "crossing30") return crossing(30);
    if (name == "crossing3") return crossing3();
    if (name == "kissing") return kissing(options.gap_mm);
    if (name == "fanning") return fanning();
    if (name == "commissural") return commissural();
    if (name == "bottleneck") return bottleneck();
    if (name == "deadend") return deadend(options.gap_mm);
    if (name == "all") return all_of_them();
    if (name == "brain") return brain_phantom();
    return fail_argument("preset", "there is no phantom '{}' (known: {})", name,
                         fmt::join(phantom_preset_names(), ", "));
  }();
  if (model && model->regions.empty()) {
    // Grey matter up to 3 mm from the faces of the box.
    model->regions = {{.tissue = Tissue::grey_matter, .half = model->extent_mm * 0.5 - Vec3d{3, 3, 3}}};
  }
  return model;
}

}  // namespace cingulum
