#include "runs/track/track_prepared.hpp"

#include <algorithm>
#include <array>

#include "base/json_fields.hpp"
#include "formats/sidecar.hpp"
#include "runs/track/track_defaults.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_run.hpp"
#include "tract/field/fit_file.hpp"
#include "tract/field/fit_key.hpp"

namespace cingulum {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The content of such an input is in the field: nobody needs the file any more.
bool is_within(const RunInput& input) {
  const auto* const field = find_field(track_fields(), input.option);
  return field != nullptr && field->argument.type == ArgumentType::file_in &&
         (field->phase == Phase::input || field->phase == Phase::field);
}

std::string version_of_program() {
  return run_facts(0, 0)["version"].get<std::string>();
}

struct PreparedGrid {
  std::array<std::int64_t, 3> size = {};
  std::array<double, 12> voxel_to_world = {};

  [[nodiscard]] bool is_grid() const {
    return std::all_of(size.begin(), size.end(), [](std::int64_t extent) { return extent >= 1 && extent <= 65535; });
  }
  template <class Visit, class Self>
  static void json_fields(Visit& visit, Self& self) {
    visit("size", self.size);
    visit("voxel_to_world", self.voxel_to_world);
  }
};

// The member `prepared` of what the file says.
struct PreparedFacts {
  std::string version;
  Json rules;
  Json arguments;
  std::vector<RunInput> inputs;
  std::vector<FoundInput> found;
  std::string phantom;
  PreparedGrid geometry;
  bool oriented = true;

  template <class Visit, class Self>
  static void json_fields(Visit& visit, Self& self) {
    visit("version", self.version);
    visit.optional("rules", self.rules);
    visit.optional("arguments", self.arguments);
    visit("inputs", self.inputs);
    visit("found", self.found);
    visit("phantom", self.phantom);
    visit("geometry", self.geometry);
    visit("oriented", self.oriented);
  }
};

}  // namespace

Status write_prepared(const TrackRun& run, const fs::path& path, RunMachine& machine) {
  if (!run.source.series || run.request.arrays.head) {
    return fail(ErrorKind::invalid_argument, "{}: a fit is made of a series in files", argument_name("prepare"));
  }
  if (run.request.data.value().size() > 4) {
    return fail(ErrorKind::invalid_argument, "{}: give the seed mask by {}, which runs may change",
                argument_name("prepare"), argument_name("seed_mask"));
  }
  CGL_TRY_ASSIGN(std::vector<RunInput> inputs, input_facts(run.request, run.found, {}));
  std::erase_if(inputs, [](const RunInput& input) { return !is_within(input); });
  const TrackingData& data = run.prepared.data;
  const PreparedFacts facts = {.version = version_of_program(),
                               .rules = present_rules,
                               .arguments = arguments_for_sidecar(run.request),
                               .inputs = std::move(inputs),
                               .found = run.found,
                               .phantom = run.phantom_hash,
                               .geometry = {data.geometry.size, data.geometry.voxel_to_world.rows},
                               .oriented = run.source.oriented};
  const Json about = {{"series", run.source.series->files.dwi.filename().string()},
                      {"model", data.prepared.facts.value("model", Json())},
                      {"prepared", write_json(facts)}};
  return write_fit_file(path, {run.prepared.key, about}, {data.prepared, data.stop_map, data.mask},
                        machine.write_options());
}

Result<PreparedRun> read_prepared_run(const fs::path& path) {
  const auto read = [&]() -> Result<PreparedRun> {
    CGL_TRY_ASSIGN(FitDescription said, read_fit_description(path));
    const JsonView stored = JsonView(said.about)["prepared"];
    if (stored.object() == nullptr)
      return fail(ErrorKind::invalid_argument, "it was kept by {}, not made by {}", argument_name("cache_dir"),
                  argument_name("prepare"));
    if (stored["version"].json() != version_of_program()) {
      return fail(ErrorKind::invalid_argument,
                  "it is of version {}, and this is {}: numbers may differ between versions",
                  stored["version"].text_or("unknown"), version_of_program());
    }
    PreparedFacts facts;
    if (!read_json(stored.json(), "prepared", facts) || !facts.geometry.is_grid() ||
        JsonView(said.key)["inputs"].object() == nullptr) {
      return fail(ErrorKind::corrupt, "what it says of its run is not complete");
    }
    PreparedRun prepared;
    prepared.path = path;
    prepared.arguments = {{"rules", std::move(facts.rules)}, {"arguments", std::move(facts.arguments)}};
    prepared.inputs = std::move(facts.inputs);
    prepared.found = std::move(facts.found);
    prepared.key = std::move(said.key);
    prepared.phantom_hash = std::move(facts.phantom);
    prepared.geometry.size = facts.geometry.size;
    prepared.geometry.voxel_to_world.rows = facts.geometry.voxel_to_world;
    prepared.oriented = facts.oriented;
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
