// A JSON value of which a few members are read. Nothing throws and nothing has to be asked first: a member that is not
// there, and whatever is looked for inside it, is a view of nothing, and each question about a type answers with the
// value or with none. Called by readers of sidecars, descriptions and metadata:
//   JsonView(sidecar)["run"]["version"].text_or("unknown")
// It words no refusal; a struct whose members all have to be there is read by json_fields.hpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cingulum {

class JsonView {
 public:
  // The value outlives the view.
  explicit JsonView(const nlohmann::ordered_json& json) : json_(&json) {}

  // A view of nothing where this is no object, or has no such member.
  [[nodiscard]] JsonView operator[](const std::string& member) const;
  [[nodiscard]] bool is_there() const { return json_ != nullptr; }
  // Null (of JSON) where there is nothing.
  [[nodiscard]] const nlohmann::ordered_json& json() const;

  // These are null pointers or nothing where the value is not there or is of another type.
  [[nodiscard]] const nlohmann::ordered_json* object() const;
  [[nodiscard]] const nlohmann::ordered_json* list() const;
  [[nodiscard]] const std::string* text() const;
  [[nodiscard]] std::optional<bool> flag() const;
  [[nodiscard]] std::optional<double> number() const;
  // A whole number that is not negative.
  [[nodiscard]] std::optional<std::uint64_t> count() const;

  [[nodiscard]] std::string text_or(std::string_view otherwise) const;
  // The entries of a list that are texts.
  [[nodiscard]] std::vector<std::string> texts() const;

 private:
  JsonView() = default;

  const nlohmann::ordered_json* json_ = nullptr;
};

}  // namespace cingulum
