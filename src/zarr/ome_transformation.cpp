#include "zarr/ome_transformation.hpp"

#include <string>

namespace cingulum::zarr {
namespace {

constexpr int deepest_sequence = 16;

}  // namespace

Result<OmeTransformation> parse_ome_transformation(const Json& json, std::size_t rank, const MetadataField& field,
                                                   int depth) {
  OmeTransformation result(rank);
  CGL_TRY_ASSIGN(const std::string type, text_member(json, "type", field, true));
  if (type == "identity") return result;
  const std::string shown = type.substr(0, 40);
  if (type == "sequence") {
    if (depth == deepest_sequence) return field.refuse("more than {} sequences inside each other", deepest_sequence);
    CGL_TRY_ASSIGN(const Json* const steps, list_member(json, "transformations", field));
    for (std::size_t i = 0; i < steps->size(); ++i) {
      CGL_TRY_ASSIGN(const OmeTransformation step,
                     parse_ome_transformation((*steps)[i], rank, field.at("transformations").at(i), depth + 1));
      result = result.followed_by(step);
    }
    return result;
  }
  if (type != "scale" && type != "translation" && type != "affine") {
    return field.at("type").refuse(
        "the transformation '{}' is not supported (known: identity, scale, translation, sequence, affine)", shown);
  }
  const Json* values = member_of(json, type.c_str());
  if (values == nullptr && json.contains("path")) {
    return field.refuse("a {} that is stored in an array is not supported", shown);
  }
  if (values == nullptr) return field.at(type).refuse("it is absent");
  if (type == "affine") {
    if (!values->is_array() || values->size() != rank) {
      return field.at(type).refuse("it is no list of {} rows: as many as there are axes", rank);
    }
    for (std::size_t i = 0; i < rank; ++i) {
      CGL_TRY_ASSIGN(const std::vector<double> row, numbers_of((*values)[i], rank + 1, field.at(type).at(i)));
      for (std::size_t j = 0; j <= rank; ++j) result.at(i, j) = row[j];
    }
    return result;
  }
  CGL_TRY_ASSIGN(const std::vector<double> vector, numbers_of(*values, rank, field.at(type)));
  for (std::size_t i = 0; i < rank; ++i) {
    if (type == "scale" && vector[i] == 0) return field.at(type).refuse("entry {} is 0", i);
    (type == "scale" ? result.at(i, i) : result.at(i, rank)) = vector[i];
  }
  return result;
}

Result<OmeTransformation> parse_ome_transformations(const Json& list, std::size_t rank, const MetadataField& field) {
  OmeTransformation result(rank);
  if (!list.is_array()) return field.refuse("it is no list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    CGL_TRY_ASSIGN(const OmeTransformation step, parse_ome_transformation(list[i], rank, field.at(i)));
    result = result.followed_by(step);
  }
  return result;
}

}  // namespace cingulum::zarr
