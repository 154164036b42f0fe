// The header of a NIfTI file as bytes: parsing versions 1 and 2 in either byte order into NiftiHeader with every odd
// value named, and encoding it. Called by the NIfTI reader and writer; it reads no file and no voxel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/nifti.hpp"

namespace cingulum {

constexpr std::size_t nifti1_header_bytes = 348;
constexpr std::size_t nifti2_header_bytes = 540;
// Behind the header: four bytes, the first of which says whether extensions follow.
constexpr std::size_t nifti_extension_flag_bytes = 4;

// How long the header is, from the first 348 bytes. Fails on what is not a NIfTI file, naming what it seems to be.
[[nodiscard]] Result<std::size_t> nifti_header_size(std::span<const std::byte> begin);

// `bytes` holds nifti_header_size() bytes.
[[nodiscard]] Result<NiftiHeader> parse_nifti_header(std::span<const std::byte> bytes);

// Bytes of all voxels; sizes that do not fit 63 bits fail.
[[nodiscard]] Result<std::uint64_t> nifti_data_bytes(const NiftiHeader& header);

// "float32", "rgb24", "unknown type 77".
[[nodiscard]] std::string nifti_datatype_name(int datatype);
// 0 where NIfTI has no such type.
[[nodiscard]] int nifti_datatype_of(ElementType type) noexcept;

// Version 1 or 2 as header.version says, in little-endian order, with the four bytes behind it: 352 or 544 bytes. Uses
// type, shape, geometry, slope, intercept, intent and description.
[[nodiscard]] Result<std::vector<std::byte>> encode_nifti_header(const NiftiHeader& header);

}  // namespace cingulum
