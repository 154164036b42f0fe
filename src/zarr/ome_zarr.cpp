#include "zarr/ome_zarr.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "base/json_fields.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/metadata_field.hpp"
#include "zarr/ome_transformation.hpp"

namespace cingulum::zarr {
namespace {

// Metadata of OME that stands in the attributes of a group, at their root (0.4) or inside "ome".
constexpr std::array<std::string_view, 8> ome_members = {
    "multiscales", "omero", "labels", "image-label", "plate", "well", "bioformats2raw.layout", "series"};
// The members among these that carry a version of their own in 0.4.
constexpr std::array<std::string_view, 3> versioned_members = {"image-label", "plate", "well"};

OmeLevel level_of(std::string path, const OmeTransformation& transformation) {
  OmeLevel level{.path = std::move(path), .scale = {}, .translation = {}};
  const std::size_t rank = transformation.rank;
  const bool diagonal = transformation.is_diagonal();
  for (std::size_t i = 0; i < rank; ++i) {
    double squares = 0;
    for (std::size_t row = 0; row < rank; ++row) squares += transformation.at(row, i) * transformation.at(row, i);
    level.scale.push_back(diagonal ? transformation.at(i, i) : std::sqrt(squares));
    level.translation.push_back(transformation.at(i, rank));
  }
  if (!diagonal) level.affine = transformation.rows;
  return level;
}

Result<std::vector<OmeAxis>> parse_axes(const Json& holder, const MetadataField& holder_field) {
  CGL_TRY_ASSIGN(const Json* const list, list_member(holder, "axes", holder_field));
  const MetadataField field = holder_field.at("axes");
  if (list->size() < 2 || list->size() > 5) return field.refuse("{} axes, expected 2 to 5", list->size());
  std::vector<OmeAxis> axes;
  std::set<std::string> names;
  std::size_t space = 0;
  for (std::size_t i = 0; i < list->size(); ++i) {
    OmeAxis axis;
    CGL_TRY_ASSIGN(axis.name, text_member((*list)[i], "name", field.at(i), true));
    CGL_TRY_ASSIGN(axis.type, text_member((*list)[i], "type", field.at(i), false));
    CGL_TRY_ASSIGN(axis.unit, text_member((*list)[i], "unit", field.at(i), false));
    if (axis.name.empty()) return field.at(i).at("name").refuse("it is empty");
    if (!names.insert(axis.name).second) return field.at(i).at("name").refuse("'{}' is there twice", axis.name);
    if (axis.type == "time" && i != 0) return field.at(i).at("type").refuse("time is not the first axis");
    if (axis.is_space()) {
      ++space;
    } else if (space > 0) {
      return field.at(i).at("type").refuse("'{}' stands behind an axis of space", axis.type);
    }
    axes.push_back(std::move(axis));
  }
  if (space < 2 || space > 3) return field.refuse("{} axes of type space, expected 2 or 3", space);
  return axes;
}

bool is_inside(const std::string& path) {
  if (path.empty() || path.front() == '/' || path.back() == '/') return false;
  std::string_view rest = path;
  while (true) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == rest.size()) return true;
    rest.remove_prefix(end + 1);
  }
}

// Checks the transformations of 0.4 and 0.5: a scale, then perhaps a translation.
Status check_plain_transformations(const Json& list, const MetadataField& field) {
  const auto type_of = [&](std::size_t i) { return JsonView(list[i])["type"].text_or(""); };
  if (list.size() > 2)
    return field.refuse("{} transformations, expected a scale and perhaps a translation", list.size());
  if (type_of(0) != "scale") return field.at(std::size_t{0}).refuse("it is no scale");
  if (list.size() == 2 && type_of(1) != "translation") return field.at(1).refuse("it is no translation");
  return {};
}

// The name of a coordinate system, or the path of an array: a text, or an object with either.
std::string end_of_transformation(const Json& transformation, const char* which) {
  const JsonView end = JsonView(transformation)[which];
  for (const JsonView& place : {end, end["name"], end["path"]}) {
    if (place.text() != nullptr) return *place.text();
  }
  return {};
}

struct NamedSystem {
  std::string name;
  std::vector<OmeAxis> axes;
};

