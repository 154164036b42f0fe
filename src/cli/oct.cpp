// `cingulum oct`: serial optical coherence tomography, from tiles to one volume, a stage an action.
#include <system_error>
#include <utility>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/oct_actions.hpp"
#include "cli/request_arguments.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "runs/oct/oct_fields.hpp"
#include "runs/oct/oct_options.hpp"

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

std::vector<Argument> simulation_arguments() {
  std::vector<Argument> list = {
      words("grid", "rows and columns of tiles", "N,N", "3,4"),
      words("tile", "planes, rows and columns of a tile", "N,N,N", "96,64,64"),
      number("overlap", "share of a tile that neighbours see, too", "0.2", {.minimum = 0.0, .maximum = 0.99}),
      number("surface", "plane of the tissue's surface", "30"),
      number("curvature", "planes by which focal curvature bends the corners' distance 1", "6"),
      words("tilt", "planes by which the surface rises over all rows, and over all columns", "X,X", "2,-1"),
      number("attenuation", "of the tissue, per plane", "0.01", from_zero),
      whole_number("speckle", "shape of gamma speckle, 1 is fully developed, 0 none", "4", 0),
      number("flat-field", "share of light lost at distance 1 from a tile's centre", "0",
             {.minimum = 0.0, .maximum = 0.49}),
      words("axial-profile", "plane of the focus and Rayleigh length in planes", "X,X"),
      number("noise-floor", "added everywhere", "0", from_zero),
      number("tissue-radius", "of half the mosaic; outside is agarose. 0: tissue everywhere", "0", from_zero),
      number("depth-jitter", "standard deviation of tiles' depths, in planes", "1.5", from_zero),
      number("texture", "strength of the sample's texture", "0.35", from_zero),
      whole_number("galvo-lines", "A-lines of the mirror's way back in raw tiles", "0", 0),
      number("motor-jitter", "standard deviation of true places about the stage's, in pixels", "0", from_zero),
      number("motor-angle", "of the stage's axes against the image's", "0", {}, "deg"),
      number("motor-scale", "true step over the stage's", "1", {.minimum = 0.5, .maximum = 2.0}),
      words("missing", "slice, row and column of a tile that is not written", "N,N,N"),
      whole_number("slices", "number of slices", "1", 1),
      whole_number("interval", "planes between slices", "40", 1),
      words("slice-gains", "range of the slices' gains", "X,X", "1,1"),
      number("slice-rotation", "standard deviation of the slices' turns", "0", from_zero, "deg"),
      number("slice-shift", "standard deviation of shifts that the stage does not know, in pixels", "0", from_zero),
      number("motor-shift", "standard deviation of shifts that the stage knows, in pixels", "0", from_zero),
      number("lateral-step", "distance of A-lines and of B-scans", "10", {.minimum = 0.0, .above = true}, "um"),
      {.name = "layout",
       .type = ArgumentType::choice,
       .help = "folders of raw tiles, or a table of OME-Zarr tiles",
       .default_text = "raw",
       .choices = {"raw", "table"}},
      whole_number("files-per-tile", "image_*.bin of a raw tile", "1", 1),
      flag("sample", "write the sample itself, too (truth.ome.zarr)"),
  };
  for (Argument& argument : list) {
    if (argument.name == "missing") argument.repeatable = true;
    argument.actions = {"simulate"};
  }
  return list;
}

// What single stages take besides the fields of an OctRequest.
std::vector<Argument> stage_arguments() {
  Argument slice = whole_number("slice", "this slice alone", "", 0);
  slice.actions = {"grid"};
  Argument model = {.name = "model",
                    .type = ArgumentType::choice,
                    .help = "a smooth field by overlaps and the mean tile, or the fit of BaSiC",
                    .default_text = "smooth",
                    .choices = {"smooth", "basic"},
                    .actions = {"flatfield", "curvature"}};
  Argument field = words("field", "write the field as a table, too", "FILE");
  field.actions = {"flatfield"};
  Argument sub_voxel = flag("sub-voxel", "between planes, by a parabola");
  sub_voxel.actions = {"interface"};
  Argument shifts = words("shifts", "shifts_xy.csv, instead of the places that slices carry", "FILE");
  shifts.actions = {"stack"};
  Argument transforms = words("transforms-dir", "the folder that register wrote", "DIR");
  transforms.actions = {"stack"};
  Argument explain = flag("explain", "say what it would take of memory and disk, and end");
  explain.actions = {"run"};
  return {slice, model, field, sub_voxel, shifts, transforms, explain};
}

