#include "cli/track_arguments.hpp"

#include <utility>

#include "cli/layout_arguments.hpp"
#include "cli/response_arguments.hpp"
#include "cli/track_defaults.hpp"

namespace cingulum {
namespace {

Argument file(std::string name, std::string help) {
  return {.name = std::move(name), .type = ArgumentType::file_in, .help = std::move(help), .metavar = "FILE"};
}

Argument region(std::string name, std::string help) {
  return {.name = std::move(name),
          .type = ArgumentType::text,
          .help = std::move(help) +
                  ": an image whose voxels above zero are the region, or a sphere x,y,z,r in mm of "
                  "world space; may be repeated",
          .metavar = "REGION",
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

void add_input_arguments(std::vector<Argument>& list) {
  list.push_back({.name = "data",
                  .type = ArgumentType::file_in,
                  .help = "the diffusion series; b-values, b-vectors, mask and seed mask may follow it in this order. "
                          "With no data at all the phantom `brain` is made and tracked",
                  .metavar = "DWI",
                  .positional = true,
                  .repeatable = true});
  list.push_back(file("bvals", "b-values in FSL's layout; unless given DWI's name with .bval"));
  list.push_back(file("bvecs", "b-vectors in FSL's layout; unless given DWI's name with .bvec"));
  list.push_back(file("grad", "gradient table of MRtrix3 (x y z b per line), instead of --bvals and --bvecs"));
  list.push_back(choice("bvec-frame",
                        "axes of the b-vectors; unless given fsl, and the run stops when another reading is clearly "
                        "better; auto takes the better one",
                        {"fsl", "voxel", "world", "auto"}));
  list.push_back({.name = "b0-threshold",
                  .type = ArgumentType::real,
                  .help = "volumes with b of at most this have no diffusion weighting",
                  .unit = "s/mm^2",
                  .range = {.minimum = 0},
                  .default_text = "50"});
  list.push_back({.name = "shell",
                  .type = ArgumentType::real,
                  .help = "b-value of the shell to fit; the highest unless given",
                  .unit = "s/mm^2",
                  .range = {.minimum = 0, .above = true}});
  list.push_back(file("mask", "brain mask; unless given one is made by median Otsu and written beside the output"));
  list.push_back(file("sf", "track amplitudes: a volume per direction of --sphere, in image axes"));
  list.push_back(
      file("sh",
           "track spherical harmonics: of even degrees, or of all degrees (DIPY's full bases, asymmetric "
           "functions), which the number of volumes tells; the latter are sampled once on the whole sphere"));
  list.push_back(file("peaks", "track peaks: three volumes each, length = amplitude"));
  list.push_back(file("tensor", "track tensors: six volumes"));
  list.push_back(choice("sh-basis",
                        "basis of --sh; unless given what its sidecar says, else tournier07 for even degrees and "
                        "descoteaux07-legacy for all degrees",
                        {"tournier07", "descoteaux07", "descoteaux07-legacy"}));
  list.push_back(choice("frame",
                        "axes of the directions in --sh, --peaks or --tensor; unless given what the sidecar says, else "
                        "world for MRtrix3's harmonics and tensors and image for others'. Peaks of an image whose axes "
                        "are not those of the world need it, or a sidecar",
                        {"image", "world"}));
  list.push_back(choice("tensor-order",
                        "order of the six numbers of --tensor; unless given as in its sidecar, else mrtrix",
                        {"mrtrix", "dipy", "fsl"}));
}

void add_model_arguments(std::vector<Argument>& list) {
  list.push_back(
      choice("dg",
             "direction getter: residual bootstrap, probabilistic, parallel transport, deterministic (largest "
             "in the cone), closest peak, principal direction of the tensor",
             {"boot", "prob", "ptt", "det", "closest", "tensor"}, "ptt"));
  list.push_back(
      choice("preset",
             "the options that another tool has by default, for this getter; those given here go before them "
             "(its defects are not among them)",
             preset_names()));
  list.push_back(choice("model", "what is fitted to the series: opdt for boot, dti for tensor, csd for the others",
                        {"default", "opdt", "csa", "csd", "dti"}, "default"));
  list.push_back({.name = "sphere",
                  .type = ArgumentType::text,
                  .help = "directions: default (mirror321), small (181), mirror406, mirror501, repulsion724, or a file "
                          "with x y z per line",
                  .metavar = "NAME",
                  .default_text = "default"});
  list.push_back(flag("full-sphere", "directions and their opposites are different: asymmetric ODFs"));
  list.push_back(
      whole("sh-order", "degree of the spherical harmonics: 4 for opdt and csa, 8 for csd unless given", 2, 12));
  list.push_back({.name = "sm-lambda",
                  .type = ArgumentType::real,
                  .help = "smoothing of opdt and csa (Laplace-Beltrami)",
                  .range = {.minimum = 0},
                  .default_text = "0.006"});
  list.push_back({.name = "min-signal",
                  .type = ArgumentType::text,
                  .help =
                      "smaller signals count as this: a share of the median b0 in the mask, which acts on opdt, csa, "
                      "boot and the tensors of FA, or a bare number in units of the data (cuslines: 1), which acts "
                      "on opdt, csa and boot (tensors then take 0.0001)",
                  .metavar = "X|X%",
                  .default_text = "0.1%"});
  for (Argument& argument : response_arguments()) list.push_back(std::move(argument));
  Argument interpolate =
      choice("interpolate",
             "between voxels of csd, opdt, csa or --sh: harmonics, the series being evaluated at every step, or "
             "amplitudes, sampled once on the sphere and clipped at zero, as cuslines, DIPY and Trekker do",
             {"harmonics", "amplitudes"});
  interpolate.default_note = default_by_getter("interpolate");
  list.push_back(std::move(interpolate));
  list.push_back(flag("amplitudes", "the same as --interpolate amplitudes"));
  list.push_back(choice("field-precision",
                        "how the numbers of amplitudes and spherical harmonics are stored: half rounds them once and "
                        "takes half of the memory, with the same result on every device",
                        {"float", "half"}, "float"));
}

void add_tracking_arguments(std::vector<Argument>& list) {
  list.push_back({.name = "step-size",
                  .type = ArgumentType::length,
                  .help = "length of a step",
                  .unit = "vox",
                  .range = {.minimum = 0, .above = true},
                  .default_note = default_by_getter("step-size")});
  list.push_back({.name = "max-angle",
                  .type = ArgumentType::angle,
                  .help = "largest angle between steps; of ptt where it is given, else --ptt-min-radius bends it",
                  .range = {.minimum = 0, .maximum = 90, .above = true},
                  .default_note = default_by_getter("max-angle")});
  list.push_back({.name = "fa-threshold",
                  .type = ArgumentType::real,
                  .help = "tracked where the stopping map (FA) is above this",
                  .default_note = default_by_getter("fa-threshold")});
  list.push_back(file("stop-map", "any scalar map instead of FA"));
  list.push_back(
      {.name = "stop-threshold", .type = ArgumentType::real, .help = "the same as --fa-threshold, for any map"});
  list.push_back(choice("stop-rule",
                        "what of the stopping map is compared with the threshold: trilinear, the value interpolated at "
                        "the point; nearest, that of the voxel that contains it, as masks and labels want it (ends are "
                        "outside_mask then); auto is nearest for a map that holds only two values",
                        {"auto", "trilinear", "nearest"}, "auto"));
  list.push_back({.name = "amplitude-cutoff",
                  .type = ArgumentType::real,
                  .help = "--sh, --sf and --peaks without --stop-map: the greatest amplitude of each voxel is the "
                          "stopping map, and this its threshold and --pmf-threshold-absolute, unless those are given; "
                          "0: tracked wherever the file has numbers. With --stop-map it sets, where it is given, "
                          "--pmf-threshold-absolute alone",
                  .range = {.minimum = 0},
                  .default_text = "0.1"});
  list.push_back(
      share("relative-peak-threshold",
            "peaks below this share of the greatest are no initial directions; those of --peaks do not count at all",
            "0.25"));
  list.push_back({.name = "min-separation-angle",
                  .type = ArgumentType::angle,
                  .help = "smallest angle between peaks; between those of --peaks where it is given",
                  .range = {.minimum = 0, .maximum = 90},
                  .default_text = "45"});
  list.push_back(flag("all-peaks", "every peak of --peaks counts, whatever the thresholds of peaks and amplitudes"));
  list.push_back({.name = "pmf-threshold",
                  .type = ArgumentType::real,
                  .help = "prob, det, ptt: amplitudes below this share of the greatest count as zero",
                  .range = {.minimum = 0, .maximum = 1},
                  .default_note = default_by_getter("pmf-threshold")});
  list.push_back({.name = "pmf-threshold-absolute",
                  .type = ArgumentType::real,
                  .help = "amplitudes, and peaks of --peaks, below this count as zero",
                  .range = {.minimum = 0},
                  .default_note = default_by_getter("pmf-threshold-absolute")});
  Argument max_directions = whole("max-directions", "initial directions per seed, the strongest; 32 is all", 1, 32);
  max_directions.default_note = default_by_getter("max-directions");
  list.push_back(std::move(max_directions));
  list.push_back(choice("start",
                        "initial directions of a seed: its peaks, or one that is drawn in proportion to the amplitudes "
                        "there, as Trekker and iFOD do; prob, ptt, det and closest",
                        {"peaks", "drawn"}, "peaks"));
  list.push_back(file("directions", "initial direction of each seed, one x y z per line, in the axes of --seed-space"));
  list.push_back(flag("one-sided", "track along the initial direction only"));
  list.push_back(
      choice("second-half",
             "what the half on the other side of the seed starts against: the first step of the first half, so "
             "that --max-angle holds at the seed, too (DIPY), or the initial direction; ptt's halves share a "
             "tangent",
             {"first-step", "initial-direction"}, "first-step"));
  list.push_back(
      share("angular-weight", "w: amplitudes count (1 - w) + w |cos| of the angle to the direction of travel", "0"));
  list.push_back(
      flag("no-refine", "det from spherical harmonics: directions of the sphere, without refinement between them"));
  list.push_back(flag("rk4", "tensor: fourth-order Runge-Kutta steps"));
  list.push_back(whole("boot-attempts", "boot: samples per step at most", 1, 65535, "5"));
  list.push_back(
      choice("boot-retry",
             "boot: another sample when the last had no peak (DIPY), or also when its nearest peak was out of "
             "the cone (cuslines)",
             {"no-peak", "no-peak-or-angle"}, "no-peak-or-angle"));
  list.push_back(flag("boot-seed", "boot: resample at the seed, too"));
  list.push_back(millimetres("ptt-probe-length", "ptt: length of the probe", "2vox"));
  list.push_back(millimetres("ptt-probe-radius", "ptt: radius of the circle of probes", "0"));
  list.push_back(whole("ptt-probe-quality", "ptt: points along a probe, its beginning counted", 2, 64, "7"));
  list.push_back(whole("ptt-probe-count", "ptt: probes on the circle", 1, 64, "1"));
  list.push_back({.name = "ptt-exponent",
                  .type = ArgumentType::real,
                  .help = "ptt: support is the mean amplitude along the probe to this power",
                  .range = {.minimum = 0, .above = true},
                  .default_text = "1"});
  list.push_back(
      millimetres("ptt-min-radius",
                  "ptt: smallest radius of curvature; 0: that on which a step turns by --max-angle, which is "
                  "meant, too, where --max-angle is given and this is not",
                  "2vox"));
  list.push_back(choice("ptt-weak", "ptt: amplitudes below the threshold along a probe count, or end it",
                        {"count", "end"}, "count"));
  list.push_back(flag("ptt-weak-links", "the same as --ptt-weak count"));
  list.push_back(whole("ptt-tries", "ptt: candidates per internal step", 1, 65535, "1000"));
  list.push_back(whole("ptt-bound-interval",
                       "ptt: arcs from one estimate of the largest support, by which candidates are accepted, to the "
                       "next",
                       1, 1000, "16"));
  list.push_back(whole("ptt-substeps", "ptt: arcs per step; 1 as DIPY, 20 as Trekker and cuslines", 1, 1000, "1"));
}

void add_seed_arguments(std::vector<Argument>& list) {
  list.push_back(file("seed-mask", "where seeds lie; unless given in the mask where the stopping map passes"));
  list.push_back(
      whole("nseeds", "seeds at random places of the seed mask or of --seed-sphere", 1, 4294967296.0, "100000"));
  list.push_back({.name = "seed-sphere",
                  .type = ArgumentType::text,
                  .help =
                      "seeds at random places of this ball, x,y,z,r in mm of world space, instead of the seed mask; "
                      "those where nothing is tracked count as outside",
                  .metavar = "SPHERE"});
  list.push_back(whole("seeds-per-voxel", "seeds at random places in every voxel of the seed mask", 1, 4294967296.0));
  list.push_back({.name = "seed-grid",
                  .type = ArgumentType::text,
                  .help = "seeds on a grid in every voxel of the seed mask: 2 for 2 x 2 x 2, or 2x2x1",
                  .metavar = "N"});
  list.push_back(file("seed-file", "seeds from a text file, one x y z per line"));
  list.push_back(file("seed-ends", "seeds at both ends of the streamlines of a tractogram"));
  list.push_back(choice("seed-space", "space of --seed-file and --directions", {"world", "voxel"}, "world"));
  list.push_back({.name = "seed-seed",
                  .type = ArgumentType::key,
                  .help = "key of the random places of seeds; that of --seed unless given",
                  .metavar = "KEY"});
}

void add_selection_arguments(std::vector<Argument>& list) {
  list.push_back(
      whole("select", "keep this many: seeds are drawn until so many streamlines are kept", 1, 4294967296.0));
  list.push_back(whole("max-seeds", "with --select: seeds at most; 1000 times --select unless given", 1, 4294967296.0));
  list.push_back(
      {.name = "seed-range",
       .type = ArgumentType::text,
       .help = "a part of the run: the seeds from A to before B, counted from 0; `cingulum merge` joins parts",
       .metavar = "A:B"});
  list.push_back({.name = "part",
                  .type = ArgumentType::text,
                  .help = "the same: part I of N, from 1 on, as equal as whole seeds allow",
                  .metavar = "I/N"});
  list.push_back(millimetres("min-length", "shorter streamlines are left out", "2"));
  list.push_back(millimetres("max-length", "longer streamlines are left out; a half ends there", "500"));
  list.push_back(whole("min-points",
                       "streamlines with fewer points are left out; counted before --linearise, cut at --stop", 0,
                       4294967296.0));
  list.push_back(
      whole("max-points", "streamlines with more points are left out; counted as --min-points does", 1, 4294967296.0));
  list.push_back(region("include", "streamlines that do not meet it are left out"));
  list.push_back(region("include-ordered", "as --include, and all of these in the order given (from either end)"));
  list.push_back(region("exclude", "streamlines that meet it are left out"));
  list.push_back(region("stop", "streamlines end where they enter it; the segment that enters is kept"));
}

void add_output_arguments(std::vector<Argument>& list) {
  list.push_back({.name = "out",
                  .type = ArgumentType::file_out,
                  .help =
                      "tractogram to write, by its extension: .trx, .trk or .tck; tracks.trx unless given here or by "
                      "--output-prefix",
                  .metavar = "FILE",
                  .letter = 'o'});
  list.push_back({.name = "output-prefix",
                  .type = ArgumentType::text,
                  .help = "the output is PREFIX.trx, PREFIX.trk or PREFIX.tck",
                  .metavar = "PREFIX"});
  list.push_back(choice("write-method", "format with --output-prefix", {"trx", "trk", "tck"}, "trx"));
  list.push_back(flag("save-seeds", "write seed_index, seed_point and end_reason of every streamline (TRX)"));
  for (Argument& argument : layout_arguments()) list.push_back(std::move(argument));
  list.push_back(millimetres("linearise", "leave out points that lie within this of the line between those that stay"));
  list.push_back({.name = "max-segment-length",
                  .type = ArgumentType::length,
                  .help = "the longest segment that --linearise makes",
                  .unit = "mm",
                  .range = {.minimum = 0, .above = true},
                  .default_text = "10"});
  list.push_back(flag("keep-partial", "on Ctrl-C keep a valid file of the seeds that were finished"));
  list.push_back(file("from", "repeat the run of a sidecar (FILE.trx.json); options given beside it take precedence"));
  list.push_back({.name = "prepare",
                  .type = ArgumentType::text,
                  .help = "make the fit alone and write it, with all that a run needs, for --prepared",
                  .metavar = "FILE.fit"});
  list.push_back(file("prepared",
                      "track from such a file, here or elsewhere: options, inputs and field are those of the run that "
                      "made it; options given beside it take precedence unless they decide the field"));
  list.push_back(flag("explain",
                      "say what the run would take and give, and do nothing: a bound on memory, and the points, bytes "
                      "and seconds of a core that are to be expected; --json for schedulers"));
  list.push_back({.name = "cache-dir",
                  .type = ArgumentType::text,
                  .help = "folder in which fits of series are kept and looked for, by the hashes of the inputs and all "
                          "parameters; and the phantom of a run without data, which is beside the output unless given",
                  .metavar = "FOLDER"});
  list.push_back({.name = "device",
                  .type = ArgumentType::text,
                  .help = "where to track: auto, cpu (or numba, its name in cuslines), cuda, cuda:N, webgpu, metal, "
                          "gpu, or a list of these "
                          "that share the seeds; the result is the same",
                  .metavar = "DEVICE",
                  .default_text = "auto"});
  list.push_back(whole("ngpus", "number of GPUs that share the seeds; the CPU does not look at it", 1, 64, "1"));
  list.push_back(
      whole("chunk-size", "seeds tracked at a time, at most; the result does not depend on it", 1, 1e9, "25000"));
}

}  // namespace

std::vector<Argument> track_arguments() {
  std::vector<Argument> list;
  add_input_arguments(list);
  add_model_arguments(list);
  add_tracking_arguments(list);
  add_seed_arguments(list);
  add_selection_arguments(list);
  add_output_arguments(list);
  return list;
}

}  // namespace cingulum