// 0.6: levels lead to one coordinate system of the image, the image's own transformations from there to others. The
// system that is listed first is the one that readers show.
Result<std::pair<NamedSystem, OmeTransformation>> find_shown_system(const Json& multiscale, const std::string& reached,
                                                                    const MetadataField& field,
                                                                    std::vector<std::string>& notes) {
  CGL_TRY_ASSIGN(const Json* const systems, list_member(multiscale, "coordinateSystems", field));
  std::vector<NamedSystem> list;
  const NamedSystem* start = nullptr;
  list.reserve(systems->size());
  for (std::size_t i = 0; i < systems->size(); ++i) {
    const MetadataField place = field.at("coordinateSystems").at(i);
    NamedSystem system;
    CGL_TRY_ASSIGN(system.name, text_member((*systems)[i], "name", place, true));
    CGL_TRY_ASSIGN(system.axes, parse_axes((*systems)[i], place));
    list.push_back(std::move(system));
    if (list.back().name == reached) start = &list.back();
  }
  if (start == nullptr) {
    return field.at("coordinateSystems").refuse("the system '{}' of the levels is not among them", reached);
  }
  const OmeTransformation nothing(start->axes.size());
  if (start == &list.front()) return std::pair{list.front(), nothing};
  const Json* const further = JsonView(multiscale)["coordinateTransformations"].list();
  for (std::size_t i = 0; further != nullptr && i < further->size(); ++i) {
    const Json& step = (*further)[i];
    if (end_of_transformation(step, "input") != reached) continue;
    if (end_of_transformation(step, "output") != list.front().name) continue;
    if (list.front().axes.size() != start->axes.size()) break;
    CGL_TRY_ASSIGN(const OmeTransformation last,
                   parse_ome_transformation(step, start->axes.size(), field.at("coordinateTransformations").at(i)));
    return std::pair{list.front(), last};
  }
  notes.push_back(
      fmt::format("no transformation leads from the coordinate system '{}' to '{}', the first one; scales "
                  "are those of '{}'",
                  reached, list.front().name, reached));
  return std::pair{*start, nothing};
}

Result<OmeMultiscale> parse_multiscale(const Json& json, OmeVersion version, const MetadataField& field,
                                       std::vector<std::string>& notes) {
  OmeMultiscale result;
  CGL_TRY_ASSIGN(result.name, text_member(json, "name", field, false));
  CGL_TRY_ASSIGN(result.type, text_member(json, "type", field, false));
  if (const Json* metadata = member_of(json, "metadata")) result.metadata = *metadata;
  CGL_TRY_ASSIGN(const Json* const datasets, list_member(json, "datasets", field));

  std::optional<OmeTransformation> last;
  if (version == OmeVersion::v0_6) {
    const Json* const first = JsonView((*datasets)[0])["coordinateTransformations"].list();
    const std::string reached = first != nullptr && !first->empty() ? end_of_transformation((*first)[0], "output") : "";
    CGL_TRY_ASSIGN(auto shown, find_shown_system(json, reached, field, notes));
    result.coordinate_system = std::move(shown.first.name);
    result.axes = std::move(shown.first.axes);
    last = std::move(shown.second);
  } else {
    CGL_TRY_ASSIGN(result.axes, parse_axes(json, field));
    if (const Json* further = member_of(json, "coordinateTransformations")) {
      CGL_TRY_ASSIGN(last,
                     parse_ome_transformations(*further, result.axes.size(), field.at("coordinateTransformations")));
    }
  }

  const std::size_t rank = result.axes.size();
  std::set<std::string> paths;
  for (std::size_t i = 0; i < datasets->size(); ++i) {
    const MetadataField place = field.at("datasets").at(i);
    const Json& dataset = (*datasets)[i];
    CGL_TRY_ASSIGN(std::string path, text_member(dataset, "path", place, true));
    if (!is_inside(path)) return place.at("path").refuse("'{}' is no path below the group", path);
    if (!paths.insert(path).second) return place.at("path").refuse("'{}' is there twice", path);
    CGL_TRY_ASSIGN(const Json* const list, list_member(dataset, "coordinateTransformations", place));
    const MetadataField list_field = place.at("coordinateTransformations");
    if (version != OmeVersion::v0_6) {
      CGL_TRY(check_plain_transformations(*list, list_field));
    } else if (list->size() != 1) {
      return list_field.refuse("{} transformations, expected 1", list->size());
    }
    CGL_TRY_ASSIGN(OmeTransformation transformation, parse_ome_transformations(*list, rank, list_field));
    if (last) transformation = transformation.followed_by(*last);
    result.levels.push_back(level_of(std::move(path), transformation));
  }

  static constexpr std::array<std::string_view, 8> known = {
      "version", "name", "type", "metadata", "axes", "datasets", "coordinateTransformations", "coordinateSystems"};
  for (const auto& [name, value] : json.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) result.others[name] = value;
  }
  return result;
}

