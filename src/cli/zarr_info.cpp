// `cingulum zarr info`: what Zarr arrays and OME-Zarr images are, and by which ways they can reach a device.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/option_name.hpp"
#include "cli/zarr_actions.hpp"
#include "device/registry.hpp"
#include "zarr/direct/engine.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/ome_zarr.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

// The ways of the first array (of an image: of its finest level) to the device that --device names.
Status add_explanation(const std::string& path, const std::string& node, VerbContext& context, FileReport& report) {
  CGL_TRY_ASSIGN(const std::optional<zarr::Array> array, first_zarr_array(path, node));
  if (!array) return {};
  CGL_TRY_ASSIGN(const std::string device, context.only_device("--explain"));
  CGL_TRY_ASSIGN(const OpenedDevice opened, open_one_device(context.settings(), device));
  CGL_TRY_ASSIGN(const zarr::EngineSettings settings, zarr::EngineSettings::from_settings(context.settings()));
  Json list = Json::array();
  for (const zarr::EngineAnswer& answer : zarr::explain_engines(*array, *opened.device, settings)) {
    const std::string name(zarr::engine_name(answer.engine));
    list.push_back(
        {{"engine", name}, {"possible", answer.possible}, {"reason", answer.reason}, {"details", answer.details}});
    report.add(fmt::format("engine {}", name), fmt::format("{}: {}", answer.possible ? "yes" : "no", answer.reason));
    for (const std::string& detail : answer.details) report.add("", detail);
  }
  report.json["engines"] = {{"array", array->name()}, {"device", opened.device->id()}, {"answers", std::move(list)}};
  return {};
}

}  // namespace

Result<std::optional<zarr::Array>> first_zarr_array(const std::string& path, const std::string& node) {
  CGL_TRY_ASSIGN(const std::shared_ptr<const zarr::Store> store, zarr::Store::open(path));
  CGL_TRY_ASSIGN(const zarr::Hierarchy hierarchy, zarr::read_hierarchy(*store, node));
  for (const zarr::Node& each : hierarchy.nodes) {
    if (each.kind == zarr::NodeKind::array) return zarr::Array::open(store, each.path);
  }
  return std::nullopt;
}

Status run_zarr_info(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  ZarrReportOptions options;
  options.pool = pool;
  options.verify = arguments.flag("verify");
  if (arguments.given("path")) options.node = arguments.text("path");
  Json results = Json::array();
  std::size_t failures = 0;
  for (const std::string& path : arguments.texts("paths")) {
    auto report = report_zarr(path, options);
    if (report && arguments.flag("explain")) CGL_TRY(add_explanation(path, options.node, context, *report));
    if (!report && report.error().kind() == ErrorKind::interrupted) return tl::make_unexpected(report.error());
    if (!results.empty() && !context.common().json) context.print("\n");
    if (!report) {
      ++failures;
      const std::string message = with_option_names(report.error());
      results.push_back({{"file", path}, {"error", message}});
      if (!context.common().json) context.print_format("{}: cannot be read\n  error  {}\n", path, message);
      continue;
    }
    Json result = {{"file", path}};
    result.update(report->json);
    result["warnings"] = report->warnings;
    results.push_back(std::move(result));
    if (!context.common().json) context.print(report_text(path, *report));
  }
  if (context.common().json) context.print(json_text(Json{{"files", std::move(results)}}));
  if (failures == 0) return {};
  return fail(ErrorKind::corrupt, "{} of the hierarchies cannot be read", failures);
}

}  // namespace cingulum
