#include "measure/bench_report.hpp"

#include <fmt/format.h>

#include "base/version.hpp"

namespace cingulum::measure {

using Json = nlohmann::ordered_json;

Json to_json(const Row& row) {
  Json json = {{"scenario", row.scenario}, {"unit", row.unit},      {"median", row.value.median},
               {"p10", row.value.low},     {"p90", row.value.high}, {"repetitions", row.value.repetitions}};
  if (row.ceiling > 0) {
    json["ceiling"] = row.ceiling;
    json["ceiling_name"] = row.ceiling_name;
    json["ratio"] = row.value.median / row.ceiling;
  }
  return json;
}

std::string to_text(const Row& row) {
  std::string text = fmt::format("  {:<52} {:>10.3f} {:<6} ({:.3f} to {:.3f})", row.scenario, row.value.median,
                                 row.unit, row.value.low, row.value.high);
  if (row.ceiling > 0) {
    text +=
        fmt::format("  {:.1f} % of {:.3f}: {}", 100 * row.value.median / row.ceiling, row.ceiling, row.ceiling_name);
  }
  return text;
}

Json report_frame(std::string_view bench) {
  return {{"bench", bench}, {"version", Json::parse(version_json(), nullptr, false)}, {"build", version_text()}};
}

}  // namespace cingulum::measure
