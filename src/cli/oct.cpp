// `cingulum oct`: serial optical coherence tomography, from tiles to one volume, a stage an action.
#include <chrono>
#include <system_error>

#include "base/elapsed.hpp"
#include "base/quantity.hpp"
#include "cli/oct_actions.hpp"
#include "cli/verb.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "oct/tiles/mosaic_grid.hpp"

namespace cingulum {

Verb oct_verb();

namespace {

namespace fs = std::filesystem;
using OctJson = nlohmann::ordered_json;

Status run_oct(const ParsedArguments& arguments, VerbContext& context) {
  const std::string& action = arguments.text("action");
  if (action == "simulate") return run_oct_simulate(arguments, context);
  if (action == "grid") return run_oct_grid(arguments, context);
  if (action == "stitch") return run_oct_stitch(arguments, context);
  if (action == "flatfield") return run_oct_flatfield(arguments, context);
  if (action == "profile") return run_oct_profile(arguments, context);
  if (action == "attenuation") return run_oct_attenuation(arguments, context);
  if (action == "normalise") return run_oct_normalise(arguments, context);
  if (action == "curvature") return run_oct_curvature(arguments, context);
  if (action == "interface") return run_oct_interface(arguments, context);
  if (action == "aip") return run_oct_aip(arguments, context);
  if (action == "resample") return run_oct_resample(arguments, context);
  if (action == "overlap") return run_oct_overlap(arguments, context);
  if (action == "run") return run_oct_run(arguments, context);
  if (action == "report") return run_oct_report(arguments, context);
  if (action == "register") return run_oct_register(arguments, context);
  return run_oct_stack(arguments, context);
}

Argument number(std::string name, std::string help, std::string default_text, Range range = {}, std::string unit = {}) {
  Argument argument;
  argument.name = std::move(name);
  argument.type = ArgumentType::real;
  argument.help = std::move(help);
  argument.unit = std::move(unit);
  argument.range = range;
  argument.default_text = std::move(default_text);
  return argument;
}

Argument whole_number(std::string name, std::string help, std::string default_text, double minimum) {
  Argument argument;
  argument.name = std::move(name);
  argument.type = ArgumentType::integer;
  argument.help = std::move(help);
  argument.metavar = "N";
  argument.range = {.minimum = minimum};
  argument.default_text = std::move(default_text);
  return argument;
}

Argument flag(std::string name, std::string help) {
  Argument argument;
  argument.name = std::move(name);
  argument.type = ArgumentType::flag;
  argument.help = std::move(help);
  return argument;
}

Argument words(std::string name, std::string help, std::string metavar, std::string default_text = {}) {
  Argument argument;
  argument.name = std::move(name);
  argument.help = std::move(help);
  argument.metavar = std::move(metavar);
  argument.default_text = std::move(default_text);
  return argument;
}

constexpr Range from_zero{.minimum = 0.0};
constexpr Range share{.minimum = 0.0, .maximum = 1.0};

std::vector<Argument> simulation_arguments() {
  std::vector<Argument> list = {
      words("grid", "simulate: rows and columns of tiles", "N,N", "3,4"),
      words("tile", "simulate: planes, rows and columns of a tile", "N,N,N", "96,64,64"),
      number("overlap", "simulate: share of a tile that neighbours see, too", "0.2", {.minimum = 0.0, .maximum = 0.99}),
      number("surface", "simulate: plane of the tissue's surface", "30"),
      number("curvature", "simulate: planes by which focal curvature bends the corners' distance 1", "6"),
      words("tilt", "simulate: planes by which the surface rises over all rows, and over all columns", "X,X", "2,-1"),
      number("attenuation", "simulate: of the tissue, per plane", "0.01", from_zero),
      whole_number("speckle", "simulate: shape of gamma speckle, 1 is fully developed, 0 none", "4", 0),
      number("flat-field", "simulate: share of light lost at distance 1 from a tile's centre", "0",
             {.minimum = 0.0, .maximum = 0.49}),
      words("axial-profile", "simulate: plane of the focus and Rayleigh length in planes", "X,X"),
      number("noise-floor", "simulate: added everywhere", "0", from_zero),
      number("tissue-radius", "simulate: of half the mosaic; outside is agarose. 0: tissue everywhere", "0", from_zero),
      number("depth-jitter", "simulate: standard deviation of tiles' depths, in planes", "1.5", from_zero),
      number("texture", "simulate: strength of the sample's texture", "0.35", from_zero),
      whole_number("galvo-lines", "simulate: A-lines of the mirror's way back in raw tiles", "0", 0),
      number("motor-jitter", "simulate: standard deviation of true places about the stage's, in pixels", "0",
             from_zero),
      number("motor-angle", "simulate: of the stage's axes against the image's", "0", {}, "deg"),
      number("motor-scale", "simulate: true step over the stage's", "1", {.minimum = 0.5, .maximum = 2.0}),
      words("missing", "simulate: slice, row and column of a tile that is not written", "N,N,N"),
      whole_number("slices", "simulate: number of slices", "1", 1),
      whole_number("interval", "simulate: planes between slices", "40", 1),
      words("slice-gains", "simulate: range of the slices' gains", "X,X", "1,1"),
      number("slice-rotation", "simulate: standard deviation of the slices' turns", "0", from_zero, "deg"),
      number("slice-shift", "simulate: standard deviation of shifts that the stage does not know, in pixels", "0",
             from_zero),
      number("motor-shift", "simulate: standard deviation of shifts that the stage knows, in pixels", "0", from_zero),
      number("lateral-step", "simulate: distance of A-lines and of B-scans", "10", {.minimum = 0.0, .above = true},
             "um"),
      {.name = "layout",
       .type = ArgumentType::choice,
       .help = "simulate: folders of raw tiles, or a table of OME-Zarr tiles",
       .default_text = "raw",
       .choices = {"raw", "table"}},
      whole_number("files-per-tile", "simulate: image_*.bin of a raw tile", "1", 1),
      flag("sample", "simulate: write the sample itself, too (truth.ome.zarr)"),
  };
  for (Argument& argument : list) {
    if (argument.name == "missing") argument.repeatable = true;
  }
  return list;
}

std::vector<Argument> tile_arguments() {
  return {
      number("axial-step", "simulate, grid: distance of planes; raw tiles do not state it (simulate: 3.5)", "",
             {.minimum = 0.0, .above = true}, "um"),
      words("unit", "unit of length of images that state none, such as micrometer", "WORD"),
      flag("allow-missing", "go on without tiles, slices and chunks that are missing: they weigh nothing"),
      flag("average-repeats", "grid: take the mean of B-scans that raw tiles hold n_repeat times"),
      whole_number("slice", "grid: this slice alone", "", 0),
      whole_number("galvo-line", "grid: the last good A-line before the galvo's band, instead of finding it", "", 0),
      whole_number("search", "stitch: pixels around the motor's step in which neighbours are looked for", "12", 1),
      number("smoothing", "stitch: of the projections that are compared, in pixels", "1.5", from_zero),
      number("max-rejected", "stitch: share of links between tiles that may be weak or contradict the others", "0.5",
             share),
      {.name = "blending",
       .type = ArgumentType::choice,
       .help = "stitch: weights where tiles overlap; none takes the nearest tile alone",
       .default_text = "cosine",
       .choices = {"cosine", "average", "none"}},
      words("pyramid", "levels of the output, or auto: until a level is one chunk", "N|auto", "1"),
  };
}

std::vector<Argument> fit_arguments_of_oct() {
  return {
      {.name = "model",
       .type = ArgumentType::choice,
       .help = "flatfield: a smooth field by overlaps and the mean tile, or the fit of BaSiC",
       .default_text = "smooth",
       .choices = {"smooth", "basic"}},
      words("field", "flatfield: write the field as a table, too", "FILE"),
      {.name = "method",
       .type = ArgumentType::choice,
       .help = "attenuation: what is taken for the light below a line; li also takes the noise floor away",
       .default_text = "li",
       .choices = {"vermeer", "smith", "liu", "li"}},
      number("strength", "attenuation: 1 is theory", "0.3", from_zero),
      number("floor", "attenuation: noise floor of li, instead of the median outside tissue", "", from_zero),
      whole_number("median", "attenuation: lateral window in pixels before it is measured; 1: none", "10", 1),
  };
}

std::vector<Argument> voxel_arguments() {
  return {
      whole_number("s-xy", "interface, curvature: lateral box in pixels before the interface is looked for", "15", 0),
      number("s-z", "interface, curvature: width of the derivative along depth, in planes", "2",
             {.minimum = 0.0, .above = true}),
      flag("no-log", "interface, curvature: values as they are, not their logarithm"),
      flag("detect-cutting-errors", "interface, curvature: a brighter plane above wins"),
      flag("sub-voxel", "interface: between planes, by a parabola"),
      number("resolution", "resample: edge of the new voxels", "10", {.minimum = 0.0, .above = true}, "um"),
  };
}

std::vector<Argument> whole_run_arguments() {
  return {
      flag("no-flat-field", "run: leave uneven light as it is"),
      flag("no-curvature", "run: leave focal curvature and the depths of tiles as they are"),
      flag("no-crop", "run: keep the planes above the tissue's surface"),
      number("crop-depth", "run: of a slice below its surface; without it, what all A-lines have", "",
             {.minimum = 0.0, .above = true}, "um"),
      flag("no-profile", "run: leave the axial profile; without agarose it is left anyway"),
      flag("no-attenuation",
           "run: leave attenuation; --method, --strength, --floor and --median say how it is made up"),
      flag("normalise-planes", "run: take the background of each plane away and divide by one span"),
      flag("keep", "run: leave the stitched slices in OUT.work"),
      {.name = "compat",
       .type = ArgumentType::choice,
       .help = "run, flatfield, curvature, resample, stack: methods of these scripts where ours differ (docs/oct.md)",
       .choices = {"linumpy"}},
      {.name = "memory",
       .type = ArgumentType::bytes,
       .help = "run: what it may take; where a slice is too large for that, it is made through temporary files in "
               "OUT.work, a few planes at a time, with the same bytes (default: what the machine has free)"},
      {.name = "tile-memory",
       .type = ArgumentType::bytes,
       .help = "run: of tiles that stay in memory from one reading, besides those of one slice that is made there",
       .default_text = "0"},
      flag("explain", "run: say what it would take of memory and disk, and end"),
  };
}

std::vector<Argument> series_arguments() {
  return {
      number("slicing-interval", "register, stack, overlap: between slices, instead of the stage's positions", "",
             {.minimum = 0.0, .above = true}, "mm"),
      number("search-range", "register, overlap: to either side of it", "0.1", from_zero, "mm"),
      whole_number("moving-plane",
                   "register: first plane of a slice that is compared; stack: planes above are left out", "4", 0),
      whole_number("planes", "register: planes that are compared", "5", 1),
      number("max-rotation", "register, stack: of neighbouring slices", "5", from_zero, "deg"),
      number("max-shift", "register, stack: of neighbouring slices, besides the motors', in pixels", "20", from_zero),
      words("shifts", "stack: shifts_xy.csv, instead of the places that slices carry", "FILE"),
      words("transforms-dir", "stack: the folder that register wrote", "DIR"),
      number("confidence-high", "stack: from there on a registration's turn and shift are used", "0.6", share),
      number("confidence-low", "stack: from there on its turn alone", "0.3", share),
      whole_number("smooth-window", "stack: slices over which turns are averaged; 0: none", "0", 0),
      number("translation-smooth-sigma", "stack: slices over which shifts are smoothed; 0: none", "0", from_zero),
      number("max-cumulative-drift", "stack: of slices from the motors' place, in pixels; 0: any", "50", from_zero),
      words("decisions", "stack: write what was decided as a table, too", "FILE"),
  };
}

}  // namespace

Result<fs::path> oct_input(const ParsedArguments& arguments) {
  const std::vector<std::string> paths = arguments.texts("paths");
  if (paths.size() != 1) {
    return fail(ErrorKind::invalid_argument, "cingulum oct {} takes one input, {} given", arguments.text("action"),
                paths.size());
  }
  std::error_code error;
  if (!fs::exists(paths[0], error)) {
    return fail(ErrorKind::invalid_argument, "PATH '{}': no such file or folder", paths[0]);
  }
  return fs::path(paths[0]);
}

Result<fs::path> oct_output(const ParsedArguments& arguments) {
  if (!arguments.given("out")) {
    return fail(ErrorKind::invalid_argument, "cingulum oct {}: --out names what is written", arguments.text("action"));
  }
  fs::path output = arguments.text("out");
  if (!output.has_filename()) output = output.parent_path();
  return output;
}

Status check_volume_output(const fs::path& output, const WriteOptions& options) {
  CGL_TRY(check_sidecar_output(output, options));
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(output, ignored)) || options.force) return {};
  return fail(ErrorKind::already_exists, "writing {}: it exists; use --force to replace it", output.native());
}

