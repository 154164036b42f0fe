// What a Zarr hierarchy is: for `cingulum zarr info` and `cingulum info`.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_view.hpp"
#include "base/quantity.hpp"
#include "cli/table.hpp"
#include "cli/zarr_actions.hpp"
#include "formats/sidecar.hpp"
#include "formats/verify.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/hierarchy_check.hpp"
#include "zarr/ome_zarr.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

std::string by_x(std::span<const std::uint64_t> shape) {
  return shape.empty() ? std::string("one element") : fmt::format("{}", fmt::join(shape, " x "));
}

std::string numbers_text(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(fmt::format("{:.6g}", number));
  return fmt::format("{}", fmt::join(texts, " x "));
}

struct ArrayReport {
  Json json;
  std::vector<std::string> lines;
  std::vector<std::string> warnings;
};

Result<ArrayReport> report_array(const zarr::Array& array, const ZarrReportOptions& options) {
  const zarr::ArrayMetadata& metadata = array.metadata();
  zarr::ArrayCheckOptions check_options;
  check_options.pool = options.pool;
  check_options.decode = options.verify;
  CGL_TRY_ASSIGN(const zarr::ArrayCheck check, zarr::check_array(array, check_options));
  if (options.verify && check.fault_count > 0) {
    return fail(ErrorKind::corrupt, "{} damaged chunks, the first: {}", check.fault_count, check.faults.front());
  }
  ArrayReport report;
  const bool sharded = metadata.coding.sharding != nullptr;
  const std::string coding = zarr::describe_coding(metadata);
  const Json fill = metadata.fill_is_null ? Json() : zarr::fill_value_json(metadata.fill, metadata.type);
  const std::vector<std::string> checksums = zarr::checksums_of(metadata);
  report.json = {{"path", array.path()},
                 {"zarr_format", metadata.format},
                 {"shape", metadata.shape},
                 {"type", metadata.type.name()},
                 {"chunks", metadata.leaf_shape()},
                 {"shards", sharded ? Json(metadata.chunk_shape) : Json()},
                 {"codecs", coding},
                 {"fill_value", fill},
                 {"dimension_names", metadata.dimension_names},
                 {"bytes", metadata.bytes()},
                 {"stored_bytes", check.stored_bytes},
                 {"chunk_count", check.chunks},
                 {"missing_chunks", check.missing},
                 {"checksums", checksums},
                 {"verified", options.verify}};
  std::string first = fmt::format("{}, {}", by_x(metadata.shape), metadata.type.name());
  if (!metadata.dimension_names.empty()) first += fmt::format(" ({})", fmt::join(metadata.dimension_names, " "));
  report.lines.push_back(std::move(first));
  // The coding of shards names the chunks in them.
  report.lines.push_back(fmt::format("{} {}; {}", sharded ? "shards" : "chunks", by_x(metadata.chunk_shape), coding));
  report.lines.push_back(fmt::format(
      "fill {}; {} stored of {}; {} chunk{}{}; {}", fill.is_null() ? std::string("undefined") : fill.dump(),
      format_bytes(check.stored_bytes), format_bytes(metadata.bytes()), format_count(check.chunks),
      check.chunks == 1 ? "" : "s",
      check.missing > 0 ? fmt::format(", {} of them missing", format_count(check.missing)) : "",
      checksums.empty() ? std::string("no checksum")
                        : fmt::format("{}{}", fmt::join(checksums, " and "), options.verify ? " verified" : "")));
  for (const std::string& note : metadata.notes) report.warnings.push_back(fmt::format("{}: {}", array.name(), note));
  for (const std::string& fault : check.faults) report.warnings.push_back(fault);
  return report;
}

void add_image(FileReport& report, const zarr::OmeImage& image) {
  const zarr::OmeMultiscale& multiscale = image.multiscales.front();
  Json axes = Json::array();
  std::vector<std::string> axis_texts;
  for (const zarr::OmeAxis& axis : multiscale.axes) {
    axes.push_back({{"name", axis.name}, {"type", axis.type}, {"unit", axis.unit}});
    axis_texts.push_back(axis.unit.empty() ? axis.name : fmt::format("{} in {}", axis.name, axis.unit));
  }
  Json levels = Json::array();
  for (const zarr::OmeLevel& level : multiscale.levels) {
    Json json = {{"path", level.path}, {"scale", level.scale}, {"translation", level.translation}};
    if (!level.affine.empty()) json["affine"] = level.affine;
    levels.push_back(std::move(json));
  }
  Json json = {{"version", zarr::ome_version_name(image.version)},
               {"name", multiscale.name},
               {"multiscales", image.multiscales.size()},
               {"axes", std::move(axes)},
               {"levels", std::move(levels)}};
  if (!multiscale.coordinate_system.empty()) json["coordinate_system"] = multiscale.coordinate_system;
  if (!multiscale.name.empty()) report.add("name", multiscale.name);
  report.add("axes", fmt::format("{}", fmt::join(axis_texts, ", ")));
  std::vector<std::string> notes = image.notes;
  const std::vector<zarr::OmeChannel> channels = zarr::ome_channels(image.omero, notes);
  Json channel_list = Json::array();
  for (const zarr::OmeChannel& channel : channels) {
    Json entry = {{"label", channel.label}, {"color", channel.color}};
    std::string text = channel.label;
    if (channel.window) {
      entry["window"] = {{"min", channel.window->min},
                         {"max", channel.window->max},
                         {"start", channel.window->start},
                         {"end", channel.window->end}};
      text += fmt::format("{}window {:.6g} to {:.6g}, values {:.6g} to {:.6g}", text.empty() ? "" : ", ",
                          channel.window->start, channel.window->end, channel.window->min, channel.window->max);
    }
    channel_list.push_back(std::move(entry));
    report.add("channel", text);
  }
  json["channels"] = std::move(channel_list);
  report.json["ome"] = std::move(json);
  if (image.multiscales.size() > 1) {
    notes.push_back(fmt::format("it has {} multiscales; the first is shown", image.multiscales.size()));
  }
  for (const std::string& note : notes) report.warnings.push_back(note);
}

