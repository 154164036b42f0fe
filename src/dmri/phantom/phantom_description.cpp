#include "dmri/phantom/phantom_description.hpp"

#include <array>
#include <set>

#include "base/json_text.hpp"
#include "base/read_file.hpp"
#include "formats/sidecar.hpp"
#include "numerics/portable.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;
using numerics::Vec3d;

constexpr std::size_t most_bundles = 10'000;

// Reading: every access is checked, with the place in the message.
class Field {
 public:
  Field(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  [[nodiscard]] Result<Field> member(const char* name) const {
    if (!json_->is_object() || !json_->contains(name)) {
      return fail(ErrorKind::corrupt, "{} has no member '{}'", place_, name);
    }
    return Field((*json_)[name], place_ + "." + name);
  }
  [[nodiscard]] Result<std::size_t> size(std::size_t least, std::size_t most) const {
    if (!json_->is_array() || json_->size() < least || json_->size() > most) {
      return fail(ErrorKind::corrupt, "{} is not a list of {} to {} entries", place_, least, most);
    }
    return json_->size();
  }
  // Inside what size() answered.
  [[nodiscard]] Field at(std::size_t index) const {
    return Field((*json_)[index], fmt::format("{}[{}]", place_, index));
  }
  [[nodiscard]] Result<double> number() const {
    if (!json_->is_number()) return fail(ErrorKind::corrupt, "{} is not a number", place_);
    return json_->get<double>();
  }
  [[nodiscard]] Result<std::string> text() const {
    if (!json_->is_string()) return fail(ErrorKind::corrupt, "{} is not a text", place_);
    return json_->get<std::string>();
  }
  [[nodiscard]] Result<Vec3d> vector() const {
    CGL_TRY(size(3, 3).map([](std::size_t) {}));
    CGL_TRY_ASSIGN(const double x, at(0).number());
    CGL_TRY_ASSIGN(const double y, at(1).number());
    CGL_TRY_ASSIGN(const double z, at(2).number());
    return Vec3d{x, y, z};
  }
  [[nodiscard]] bool has(const char* name) const { return json_->is_object() && json_->contains(name); }
  [[nodiscard]] Result<Vec3d> vector_member(const char* name) const {
    CGL_TRY_ASSIGN(const Field field, member(name));
    return field.vector();
  }
  [[nodiscard]] Result<double> number_member(const char* name) const {
    CGL_TRY_ASSIGN(const Field field, member(name));
    return field.number();
  }
  [[nodiscard]] Result<std::string> text_member(const char* name) const {
    CGL_TRY_ASSIGN(const Field field, member(name));
    return field.text();
  }

 private:
  const Json* json_;
  std::string place_;
};

Result<CurvePiece> parse_piece(const Field& field) {
  CurvePiece piece;
  if (field.has("cubic")) {
    CGL_TRY_ASSIGN(const Field cubic, field.member("cubic"));
    CGL_TRY(cubic.size(4, 4).map([](std::size_t) {}));
    CGL_TRY_ASSIGN(piece.a, cubic.at(0).vector());
    CGL_TRY_ASSIGN(piece.b, cubic.at(1).vector());
    CGL_TRY_ASSIGN(piece.c, cubic.at(2).vector());
    CGL_TRY_ASSIGN(piece.d, cubic.at(3).vector());
    return piece;
  }
  CGL_TRY_ASSIGN(const Field helix, field.member("helix"));
  piece.kind = CurvePiece::Kind::helix;
  CGL_TRY_ASSIGN(piece.a, helix.vector_member("centre"));
  CGL_TRY_ASSIGN(piece.b, helix.vector_member("cosine"));
  CGL_TRY_ASSIGN(piece.c, helix.vector_member("sine"));
  CGL_TRY_ASSIGN(piece.d, helix.vector_member("rise"));
  CGL_TRY_ASSIGN(piece.start_angle, helix.number_member("start_angle"));
  CGL_TRY_ASSIGN(piece.sweep, helix.number_member("sweep"));
  return piece;
}

Result<Bundle> parse_bundle(const Field& field) {
  BundleShape shape;
  CGL_TRY_ASSIGN(shape.name, field.text_member("name"));
  CGL_TRY_ASSIGN(shape.end_mm, field.number_member("end_mm"));
  CGL_TRY_ASSIGN(const Field radius, field.member("radius_mm"));
  CGL_TRY_ASSIGN(const std::size_t knots, radius.size(1, 10'000));
  for (std::size_t i = 0; i < knots; ++i) {
    CGL_TRY(radius.at(i).size(2, 2).map([](std::size_t) {}));
    RadiusKnot knot;
    CGL_TRY_ASSIGN(knot.arc_mm, radius.at(i).at(0).number());
    CGL_TRY_ASSIGN(knot.radius_mm, radius.at(i).at(1).number());
    shape.radius.push_back(knot);
  }
  CGL_TRY_ASSIGN(const Field line, field.member("centre_line"));
  CGL_TRY_ASSIGN(const std::size_t pieces, line.size(1, 10'000));
  for (std::size_t i = 0; i < pieces; ++i) {
    CGL_TRY_ASSIGN(const CurvePiece piece, parse_piece(line.at(i)));
    shape.pieces.push_back(piece);
  }
  return Bundle::create(std::move(shape));
}

Result<ImageGeometry> parse_geometry(const Field& field) {
  ImageGeometry geometry;
  CGL_TRY_ASSIGN(const Vec3d size, field.vector_member("size"));
  const std::array<double, 3> sizes = {size.x, size.y, size.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!(sizes[axis] >= 1 && sizes[axis] <= 32767) || sizes[axis] != numerics::floor_of(sizes[axis])) {
      return fail(ErrorKind::corrupt, "an image of {} x {} x {} voxels", size.x, size.y, size.z);
    }
    geometry.size[axis] = static_cast<std::int64_t>(sizes[axis]);
  }
  if (geometry.size[0] * geometry.size[1] > (std::int64_t{1} << 30U) / geometry.size[2]) {
    return fail(ErrorKind::corrupt, "an image of {} x {} x {} voxels", size.x, size.y, size.z);
  }
  CGL_TRY_ASSIGN(const Field rows, field.member("voxel_to_world"));
  CGL_TRY(rows.size(3, 3).map([](std::size_t) {}));
  for (int r = 0; r < 3; ++r) {
    const Field row = rows.at(static_cast<std::size_t>(r));
    CGL_TRY(row.size(4, 4).map([](std::size_t) {}));
    for (int c = 0; c < 4; ++c) {
      CGL_TRY_ASSIGN(geometry.voxel_to_world.at(r, c), row.at(static_cast<std::size_t>(c)).number());
    }
  }
  CGL_TRY(geometry.voxel_to_world.inverse().map([](const Affine&) {}));
  return geometry;
}

}  // namespace

Json bundle_json(const Bundle& bundle) {
  const BundleShape& shape = bundle.shape();
  Json pieces = Json::array();
  for (const CurvePiece& piece : shape.pieces) {
    if (piece.kind == CurvePiece::Kind::cubic) {
      pieces.push_back({{"cubic", Json::array({vector_json(piece.a), vector_json(piece.b), vector_json(piece.c),
                                               vector_json(piece.d)})}});
    } else {
      pieces.push_back({{"helix",
                         {{"centre", vector_json(piece.a)},
                          {"cosine", vector_json(piece.b)},
                          {"sine", vector_json(piece.c)},
                          {"rise", vector_json(piece.d)},
                          {"start_angle", piece.start_angle},
                          {"sweep", piece.sweep}}}});
    }
  }
  Json radius = Json::array();
  for (const RadiusKnot& knot : shape.radius) radius.push_back(Json::array({knot.arc_mm, knot.radius_mm}));
  return {{"name", shape.name},
          {"length_mm", bundle.length()},
          {"cross_section_mm2", bundle.cross_section_mm2()},
          {"volume_mm3", bundle.volume_mm3()},
          {"end_mm", shape.end_mm},
          {"radius_mm", radius},
          {"centre_line", pieces}};
}

Json vector_json(Vec3d v) {
  return Json::array({v.x, v.y, v.z});
}

Json geometry_json(const ImageGeometry& geometry) {
  Json rows = Json::array();
  for (int r = 0; r < 3; ++r) {
    const Affine& affine = geometry.voxel_to_world;
    rows.push_back(Json::array({affine.at(r, 0), affine.at(r, 1), affine.at(r, 2), affine.at(r, 3)}));
  }
  return {{"size", geometry.size}, {"voxel_to_world", rows}};
}

std::string format_phantom(const PhantomTruth& truth) {
  Json bundles = Json::array();
  for (const Bundle& bundle : truth.bundles) bundles.push_back(bundle_json(bundle));
  return json_text({{"format", phantom_format},
                    {"version", phantom_version},
                    {"preset", truth.preset},
                    {"geometry", geometry_json(truth.geometry)},
                    {"bundles", std::move(bundles)}});
}

Result<PhantomTruth> parse_phantom(std::string_view json) {
  CGL_TRY_ASSIGN(const Json parsed, parse_json(json));
  const Field root(parsed, "phantom");
  CGL_TRY_ASSIGN(const std::string format, root.text_member("format"));
  CGL_TRY_ASSIGN(const double version, root.number_member("version"));
  if (format != phantom_format || version != phantom_version) {
    return fail(ErrorKind::corrupt, "format '{}' version {} (known: '{}' version {})", format, version, phantom_format,
                phantom_version);
  }
  PhantomTruth truth;
  CGL_TRY_ASSIGN(truth.preset, root.text_member("preset"));
  CGL_TRY_ASSIGN(const Field geometry, root.member("geometry"));
  CGL_TRY_ASSIGN(truth.geometry, parse_geometry(geometry));
  CGL_TRY_ASSIGN(const Field bundles, root.member("bundles"));
  CGL_TRY_ASSIGN(const std::size_t count, bundles.size(1, most_bundles));
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    CGL_TRY_ASSIGN(Bundle bundle, parse_bundle(bundles.at(i)));
    if (!names.insert(bundle.name()).second) {
      return fail(ErrorKind::corrupt, "two bundles are called '{}'", bundle.name());
    }
    truth.bundles.push_back(std::move(bundle));
  }
  return truth;
}

Result<PhantomTruth> read_phantom(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "phantom.json";
  return add_file_context(catch_out_of_memory([&]() -> Result<PhantomTruth> {
                            CGL_TRY_ASSIGN(const std::string text, read_text_file(path, std::uint64_t{64} << 20U));
                            return parse_phantom(text);
                          }),
                          "reading", path.string());
}

}  // namespace cingulum