Result<std::vector<std::size_t>> parse_counts(const char* option, const std::string& text, std::size_t count) {
  std::vector<std::size_t> numbers;
  std::string_view rest = text;
  while (true) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const auto value = parse_integer(trim(rest.substr(0, end)));
    if (!value || *value < 0) break;
    numbers.push_back(static_cast<std::size_t>(*value));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  if (numbers.size() == count) return numbers;
  return fail(ErrorKind::invalid_argument, "--{} '{}': accepted are {} whole numbers with commas between", option, text,
              count);
}

Result<OctDevices> open_oct_devices(VerbContext& context) {
  OctDevices opened;
  for (const std::string& name : context.common().devices) {
    CGL_TRY_ASSIGN(ProbeOptions options, ProbeOptions::from_settings(context.settings()));
    options.wanted = name;
    CGL_TRY_ASSIGN(DeviceRegistry registry, DeviceRegistry::probe(options));
    opened.registries.push_back(std::make_unique<DeviceRegistry>(std::move(registry)));
    CGL_TRY_ASSIGN(Device* const device, opened.registries.back()->select_one(name));
    opened.devices.push_back(device);
  }
  return opened;
}

std::vector<std::string> OctDevices::names() const {
  std::vector<std::string> names;
  for (const Device* device : devices) names.push_back(device->id());
  return names;
}

