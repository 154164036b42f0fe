#include "zarr/metadata_field.hpp"

#include <cmath>

#include "base/json_view.hpp"
#include "zarr/json_values.hpp"

namespace cingulum::zarr {

const Json* member_of(const Json& object, const char* name) {
  const Json& value = JsonView(object)[name].json();
  return value.is_null() ? nullptr : &value;
}

Result<std::string> text_member(const Json& object, const char* name, const MetadataField& field, bool required) {
  const Json* value = member_of(object, name);
  if (value == nullptr && !required) return std::string();
  if (value == nullptr) return field.at(name).refuse("it is absent");
  if (!value->is_string()) return field.at(name).refuse("{} is no text", json_excerpt(*value));
  return value->get<std::string>();
}

Result<const Json*> list_member(const Json& object, const char* name, const MetadataField& field) {
  const Json* value = member_of(object, name);
  if (value == nullptr) return field.at(name).refuse("it is absent");
  if (!value->is_array()) return field.at(name).refuse("it is no list");
  if (value->empty()) return field.at(name).refuse("it is empty");
  return value;
}

Result<std::vector<double>> numbers_of(const Json& list, std::size_t count, const MetadataField& field) {
  if (!list.is_array()) return field.refuse("it is no list of numbers");
  if (list.size() != count) return field.refuse("{} numbers, expected {}", list.size(), count);
  std::vector<double> values;
  for (const Json& value : list) {
    if (!value.is_number()) return field.refuse("{} is no number", json_excerpt(value));
    values.push_back(value.get<double>());
    if (!std::isfinite(values.back())) return field.refuse("{} is not finite", json_excerpt(value));
  }
  return values;
}

}  // namespace cingulum::zarr
