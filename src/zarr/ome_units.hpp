// Units of length as OME-Zarr words them. Called by whoever needs millimetres: conversion to NIfTI, reports.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "zarr/ome_zarr.hpp"

namespace cingulum::zarr {

// Millimetres of one unit of length; fails for a word that is none.
[[nodiscard]] Result<double> length_unit_in_mm(std::string_view word);

struct AxisMillimetres {
  std::vector<double> factors;  // of the numbers of each axis; 1 where it is no axis of space
  bool guessed = false;         // an axis had no unit
};
// Units of the space axes. Where an axis has none, its numbers decide as microscopes write them: millimetres where the
// smallest step is below 1, else micrometres. A unit that is there is never overruled.
[[nodiscard]] Result<AxisMillimetres> axes_in_mm(std::span<const OmeAxis> axes, std::span<const double> scale);

}  // namespace cingulum::zarr