std::string oct_model(const ParsedArguments& arguments) {
  return arguments.given("compat") && !arguments.given("model") ? "basic" : arguments.text("model");
}

Result<oct::VolumeReadOptions> oct_reading(const ParsedArguments& arguments, VerbContext& context) {
  oct::VolumeReadOptions options;
  CGL_TRY_ASSIGN(options.pool, context.pool());
  options.cancel = context.cancel();
  if (arguments.given("unit")) options.unit = arguments.text("unit");
  return options;
}

Result<oct::VolumeFile> read_oct_volume(const fs::path& path, const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(oct::VolumeReadOptions options, oct_reading(arguments, context));
  CGL_TRY_ASSIGN(const oct::VolumeDescription description, oct::describe_volume(path, options));
  // A mosaic grid with missing tiles says which they are: their chunks are no damage.
  if (description.attributes.contains("tile_grid")) {
    CGL_TRY_ASSIGN(const oct::TileGrid grid, oct::tile_grid_of(description.attributes, description.shape));
    for (const oct::GridTile& tile : grid.tiles) options.complete = options.complete && !tile.missing;
  }
  CGL_TRY_ASSIGN(oct::VolumeFile file, oct::read_volume(path, options));
  if (file.replaced_values > 0) {
    log_warning("{}: {} values were not finite and count as 0", path.native(), format_count(file.replaced_values));
  }
  return file;
}

