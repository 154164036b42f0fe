// What a tractography run is asked to do: which data, what is fitted, how steps are taken, where streamlines begin and
// which are kept, where the result goes. A plain struct: fill in what matters and give it to track() (track_run.hpp);
// what stays out has the defaults of `cingulum track`. What each member means, with unit, range and default, says the
// table of track_fields.hpp, from which the command line, Python and the viewer are made, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runs/argument.hpp"
#include "runs/given_arrays.hpp"
#include "runs/layout_parameters.hpp"
#include "runs/parameter.hpp"
#include "runs/response_parameters.hpp"

namespace cingulum {

struct TrackRequest : ResponseParameters, LayoutParameters {
  // What is read.
  Parameter<std::vector<std::string>> data;
  Parameter<std::string> bvals;
  Parameter<std::string> bvecs;
  Parameter<std::string> grad;
  Parameter<std::string> bvec_frame;
  Parameter<double> b0_threshold;
  Parameter<double> shell;
  Parameter<std::string> mask;
  Parameter<std::string> sf;
  Parameter<std::string> sh;
  Parameter<std::string> peaks;
  Parameter<std::string> tensor;
  Parameter<std::string> sh_basis;
  Parameter<std::string> frame;
  Parameter<std::string> tensor_order;

  // What is made of it, and how each step is taken.
  Parameter<std::string> dg;
  Parameter<std::string> preset;
  Parameter<std::string> model;
  Parameter<std::string> sphere;
  Parameter<bool> full_sphere;
  Parameter<std::int64_t> sh_order;
  Parameter<double> sm_lambda;
  Parameter<std::string> min_signal;
  Parameter<std::string> interpolate;
  Parameter<bool> amplitudes;
  Parameter<std::string> field_precision;
  Parameter<Length> step_size;
  Parameter<double> max_angle;
  Parameter<double> fa_threshold;
  Parameter<std::string> stop_map;
  Parameter<double> stop_threshold;
  Parameter<std::string> stop_rule;
  Parameter<double> amplitude_cutoff;
  Parameter<double> relative_peak_threshold;
  Parameter<double> min_separation_angle;
  Parameter<bool> all_peaks;
  Parameter<double> pmf_threshold;
  Parameter<double> pmf_threshold_absolute;
  Parameter<std::int64_t> max_directions;
  Parameter<std::string> start;
  Parameter<std::string> directions;
  Parameter<bool> one_sided;
  Parameter<std::string> second_half;
  Parameter<double> angular_weight;
  Parameter<bool> no_refine;
  Parameter<bool> rk4;
  Parameter<std::int64_t> boot_attempts;
  Parameter<std::string> boot_retry;
  Parameter<bool> boot_seed;
  Parameter<Length> ptt_probe_length;
  Parameter<Length> ptt_probe_radius;
  Parameter<std::int64_t> ptt_probe_quality;
  Parameter<std::int64_t> ptt_probe_count;
  Parameter<double> ptt_exponent;
  Parameter<Length> ptt_min_radius;
  Parameter<std::string> ptt_weak;
  Parameter<bool> ptt_weak_links;
  Parameter<std::int64_t> ptt_tries;
  Parameter<std::int64_t> ptt_bound_interval;
  Parameter<std::int64_t> ptt_substeps;

  // Where streamlines begin.
  Parameter<std::string> seed_mask;
  Parameter<std::int64_t> nseeds;
  Parameter<std::string> seed_sphere;
  Parameter<std::int64_t> seeds_per_voxel;
  Parameter<std::string> seed_grid;
  Parameter<std::string> seed_file;
  Parameter<std::string> seed_ends;
  Parameter<std::string> seed_space;
  Parameter<std::uint64_t> seed_seed;

  // Which streamlines are kept, and which seeds a part of the run has.
  Parameter<std::int64_t> select;
  Parameter<std::int64_t> max_seeds;
  Parameter<std::string> seed_range;
  Parameter<std::string> part;
  Parameter<Length> min_length;
  Parameter<Length> max_length;
  Parameter<std::int64_t> min_points;
  Parameter<std::int64_t> max_points;
  Parameter<std::vector<std::string>> include;
  Parameter<std::vector<std::string>> include_ordered;
  Parameter<std::vector<std::string>> exclude;
  Parameter<std::vector<std::string>> stop;

  // How and where the result is stored.
  Parameter<std::string> out;
  Parameter<std::string> output_prefix;
  Parameter<std::string> write_method;
  Parameter<bool> save_seeds;
  Parameter<Length> linearise;
  Parameter<Length> max_segment_length;
  Parameter<bool> keep_partial;

  // Where other values come from, and where it is computed.
  Parameter<std::string> from;
  Parameter<std::string> prepare;
  Parameter<std::string> prepared;
  Parameter<bool> explain;
  Parameter<std::string> cache_dir;
  Parameter<std::string> device;
  Parameter<std::int64_t> ngpus;
  Parameter<std::int64_t> chunk_size;
  Parameter<std::uint64_t> seed;

  // What a caller has in memory in the place of files. A setting that has its array here is given, as `in_memory`.
  GivenArrays arrays;
};

}  // namespace cingulum