// OME metadata of a group apart from its other attributes; no version where there are none.
struct SplitAttributes {
  std::optional<OmeVersion> version;
  Json ome = Json::object();
  Json others = Json::object();
};

Result<OmeVersion> version_of(const std::string& text, const MetadataField& field) {
  if (text == "0.4") return OmeVersion::v0_4;
  if (text == "0.5") return OmeVersion::v0_5;
  // "0.6" and what came before it: 0.6.dev4, 0.6rc0.
  if (text.starts_with("0.6")) return OmeVersion::v0_6;
  return field.refuse("OME-Zarr {} is not supported (known: 0.4, 0.5, 0.6)", text.substr(0, 40));
}

Result<SplitAttributes> split_attributes(const Json& attributes, std::string_view group,
                                         std::vector<std::string>& notes) {
  SplitAttributes split;
  const MetadataField root(group, "");
  const Json* const inside = JsonView(attributes)["ome"].object();
  const auto is_ome = [](const std::string& name) {
    return std::find(ome_members.begin(), ome_members.end(), name) != ome_members.end();
  };
  // What another version would take for its own is not kept: written again, it would stand in the place of what is.
  const auto keep_other = [&](const std::string& name, const Json& value) {
    if (name == "ome" || is_ome(name)) {
      notes.push_back(fmt::format("the attribute '{}' is OME metadata of another version and is left out", name));
    } else {
      split.others[name] = value;
    }
  };
  if (inside != nullptr) {
    CGL_TRY_ASSIGN(const std::string version, text_member(*inside, "version", root.at("ome"), true));
    CGL_TRY_ASSIGN(split.version, version_of(version, root.at("ome").at("version")));
    for (const auto& [name, value] : attributes.items()) {
      if (name != "ome") keep_other(name, value);
    }
    split.ome = *inside;
    split.ome.erase("version");
    return split;
  }
  for (const auto& [name, value] : attributes.items()) {
    if (is_ome(name)) {
      split.ome[name] = value;
    } else {
      keep_other(name, value);
    }
  }
  if (split.ome.empty()) return split;
  split.version = OmeVersion::v0_4;
  const Json* const multiscales = JsonView(split.ome)["multiscales"].list();
  if (multiscales == nullptr || multiscales->empty()) return split;
  const Json& first = multiscales->front();
  CGL_TRY_ASSIGN(const std::string version, text_member(first, "version", root.at("multiscales[0]"), false));
  if (version.empty()) {
    notes.emplace_back("multiscales[0] has no version; it is read as 0.4");
  } else {
    CGL_TRY_ASSIGN(split.version, version_of(version, root.at("multiscales[0].version")));
  }
  return split;
}

Json transformations_json(const OmeLevel& level) {
  Json list = Json::array({{{"type", "scale"}, {"scale", level.scale}}});
  if (std::any_of(level.translation.begin(), level.translation.end(), [](double x) { return x != 0; })) {
    list.push_back({{"type", "translation"}, {"translation", level.translation}});
  }
  return list;
}

Json multiscale_json(const OmeMultiscale& multiscale, OmeVersion version) {
  Json json = Json::object();
  if (version == OmeVersion::v0_4) json["version"] = "0.4";
  json["name"] = multiscale.name;
  Json axes = Json::array();
  for (const OmeAxis& axis : multiscale.axes) {
    Json entry = {{"name", axis.name}};
    if (!axis.type.empty()) entry["type"] = axis.type;
    if (!axis.unit.empty()) entry["unit"] = axis.unit;
    axes.push_back(std::move(entry));
  }
  json["axes"] = std::move(axes);
  Json datasets = Json::array();
  for (const OmeLevel& level : multiscale.levels) {
    datasets.push_back({{"path", level.path}, {"coordinateTransformations", transformations_json(level)}});
  }
  json["datasets"] = std::move(datasets);
  if (!multiscale.type.empty()) json["type"] = multiscale.type;
  if (!multiscale.metadata.is_null()) json["metadata"] = multiscale.metadata;
  json.update(multiscale.others);
  return json;
}

