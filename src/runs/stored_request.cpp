#include "runs/stored_request.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/json_fields.hpp"
#include "formats/bids/bids_uri.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

}  // namespace

Json stored_value(const Argument& argument, const std::vector<ArgumentValue>& values) {
  if (argument.type == ArgumentType::flag) return !values.empty() && std::get<bool>(values.front());
  if (values.empty()) return {};
  if (!argument.repeatable) return text_of_value(values.front());
  Json list = Json::array();
  for (const ArgumentValue& value : values) list.push_back(text_of_value(value));
  return list;
}

Result<StoredArguments> StoredArguments::of(const Json& sidecar) {
  const JsonView stored = JsonView(sidecar)["arguments"];
  if (stored.object() == nullptr) return fail(ErrorKind::corrupt, "there is no 'arguments'");
  const Json* const options = stored["options"].object();
  const Json* const given = stored["given"].list();
  if (options == nullptr || given == nullptr) {
    return fail(ErrorKind::corrupt, "'arguments' has no 'options' and 'given'");
  }
  return StoredArguments(*options, *given);
}

Result<std::optional<StoredTexts>> StoredArguments::find(const Argument& argument) const {
  const auto found = options_->find(argument.name);
  if (found == options_->end()) return std::nullopt;
  StoredTexts stored;
  stored.given = std::find(given_->begin(), given_->end(), argument.name) != given_->end();
  if (argument.type == ArgumentType::flag) {
    if (!found->is_boolean()) {
      return fail(ErrorKind::corrupt, "option '{}' is not true or false", argument.name);
    }
    stored.texts = {found->get<bool>() ? "true" : "false"};
    return stored;
  }
  for (const Json& entry : found->is_array() ? *found : Json::array({*found})) {
    if (!entry.is_string()) return fail(ErrorKind::corrupt, "option '{}' is not a text", argument.name);
    stored.texts.push_back(entry.get<std::string>());
  }
  return stored;
}

bool names_file(const Argument& argument, const std::string& text) {
  if (argument.type == ArgumentType::file_in) return true;
  std::error_code ignored;
  return argument.metavar == sphere_metavar && fs::is_regular_file(text, ignored);
}

std::string find_file_of_run(const Json& sidecar, const std::string& name, const fs::path& path_of_sidecar) {
  if (const auto found = resolve_bids_uri(name, path_of_sidecar)) return found->string();
  const fs::path folder = JsonView(sidecar)["run"]["folder"].text_or("");
  std::error_code ignored;
  const fs::path path = name;
  if (path.is_absolute() || fs::exists(path, ignored) || folder.empty()) return name;
  const fs::path there = folder / path;
  return fs::exists(there, ignored) ? there.string() : name;
}

tl::unexpected<Error> StoredRun::damaged(std::string_view what) const {
  return fail_file(path.string(), ErrorKind::corrupt, "reading {}: {}; it is not a sidecar of `cingulum {}`",
                   path.string(), what, verb);
}

Status check_inputs_of_run(const Json& sidecar, const fs::path& path_of_sidecar,
                           const std::function<bool(std::string_view option)>& is_given) {
  const Json* const inputs = JsonView(sidecar)["inputs"].list();
  if (inputs == nullptr) return {};
  for (const Json& entry : *inputs) {
    RunInput input;
    if (!read_json(entry, "input", input)) {
      return fail(ErrorKind::corrupt, "reading {}: an entry of 'inputs' has no option, path and hash",
                  path_of_sidecar.string());
    }
    if (is_given(input.option)) continue;
    const std::string path = find_file_of_run(sidecar, input.path, path_of_sidecar);
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      return fail(ErrorKind::not_found, "repeating the run of {}: its input {} is not there", path_of_sidecar.string(),
                  path);
    }
    CGL_TRY_ASSIGN(const std::string hash, hash_of_file(path));
    if (hash != input.xxh3_128) {
      return fail(ErrorKind::corrupt, "repeating the run of {}: its input {} has changed (hash {}, was {})",
                  path_of_sidecar.string(), path, hash, input.xxh3_128);
    }
  }
  return {};
}

}  // namespace cingulum
