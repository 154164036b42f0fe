// A request is a plain struct of settings, and one table says of each of its members what it is: the argument (name,
// type, unit, range, help, default) and the phase of the run that it decides. All that lists arguments asks that table:
// the verb and its help, Python, the sliders of a page, presets, sidecars, the key of a kept fit, and what may change
// while a field stays. The tables: track/track_fields.cpp, fit/fit_fields.cpp, oct/oct_fields.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/argument_name.hpp"
#include "base/result.hpp"
#include "runs/argument.hpp"
#include "runs/argument_value.hpp"
#include "runs/parameter.hpp"

namespace cingulum {

// What of a run an argument decides. A result depends on all but the last three.
enum class Phase {
  input,        // what is read, and how it is to be understood
  field,        // what is made of it once
  plan,         // how each step is taken
  seeds,        // where streamlines begin
  selection,    // which of them are kept
  output,       // how the result is stored
  recipe,       // where the values of other arguments come from: --from, --preset, --prepared
  destination,  // the name of the result
  machine,      // where, by whom and in which parts it is computed
};

// A result and its sidecar depend on the phases up to `output`.
[[nodiscard]] constexpr bool decides_result(Phase phase) {
  return phase <= Phase::output;
}

// Rules that need more than the phase.
struct FieldTraits {
  // Nothing in an answer about seeds in one sphere, while the field stays: another way to say where seeds lie, or how
  // many streamlines a whole run keeps.
  bool whole_run = false;
  // Each series of a dataset has its own: `batch` sets it and refuses it.
  bool of_one_series = false;
  // Takes part in making the field though it decides another phase: the getter, the threshold, the device.
  bool makes_field = false;
  // Which peaks of a file there are is settled when it is read, and this is asked then.
  bool decides_peaks = false;
  // Default for each direction getter, in the order of getters_of_defaults (track/track_defaults.hpp); empty: one for
  // all.
  std::array<std::string_view, 6> default_by_getter = {};
};

template <class Request>
struct RequestField {
  template <class T>
  using Member = Parameter<T> Request::*;

  std::variant<Member<std::string>, Member<std::int64_t>, Member<std::uint64_t>, Member<double>, Member<Length>,
               Member<bool>, Member<std::vector<std::string>>>
      member;
  Phase phase;
  Argument argument;
  FieldTraits traits = {};

  [[nodiscard]] bool given(const Request& request) const {
    return std::visit([&](auto at) { return (request.*at).given(); }, member);
  }
  [[nodiscard]] bool has(const Request& request) const {
    return std::visit([&](auto at) { return (request.*at).has(); }, member);
  }

  // One value, several of a list, none where there is none.
  [[nodiscard]] std::vector<ArgumentValue> values(const Request& request) const {
    return std::visit(
        [&](auto at) -> std::vector<ArgumentValue> {
          const auto& parameter = request.*at;
          if (!parameter.has()) return {};
          if constexpr (std::is_same_v<decltype(at), Member<std::vector<std::string>>>) {
            if (argument.type == ArgumentType::device_list) return {parameter.value()};
            return {parameter.value().begin(), parameter.value().end()};
          } else {
            return {parameter.value()};
          }
        },
        member);
  }

  // The values have the type of the argument.
  void set(Request& request, std::vector<ArgumentValue> values, bool given) const {
    std::visit(
        [&](auto at) {
          auto& parameter = request.*at;
          using T = typename std::remove_cvref_t<decltype(parameter)>::Value;
          parameter.reset();
          if (values.empty()) return;
          T value;
          if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            if (argument.type == ArgumentType::device_list) {
              value = std::move(std::get<T>(values.front()));
              values.clear();
            }
            for (ArgumentValue& one : values) value.push_back(std::move(std::get<std::string>(one)));
          } else {
            value = std::move(std::get<T>(values.front()));
          }
          if (given) {
            parameter = std::move(value);
          } else {
            parameter.set_default(std::move(value));
          }
        },
        member);
  }

  // The same from texts; a flag is on unless its text is "false".
  [[nodiscard]] Status set_texts(Request& request, std::span<const std::string> texts, bool given) const {
    CGL_TRY_ASSIGN(std::vector<ArgumentValue> parsed, values_of_texts(argument, texts));
    set(request, std::move(parsed), given);
    return {};
  }
};

// All members of a request. Lives as long as the process.
template <class Request>
using RequestTable = std::span<const RequestField<Request>>;

// Null where there is none of that name.
template <class Request>
[[nodiscard]] const RequestField<Request>* find_field(RequestTable<Request> table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& one) { return one.argument.name == name; });
  return found == table.end() ? nullptr : &*found;
}

// Gives a value to what has none and has a default in the table.
template <class Request>
[[nodiscard]] Status fill_in_defaults(RequestTable<Request> table, Request& request) {
  for (const RequestField<Request>& field : table) {
    if (field.argument.default_text.empty() || field.has(request)) continue;
    CGL_TRY(field.set_texts(request, std::span(&field.argument.default_text, 1), false));
  }
  return {};
}

// What a caller gave in the form of text, checked by the table: names, types, ranges, that files to be read are there.
// Whether an output may be replaced is known to the call that writes it, and checked there before its work.
template <class Request>
[[nodiscard]] Status set_given(RequestTable<Request> table, std::span<const ArgumentText> given, Request& request) {
  for (const ArgumentText& one : given) {
    const RequestField<Request>* const field = find_field(table, one.name);
    CGL_TRY(check_named_argument(field == nullptr ? nullptr : &field->argument, one));
    CGL_TRY(field->set_texts(request, one.texts, true));
    if (field->argument.type != ArgumentType::file_out) CGL_TRY(check_named_files(field->argument, one.texts, false));
  }
  return {};
}

// The same the other way: what was given, of the fields that `wanted` takes.
template <class Request, class Wanted>
[[nodiscard]] std::vector<ArgumentText> given_texts(RequestTable<Request> table, const Request& request,
                                                    Wanted&& wanted) {
  std::vector<ArgumentText> texts;
  for (const RequestField<Request>& field : table) {
    if (!field.given(request) || !wanted(field)) continue;
    ArgumentText one{field.argument.name, {}, field.argument.type == ArgumentType::flag};
    if (!one.is_flag) {
      for (const ArgumentValue& value : field.values(request)) one.texts.push_back(text_of_value(value));
    }
    texts.push_back(std::move(one));
  }
  return texts;
}

}  // namespace cingulum
