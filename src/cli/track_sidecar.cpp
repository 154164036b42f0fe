#include "cli/track_sidecar.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/json_text.hpp"
#include "cli/argument_value.hpp"
#include "cli/track_defaults.hpp"
#include "formats/bids/bids_uri.hpp"
#include "formats/sidecar.hpp"
#include "streamlines/regions.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Value = ParsedArguments::Value;

// On which the result does not depend: they belong to the run. Of a preset the values stand among the options.
// Which seeds a part has stands in its member `part`.
constexpr std::array<std::string_view, 22> run_options = {
    "device", "ngpus",      "chunk-size", "threads",       "force",        "json",      "progress", "quiet",
    "help",   "verbose",    "out",        "output-prefix", "write-method", "cache-dir", "from",     "keep-partial",
    "preset", "seed-range", "part",       "prepare",       "prepared",     "explain"};

bool belongs_to_run(std::string_view name) {
  return std::find(run_options.begin(), run_options.end(), name) != run_options.end();
}

bool is_region_option(std::string_view name) {
  return name == "include" || name == "include-ordered" || name == "exclude" || name == "stop";
}

std::string text_of(const Value& value) {
  struct Text {
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(std::uint64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const Length& length) const {
      return fmt::format("{}{}", length.value, length.unit == LengthUnit::voxel ? "vox" : "mm");
    }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(const std::vector<std::string>& list) const {
      return fmt::format("{}", fmt::join(list, ","));
    }
  };
  return std::visit(Text{}, value);
}

// Whether a value of the option names a file that is read.
bool names_file(const Argument& argument, const std::string& text) {
  if (argument.type == ArgumentType::file_in) return true;
  if (is_region_option(argument.name)) return !is_sphere_text(text);
  std::error_code ignored;
  return argument.name == "sphere" && fs::is_regular_file(text, ignored);
}

}  // namespace

Json options_for_sidecar(const Verb& verb, const ParsedArguments& arguments) {
  return options_for_sidecar(all_arguments(verb), arguments);
}

Json options_for_sidecar(std::span<const Argument> known, const ParsedArguments& arguments) {
  Json options = Json::object();
  Json given = Json::array();
  for (const Argument& argument : known) {
    if (belongs_to_run(argument.name)) continue;
    if (arguments.given(argument.name)) given.push_back(argument.name);
    if (argument.type == ArgumentType::flag) {
      options[argument.name] = arguments.flag(argument.name);
      continue;
    }
    const std::vector<Value>& values = arguments.values(argument.name);
    if (values.empty()) continue;
    if (!argument.repeatable) {
      options[argument.name] = text_of(values.front());
      continue;
    }
    Json list = Json::array();
    for (const Value& value : values) list.push_back(text_of(value));
    options[argument.name] = std::move(list);
  }
  Json result = {{"options", std::move(options)}, {"given", std::move(given)}};
  if (arguments.given("preset")) result["preset"] = arguments.text("preset");
  return result;
}

Result<Json> input_facts(const Verb& verb, const ParsedArguments& arguments, const GivenArrays& arrays,
                         const std::vector<FoundInput>& found, const Json& known) {
  Json inputs = Json::array();
  const auto hash_of = [&](const std::string& option, const std::string& path) -> Result<std::string> {
    for (const Json& input : known) {
      if (input["option"] == option && input["path"] == path) return input["xxh3_128"].get<std::string>();
    }
    return hash_of_file(path);
  };
  for (const Argument& argument : all_arguments(verb)) {
    if (belongs_to_run(argument.name)) continue;
    for (const std::string& text : arguments.texts(argument.name)) {
      if (text == in_memory || !names_file(argument, text)) continue;
      CGL_TRY_ASSIGN(std::string hash, hash_of(argument.name, text));
      inputs.push_back({{"option", argument.name}, {"path", text}, {"xxh3_128", std::move(hash)}});
    }
  }
  for (const GivenInput& input : arrays.inputs) {
    CGL_TRY_ASSIGN(std::string hash, input.hash->hex());
    inputs.push_back({{"option", input.option}, {"path", in_memory}, {"xxh3_128", std::move(hash)}});
  }
  for (const FoundInput& input : found) {
    CGL_TRY_ASSIGN(std::string hash, hash_of(input.option, input.path.string()));
    inputs.push_back({{"option", input.option}, {"path", input.path.string()}, {"xxh3_128", std::move(hash)}});
  }
  return inputs;
}

namespace {

// Where a file of a run is: names that are relative also in the folder of the run, and what a sidecar that is shared
// names by BIDS where that dataset lies.
std::string find_file_of_run(const Json& json, const std::string& name, const fs::path& sidecar) {
  if (const auto found = resolve_bids_uri(name, sidecar)) return found->string();
  fs::path folder;
  if (json.contains("run") && json["run"].is_object() && json["run"].contains("folder") &&
      json["run"]["folder"].is_string()) {
    folder = json["run"]["folder"].get<std::string>();
  }
  std::error_code ignored;
  const fs::path path = name;
  if (path.is_absolute() || fs::exists(path, ignored) || folder.empty()) return name;
  const fs::path there = folder / path;
  return fs::exists(there, ignored) ? there.string() : name;
}

}  // namespace

