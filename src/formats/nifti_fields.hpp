// What the parser and the encoder of NIfTI headers share: where the fields lie, and which maps can be used. Called by
// nifti_header.cpp and nifti_header_encode.cpp alone.
#pragma once

#include <cstddef>

#include "formats/image_geometry.hpp"

namespace cingulum {

// Where the fields lie: nifti1.h and nifti2.h of the NIfTI Data Format Working Group (2003, 2011).
struct NiftiOffsets {
  std::size_t magic, dim_info, dim, intent_code, datatype, bitpix, pixdim, vox_offset, slope, intercept, xyzt_units,
      description, qform_code, sform_code, quatern, qoffset, srow, intent_name;
};
inline constexpr NiftiOffsets nifti1_offsets = {344, 39,  40,  68,  70,  72,  76,  108, 112,
                                                116, 123, 148, 252, 254, 256, 268, 280, 328};
inline constexpr NiftiOffsets nifti2_offsets = {4,   524, 16,  504, 12,  14,  104, 168, 176,
                                                184, 500, 240, 344, 348, 352, 376, 400, 508};
inline constexpr std::size_t nifti_description_bytes = 80, nifti_intent_name_bytes = 16;

// Whether the map is finite and can be inverted.
[[nodiscard]] bool is_usable_map(const Affine& affine);

}  // namespace cingulum
