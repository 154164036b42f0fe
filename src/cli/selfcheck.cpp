// `cingulum selfcheck`: computes on every device and compares the bits with the CPU's.
#include "device/selfcheck.hpp"
#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

#include "base/option_name.hpp"
#include "base/quantity.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "device/registry.hpp"

namespace cingulum {

Verb selfcheck_verb();

namespace {

struct Row {
  std::string device;
  std::string name;
  Result<SelfcheckResult> result;
};

Status run_selfcheck_verb(const ParsedArguments& arguments, VerbContext& context) {
  const auto items = static_cast<std::uint32_t>(arguments.integer("items"));
  CGL_TRY_ASSIGN(const DeviceRegistry registry, open_devices(context.settings()));
  // Without --device or CINGULUM_DEVICE, every device that there is.
  std::vector<Device*> devices = registry.devices();
  if (arguments.given("device") || context.settings().given(Setting::device)) {
    CGL_TRY_ASSIGN(devices, registry.select(fmt::format("{}", fmt::join(context.common().devices, ","))));
  }
  std::vector<Row> rows;
  for (Device* device : devices) {
    rows.push_back({device->id(), device->description().name, run_selfcheck(*device, items)});
  }

  std::string differing;
  std::string failing;
  for (const Row& row : rows) {
    if (!row.result) failing += (failing.empty() ? "" : "; ") + with_option_names(row.result.error());
    if (row.result && row.result->equal != row.result->items) differing += (differing.empty() ? "" : ", ") + row.device;
  }
  if (context.common().json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      nlohmann::ordered_json entry = {{"device", row.device}, {"name", row.name}};
      if (row.result) {
        entry["items"] = row.result->items;
        entry["equal"] = row.result->equal;
        entry["compute_ms"] = row.result->compute_milliseconds;
      } else {
        entry["error"] = with_option_names(row.result.error());
      }
      list.push_back(std::move(entry));
    }
    context.print(json_text(list));
  } else {
    Table table({{"device"},
                 {"name"},
                 {"items", Align::right},
                 {"same bits as the CPU", Align::right},
                 {"time", Align::right}});
    for (const Row& row : rows) {
      if (row.result) {
        table.add_row({row.device, row.name, format_count(row.result->items), format_count(row.result->equal),
                       fmt::format("{:.1f} ms", row.result->compute_milliseconds)});
      } else {
        table.add_row({row.device, row.name, "failed", with_option_names(row.result.error())});
      }
    }
    context.print(table.text());
  }
  if (!failing.empty()) return fail(ErrorKind::device, "{}", failing);
  if (!differing.empty()) return fail(ErrorKind::device, "not the CPU's bits on: {}", differing);
  return {};
}

}  // namespace

Verb selfcheck_verb() {
  return {
      .name = "selfcheck",
      .summary = "compute on every device and compare the bits with the CPU's",
      .description =
          "Random draws, normal variates, directions, angles, exponentials and logarithms are computed on each device "
          "and "
          "compared word for word with the CPU's. The exit code is 1 when a device differs. The time includes "
          "compiling "
          "the kernel where that happens at run time; it is not a benchmark.",
      .arguments = {{.name = "items",
                     .type = ArgumentType::integer,
                     .help = "how many results to compare on each device",
                     .metavar = "N",
                     .range = {.minimum = 1, .maximum = selfcheck_most_items},
                     .default_text = "1000000"}},
      .common = {CommonOption::device, CommonOption::json},
      .examples = {{"cingulum selfcheck", "all devices"},
                   {"cingulum selfcheck --device webgpu --items 100000", "one of them, with fewer items"}},
      .references = {"Salmon, Moraes, Dror, Shaw (2011): Parallel random numbers: as easy as 1, 2, 3"},
      .run = run_selfcheck_verb,
  };
}

}  // namespace cingulum