// The inputs of all actions are `paths`, and --device is an option of many verbs.
bool has_an_argument_of_another_name(const RequestField<OctRequest>& field) {
  return field.argument.name == "tiles";
}
bool is_declared_elsewhere(const RequestField<OctRequest>& field) {
  return has_an_argument_of_another_name(field) || field.argument.name == "device";
}

}  // namespace

OctRequest oct_request(const ParsedArguments& arguments) {
  return request_of_arguments(oct_fields(), arguments, has_an_argument_of_another_name);
}

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

Result<fs::path> oct_volume_output(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(fs::path output, oct_output(arguments));
  CGL_TRY(check_volume_output(output, context.write_options()));
  return output;
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

std::string oct_model(const ParsedArguments& arguments) {
  return arguments.given("compat") && !arguments.given("model") ? "basic" : arguments.text("model");
}

Result<oct::VolumeFile> read_oct_volume(const fs::path& path, const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(oct::VolumeReadOptions options, volume_read_options(oct_request(arguments), context));
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

Result<OctMosaic> read_oct_mosaic(const fs::path& path, const ParsedArguments& arguments, VerbContext& context) {
  OctMosaic mosaic;
  CGL_TRY_ASSIGN(mosaic.file, read_oct_volume(path, arguments, context));
  const oct::HostVolume& volume = mosaic.file.volume;
  CGL_TRY_ASSIGN(mosaic.grid, add_file_context(oct::tile_grid_of(mosaic.file.attributes,
                                                                 {volume.planes, volume.rows, volume.columns}),
                                               "reading", path.native()));
  return mosaic;
}

OctOutput stage_output(const fs::path& path, OctJson attributes, OctJson about, const ParsedArguments& arguments) {
  OctOutput output;
  output.path = path;
  output.command = "oct " + arguments.text("action");
  OctJson inputs = OctJson::array();
  for (const std::string& input : arguments.texts("paths")) inputs.push_back(fs::path(input).filename().native());
  output.provenance = {{"inputs", std::move(inputs)}};
  output.attributes = std::move(attributes);
  output.about = std::move(about);
  return output;
}

Status print_oct_stage(OctJson about, const fs::path& output, const std::string& line, VerbContext& context) {
  if (context.common().json) {
    about["output"] = output.native();
    context.print(json_text(about));
  } else {
    context.print_format("{}: {}\n", output.native(), line);
  }
  return {};
}

Status finish_oct_stage(const fs::path& output, const oct::VolumeFile& made, const OctJson& about,
                        const std::string& line, const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY(write_oct_volume(stage_output(output, made.attributes, about, arguments), made.volume, made.voxel_um,
                           oct_request(arguments), context));
  return print_oct_stage(about, output, line, context);
}

Verb oct_verb() {
  Verb verb;
  verb.name = "oct";
  verb.summary = "serial optical coherence tomography: from tiles to one volume";
  verb.description =
      "Each action is one stage, whose own options `cingulum oct ACTION --help` shows; images are OME-Zarr (z, y, x) "
      "with units.\n\n"
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
      "until the volume is written: a run that was stopped goes on from them and writes the same bytes. The sidecar "
      "VOLUME.json has every option and the hash of the tiles: --from repeats the run. --explain says what it "
      "takes.\n\n"
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
  };
  for (Argument& argument : arguments_of_table(oct_fields(), is_declared_elsewhere)) {
    verb.arguments.push_back(std::move(argument));
  }
  for (Argument& argument : stage_arguments()) verb.arguments.push_back(std::move(argument));
  for (Argument& argument : simulation_arguments()) verb.arguments.push_back(std::move(argument));
  verb.common = {CommonOption::device, CommonOption::threads,  CommonOption::force,
                 CommonOption::json,   CommonOption::progress, CommonOption::seed};
  verb.examples = {
      {"cingulum oct simulate --out tiles --grid 4,5 --motor-jitter 1.5 --flat-field 0.3",
       "20 raw tiles and where they truly lie"},
      {"cingulum oct run tiles --axial-step 3.5 --pyramid auto --out volume.ome.zarr",
       "all of it: tiles in, one volume out"},
      {"cingulum oct run --from volume.ome.zarr.json --out again.ome.zarr", "the same once more, with the same bytes"},
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
