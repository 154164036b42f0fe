// `cingulum phantom`: a diffusion series of bundles whose geometry is known exactly.
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/verb.hpp"
#include "dmri/phantom/phantom_files.hpp"
#include "formats/gradient_table.hpp"

namespace cingulum {

Verb phantom_verb();

namespace {

using Json = nlohmann::ordered_json;

// Numbers separated by `separator`; "2" alone stands for three where three are asked for.
Result<std::vector<double>> numbers(const std::string& option, std::string_view text, char separator) {
  std::vector<double> values;
  std::string_view rest = text;
  while (true) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    const std::string_view word = rest.substr(0, end);
    double value = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size()) {
      return fail(ErrorKind::invalid_argument, "--{} '{}': '{}' is not a number", option, text, word);
    }
    values.push_back(value);
    if (end == rest.size()) return values;
    rest.remove_prefix(end + 1);
  }
}

Result<std::array<double, 3>> triple(const std::string& option, const std::string& text, char separator) {
  CGL_TRY_ASSIGN(std::vector<double> values, numbers(option, text, separator));
  if (values.size() == 1 && separator == 'x') values.resize(3, values[0]);
  if (values.size() != 3) {
    return fail(ErrorKind::invalid_argument, "--{} '{}': three numbers are needed", option, text);
  }
  return std::array<double, 3>{values[0], values[1], values[2]};
}

Result<PhantomScheme> scheme_from_files(const ParsedArguments& arguments, const ImageGeometry& geometry) {
  CGL_TRY_ASSIGN(const GradientTable table, read_fsl_gradients(arguments.text("bvals"), arguments.text("bvecs")));
  for (const std::string& warning : table.warnings) log_warning("{}", warning);
  const Affine& affine = geometry.voxel_to_world;
  const auto edges = geometry.voxel_mm();
  PhantomScheme scheme;
  scheme.name = "files";
  scheme.b_values = table.b_values;
  for (const numerics::Vec3d& d : directions_in_image_axes(table, GradientFrame::fsl, affine)) {
    scheme.directions.push_back(affine.rotate({d.x / edges[0], d.y / edges[1], d.z / edges[2]}));
  }
  return scheme;
}

Result<PhantomScheme> choose_scheme(const ParsedArguments& arguments, const PhantomRequest& request) {
  const bool files = arguments.given("bvals") || arguments.given("bvecs");
  const bool shells = arguments.given("directions") || arguments.given("b-values") || arguments.given("b0");
  if (int(files) + int(shells) + int(arguments.given("scheme")) > 1) {
    return fail(ErrorKind::invalid_argument,
                "--scheme, --directions with --b-values, and --bvals with --bvecs exclude each other");
  }
  if (files) {
    if (!arguments.given("bvals") || !arguments.given("bvecs")) {
      return fail(ErrorKind::invalid_argument, "--bvals and --bvecs are given together");
    }
    CGL_TRY_ASSIGN(const PhantomGrid grid, phantom_grid(request.model.extent_mm, request.grid));
    return scheme_from_files(arguments, grid.stored);
  }
  if (shells) {
    if (!arguments.given("directions") || !arguments.given("b-values")) {
      return fail(ErrorKind::invalid_argument, "--directions and --b-values are given together");
    }
    CGL_TRY_ASSIGN(const std::vector<double> b_values, numbers("b-values", arguments.text("b-values"), ','));
    const int b0 = arguments.given("b0") ? static_cast<int>(arguments.integer("b0")) : -1;
    return shell_scheme(static_cast<int>(arguments.integer("directions")), b_values, b0);
  }
  return named_scheme(arguments.given("scheme") ? arguments.text("scheme") : request.model.scheme);
}

Result<double> parse_snr(const std::string& text) {
  if (text == "inf") return 0.0;
  CGL_TRY_ASSIGN(const std::vector<double> values, numbers("snr", text, ','));
  if (values.size() != 1 || !(values[0] >= 0.5 && values[0] <= 1e6)) {
    return fail(ErrorKind::invalid_argument, "--snr '{}': accepted is 'inf' or a number from 0.5 to 1000000", text);
  }
  return values[0];
}