// Puts OME metadata where the version has them.
Json joined_attributes(Json ome, const Json& others, OmeVersion version) {
  for (const std::string_view name : versioned_members) {
    const auto member = ome.find(std::string(name));
    if (member == ome.end() || !member->is_object()) continue;
    member->erase("version");
    if (version == OmeVersion::v0_4) (*member)["version"] = "0.4";
  }
  if (version == OmeVersion::v0_4) {
    ome.update(others);
    return ome;
  }
  Json inside = {{"version", ome_version_name(version)}};
  inside.update(ome);
  Json attributes = {{"ome", std::move(inside)}};
  attributes.update(others);
  return attributes;
}

}  // namespace

std::string_view ome_version_name(OmeVersion version) {
  switch (version) {
    case OmeVersion::v0_4: return "0.4";
    case OmeVersion::v0_5: return "0.5";
    case OmeVersion::v0_6: return "0.6";
  }
  return "unknown";
}

int zarr_format_of(OmeVersion version) {
  return version == OmeVersion::v0_4 ? 2 : 3;
}

Result<std::optional<OmeImage>> parse_ome_image(const Json& attributes, std::string_view group) {
  OmeImage image;
  CGL_TRY_ASSIGN(SplitAttributes split, split_attributes(attributes, group, image.notes));
  if (!split.version || !split.ome.contains("multiscales")) return std::optional<OmeImage>();
  image.version = *split.version;
  image.others = std::move(split.others);
  const MetadataField root(group, "");
  CGL_TRY_ASSIGN(const Json* const list, list_member(split.ome, "multiscales", root));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const MetadataField field = root.at("multiscales").at(i);
    if (!(*list)[i].is_object()) return field.refuse("it is no JSON object");
    CGL_TRY_ASSIGN(OmeMultiscale multiscale, parse_multiscale((*list)[i], image.version, field, image.notes));
    image.multiscales.push_back(std::move(multiscale));
  }
  for (auto& [name, value] : split.ome.items()) {
    if (name == "multiscales") continue;
    (name == "omero" ? image.omero : image.ome_others[name]) = value;
  }
  return std::optional<OmeImage>(std::move(image));
}

std::vector<OmeChannel> ome_channels(const Json& omero, std::vector<std::string>& notes) {
  std::vector<OmeChannel> channels;
  const Json* const list = JsonView(omero)["channels"].list();
  if (list == nullptr) return channels;
  for (std::size_t i = 0; i < list->size(); ++i) {
    OmeChannel channel;
    const Json& json = (*list)[i];
    channel.label = JsonView(json)["label"].text_or("");
    channel.color = JsonView(json)["color"].text_or("");
    if (const Json* window = member_of(json, "window");
        window != nullptr && !read_json(*window, "window", channel.window)) {
      channel.window.reset();
      notes.push_back(fmt::format("omero.channels[{}].window lacks min, max, start or end", i));
    }
    channels.push_back(std::move(channel));
  }
  return channels;
}

Json make_omero(std::span<const OmeChannel> channels) {
  Json list = Json::array();
  for (const OmeChannel& channel : channels) {
    Json json = {{"label", channel.label}, {"color", channel.color}, {"active", true}};
    if (channel.window) json["window"] = write_json(*channel.window);
    list.push_back(std::move(json));
  }
  return {{"channels", std::move(list)}};
}

Result<Json> ome_attributes(const OmeImage& image, OmeVersion version, std::string_view group) {
  if (version == OmeVersion::v0_6) {
    return fail(ErrorKind::invalid_argument, "{}: OME-Zarr 0.6 is read and not written", group);
  }
  Json list = Json::array();
  for (std::size_t i = 0; i < image.multiscales.size(); ++i) {
    for (const OmeLevel& level : image.multiscales[i].levels) {
      if (level.affine.empty()) continue;
      return fail(ErrorKind::unavailable,
                  "{}: multiscales[{}], level {}: an affine that turns or shears has no place in OME-Zarr {}", group, i,
                  level.path, ome_version_name(version));
    }
    list.push_back(multiscale_json(image.multiscales[i], version));
  }
  Json ome = {{"multiscales", std::move(list)}};
  if (!image.omero.is_null()) ome["omero"] = image.omero;
  ome.update(image.ome_others);
  return joined_attributes(std::move(ome), image.others, version);
}

