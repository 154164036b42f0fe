#include "zarr/nifti_attributes.hpp"

#include <array>

#include "base/json_fields.hpp"
#include "numerics/vec3.hpp"
#include "zarr/metadata_field.hpp"

namespace cingulum::zarr {

Json affine_json(const Affine& affine) {
  Json rows = Json::array();
  for (int r = 0; r < 3; ++r) rows.push_back({affine.at(r, 0), affine.at(r, 1), affine.at(r, 2), affine.at(r, 3)});
  return rows;
}

std::optional<Affine> affine_of(const Json& json) {
  std::array<std::array<double, 4>, 3> rows = {};
  if (!read_json(json, "affine", rows)) return std::nullopt;
  Affine affine;
  for (std::size_t i = 0; i < affine.rows.size(); ++i) affine.rows[i] = rows[i / 4][i % 4];
  return affine;
}

Json* kept_nifti_header(Json& others) {
  const auto ours = others.find("cingulum");
  if (ours == others.end() || !ours->is_object()) return nullptr;
  const auto nifti = ours->find("nifti");
  return nifti == ours->end() || !nifti->is_object() ? nullptr : &*nifti;
}

void crop_kept_affine(Json& others, const Region& region) {
  Json* const kept = kept_nifti_header(others);
  if (kept == nullptr) return;
  const Json* rows = member_of(*kept, "affine");
  std::optional<Affine> affine = rows != nullptr ? affine_of(*rows) : std::nullopt;
  const std::size_t rank = region.shape.size();
  if (!affine || rank < 3) {
    others["cingulum"].erase("nifti");
    return;
  }
  const numerics::Vec3d first{static_cast<double>(region.origin[rank - 1]),
                              static_cast<double>(region.origin[rank - 2]),
                              static_cast<double>(region.origin[rank - 3])};
  const numerics::Vec3d moved = affine->apply(first);
  affine->at(0, 3) = moved.x;
  affine->at(1, 3) = moved.y;
  affine->at(2, 3) = moved.z;
  (*kept)["affine"] = affine_json(*affine);
  Json shape = Json::array();
  for (std::size_t d = rank; d-- > 0;) shape.push_back(region.shape[d]);
  (*kept)["shape"] = std::move(shape);
}

}  // namespace cingulum::zarr
