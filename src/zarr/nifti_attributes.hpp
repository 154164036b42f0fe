// What an OME-Zarr image keeps of the NIfTI header that it came from, in its attribute `cingulum.nifti`: the affine
// above all. nifti_image.hpp writes and reads it; whoever takes a part of an image keeps it true.
#pragma once

#include <optional>

#include "formats/image_geometry.hpp"
#include "zarr/array.hpp"
#include "zarr/data_type.hpp"

namespace cingulum::zarr {

[[nodiscard]] Json affine_json(const Affine& affine);
[[nodiscard]] std::optional<Affine> affine_of(const Json& json);

// The object among attributes that are no OME metadata; null where there is none.
[[nodiscard]] Json* kept_nifti_header(Json& others);
// Makes the affine that of the part `region` of the finest level.
void crop_kept_affine(Json& others, const Region& region);

}  // namespace cingulum::zarr
