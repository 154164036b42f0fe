// A request as the member `arguments` of a sidecar, {"options": {name: text, list of texts, or true}, "given": [name]},
// and back: what `from` repeats. Which members of the request stand there follows from the phases of its table: those
// on which the result depends.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runs/request_table.hpp"

namespace cingulum {

// Null where there is no value.
[[nodiscard]] nlohmann::ordered_json stored_value(const Argument& argument, const std::vector<ArgumentValue>& values);

template <class Request>
[[nodiscard]] nlohmann::ordered_json arguments_for_sidecar(RequestTable<Request> table, const Request& request) {
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  nlohmann::ordered_json given = nlohmann::ordered_json::array();
  for (const RequestField<Request>& field : table) {
    if (!decides_result(field.phase)) continue;
    if (field.given(request)) given.push_back(field.argument.name);
    nlohmann::ordered_json value = stored_value(field.argument, field.values(request));
    if (!value.is_null()) options[field.argument.name] = std::move(value);
  }
  return {{"options", std::move(options)}, {"given", std::move(given)}};
}

struct StoredTexts {
  std::vector<std::string> texts;  // of a flag "true" or "false"
  bool given = false;              // in the run
};

// The member `arguments` of a sidecar, which outlives it.
class StoredArguments {
 public:
  // Fails where it is not there, or is something else; the caller says which file that is.
  [[nodiscard]] static Result<StoredArguments> of(const nlohmann::ordered_json& sidecar);

  [[nodiscard]] bool has(const std::string& name) const { return options_->contains(name); }
  // None where the run had no value.
  [[nodiscard]] Result<std::optional<StoredTexts>> find(const Argument& argument) const;

 private:
  StoredArguments(const nlohmann::ordered_json& options, const nlohmann::ordered_json& given)
      : options_(&options), given_(&given) {}

  const nlohmann::ordered_json* options_;
  const nlohmann::ordered_json* given_;
};

// A file or array on which a result depends: an entry of the member `inputs` of a sidecar.
struct RunInput {
  std::string option;
  std::string path;
  std::string xxh3_128;

  template <class Visit, class Self>
  static void json_fields(Visit& visit, Self& self) {
    visit("option", self.option);
    visit("path", self.path);
    visit("xxh3_128", self.xxh3_128);
  }
};

// Whether a value of the argument names a file that is read.
[[nodiscard]] bool names_file(const Argument& argument, const std::string& text);

// Where a file of a run is: names that are relative also in the folder of the run, and what a sidecar that is shared
// names by BIDS where that dataset lies.
[[nodiscard]] std::string find_file_of_run(const nlohmann::ordered_json& sidecar, const std::string& name,
                                           const std::filesystem::path& path_of_sidecar);

// The `inputs` of a sidecar must be there with the hash that they had, but for those whose option `is_given` anew.
[[nodiscard]] Status check_inputs_of_run(const nlohmann::ordered_json& sidecar,
                                         const std::filesystem::path& path_of_sidecar,
                                         const std::function<bool(std::string_view option)>& is_given);

// A sidecar that was read, whose run is to be repeated.
struct StoredRun {
  const nlohmann::ordered_json& sidecar;
  const std::filesystem::path& path;
  std::string_view verb;  // that wrote it, for messages

  [[nodiscard]] tl::unexpected<Error> damaged(std::string_view what) const;
};

// The request of a stored run, with what is given over it, and of what no result depends on. Files with relative names
// are looked for in the folder of the run when they are not in the present one: `names_input` says of a value whether
// it names a file.
template <class Request, class NamesInput>
[[nodiscard]] Result<Request> request_of_stored_run(RequestTable<Request> table, const StoredRun& run,
                                                    const Request& given, NamesInput&& names_input) {
  const auto stored = StoredArguments::of(run.sidecar);
  if (!stored) return run.damaged(stored.error().message());
  Request request;
  for (const RequestField<Request>& field : table) {
    if (field.given(given) || !decides_result(field.phase) || !stored->has(field.argument.name)) {
      field.set(request, field.values(given), field.given(given));
      continue;
    }
    auto then = stored->find(field.argument);
    if (!then) return run.damaged(then.error().message());
    for (std::string& text : (*then)->texts) {
      std::string found = find_file_of_run(run.sidecar, text, run.path);
      if (names_input(field.argument, found)) text = std::move(found);
    }
    CGL_TRY(add_context(field.set_texts(request, (*then)->texts, (*then)->given), "reading {}", run.path.string()));
  }
  return request;
}

}  // namespace cingulum
