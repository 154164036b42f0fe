// `cingulum zarr info`: what Zarr arrays and OME-Zarr images are.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "cli/option_name.hpp"
#include "cli/zarr_actions.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

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