namespace {

using WriteVolume =
    std::function<Status(const OctJson& attributes, const WriteOptions& write, const oct::VolumeWriteOptions& options)>;

// What all outputs share: levels, the command's name, the sidecar.
Status write_with_sidecar(const fs::path& output, OctJson attributes, OctJson about, const ParsedArguments& arguments,
                          VerbContext& context, const WriteVolume& write_volume,
                          const std::function<OctJson()>& of_run = {}) {
  const auto start = std::chrono::steady_clock::now();
  WriteOptions write = context.write_options();
  CGL_TRY(check_sidecar_output(output, write));
  CGL_TRY_ASSIGN(write.pool, context.pool());
  oct::VolumeWriteOptions options;
  options.pool = write.pool;
  options.cancel = context.cancel();
  if (const std::string& levels = arguments.text("pyramid"); levels == "auto") {
    options.levels.reset();
  } else {
    const auto value = parse_integer(levels);
    if (!value || *value < 1 || *value > 64) {
      return fail(ErrorKind::invalid_argument, "--pyramid '{}': accepted are 1 to 64 levels, or auto", levels);
    }
    options.levels = static_cast<std::size_t>(*value);
  }
  const std::string command = "oct " + arguments.text("action");
  attributes["command"] = command;
  const auto sidecar = std::make_shared<OutputSidecar>(output, write);
  sidecar->describe([&]() -> OctJson {
    OctJson json = {{"command", command}};
    OctJson inputs = OctJson::array();
    for (const std::string& path : arguments.texts("paths")) inputs.push_back(fs::path(path).filename().native());
    json["inputs"] = std::move(inputs);
    json["result"] = std::move(about);
    json["run"] = run_facts(context.common().threads, seconds_since(start));
    if (of_run) json["run"].update(of_run());
    return json;
  });
  return write_volume(attributes, with_sidecar(write, sidecar), options);
}

}  // namespace

