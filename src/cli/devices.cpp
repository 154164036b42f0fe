// `cingulum devices`: what there is to compute on, with limits and sensors, and why the rest is absent.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/option_name.hpp"
#include "base/quantity.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "device/registry.hpp"

namespace cingulum {

Verb devices_verb();

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string or_not_available(const std::optional<double>& value, std::string_view unit, double factor = 1) {
  return value ? fmt::format("{:.0f} {}", *value * factor, unit) : "n/a";
}

Json capabilities_json(const DeviceCapabilities& can) {
  return {{"compute_units", can.compute_units},
          {"subgroup_min", can.subgroup_min},
          {"subgroup_max", can.subgroup_max},
          {"subgroups", can.subgroups},
          {"shared_bytes", can.shared_bytes},
          {"max_threads_per_block", can.max_threads_per_block},
          {"max_block", can.max_block},
          {"max_grid", can.max_grid},
          {"largest_buffer_bytes", can.largest_buffer_bytes},
          {"largest_binding_bytes", can.largest_binding_bytes},
          {"max_bindings", can.max_bindings},
          {"software", can.software},
          {"shares_host_memory", can.shares_host_memory},
          {"pinned_host_memory", can.pinned_host_memory},
          {"mapped_host_memory", can.mapped_host_memory},
          {"peer_copies", can.peer_copies},
          {"persistent_kernels", can.persistent_kernels},
          {"direct_io", can.direct_io},
          {"device_timestamps", can.device_timestamps},
          {"float64", can.float64},
          {"shader_int64", can.shader_int64},
          {"runtime_compiler", can.runtime_compiler},
          {"runtime_compiler_note", can.runtime_compiler_note},
          {"determinism", determinism_name(can.determinism)}};
}

Json sensors_json(const DeviceReading& reading) {
  return {{"memory_used_bytes", or_null(reading.memory_used_bytes)},
          {"memory_total_bytes", or_null(reading.memory_total_bytes)},
          {"utilisation", or_null(reading.utilisation)},
          {"memory_utilisation", or_null(reading.memory_utilisation)},
          {"temperature_celsius", or_null(reading.temperature_celsius)},
          {"power_watts", or_null(reading.power_watts)},
          {"power_limit_watts", or_null(reading.power_limit_watts)},
          {"note", reading.note}};
}

Json device_json(Device& device) {
  const DeviceDescription& description = device.description();
  Json json = {{"id", description.id},         {"backend", backend_name(description.backend)},
               {"name", description.name},     {"architecture", description.architecture},
               {"driver", description.driver}, {"kernel_code", description.kernel_code}};
  json["dlpack"] =
      description.dlpack ? Json{{"type", description.dlpack->type}, {"id", description.dlpack->id}} : Json();
  if (const auto memory = device.memory()) {
    json["memory"] = {{"total_bytes", memory->total_bytes == 0 ? Json() : Json(memory->total_bytes)},
                      {"free_bytes", or_null(memory->free_bytes)},
                      {"limit_bytes", or_null(memory->limit_bytes)}};
  } else {
    json["memory"] = {{"error", with_option_names(memory.error())}};
  }
  json["capabilities"] = capabilities_json(description.capabilities);
  json["sensors"] = sensors_json(device.read_sensors());
  return json;
}

void print_json(const DeviceRegistry& registry, VerbContext& context) {
  Json devices = Json::array();
  for (Device* device : registry.devices()) devices.push_back(device_json(*device));
  Json backends = Json::array();
  for (const BackendReport& report : registry.backends()) {
    backends.push_back({{"name", backend_name(report.backend)},
                        {"library", report.library.empty() ? Json() : Json(report.library)},
                        {"devices", report.devices.size()},
                        {"failures", report.failures},
                        {"absent_because", report.devices.empty() ? Json(report.absent_reason) : Json()}});
  }
  Json best = nullptr;
  if (const auto chosen = registry.select_one("auto")) best = (*chosen)->id();
  context.print(json_text(Json{{"devices", devices}, {"backends", backends}, {"auto", best}}));
}

void print_table(const DeviceRegistry& registry, VerbContext& context) {
  Table table({{"device"},
               {"name"},
               {"architecture"},
               {"units", Align::right},
               {"memory", Align::right},
               {"free", Align::right},
               {"one argument", Align::right},
               {"load", Align::right},
               {"temperature", Align::right},
               {"power", Align::right}});
  for (Device* device : registry.devices()) {
    const DeviceDescription& description = device->description();
    const DeviceCapabilities& can = description.capabilities;
    const auto memory = device->memory();
    const DeviceReading reading = device->read_sensors();
    const bool total_known = memory && memory->total_bytes != 0;
    table.add_row({description.id, description.name + (can.software ? " (emulated on the CPU)" : ""),
                   description.architecture, can.compute_units == 0 ? "n/a" : std::to_string(can.compute_units),
                   total_known ? format_bytes(memory->total_bytes) : "n/a",
                   memory && memory->free_bytes ? format_bytes(*memory->free_bytes) : "n/a",
                   format_bytes(can.largest_binding_bytes), or_not_available(reading.utilisation, "%", 100),
                   or_not_available(reading.temperature_celsius, "C"), or_not_available(reading.power_watts, "W")});
  }
  context.print(table.text());
  context.print("\n");
  for (Device* device : registry.devices()) {
    const DeviceDescription& description = device->description();
    context.print_format("{}: driver {}; kernels {}; run-time compiler: {}; arithmetic {}\n", description.id,
                         description.driver, description.kernel_code, description.capabilities.runtime_compiler_note,
                         determinism_name(description.capabilities.determinism));
  }
  for (const BackendReport& report : registry.backends()) {
    if (report.devices.empty()) context.print_format("no {}: {}\n", backend_name(report.backend), report.absent_reason);
    for (const std::string& failure : report.failures) context.print_format("could not be opened: {}\n", failure);
  }
  if (const auto chosen = registry.select_one("auto"))
    context.print_format("--device auto takes {}\n", (*chosen)->id());
}

Status run_devices(const ParsedArguments&, VerbContext& context) {
  CGL_TRY_ASSIGN(const DeviceRegistry registry, open_devices(context.settings()));
  context.common().json ? print_json(registry, context) : print_table(registry, context);
  return {};
}

}  // namespace

Verb devices_verb() {
  return {
      .name = "devices",
      .summary = "list the devices, their limits and sensors, and why others are absent",
      .description =
          "Every backend (CUDA, WebGPU, CPU) is looked for when the program runs. A backend that has no device says "
          "why: "
          "its library is missing, too old or damaged, or there is no such hardware.\n\n"
          "\"one argument\" is the largest piece of memory that one kernel argument may span. \"kernels\" says whether "
          "the "
          "code compiled ahead fits the GPU or its driver compiled it from PTX; the results are the same bits. "
          "\"arithmetic exact\" means that plain operations are rounded as the CPU rounds them; \"guarded\", that "
          "kernels "
          "use products and divisions which the driver cannot alter.",
      .common = {CommonOption::json},
      .examples = {{"cingulum devices", "a table"},
                   {"cingulum devices --json", "everything that is known, for programs"},
                   {"CINGULUM_MEMORY_LIMIT=8G cingulum devices", "with at most 8 GiB of each device's memory"}},
      .run = run_devices,
  };
}

}  // namespace cingulum
