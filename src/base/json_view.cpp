#include "base/json_view.hpp"

#include <nlohmann/json.hpp>

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

JsonView JsonView::operator[](const std::string& member) const {
  if (object() == nullptr) return {};
  const auto found = json_->find(member);
  return found == json_->end() ? JsonView() : JsonView(*found);
}

const Json& JsonView::json() const {
  static const Json nothing;
  return json_ == nullptr ? nothing : *json_;
}

const Json* JsonView::object() const {
  return json().is_object() ? json_ : nullptr;
}

const Json* JsonView::list() const {
  return json().is_array() ? json_ : nullptr;
}

const std::string* JsonView::text() const {
  return json().get_ptr<const std::string*>();
}

std::optional<bool> JsonView::flag() const {
  return json().is_boolean() ? std::optional(json().get<bool>()) : std::nullopt;
}

std::optional<double> JsonView::number() const {
  return json().is_number() ? std::optional(json().get<double>()) : std::nullopt;
}

std::optional<std::uint64_t> JsonView::count() const {
  return json().is_number_unsigned() ? std::optional(json().get<std::uint64_t>()) : std::nullopt;
}

std::string JsonView::text_or(std::string_view otherwise) const {
  return text() != nullptr ? *text() : std::string(otherwise);
}

std::vector<std::string> JsonView::texts() const {
  std::vector<std::string> found;
  if (list() == nullptr) return found;
  for (const Json& entry : *json_) {
    if (entry.is_string()) found.push_back(entry.get<std::string>());
  }
  return found;
}

}  // namespace cingulum