Status add_sidecar(FileReport& report, const std::filesystem::path& path, bool verify) {
  bool there = false;
  if (verify) {
    CGL_TRY_ASSIGN(there, compare_with_sidecar(path));
  } else {
    const auto sidecar = read_sidecar(path);
    there = sidecar && JsonView(*sidecar)["xxh3_128"].is_there();
  }
  report.json["sidecar"] = there;
  if (there) {
    report.add("sidecar", verify ? "XXH3-128 verified" : "XXH3-128 (not verified; --verify does)");
  }
  return {};
}

}  // namespace

std::string report_text(const std::string& name, const FileReport& report) {
  std::string text = fmt::format("{}: {}\n", name, report.title);
  Table table({{"", Align::left}, {"", Align::left}});
  for (const auto& [label, value] : report.lines) table.add_row({label, value});
  for (const std::string& warning : report.warnings) table.add_row({"warning", warning});
  return text + table.text(2);
}

Result<FileReport> report_zarr(const std::filesystem::path& path, const ZarrReportOptions& options) {
  FileReport report;
  CGL_TRY_ASSIGN(const std::shared_ptr<const zarr::Store> store, zarr::Store::open(path));
  CGL_TRY_ASSIGN(const zarr::Hierarchy hierarchy, zarr::read_hierarchy(*store, options.node));
  const zarr::Node& root = hierarchy.nodes.front();
  report.warnings = hierarchy.notes;
  report.json["format"] = fmt::format("Zarr v{}", root.format);
  report.json["store"] = store->is_archive() ? "zip" : "folder";
  report.json["node"] = root.kind == zarr::NodeKind::group ? "group" : "array";
  std::map<std::string, const zarr::OmeLevel*> levels;
  std::optional<zarr::OmeImage> image;
  if (root.kind == zarr::NodeKind::group) {
    CGL_TRY_ASSIGN(const Json attributes, parse_json(root.attributes));
    CGL_TRY_ASSIGN(image, zarr::parse_ome_image(attributes, zarr::node_name(*store, root.path)));
  }
  const char* const place = store->is_archive() ? "zip archive" : "folder";
  if (image) {
    report.title =
        fmt::format("OME-Zarr {} image, Zarr v{}, {}", zarr::ome_version_name(image->version), root.format, place);
    add_image(report, *image);
    // The levels belong together: one rank, one type.
    CGL_TRY_ASSIGN(const std::vector<zarr::Array> arrays,
                   zarr::open_levels(store, options.node, image->multiscales.front()));
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      levels[arrays[i].path()] = &image->multiscales.front().levels[i];
    }
  } else {
    report.title =
        fmt::format("Zarr v{} {}, {}", root.format, root.kind == zarr::NodeKind::group ? "group" : "array", place);
  }
  Json arrays = Json::array();
  for (const zarr::Node& node : hierarchy.nodes) {
    if (node.kind != zarr::NodeKind::array) continue;
    const std::string label = node.path.empty() ? std::string("array") : node.path;
    const auto found = [&]() -> Result<ArrayReport> {
      CGL_TRY_ASSIGN(const zarr::Array array, zarr::Array::open(store, node.path));
      return report_array(array, options);
    }();
    if (!found && (hierarchy.nodes.size() == 1 || options.verify || levels.contains(node.path) ||
                   found.error().kind() == ErrorKind::interrupted)) {
      return tl::make_unexpected(found.error());
    }
    // One array among many that cannot be read does not hide the others.
    if (!found) {
      arrays.push_back({{"path", node.path}, {"error", found.error().message()}});
      report.add(label, fmt::format("cannot be read: {}", found.error().message()));
      continue;
    }
    for (std::size_t i = 0; i < found->lines.size(); ++i) report.add(i == 0 ? label : "", found->lines[i]);
    if (const auto level = levels.find(node.path); level != levels.end()) {
      report.add("", fmt::format("scale {}; first centre at {}", numbers_text(level->second->scale),
                                 numbers_text(level->second->translation)));
    }
    arrays.push_back(found->json);
    for (const std::string& warning : found->warnings) report.warnings.push_back(warning);
  }
  report.json["arrays"] = std::move(arrays);
  CGL_TRY(add_sidecar(report, path, options.verify));
  return report;
}

}  // namespace cingulum