Status run_phantom(const ParsedArguments& arguments, VerbContext& context) {
  PhantomRequest request;
  CGL_TRY_ASSIGN(request.model, phantom_preset(arguments.text("preset"), {.angle_deg = arguments.real("angle"),
                                                                          .gap_mm = arguments.length("gap").value}));
  const std::string voxel =
      arguments.given("voxel-size") ? arguments.text("voxel-size") : fmt::format("{}", request.model.voxel_mm);
  CGL_TRY_ASSIGN(request.grid.voxel_mm, triple("voxel-size", voxel, 'x'));
  CGL_TRY_ASSIGN(request.grid.rotate_deg, triple("rotate", arguments.text("rotate"), ','));
  request.grid.orientation = arguments.text("orientation");
  CGL_TRY_ASSIGN(request.snr, parse_snr(arguments.text("snr")));
  request.seed = context.common().seed;
  request.subsamples = static_cast<int>(arguments.integer("subsamples"));
  request.truth_fibres = static_cast<int>(arguments.integer("truth-fibres"));
  const std::string& type = arguments.text("type");
  request.type = type == "int16" ? SeriesType::int16 : type == "float32" ? SeriesType::float32 : SeriesType::automatic;
  CGL_TRY_ASSIGN(request.scheme, choose_scheme(arguments, request));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(const PhantomSummary summary, write_phantom(request, arguments.text("out"), context.write_options(),
                                                             *pool, context.progress_options()));
  const auto& size = summary.geometry.size;
  if (context.common().json) {
    const Json json = {{"folder", arguments.text("out")},
                       {"preset", request.model.preset},
                       {"size", size},
                       {"volumes", summary.volumes},
                       {"bundle_count", summary.bundles},
                       {"fibre_count", summary.fibres},
                       {"white_matter", summary.white_share},
                       {"tissue", summary.brain_share},
                       {"crossings", summary.crossing_share},
                       {"bytes", summary.bytes}};
    context.print(json_text(json));
    return {};
  }
  context.print_format("{}: {}\n", arguments.text("out"), request.model.meaning);
  context.print_format("{} x {} x {} voxels ({}), {} volumes ({}), {} bundles, {} true fibres, {}\n", size[0], size[1],
                       size[2], summary.geometry.axis_codes(), summary.volumes, request.scheme.name, summary.bundles,
                       summary.fibres, format_bytes(summary.bytes));
  context.print_format(
      "white matter {:.1f} % of the box, all tissue {:.1f} %; {:.0f} % of white-matter voxels hold two bundles or "
      "more\n",
      100 * summary.white_share, 100 * summary.brain_share, 100 * summary.crossing_share);
  return {};
}

}  // namespace

