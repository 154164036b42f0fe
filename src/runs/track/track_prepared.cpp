#include "runs/track/track_prepared.hpp"

#include <algorithm>
#include <string_view>

#include "formats/sidecar.hpp"
#include "runs/track/track_defaults.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_run.hpp"
#include "runs/track/track_sidecar.hpp"
#include "tract/field/fit_file.hpp"
#include "tract/field/fit_key.hpp"

namespace cingulum {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The content of such an input is in the field: nobody needs the file any more.
bool is_within(const Json& input) {
  const Json option = input.value("option", Json());
  if (!option.is_string()) return false;
  const auto* const field = find_field(track_fields(), option.get<std::string>());
  return field != nullptr && field->argument.type == ArgumentType::file_in &&
         (field->phase == Phase::input || field->phase == Phase::field);
}

std::string version_of_program() {
  return run_facts(0, 0)["version"].get<std::string>();
}

Json geometry_json(const ImageGeometry& geometry) {
  return {{"size", geometry.size}, {"voxel_to_world", geometry.voxel_to_world.rows}};
}

bool read_geometry(const Json& json, ImageGeometry& geometry) {
  const Json size = json.is_object() ? json.value("size", Json()) : Json();
  const Json rows = json.is_object() ? json.value("voxel_to_world", Json()) : Json();
  const auto all_numbers = [](const Json& list, std::size_t count) {
    return list.is_array() && list.size() == count &&
           std::all_of(list.begin(), list.end(), [](const Json& number) { return number.is_number(); });
  };
  if (!all_numbers(size, 3) || !all_numbers(rows, 12)) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!size[i].is_number_unsigned() || size[i].get<std::uint64_t>() < 1 || size[i].get<std::uint64_t>() > 65535) {
      return false;
    }
    geometry.size[i] = size[i].get<std::int64_t>();
  }
  for (std::size_t i = 0; i < 12; ++i) geometry.voxel_to_world.rows[i] = rows[i].get<double>();
  return true;
}

}  // namespace

Status write_prepared(const TrackRun& run, const fs::path& path, RunMachine& machine) {
  if (!run.source.series || run.request.arrays.head) {
    return fail(ErrorKind::invalid_argument, "{}: a fit is made of a series in files", argument_name("prepare"));
  }
  if (run.request.data.value().size() > 4) {
    return fail(ErrorKind::invalid_argument, "{}: give the seed mask by {}, which runs may change",
                argument_name("prepare"), argument_name("seed_mask"));
  }
  CGL_TRY_ASSIGN(const Json all, input_facts(run.request, run.found, Json::array()));
  Json inputs = Json::array();
  for (const Json& input : all) {
    if (is_within(input)) inputs.push_back(input);
  }
  Json found = Json::array();
  for (const FoundInput& input : run.found) found.push_back({{"option", input.option}, {"path", input.path.string()}});
  const TrackingData& data = run.prepared.data;
  const Json about = {{"series", run.source.series->files.dwi.filename().string()},
                      {"model", data.prepared.facts.value("model", Json())},
                      {"prepared",
                       {{"version", version_of_program()},
                        {"rules", present_rules},
                        {"arguments", arguments_for_sidecar(run.request)},
                        {"inputs", std::move(inputs)},
                        {"found", std::move(found)},
                        {"phantom", run.phantom_hash},
                        {"geometry", geometry_json(data.geometry)},
                        {"oriented", run.source.oriented}}}};
  return write_fit_file(path, {run.prepared.key, about}, {data.prepared, data.stop_map, data.mask},
                        machine.write_options());
}

Result<PreparedRun> read_prepared_run(const fs::path& path) {
  const auto read = [&]() -> Result<PreparedRun> {
    CGL_TRY_ASSIGN(FitDescription said, read_fit_description(path));
    const Json json = said.about.value("prepared", Json());
    if (!json.is_object())
      return fail(ErrorKind::invalid_argument, "it was kept by {}, not made by {}", argument_name("cache_dir"),
                  argument_name("prepare"));
    if (json.value("version", Json()) != version_of_program()) {
      const Json version = json.value("version", Json());
      return fail(ErrorKind::invalid_argument,
                  "it is of version {}, and this is {}: numbers may differ between versions",
                  version.is_string() ? version.get<std::string>() : "unknown", version_of_program());
    }
    PreparedRun prepared;
    prepared.path = path;
    prepared.arguments = {{"rules", json.value("rules", Json())}, {"arguments", json.value("arguments", Json())}};
    prepared.inputs = json.value("inputs", Json());
    prepared.key = std::move(said.key);
    const Json phantom = json.value("phantom", Json());
    const auto has_texts = [](const Json& list, std::initializer_list<const char*> names) {
      return list.is_array() && std::all_of(list.begin(), list.end(), [&](const Json& item) {
               return item.is_object() && std::all_of(names.begin(), names.end(), [&](const char* name) {
                        return item.value(name, Json()).is_string();
                      });
             });
    };
    prepared.found = json.value("found", Json());
    if (!has_texts(prepared.inputs, {"option", "path", "xxh3_128"}) || !has_texts(prepared.found, {"option", "path"}) ||
        !phantom.is_string() || !prepared.key.value("inputs", Json()).is_object() ||
        !json.value("oriented", Json()).is_boolean() ||
        !read_geometry(json.value("geometry", Json()), prepared.geometry)) {
      return fail(ErrorKind::corrupt, "what it says of its run is not complete");
    }
    prepared.phantom_hash = phantom.get<std::string>();
    prepared.oriented = json["oriented"].get<bool>();
    return prepared;
  };
  return add_file_context(read(), "reading", path.native());
}

Result<TrackingData> read_prepared_field(const PreparedRun& prepared, const SeriesFieldRequest& request) {
  const fs::path& path = prepared.path;
  // The inputs are those that are in it, and the build may be another with the same version.
  Json inputs = prepared.key["inputs"];
  inputs.erase("given_response");
  Json wanted = fit_key("", std::move(inputs), request);
  wanted["build"] = prepared.key.value("build", Json());
  for (const auto& [name, value] : wanted.items()) {
    const Json made = prepared.key.value(name, Json());
    if (made == value) continue;
    return fail(
        ErrorKind::invalid_argument,
        "{} {}: the field was made with another {} ({}, this run wants {}); options that decide it are given to {}",
        argument_name("prepared"), path.string(), name, made.dump(), value.dump(), argument_name("prepare"));
  }
  CGL_TRY_ASSIGN(KeptFit kept, add_file_context(read_fit_file(path, prepared.key, prepared.geometry, request.sphere),
                                                "reading", path.native()));
  TrackingData data;
  data.geometry = prepared.geometry;
  data.prepared = std::move(kept.prepared);
  data.stop_map = std::move(kept.stop_map);
  data.mask = std::move(kept.mask);
  return data;
}

}  // namespace cingulum