Status write_oct_volume(const fs::path& output, const oct::HostVolume& volume, const oct::VoxelSize& voxel_um,
                        OctJson attributes, OctJson about, const ParsedArguments& arguments, VerbContext& context) {
  const auto write = [&](const OctJson& described, const WriteOptions& writing,
                         const oct::VolumeWriteOptions& options) {
    return oct::write_volume_file(output, volume, voxel_um, described, writing, options);
  };
  return write_with_sidecar(output, std::move(attributes), std::move(about), arguments, context, write);
}

Status write_oct_boxes(const fs::path& output, const std::array<std::size_t, 3>& shape, const oct::MakeBox& make,
                       const oct::VoxelSize& voxel_um, OctJson about, const ParsedArguments& arguments,
                       VerbContext& context, const std::function<OctJson()>& of_run, std::size_t boxes_behind) {
  const auto write = [&](const OctJson& described, const WriteOptions& writing, oct::VolumeWriteOptions options) {
    options.boxes_behind = boxes_behind;
    return oct::write_volume_by_boxes(output, shape, voxel_um, described, make, writing, options);
  };
  return write_with_sidecar(output, OctJson::object(), std::move(about), arguments, context, write, of_run);
}

Verb oct_verb() {
  Verb verb;
  verb.name = "oct";
  verb.summary = "serial optical coherence tomography: from tiles to one volume";
  verb.description =
      "Each action is one stage; images are OME-Zarr (z, y, x) with units.\n\n"
      "`simulate` writes tiles of a sample that is known, with the truth beside them: raw tiles as a scanner leaves "
      "them, or a table of OME-Zarr tiles. It computes on --device; the same seed gives the same bytes on every device "
      "and on any number of threads.\n\n"
      "`grid INPUT` takes a folder of raw tiles (tile_x##_y##_z## with info.txt and image_*.bin) or a CSV table of "
      "tiles (file,slice,ix,iy,x_mm,y_mm,z_mm), and writes a folder with a mosaic grid for each slice "
      "(mosaic_grid_3d_z##.ome.zarr) and shifts_xy.csv, the stage's shifts between slices, cleaned of spikes. The band "
      "of the galvo's way back is found by a vote of tiles and cut.\n\n"
      "`flatfield MOSAIC...` finds the uneven light over a tile from all mosaic grids given, and divides the first by "
      "it.\n\n"
      "`stitch MOSAIC` places the tiles of a mosaic grid by their overlaps and blends them to one slice. A tile "
      "without links stands where the motors put it, and is named.\n\n"
      "`profile SLICE` divides by the beam's axial profile, as agarose beside the tissue shows it. `attenuation SLICE` "
      "compensates what tissue absorbs. `normalise SLICE` takes the background of each plane away and divides all "
      "by one span.\n\n"
      "`resample IMAGE` brings voxels to --resolution, tile by tile in a mosaic grid. `interface IMAGE` finds the "
      "tissue's "
      "surface in every A-line. `curvature MOSAIC...` finds the focal curvature that all tiles share and rolls the "
      "A-lines of the first mosaic back. `aip IMAGE` is the mean over planes, as an image or (--out FILE.png) in 16 "
      "bits of grey. `overlap FIXED MOVING` finds how many "
      "planes two slices share. These five compute on --device, with the same bits on each.\n\n"
      "`run INPUT` does all of it: tiles to one volume. Light and focal curvature are fitted over all slices, depths "
      "of "
      "tiles by their overlaps; slices are cropped at their surface, freed of the axial profile where agarose shows "
      "it, "
      "and of attenuation; then registered and stacked. Tiles are read twice, but for those of a slice that fits into "
      "--memory and what --tile-memory has room for, which are read once. Stitched slices are kept in OUT.work "
      "until the volume is written: a run that was stopped goes on from them and writes the same bytes. --explain says "
      "what it takes.\n\n"
      "`report VOLUME` writes one page about a volume of `run` (--out PAGE.html): projections, seams, links, "
      "residuals, "
      "curvature, light, profiles, overlaps, gains and every decision with its reason; the same as PAGE.json and "
      "PAGE_*.csv, and the projection as PAGE_aip.png.\n\n"
      "`register SLICE...` finds depth, turn and shift of neighbouring slices and writes register_z##.json to the "
      "folder --out. `stack SLICE...` makes one volume of the slices, with these where they are believed, with the "
      "motors' places where not; each decision stands with its reason in the sidecar.";
  verb.arguments = {
      {.name = "action",
       .type = ArgumentType::choice,
       .help = "what to do",
       .metavar = "ACTION",
       .choices = {"simulate", "grid", "resample", "interface", "curvature", "flatfield", "stitch", "aip", "profile",
                   "attenuation", "normalise", "overlap", "register", "stack", "run", "report"},
       .positional = true,
       .required = true},
      {.name = "paths",
       .type = ArgumentType::text,
       .help = "the input: a folder, a table, an image",
       .metavar = "PATH",
       .positional = true,
       .repeatable = true},
      {.name = "out", .type = ArgumentType::text, .help = "what is written", .metavar = "PATH", .letter = 'o'},
  };
  for (Argument& argument : tile_arguments()) verb.arguments.push_back(std::move(argument));
  for (Argument& argument : fit_arguments_of_oct()) verb.arguments.push_back(std::move(argument));
  for (Argument& argument : voxel_arguments()) verb.arguments.push_back(std::move(argument));
  for (Argument& argument : whole_run_arguments()) verb.arguments.push_back(std::move(argument));
  for (Argument& argument : series_arguments()) verb.arguments.push_back(std::move(argument));
  for (Argument& argument : simulation_arguments()) verb.arguments.push_back(std::move(argument));
  verb.common = {CommonOption::device, CommonOption::threads,  CommonOption::force,
                 CommonOption::json,   CommonOption::progress, CommonOption::seed};
  verb.examples = {
      {"cingulum oct simulate --out tiles --grid 4,5 --motor-jitter 1.5 --flat-field 0.3",
       "20 raw tiles and where they truly lie"},
      {"cingulum oct run tiles --axial-step 3.5 --pyramid auto --out volume.ome.zarr",
       "all of it: tiles in, one volume out"},
      {"cingulum oct report volume.ome.zarr --out report.html", "what came of it, on one page"},
      {"cingulum oct grid tiles --axial-step 3.5 --out mosaics", "a mosaic grid for each slice"},
      {"cingulum oct stitch mosaics/mosaic_grid_3d_z00.ome.zarr --out slice_z00.ome.zarr", "one slice"},
      {"cingulum oct register slice_z*.ome.zarr --out transforms", "neighbours against each other"},
      {"cingulum oct stack slice_z*.ome.zarr --transforms-dir transforms --pyramid auto --out volume.ome.zarr",
       "one volume"},
  };
  verb.references = {
      "Lefebvre et al. 2017, Whole mouse brain imaging using optical coherence tomography: reconstruction, "
      "normalization, segmentation, and comparison with diffusion MRI, Neurophotonics 4:041501",
      "Muhlich et al. 2022, Stitching and registering highly multiplexed whole-slide images of tissues and tumors "
      "using ASHLAR, Bioinformatics 38:4613-4621",
      "Vermeer et al. 2014, Depth-resolved model-based reconstruction of attenuation coefficients in optical coherence "
      "tomography, Biomed Opt Express 5:322-337",
      "Peng et al. 2017, A BaSiC tool for background and shading correction of optical microscopy images, Nat Commun "
      "8:14836"};
  verb.run = run_oct;
  return verb;
}

}  // namespace cingulum
