#include "runs/track/track_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "runs/track/track_defaults.hpp"

namespace cingulum {
namespace {

// Defaults by getter are those that tools/track-study chose (docs/design/tractography.md, "The study").
struct TrackTable {
  std::vector<TrackField> rows;

  template <class T>
  void add(Parameter<T> TrackRequest::*member, Phase phase, Argument argument, FieldTraits traits = {}) {
    argument.default_note = default_note(traits);
    rows.push_back({member, phase, std::move(argument), traits});
  }

  // "by getter: boot 30, prob 30, ...": what help says of a default that depends on the getter.
  static std::string default_note(const FieldTraits& traits) {
    const auto& values = traits.default_by_getter;
    if (values.front().empty()) return {};
    if (std::all_of(values.begin(), values.end(), [&](auto value) { return value == values.front(); })) {
      return std::string(values.front());
    }
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < values.size(); ++i) {
      parts.push_back(fmt::format("{} {}", getter_name(getters_of_defaults[i]), values[i]));
    }
    return fmt::format("by getter: {}", fmt::join(parts, ", "));
  }
};

Argument file(std::string name, std::string help) {
  return {.name = std::move(name), .type = ArgumentType::file_in, .help = std::move(help), .metavar = "FILE"};
}

Argument region(std::string name, std::string help) {
  return {.name = std::move(name),
          .type = ArgumentType::text,
          .help = std::move(help) +
                  ": an image whose voxels above zero are the region, or a sphere x,y,z,r in mm of "
                  "world space; may be repeated",
          .metavar = std::string(region_metavar),
          .repeatable = true};
}

Argument flag(std::string name, std::string help) {
  return {.name = std::move(name), .type = ArgumentType::flag, .help = std::move(help)};
}

Argument whole(std::string name, std::string help, double minimum, double maximum, std::string default_text = {}) {
  return {.name = std::move(name),
          .type = ArgumentType::integer,
          .help = std::move(help),
          .range = {.minimum = minimum, .maximum = maximum},
          .default_text = std::move(default_text)};
}

Argument share(std::string name, std::string help, std::string default_text) {
  return {.name = std::move(name),
          .type = ArgumentType::real,
          .help = std::move(help),
          .range = {.minimum = 0, .maximum = 1},
          .default_text = std::move(default_text)};
}

Argument millimetres(std::string name, std::string help, std::string default_text = {}) {
  return {.name = std::move(name),
          .type = ArgumentType::length,
          .help = std::move(help),
          .unit = "mm",
          .range = {.minimum = 0},
          .default_text = std::move(default_text)};
}

Argument choice(std::string name, std::string help, std::vector<std::string> choices, std::string default_text = {}) {
  return {.name = std::move(name),
          .type = ArgumentType::choice,
          .help = std::move(help),
          .default_text = std::move(default_text),
          .choices = std::move(choices)};
}

void add_input_arguments(TrackTable& table) {
  table.add(&TrackRequest::data, Phase::input,
            {.name = "data",
             .type = ArgumentType::file_in,
             .help = "the diffusion series; b-values, b-vectors, mask and seed mask may follow it in this order. "
                     "With no data at all the phantom `brain` is made and tracked",
             .metavar = "DWI",
             .positional = true,
             .repeatable = true},
            {.of_one_series = true});
  table.add(&TrackRequest::bvals, Phase::input,
            file("bvals", "b-values in FSL's layout; unless given DWI's name with .bval"), {.of_one_series = true});
  table.add(&TrackRequest::bvecs, Phase::input,
            file("bvecs", "b-vectors in FSL's layout; unless given DWI's name with .bvec"), {.of_one_series = true});
  table.add(&TrackRequest::grad, Phase::input,
            file("grad", "gradient table of MRtrix3 (x y z b per line), instead of --bvals and --bvecs"),
            {.of_one_series = true});
  table.add(&TrackRequest::bvec_frame, Phase::input,
            choice("bvec-frame",
                   "axes of the b-vectors; unless given fsl, and the run stops when another reading is clearly "
                   "better; auto takes the better one",
                   {"fsl", "voxel", "world", "auto"}));
  table.add(&TrackRequest::b0_threshold, Phase::input,
            {.name = "b0-threshold",
             .type = ArgumentType::real,
             .help = "volumes with b of at most this have no diffusion weighting",
             .unit = "s/mm^2",
             .range = {.minimum = 0},
             .default_text = "50"});
  table.add(&TrackRequest::shell, Phase::field,
            {.name = "shell",
             .type = ArgumentType::real,
             .help = "b-value of the shell to fit; the highest unless given",
             .unit = "s/mm^2",
             .range = {.minimum = 0, .above = true}});
  table.add(&TrackRequest::mask, Phase::input,
            file("mask", "brain mask; unless given one is made by median Otsu and written beside the output"),
            {.of_one_series = true});
  table.add(&TrackRequest::sf, Phase::input,
            file("sf", "track amplitudes: a volume per direction of --sphere, in image axes"), {.of_one_series = true});
  table.add(&TrackRequest::sh, Phase::input,
            file("sh",
                 "track spherical harmonics: of even degrees, or of all degrees (DIPY's full bases, asymmetric "
                 "functions), which the number of volumes tells; the latter are sampled once on the whole sphere"),
            {.of_one_series = true});
  table.add(&TrackRequest::peaks, Phase::input, file("peaks", "track peaks: three volumes each, length = amplitude"),
            {.of_one_series = true});
  table.add(&TrackRequest::tensor, Phase::input, file("tensor", "track tensors: six volumes"), {.of_one_series = true});
  table.add(&TrackRequest::sh_basis, Phase::input,
            choice("sh-basis",
                   "basis of --sh; unless given what its sidecar says, else tournier07 for even degrees and "
                   "descoteaux07-legacy for all degrees",
                   {"tournier07", "descoteaux07", "descoteaux07-legacy"}));
  table.add(&TrackRequest::frame, Phase::input,
            choice("frame",
                   "axes of the directions in --sh, --peaks or --tensor; unless given what the sidecar says, else "
                   "world for MRtrix3's harmonics and tensors and image for others'. Peaks of an image whose axes "
                   "are not those of the world need it, or a sidecar",
                   {"image", "world"}));
  table.add(&TrackRequest::tensor_order, Phase::input,
            choice("tensor-order", "order of the six numbers of --tensor; unless given as in its sidecar, else mrtrix",
                   {"mrtrix", "dipy", "fsl"}));
}

void add_model_arguments(TrackTable& table) {
  table.add(&TrackRequest::dg, Phase::plan,
            choice("dg",
                   "direction getter: residual bootstrap, probabilistic, parallel transport, deterministic (largest "
                   "in the cone), closest peak, principal direction of the tensor",
                   {"boot", "prob", "ptt", "det", "closest", "tensor"}, "ptt"),
            {.makes_field = true});
  table.add(&TrackRequest::preset, Phase::recipe,
            choice("preset",
                   "the options that another tool has by default, for this getter; those given here go before them "
                   "(its defects are not among them)",
                   preset_names()));
  table.add(&TrackRequest::model, Phase::field,
            choice("model", "what is fitted to the series: opdt for boot, dti for tensor, csd for the others",
                   {"default", "opdt", "csa", "csd", "dti"}, "default"));
  table.add(&TrackRequest::sphere, Phase::field,
            {.name = "sphere",
             .type = ArgumentType::text,
             .help = "directions: default (mirror321), small (181), mirror406, mirror501, repulsion724, or a file "
                     "with x y z per line",
             .metavar = sphere_metavar,
             .default_text = "default"});
  table.add(&TrackRequest::full_sphere, Phase::field,
            flag("full-sphere", "directions and their opposites are different: asymmetric ODFs"));
  table.add(&TrackRequest::sh_order, Phase::field,
            whole("sh-order", "degree of the spherical harmonics: 4 for opdt and csa, 8 for csd unless given", 2, 12));
  table.add(&TrackRequest::sm_lambda, Phase::field,
            {.name = "sm-lambda",
             .type = ArgumentType::real,
             .help = "smoothing of opdt and csa (Laplace-Beltrami)",
             .range = {.minimum = 0},
             .default_text = "0.006"});
  table.add(&TrackRequest::min_signal, Phase::field,
            {.name = "min-signal",
             .type = ArgumentType::text,
             .help = "smaller signals count as this: a share of the median b0 in the mask, which acts on opdt, csa, "
                     "boot and the tensors of FA, or a bare number in units of the data (cuslines: 1), which acts "
                     "on opdt, csa and boot (tensors then take 0.0001)",
             .metavar = "X|X%",
             .default_text = "0.1%"});
  add_response_parameters(table.rows);
  table.add(&TrackRequest::interpolate, Phase::field,
            choice("interpolate",
                   "between voxels of csd, opdt, csa or --sh: harmonics, the series being evaluated at every step, or "
                   "amplitudes, sampled once on the sphere and clipped at zero, as cuslines, DIPY and Trekker do",
                   {"harmonics", "amplitudes"}),
            {.default_by_getter = {"harmonics", "harmonics", "amplitudes", "harmonics", "harmonics", "harmonics"}});
  table.add(&TrackRequest::amplitudes, Phase::field, flag("amplitudes", "the same as --interpolate amplitudes"));
  table.add(&TrackRequest::field_precision, Phase::field,
            choice("field-precision",
                   "how the numbers of amplitudes and spherical harmonics are stored: half rounds them once and "
                   "takes half of the memory, with the same result on every device",
                   {"float", "half"}, "float"));
}

void add_tracking_arguments(TrackTable& table) {
  table.add(&TrackRequest::step_size, Phase::plan,
            {.name = "step-size",
             .type = ArgumentType::length,
             .help = "length of a step",
             .unit = "vox",
             .range = {.minimum = 0, .above = true}},
            {.default_by_getter = {"0.5", "0.5", "0.5", "0.5", "0.5", "0.5"}});
  table.add(&TrackRequest::max_angle, Phase::plan,
            {.name = "max-angle",
             .type = ArgumentType::angle,
             .help = "largest angle between steps; of ptt where it is given, else --ptt-min-radius bends it",
             .range = {.minimum = 0, .maximum = 90, .above = true}},
            {.default_by_getter = {"30", "30", "60", "20", "45", "45"}});
  table.add(
      &TrackRequest::fa_threshold, Phase::plan,
      {.name = "fa-threshold", .type = ArgumentType::real, .help = "tracked where the stopping map (FA) is above this"},
      {.makes_field = true, .default_by_getter = {"0.2", "0.2", "0.2", "0.2", "0.2", "0.2"}});
  table.add(&TrackRequest::stop_map, Phase::field, file("stop-map", "any scalar map instead of FA"));
  table.add(&TrackRequest::stop_threshold, Phase::plan,
            {.name = "stop-threshold", .type = ArgumentType::real, .help = "the same as --fa-threshold, for any map"},
            {.makes_field = true});
  table.add(&TrackRequest::stop_rule, Phase::field,
            choice("stop-rule",
                   "what of the stopping map is compared with the threshold: trilinear, the value interpolated at "
                   "the point; nearest, that of the voxel that contains it, as masks and labels want it (ends are "
                   "outside_mask then); auto is nearest for a map that holds only two values",
                   {"auto", "trilinear", "nearest"}, "auto"));
  table.add(&TrackRequest::amplitude_cutoff, Phase::field,
            {.name = "amplitude-cutoff",
             .type = ArgumentType::real,
             .help = "--sh, --sf and --peaks without --stop-map: the greatest amplitude of each voxel is the "
                     "stopping map, and this its threshold and --pmf-threshold-absolute, unless those are given; "
                     "0: tracked wherever the file has numbers. With --stop-map it sets, where it is given, "
                     "--pmf-threshold-absolute alone",
             .range = {.minimum = 0},
             .default_text = "0.1"});
  table.add(
      &TrackRequest::relative_peak_threshold, Phase::plan,
      share("relative-peak-threshold",
            "peaks below this share of the greatest are no initial directions; those of --peaks do not count at all",
            "0.25"),
      {.decides_peaks = true});
  table.add(&TrackRequest::min_separation_angle, Phase::plan,
            {.name = "min-separation-angle",
             .type = ArgumentType::angle,
             .help = "smallest angle between peaks; between those of --peaks where it is given",
             .range = {.minimum = 0, .maximum = 90},
             .default_text = "45"},
            {.decides_peaks = true});
  table.add(&TrackRequest::all_peaks, Phase::field,
            flag("all-peaks", "every peak of --peaks counts, whatever the thresholds of peaks and amplitudes"));
  table.add(&TrackRequest::pmf_threshold, Phase::plan,
            {.name = "pmf-threshold",
             .type = ArgumentType::real,
             .help = "prob, det, ptt: amplitudes below this share of the greatest count as zero",
             .range = {.minimum = 0, .maximum = 1}},
            {.default_by_getter = {"0.1", "0.2", "0.4", "0.1", "0.1", "0.1"}});
  table.add(&TrackRequest::pmf_threshold_absolute, Phase::plan,
            {.name = "pmf-threshold-absolute",
             .type = ArgumentType::real,
             .help = "amplitudes, and peaks of --peaks, below this count as zero",
             .range = {.minimum = 0}},
            {.decides_peaks = true, .default_by_getter = {"0", "0", "0.2", "0", "0", "0"}});
  table.add(&TrackRequest::max_directions, Phase::plan,
            (whole("max-directions", "initial directions per seed, the strongest; 32 is all", 1, 32)),
            {.default_by_getter = {"32", "1", "32", "1", "32", "32"}});
  table.add(&TrackRequest::start, Phase::plan,
            choice("start",
                   "initial directions of a seed: its peaks, or one that is drawn in proportion to the amplitudes "
                   "there, as Trekker and iFOD do; prob, ptt, det and closest",
                   {"peaks", "drawn"}, "peaks"));
  table.add(&TrackRequest::directions, Phase::seeds,
            file("directions", "initial direction of each seed, one x y z per line, in the axes of --seed-space"),
            {.whole_run = true, .of_one_series = true});
  table.add(&TrackRequest::one_sided, Phase::plan, flag("one-sided", "track along the initial direction only"));
  table.add(&TrackRequest::second_half, Phase::plan,
            choice("second-half",
                   "what the half on the other side of the seed starts against: the first step of the first half, so "
                   "that --max-angle holds at the seed, too (DIPY), or the initial direction; ptt's halves share a "
                   "tangent",
                   {"first-step", "initial-direction"}, "first-step"));
  table.add(
      &TrackRequest::angular_weight, Phase::plan,
      share("angular-weight", "w: amplitudes count (1 - w) + w |cos| of the angle to the direction of travel", "0"));
  table.add(
      &TrackRequest::no_refine, Phase::plan,
      flag("no-refine", "det from spherical harmonics: directions of the sphere, without refinement between them"));
  table.add(&TrackRequest::rk4, Phase::plan, flag("rk4", "tensor: fourth-order Runge-Kutta steps"));
  table.add(&TrackRequest::boot_attempts, Phase::plan,
            whole("boot-attempts", "boot: samples per step at most", 1, 65535, "5"));
  table.add(&TrackRequest::boot_retry, Phase::plan,
            choice("boot-retry",
                   "boot: another sample when the last had no peak (DIPY), or also when its nearest peak was out of "
                   "the cone (cuslines)",
                   {"no-peak", "no-peak-or-angle"}, "no-peak-or-angle"));
  table.add(&TrackRequest::boot_seed, Phase::plan, flag("boot-seed", "boot: resample at the seed, too"));
  table.add(&TrackRequest::ptt_probe_length, Phase::plan,
            millimetres("ptt-probe-length", "ptt: length of the probe", "2vox"));
  table.add(&TrackRequest::ptt_probe_radius, Phase::plan,
            millimetres("ptt-probe-radius", "ptt: radius of the circle of probes", "0"));
  table.add(&TrackRequest::ptt_probe_quality, Phase::plan,
            whole("ptt-probe-quality", "ptt: points along a probe, its beginning counted", 2, 64, "7"));
  table.add(&TrackRequest::ptt_probe_count, Phase::plan,
            whole("ptt-probe-count", "ptt: probes on the circle", 1, 64, "1"));
  table.add(&TrackRequest::ptt_exponent, Phase::plan,
            {.name = "ptt-exponent",
             .type = ArgumentType::real,
             .help = "ptt: support is the mean amplitude along the probe to this power",
             .range = {.minimum = 0, .above = true},
             .default_text = "1"});
  table.add(&TrackRequest::ptt_min_radius, Phase::plan,
            millimetres("ptt-min-radius",
                        "ptt: smallest radius of curvature; 0: that on which a step turns by --max-angle, which is "
                        "meant, too, where --max-angle is given and this is not",
                        "2vox"));
  table.add(&TrackRequest::ptt_weak, Phase::plan,
            choice("ptt-weak", "ptt: amplitudes below the threshold along a probe count, or end it", {"count", "end"},
                   "count"));
  table.add(&TrackRequest::ptt_weak_links, Phase::plan, flag("ptt-weak-links", "the same as --ptt-weak count"));
  table.add(&TrackRequest::ptt_tries, Phase::plan,
            whole("ptt-tries", "ptt: candidates per internal step", 1, 65535, "1000"));
  table.add(&TrackRequest::ptt_bound_interval, Phase::plan,
            whole("ptt-bound-interval",
                  "ptt: arcs from one estimate of the largest support, by which candidates are accepted, to the "
                  "next",
                  1, 1000, "16"));
  table.add(&TrackRequest::ptt_substeps, Phase::plan,
            whole("ptt-substeps", "ptt: arcs per step; 1 as DIPY, 20 as Trekker and cuslines", 1, 1000, "1"));
}

void add_seed_arguments(TrackTable& table) {
  table.add(&TrackRequest::seed_mask, Phase::seeds,
            file("seed-mask", "where seeds lie; unless given in the mask where the stopping map passes"),
            {.whole_run = true});
  table.add(&TrackRequest::nseeds, Phase::seeds,
            whole("nseeds", "seeds at random places of the seed mask or of --seed-sphere", 1, 4294967296.0, "100000"));
  table.add(&TrackRequest::seed_sphere, Phase::seeds,
            {.name = "seed-sphere",
             .type = ArgumentType::text,
             .help = "seeds at random places of this ball, x,y,z,r in mm of world space, instead of the seed mask; "
                     "those where nothing is tracked count as outside",
             .metavar = "SPHERE"});
  table.add(&TrackRequest::seeds_per_voxel, Phase::seeds,
            whole("seeds-per-voxel", "seeds at random places in every voxel of the seed mask", 1, 4294967296.0),
            {.whole_run = true});
  table.add(&TrackRequest::seed_grid, Phase::seeds,
            {.name = "seed-grid",
             .type = ArgumentType::text,
             .help = "seeds on a grid in every voxel of the seed mask: 2 for 2 x 2 x 2, or 2x2x1",
             .metavar = "N"},
            {.whole_run = true});
  table.add(&TrackRequest::seed_file, Phase::seeds, file("seed-file", "seeds from a text file, one x y z per line"),
            {.whole_run = true, .of_one_series = true});
  table.add(&TrackRequest::seed_ends, Phase::seeds,
            file("seed-ends", "seeds at both ends of the streamlines of a tractogram"),
            {.whole_run = true, .of_one_series = true});
  table.add(&TrackRequest::seed_space, Phase::seeds,
            choice("seed-space", "space of --seed-file and --directions", {"world", "voxel"}, "world"),
            {.whole_run = true});
  table.add(&TrackRequest::seed_seed, Phase::seeds,
            {.name = "seed-seed",
             .type = ArgumentType::key,
             .help = "key of the random places of seeds; that of --seed unless given",
             .metavar = "KEY"});
}

void add_selection_arguments(TrackTable& table) {
  table.add(&TrackRequest::select, Phase::selection,
            whole("select", "keep this many: seeds are drawn until so many streamlines are kept", 1, 4294967296.0),
            {.whole_run = true});
  table.add(&TrackRequest::max_seeds, Phase::selection,
            whole("max-seeds", "with --select: seeds at most; 1000 times --select unless given", 1, 4294967296.0),
            {.whole_run = true});
  table.add(&TrackRequest::seed_range, Phase::machine,
            {.name = "seed-range",
             .type = ArgumentType::text,
             .help = "a part of the run: the seeds from A to before B, counted from 0; `cingulum merge` joins parts",
             .metavar = "A:B"},
            {.of_one_series = true});
  table.add(&TrackRequest::part, Phase::machine,
            {.name = "part",
             .type = ArgumentType::text,
             .help = "the same: part I of N, from 1 on, as equal as whole seeds allow",
             .metavar = "I/N"},
            {.of_one_series = true});
  table.add(&TrackRequest::min_length, Phase::selection,
            millimetres("min-length", "shorter streamlines are left out", "2"));
  table.add(&TrackRequest::max_length, Phase::selection,
            millimetres("max-length", "longer streamlines are left out; a half ends there", "500"));
  table.add(&TrackRequest::min_points, Phase::selection,
            whole("min-points", "streamlines with fewer points are left out; counted before --linearise, cut at --stop",
                  0, 4294967296.0));
  table.add(
      &TrackRequest::max_points, Phase::selection,
      whole("max-points", "streamlines with more points are left out; counted as --min-points does", 1, 4294967296.0));
  table.add(&TrackRequest::include, Phase::selection,
            region("include", "streamlines that do not meet it are left out"));
  table.add(&TrackRequest::include_ordered, Phase::selection,
            region("include-ordered", "as --include, and all of these in the order given (from either end)"));
  table.add(&TrackRequest::exclude, Phase::selection, region("exclude", "streamlines that meet it are left out"));
  table.add(&TrackRequest::stop, Phase::selection,
            region("stop", "streamlines end where they enter it; the segment that enters is kept"));
}

void add_output_arguments(TrackTable& table) {
  table.add(&TrackRequest::out, Phase::destination,
            {.name = "out",
             .type = ArgumentType::file_out,
             .help = "tractogram to write, by its extension: .trx, .trk or .tck; tracks.trx unless given here or by "
                     "--output-prefix",
             .metavar = "FILE",
             .letter = 'o'},
            {.of_one_series = true});
  table.add(&TrackRequest::output_prefix, Phase::destination,
            {.name = "output-prefix",
             .type = ArgumentType::text,
             .help = "the output is PREFIX.trx, PREFIX.trk or PREFIX.tck",
             .metavar = "PREFIX"},
            {.of_one_series = true});
  table.add(&TrackRequest::write_method, Phase::destination,
            choice("write-method", "format with --output-prefix", {"trx", "trk", "tck"}, "trx"),
            {.of_one_series = true});
  table.add(&TrackRequest::save_seeds, Phase::output,
            flag("save-seeds", "write seed_index, seed_point and end_reason of every streamline (TRX)"));
  add_layout_parameters(table.rows);
  table.add(&TrackRequest::linearise, Phase::output,
            millimetres("linearise", "leave out points that lie within this of the line between those that stay"));
  table.add(&TrackRequest::max_segment_length, Phase::output,
            {.name = "max-segment-length",
             .type = ArgumentType::length,
             .help = "the longest segment that --linearise makes",
             .unit = "mm",
             .range = {.minimum = 0, .above = true},
             .default_text = "10"});
  table.add(&TrackRequest::keep_partial, Phase::machine,
            flag("keep-partial", "on Ctrl-C keep a valid file of the seeds that were finished"),
            {.of_one_series = true});
  table.add(&TrackRequest::from, Phase::recipe,
            file("from", "repeat the run of a sidecar (FILE.trx.json); options given beside it take precedence"),
            {.of_one_series = true});
  table.add(&TrackRequest::prepare, Phase::destination,
            {.name = "prepare",
             .type = ArgumentType::text,
             .help = "make the fit alone and write it, with all that a run needs, for --prepared",
             .metavar = "FILE.fit"},
            {.of_one_series = true});
  table.add(&TrackRequest::prepared, Phase::recipe,
            file("prepared",
                 "track from such a file, here or elsewhere: options, inputs and field are those of the run that "
                 "made it; options given beside it take precedence unless they decide the field"),
            {.of_one_series = true});
  table.add(&TrackRequest::explain, Phase::machine,
            flag("explain",
                 "say what the run would take and give, and do nothing: a bound on memory, and the points, bytes "
                 "and seconds of a core that are to be expected; --json for schedulers"));
  table.add(&TrackRequest::cache_dir, Phase::machine,
            {.name = "cache-dir",
             .type = ArgumentType::text,
             .help = "folder in which fits of series are kept and looked for, by the hashes of the inputs and all "
                     "parameters; and the phantom of a run without data, which is beside the output unless given",
             .metavar = "FOLDER"},
            {.makes_field = true});
  table.add(&TrackRequest::device, Phase::machine,
            {.name = "device",
             .type = ArgumentType::text,
             .help = "where to track: auto, cpu (or numba, its name in cuslines), cuda, cuda:N, webgpu, metal, "
                     "gpu, or a list of these "
                     "that share the seeds; the result is the same",
             .metavar = "DEVICE",
             .default_text = "auto"},
            {.makes_field = true});
  table.add(&TrackRequest::ngpus, Phase::machine,
            whole("ngpus", "number of GPUs that share the seeds; the CPU does not look at it", 1, 64, "1"));
  table.add(&TrackRequest::chunk_size, Phase::machine,
            whole("chunk-size", "seeds tracked at a time, at most; the result does not depend on it", 1, 1e9, "25000"));
}

}  // namespace

RequestTable<TrackRequest> track_fields() {
  static const std::vector<TrackField> rows = [] {
    TrackTable table;
    add_input_arguments(table);
    add_model_arguments(table);
    add_tracking_arguments(table);
    add_seed_arguments(table);
    add_selection_arguments(table);
    add_output_arguments(table);
    table.add(&TrackRequest::seed, Phase::seeds, seed_argument());
    return std::move(table.rows);
  }();
  return rows;
}

std::vector<Argument> track_arguments() {
  std::vector<Argument> arguments;
  for (const TrackField& field : track_fields()) arguments.push_back(field.argument);
  return arguments;
}

}  // namespace cingulum