Verb phantom_verb() {
  return {
      .name = "phantom",
      .summary = "make a diffusion series of bundles whose geometry is known exactly",
      .description =
          "Bundles are tubes around smooth centre lines, filled with fibres that run beside them; where a fibre runs "
          "is "
          "known by formula, not by image. The folder receives the series (dwi.nii.gz, dwi.bval, dwi.bvec), "
          "mask.nii.gz, "
          "tissue.nii.gz, the fraction of each voxel inside each bundle (bundles/) and its end regions (ends/), the "
          "true "
          "fODF (fod.nii.gz), true fibres (truth.trx, a group per bundle) and phantom.json, from which 'cingulum "
          "score' "
          "rebuilds the bundles.\n\n"
          "Noise is Rician and drawn by counter: the same options give the same bytes on every machine. With noise the "
          "series is stored as int16 with an exact scale, without as float32.\n\n"
          "--orientation and --rotate change how the images are stored, never where the bundles are in the world.",
      .arguments =
          {{.name = "preset",
            .type = ArgumentType::choice,
            .help = "which phantom",
            .choices = phantom_preset_names(),
            .required = true},
           {.name = "out",
            .type = ArgumentType::text,
            .help = "the folder to write",
            .metavar = "DIR",
            .letter = 'o',
            .required = true},
           {.name = "angle",
            .type = ArgumentType::angle,
            .help = "between the bundles of 'crossing'",
            .range = {.minimum = 5, .maximum = 90},
            .default_text = "90"},
           {.name = "gap",
            .type = ArgumentType::length,
            .help = "between the bundles of 'kissing' and 'deadend'",
            .unit = "mm",
            .range = {.minimum = 0, .maximum = 10},
            .default_text = "1"},
           {.name = "scheme",
            .type = ArgumentType::choice,
            .help = "directions and b-values; dirs64-b1000 unless the preset says otherwise (brain: dirs150-b2000)",
            .choices = scheme_names()},
           {.name = "directions",
            .type = ArgumentType::integer,
            .help = "directions of each shell of --b-values",
            .range = {.minimum = 6, .maximum = most_directions}},
           {.name = "b-values",
            .type = ArgumentType::text,
            .help = "b-values of the shells in s/mm^2",
            .metavar = "B,B,..."},
           {.name = "b0",
            .type = ArgumentType::integer,
            .help = "volumes without weighting, all at the beginning; without this one before every ten volumes",
            .range = {.minimum = 0, .maximum = 1000}},
           {.name = "bvals", .type = ArgumentType::file_in, .help = "b-values from a file"},
           {.name = "bvecs", .type = ArgumentType::file_in, .help = "b-vectors from a file, in the frame 'fsl'"},
           {.name = "snr",
            .type = ArgumentType::text,
            .help = "signal to noise of white matter without weighting; 'inf' for none",
            .metavar = "SNR",
            .default_text = "30"},
           {.name = "voxel-size",
            .type = ArgumentType::text,
            .help = "edge in mm, or three edges towards right, front and top: 1.5x1.5x3; 2 unless given",
            .metavar = "MM"},
           {.name = "rotate",
            .type = ArgumentType::text,
            .help = "turn the grid about x, then y, then z, in degrees",
            .metavar = "X,Y,Z",
            .default_text = "0,0,0"},
           {.name = "orientation",
            .type = ArgumentType::text,
            .help = "where the stored axes run to: RAS, LAS, SPR, ... (48 ways)",
            .metavar = "CODE",
            .default_text = "RAS"},
           {.name = "subsamples",
            .type = ArgumentType::integer,
            .help = "sub-samples along a voxel's edge",
            .range = {.minimum = 1, .maximum = 15},
            .default_text = "5"},
           {.name = "truth-fibres",
            .type = ArgumentType::integer,
            .help = "true fibres of each bundle in truth.trx",
            .range = {.minimum = 1, .maximum = 100000},
            .default_text = "19"},
           {.name = "type",
            .type = ArgumentType::choice,
            .help = "how dwi.nii.gz stores its numbers",
            .default_text = "auto",
            .choices = {"auto", "int16", "float32"}}},
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress,
                 CommonOption::seed},
      .examples = {{"cingulum phantom --preset crossing60 --snr inf --out crossing",
                    "two bundles at 60 degrees, without noise"},
                   {"cingulum phantom --preset kissing --gap 0 --orientation LAS --out kissing",
                    "bundles that touch, stored left to right"},
                   {"cingulum phantom --preset brain --seed 7 --out brain",
                    "a whole brain: 81 x 106 x 76 voxels, 160 volumes"},
                   {"cingulum phantom --preset arcs --directions 32 --b-values 700,2500 --out arcs",
                    "a scheme of your own"}},
      .references = {"Wang W, Juettler B, Zheng D, Liu Y. Computation of rotation minimizing frames. ACM Transactions "
                     "on Graphics 27, 2008.",
                     "Gudbjartsson H, Patz S. The Rician distribution of noisy MRI data. Magnetic Resonance in "
                     "Medicine 34, 1995."},
      .run = run_phantom,
  };
}

}  // namespace cingulum