Result<Json> convert_ome_attributes(const Json& attributes, OmeVersion version, std::string_view group) {
  CGL_TRY_ASSIGN(const std::optional<OmeImage> image, parse_ome_image(attributes, group));
  if (image) return ome_attributes(*image, version, group);
  std::vector<std::string> unused;
  CGL_TRY_ASSIGN(SplitAttributes split, split_attributes(attributes, group, unused));
  if (!split.version) return attributes;
  return joined_attributes(std::move(split.ome), split.others, version);
}

OmeLevel level_of_size(const OmeLevel& finest, std::span<const std::uint64_t> finest_shape,
                       std::span<const std::uint64_t> shape, std::string path) {
  OmeLevel level{.path = std::move(path), .scale = finest.scale, .translation = finest.translation};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == finest_shape[d]) continue;
    level.scale[d] = finest.scale[d] * static_cast<double>(finest_shape[d]) / static_cast<double>(shape[d]);
    level.translation[d] = finest.translation[d] + (level.scale[d] - finest.scale[d]) / 2;
  }
  return level;
}

OmeLevel cropped_level(const OmeLevel& level, std::span<const std::uint64_t> origin) {
  OmeLevel result = level;
  for (std::size_t d = 0; d < origin.size(); ++d) {
    if (origin[d] != 0) result.translation[d] += level.scale[d] * static_cast<double>(origin[d]);
  }
  return result;
}

std::vector<OmeAxis> axes_of_names(std::span<const std::string> names, std::size_t rank) {
  Json list = Json::array();
  for (const std::string& name : names) {
    const bool time = name == "t" || name == "time";
    const bool channel = name == "c" || name == "channel";
    list.push_back({{"name", name}, {"type", time ? "time" : channel ? "channel" : "space"}});
  }
  if (names.size() == rank) {
    auto axes = parse_axes(Json{{"axes", std::move(list)}}, MetadataField("", ""));
    if (axes) return std::move(*axes);
  }
  std::vector<OmeAxis> axes = {
      {"t", "time", ""}, {"c", "channel", ""}, {"z", "space", ""}, {"y", "space", ""}, {"x", "space", ""}};
  if (rank == 4) {
    axes.erase(axes.begin() + 1);
  } else if (rank < 5) {
    axes.erase(axes.begin(), axes.end() - static_cast<std::ptrdiff_t>(rank));
  }
  return axes;
}

Result<std::vector<Array>> open_levels(const std::shared_ptr<const Store>& store, const std::string& group,
                                       const OmeMultiscale& multiscale) {
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < multiscale.levels.size(); ++i) {
    const std::string name = node_name(*store, group);
    const MetadataField field = MetadataField(name, "").at("multiscales[0].datasets").at(i);
    CGL_TRY_ASSIGN(Array array, Array::open(store, join_path(group, multiscale.levels[i].path)));
    const ArrayMetadata& metadata = array.metadata();
    if (metadata.rank() != multiscale.axes.size()) {
      return field.refuse("the array has {} dimensions, there are {} axes", metadata.rank(), multiscale.axes.size());
    }
    for (std::size_t d = 0; d < metadata.dimension_names.size(); ++d) {
      const std::string& dimension = metadata.dimension_names[d];
      if (dimension.empty() || dimension == multiscale.axes[d].name) continue;
      return field.refuse("dimension {} of the array is named '{}', the axis '{}'", d, dimension,
                          multiscale.axes[d].name);
    }
    if (i > 0) {
      const ArrayMetadata& finer = arrays.back().metadata();
      if (metadata.type != finer.type) {
        return field.refuse("the array is {}, the level before it {}", metadata.type.name(), finer.type.name());
      }
      for (std::size_t d = 0; d < metadata.rank(); ++d) {
        if (metadata.shape[d] <= finer.shape[d]) continue;
        return field.refuse("the array has {} elements along {}, the level before it {}", metadata.shape[d],
                            multiscale.axes[d].name, finer.shape[d]);
      }
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace cingulum::zarr
