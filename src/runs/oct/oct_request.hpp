// What a reconstruction of serial OCT is asked to do: tiles, how they become one volume, what is written and where. A
// plain struct: fill in what matters and give it to reconstruct() (oct_run.hpp); what stays out has the defaults of
// `cingulum oct run`. What each member means, with unit, range and default, says the table of oct_fields.hpp. The
// single stages of `cingulum oct` take what they need from the same members.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runs/parameter.hpp"

namespace cingulum {

struct OctRequest {
  Parameter<std::string> tiles;
  Parameter<std::string> out;
  Parameter<std::string> from;

  Parameter<double> axial_step;
  Parameter<std::string> unit;
  Parameter<bool> allow_missing;
  Parameter<bool> average_repeats;
  Parameter<std::int64_t> galvo_line;

  Parameter<std::int64_t> search;
  Parameter<double> smoothing;
  Parameter<double> max_rejected;
  Parameter<std::string> blending;
  Parameter<std::string> pyramid;

  Parameter<std::string> method;
  Parameter<double> strength;
  Parameter<double> floor;
  Parameter<std::int64_t> median;

  Parameter<std::int64_t> s_xy;
  Parameter<double> s_z;
  Parameter<bool> no_log;
  Parameter<bool> detect_cutting_errors;
  Parameter<double> resolution;

  Parameter<bool> no_flat_field;
  Parameter<bool> no_curvature;
  Parameter<bool> no_crop;
  Parameter<double> crop_depth;
  Parameter<bool> no_profile;
  Parameter<bool> no_attenuation;
  Parameter<bool> normalise_planes;
  Parameter<std::string> compat;
  Parameter<bool> keep;
  Parameter<std::uint64_t> memory;
  Parameter<std::uint64_t> tile_memory;

  Parameter<double> slicing_interval;
  Parameter<double> search_range;
  Parameter<std::int64_t> moving_plane;
  Parameter<std::int64_t> planes;
  Parameter<double> max_rotation;
  Parameter<double> max_shift;
  Parameter<double> confidence_high;
  Parameter<double> confidence_low;
  Parameter<std::int64_t> smooth_window;
  Parameter<double> translation_smooth_sigma;
  Parameter<double> max_cumulative_drift;
  Parameter<std::string> decisions;

  Parameter<std::vector<std::string>> device;
};

}  // namespace cingulum
