// Verbs in memory: the table of their options, the program as a whole, and a verb whose JSON result comes back as text.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "cli/command_line.hpp"
#include "cli/help.hpp"
#include "cli/process.hpp"
#include "cli/verbs.hpp"
#include "job.hpp"
#include "native_error.hpp"
#include "parts.hpp"
#include "request_parts.hpp"
#include "runs/argument_value.hpp"
#include "runs/fit/fit_fields.hpp"
#include "runs/oct/oct_fields.hpp"
#include "runs/track/track_fields.hpp"

namespace cingulum::python {
namespace {

using Json = nlohmann::ordered_json;

const char* type_name(ArgumentType type) {
  switch (type) {
    case ArgumentType::text: return "text";
    case ArgumentType::file_in: return "file_in";
    case ArgumentType::file_out: return "file_out";
    case ArgumentType::integer: return "integer";
    case ArgumentType::real: return "real";
    case ArgumentType::length: return "length";
    case ArgumentType::angle: return "angle";
    case ArgumentType::bytes: return "bytes";
    case ArgumentType::key: return "key";
    case ArgumentType::choice: return "choice";
    case ArgumentType::flag: return "flag";
    case ArgumentType::device_list: break;
  }
  return "device_list";
}

Json argument_json(const Argument& argument) {
  return {{"name", argument.name},
          {"type", type_name(argument.type)},
          {"help", help_with_actions(argument)},
          {"metavar", argument.metavar},
          {"unit", argument.unit},
          {"default", argument.default_text},
          {"default_note", argument.default_note},
          {"choices", argument.choices},
          {"minimum", argument.range.minimum ? Json(*argument.range.minimum) : Json()},
          {"maximum", argument.range.maximum ? Json(*argument.range.maximum) : Json()},
          {"above", argument.range.above},
          {"positional", argument.positional},
          {"required", argument.required},
          {"repeatable", argument.repeatable}};
}

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::input: return "input";
    case Phase::field: return "field";
    case Phase::plan: return "plan";
    case Phase::seeds: return "seeds";
    case Phase::selection: return "selection";
    case Phase::output: return "output";
    case Phase::recipe: return "recipe";
    case Phase::destination: return "destination";
    case Phase::machine: break;
  }
  return "machine";
}

// What the table of a request says besides; options that belong to every verb are the machine's.
template <class Request>
void add_facts(const RequestField<Request>* field, Json& json) {
  json["phase"] = phase_name(field != nullptr ? field->phase : Phase::machine);
  if constexpr (std::is_same_v<Request, TrackRequest>) {
    json["changes_while_field_stays"] = field != nullptr && may_change_while_field_stays(*field);
  }
}

std::string verbs_json() {
  Json table = Json::object();
  for (const Verb& verb : all_verbs()) {
    Json arguments = Json::array();
    for (const Argument& argument : all_arguments(verb)) {
      Json json = argument_json(argument);
      if (verb.name == "track") add_facts(find_field(track_fields(), argument.name), json);
      if (verb.name == "fit") add_facts(find_field(fit_fields(), argument.name), json);
      arguments.push_back(std::move(json));
    }
    table[verb.name] = {{"summary", verb.summary}, {"description", verb.description}, {"arguments", arguments}};
  }
  // One action of a verb that has a request of its own.
  Json arguments = Json::array();
  const auto add = [&](Argument argument, Phase phase) {
    argument.actions.clear();
    Json json = argument_json(argument);
    json["phase"] = phase_name(phase);
    arguments.push_back(std::move(json));
  };
  for (const RequestField<OctRequest>& field : oct_fields()) add(field.argument, field.phase);
  add(threads_argument(), Phase::machine);
  add(force_argument(), Phase::machine);
  table["oct run"] = {{"summary", "from tiles to one volume"}, {"description", ""}, {"arguments", arguments}};
  return json_text(table);
}

int run_console(const std::vector<std::string>& words) {
  send_log_to_python(false);
  int exit_code = 0;
  {
    const nb::gil_scoped_release without_gil;
    exit_code = run_process(words);
  }
  send_log_to_python(true);
  return exit_code;
}

// What the verb printed, and the failure it ended with, if any: kind, message, argument, file. A verb may do both
// (`verify`).
using Failure = std::tuple<std::string, std::string, std::string, std::string>;
std::tuple<std::string, std::optional<Failure>> run_verb(const std::string& name,
                                                         const std::vector<GivenArgument>& given,
                                                         const nb::object& progress) {
  std::string output;
  Status ended;
  run_job(progress, Stopping::by_process, [&](JobContext& job) -> Status {
    const std::vector<Verb> verbs = all_verbs();
    CGL_TRY_ASSIGN(const Verb* verb, find_verb(verbs, name));
    CGL_TRY_ASSIGN(const Settings settings, Settings::from_environment());
    CGL_TRY(settings.check());
    CGL_TRY_ASSIGN(const ParsedArguments arguments, parse_named_arguments(*verb, argument_texts(given)));
    CGL_TRY_ASSIGN(CommonValues common, common_values(*verb, arguments, settings));
    VerbContext context(
        verbs, settings, std::move(common), [&](std::string_view text) { output += text; }, 80, Log::standard());
    context.set_run(job.cancel, job.observer);
    ended = verb->run(arguments, context);
    return {};
  });
  if (ended) return {std::move(output), std::nullopt};
  const Error& error = ended.error();
  return {std::move(output), Failure(error_kind_name(error.kind()), error.message(), std::string(error.argument()),
                                     std::string(error.file()))};
}

}  // namespace

void bind_program(nb::module_& module) {
  module.def("verbs_json", verbs_json);
  module.def("run_console", run_console, nb::arg("words"));
  module.def("run_verb", run_verb, nb::arg("name"), nb::arg("given"), nb::arg("progress").none());
}

}  // namespace cingulum::python
