#include "runs/track/track_sidecar.hpp"

#include <algorithm>
#include <string_view>

#include "base/json_view.hpp"
#include "formats/sidecar.hpp"
#include "runs/track/track_defaults.hpp"
#include "runs/track/track_fields.hpp"
#include "streamlines/regions.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Whether a value of the argument names a file that is read: a region may be a sphere in words.
bool names_input(const Argument& argument, const std::string& text) {
  return argument.metavar == region_metavar ? !is_sphere_text(text) : names_file(argument, text);
}

}  // namespace

Json arguments_for_sidecar(const TrackRequest& request) {
  Json result = arguments_for_sidecar(track_fields(), request);
  if (request.preset.given()) result["preset"] = request.preset.value();
  return result;
}

Result<std::vector<RunInput>> input_facts(const TrackRequest& request, const std::vector<FoundInput>& found,
                                          const std::vector<RunInput>& known) {
  std::vector<RunInput> inputs;
  const auto hash_of = [&](const std::string& option, const std::string& path) -> Result<std::string> {
    for (const RunInput& input : known) {
      if (input.option == option && input.path == path) return input.xxh3_128;
    }
    return hash_of_file(path);
  };
  for (const TrackField& field : track_fields()) {
    if (!decides_result(field.phase)) continue;
    for (const ArgumentValue& value : field.values(request)) {
      const auto* const text = std::get_if<std::string>(&value);
      if (text == nullptr || *text == in_memory || !names_input(field.argument, *text)) continue;
      CGL_TRY_ASSIGN(std::string hash, hash_of(field.argument.name, *text));
      inputs.push_back({field.argument.name, *text, std::move(hash)});
    }
  }
  for (const GivenInput& input : request.arrays.inputs) {
    CGL_TRY_ASSIGN(std::string hash, input.hash->hex());
    inputs.push_back({input.option, in_memory, std::move(hash)});
  }
  for (const FoundInput& input : found) {
    CGL_TRY_ASSIGN(std::string hash, hash_of(input.option, input.path.string()));
    inputs.push_back({input.option, input.path.string(), std::move(hash)});
  }
  return inputs;
}

Result<TrackRequest> request_of_run(const Json& json, const fs::path& sidecar, const TrackRequest& given) {
  const StoredRun run = {json, sidecar, "track"};
  int rules = 1;
  if (json.contains("rules")) {
    if (!json["rules"].is_number_integer()) return run.damaged("'rules' is not a number");
    rules = json["rules"].get<int>();
    if (rules < 1 || rules > present_rules) {
      return fail(
          ErrorKind::unavailable,
          "reading {}: it is of rules {}, and this version knows 1 to {}; repeat it with the version that wrote it",
          sidecar.string(), rules, present_rules);
    }
  }
  CGL_TRY_ASSIGN(TrackRequest result, request_of_stored_run(track_fields(), run, given, names_input));
  // What was not there to be stored had these values.
  for (const NamedText& then : values_under_rules(rules)) {
    const TrackField* const field = find_field(track_fields(), then.name);
    if (field == nullptr || field->given(given) || json["arguments"]["options"].contains(then.name)) continue;
    const std::string text(then.text);
    CGL_TRY(field->set_texts(result, std::span(&text, 1), false));
  }
  result.arrays = given.arrays;

  const JsonView part = JsonView(json)["part"];
  if (part.is_there() && !given.seed_range.given() && !given.part.given()) {
    const auto first = part["first"].count(), last = part["last"].count();
    if (!first || !last) return run.damaged("'part' has no 'first' and 'last'");
    result.seed_range = fmt::format("{}:{}", *first, *last);
  }

  return result;
}

Result<TrackRequest> request_of_sidecar(const fs::path& sidecar, const TrackRequest& given) {
  CGL_TRY_ASSIGN(const Json json, read_sidecar_file(sidecar));
  CGL_TRY_ASSIGN(TrackRequest result, request_of_run(json, sidecar, given));
  CGL_TRY(check_inputs_of_run(json, sidecar, [&](std::string_view option) {
    const TrackField* const field = find_field(track_fields(), option);
    return field != nullptr && field->given(given);
  }));
  return result;
}

Status check_repeated_phantom(const TrackRequest& given, const fs::path& dwi, const std::string& hash) {
  if (!given.from.given()) return {};
  CGL_TRY_ASSIGN(const Json json, read_sidecar_file(given.from.value()));
  const JsonView phantom = JsonView(json)["phantom"];
  if (phantom.object() == nullptr || phantom["dwi_xxh3_128"].json() == hash) return {};
  return fail(ErrorKind::corrupt, "repeating the run of {}: the phantom {} is another than it had; remove its folder",
              given.from.value(), dwi.string());
}

}  // namespace cingulum