Result<ParsedArguments> arguments_of_run(const Verb& verb, const Json& json, const fs::path& sidecar,
                                         const ParsedArguments& command_line) {
  const auto damaged = [&](std::string_view what) {
    return fail(ErrorKind::corrupt, "reading {}: {}; it is not a sidecar of `cingulum track`", sidecar.string(), what);
  };
  if (!json.is_object() || !json.contains("arguments") || !json["arguments"].is_object()) {
    return damaged("there is no 'arguments'");
  }
  const Json& stored = json["arguments"];
  if (!stored.contains("options") || !stored["options"].is_object() || !stored.contains("given") ||
      !stored["given"].is_array()) {
    return damaged("'arguments' has no 'options' and 'given'");
  }
  int rules = 1;
  if (json.contains("rules")) {
    if (!json["rules"].is_number_integer()) return damaged("'rules' is not a number");
    rules = json["rules"].get<int>();
    if (rules < 1 || rules > present_rules) {
      return fail(
          ErrorKind::unavailable,
          "reading {}: it is of rules {}, and this version knows 1 to {}; repeat it with the version that wrote it",
          sidecar.string(), rules, present_rules);
    }
  }
  const std::vector<OptionValue> values_then = values_under_rules(rules);

  const auto& given_names = stored["given"];
  ParsedArguments result;
  for (const Argument& argument : all_arguments(verb)) {
    const std::string& name = argument.name;
    if (!command_line.given(name) && !stored["options"].contains(name)) {
      const auto then = std::find_if(values_then.begin(), values_then.end(),
                                     [&](const OptionValue& value) { return value.option == name; });
      if (then != values_then.end()) {
        CGL_TRY_ASSIGN(auto values, parse_option(argument, then->value));
        result.set(name, std::move(values), false);
        continue;
      }
    }
    if (command_line.given(name) || belongs_to_run(name) || !stored["options"].contains(name)) {
      result.set(name, command_line.values(name), command_line.given(name));
      continue;
    }
    const Json& option = stored["options"][name];
    const bool was_given = std::any_of(given_names.begin(), given_names.end(),
                                       [&](const Json& other) { return other.is_string() && other == name; });
    std::vector<Value> values;
    if (argument.type == ArgumentType::flag) {
      if (!option.is_boolean()) return damaged(fmt::format("option '{}' is not true or false", name));
      values.emplace_back(option.get<bool>());
    } else {
      const Json list = option.is_array() ? option : Json::array({option});
      for (const Json& entry : list) {
        if (!entry.is_string()) return damaged(fmt::format("option '{}' is not a text", name));
        std::string word = entry.get<std::string>();
        const std::string found = find_file_of_run(json, word, sidecar);
        if (names_file(argument, found)) word = found;
        CGL_TRY_ASSIGN(Value value, add_context(parse_value(argument, word), "reading {}", sidecar.string()));
        values.push_back(std::move(value));
      }
    }
    result.set(name, std::move(values), was_given);
  }

  if (json.contains("part") && !command_line.given("seed-range") && !command_line.given("part")) {
    const Json& part = json["part"];
    if (!part.is_object() || !part.value("first", Json()).is_number_unsigned() ||
        !part.value("last", Json()).is_number_unsigned()) {
      return damaged("'part' has no 'first' and 'last'");
    }
    const std::string range =
        fmt::format("{}:{}", part["first"].get<std::uint64_t>(), part["last"].get<std::uint64_t>());
    result.set("seed-range", {range}, true);
  }

  return result;
}

Result<ParsedArguments> arguments_from_sidecar(const Verb& verb, const fs::path& sidecar,
                                               const ParsedArguments& command_line) {
  CGL_TRY_ASSIGN(const Json json, read_sidecar_file(sidecar));
  CGL_TRY_ASSIGN(ParsedArguments result, arguments_of_run(verb, json, sidecar, command_line));
  // The inputs must be those of the run.
  if (json.contains("inputs") && json["inputs"].is_array()) {
    for (const Json& input : json["inputs"]) {
      if (!input.is_object() || !input.contains("path") || !input["path"].is_string() || !input.contains("option") ||
          !input["option"].is_string() || !input.contains("xxh3_128") || !input["xxh3_128"].is_string()) {
        return fail(ErrorKind::corrupt, "reading {}: an entry of 'inputs' has no option, path and hash",
                    sidecar.string());
      }
      if (command_line.given(input["option"].get<std::string>())) continue;
      const std::string path = find_file_of_run(json, input["path"].get<std::string>(), sidecar);
      std::error_code ignored;
      if (!fs::exists(path, ignored)) {
        return fail(ErrorKind::not_found, "repeating the run of {}: its input {} is not there", sidecar.string(), path);
      }
      CGL_TRY_ASSIGN(const std::string hash, hash_of_file(path));
      if (hash != input["xxh3_128"].get<std::string>()) {
        return fail(ErrorKind::corrupt, "repeating the run of {}: its input {} has changed (hash {}, was {})",
                    sidecar.string(), path, hash, input["xxh3_128"].get<std::string>());
      }
    }
  }
  return result;
}

Status check_repeated_phantom(const ParsedArguments& command_line, const fs::path& dwi, const std::string& hash) {
  if (!command_line.given("from")) return {};
  CGL_TRY_ASSIGN(const Json json, read_sidecar_file(command_line.text("from")));
  if (!json.contains("phantom") || !json["phantom"].is_object()) return {};
  const Json& stored = json["phantom"].value("dwi_xxh3_128", Json());
  if (stored.is_string() && stored.get<std::string>() == hash) return {};
  return fail(ErrorKind::corrupt, "repeating the run of {}: the phantom {} is another than it had; remove its folder",
              command_line.text("from"), dwi.string());
}

}  // namespace cingulum
