// `cingulum resample`: an image on the grid of another, or in voxels of another size. The arithmetic is
// images/resample.hpp's; here are files, types and what the sidecar says.
#include "images/resample.hpp"

#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/elapsed.hpp"
#include "base/interrupt.hpp"
#include "base/json_text.hpp"
#include "base/json_view.hpp"
#include "base/quantity.hpp"
#include "cli/verb.hpp"
#include "formats/nifti.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {

Verb resample_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What a sidecar of ours says of directions stays true on another grid, unless they are in image axes that turn.
constexpr std::array<const char*, 6> kept_facts = {"spherical_harmonics", "sh_basis", "frame",
                                                   "tensor_order",        "sphere",   "half_sphere"};

Result<std::array<double, 3>> parse_edges(const std::string& text) {
  std::vector<double> parts;
  std::string_view rest = text;
  for (bool last = false; !last;) {
    const std::size_t end = std::min(rest.find('x'), rest.size());
    const auto number = parse_real(rest.substr(0, end));
    if (!number || !(*number > 0)) break;
    parts.push_back(*number);
    last = end == rest.size();
    if (last && parts.size() == 1) return std::array<double, 3>{parts[0], parts[0], parts[0]};
    if (last && parts.size() == 3) return std::array<double, 3>{parts[0], parts[1], parts[2]};
    if (!last) rest.remove_prefix(end + 1);
  }
  return fail(ErrorKind::invalid_argument,
              "--voxel-size '{}': accepted is one length in mm above 0, or three as 2x2x2.5", text);
}

Result<ImageGeometry> target_grid(const ParsedArguments& arguments, const NiftiHeader& image) {
  if (arguments.given("like") == arguments.given("voxel-size")) {
    return fail(ErrorKind::invalid_argument, "give --like or --voxel-size, and one of them only");
  }
  if (arguments.given("voxel-size")) {
    CGL_TRY_ASSIGN(const auto edges, parse_edges(arguments.text("voxel-size")));
    return with_voxel_size(image.geometry, edges);
  }
  CGL_TRY_ASSIGN(const NiftiReader reference, NiftiReader::open(arguments.text("like")));
  for (const auto& [path, source] : {std::pair{arguments.text("IMAGE"), image.affine_source},
                                     std::pair{arguments.text("like"), reference.header().affine_source}}) {
    if (source != AffineSource::pixdim) continue;
    return fail_file(
        path, ErrorKind::corrupt,
        "the header of {} has neither sform nor qform: where its voxels lie in the world is not known, so it "
        "cannot be resampled to another grid",
        path);
  }
  return reference.header().geometry;
}

// Kept facts of the image's sidecar; fails where directions in image axes would turn.
Result<Json> facts_of_image(const fs::path& path, const ImageGeometry& from, const ImageGeometry& to) {
  Json facts = Json::object();
  std::error_code ignored;
  if (!fs::exists(sidecar_path(path), ignored)) return facts;
  CGL_TRY_ASSIGN(const Json sidecar, read_sidecar(path));
  for (const char* name : kept_facts) {
    if (const JsonView fact = JsonView(sidecar)[name]; fact.is_there()) facts[name] = fact.json();
  }
  const JsonView harmonics = JsonView(facts)["spherical_harmonics"];
  const JsonView of_frame = harmonics.object() != nullptr ? harmonics : JsonView(facts);
  const bool image_axes = of_frame["frame"].text_or("") == "image";
  if (image_axes && !have_same_axes(from, to)) {
    return fail_file(
        path.string(), ErrorKind::unavailable,
        "{} holds directions in image axes, and the axes of the other grid are turned against its own; make "
        "it with --frame world",
        path.string());
  }
  return facts;
}

bool is_wide_integer(ElementType type) {
  return type.code != ElementType::Code::floating && type.bits == 64;
}

Status run_resample(const ParsedArguments& arguments, VerbContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const fs::path input = arguments.text("IMAGE");
  const fs::path out = arguments.text("out");
  const WriteOptions write = context.write_options();
  CGL_TRY(check_output(out, write));
  CGL_TRY(check_sidecar_output(out, write));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(input));
  const NiftiHeader& header = reader.header();
  CGL_TRY_ASSIGN(const ImageGeometry grid, target_grid(arguments, header));
  const Interpolation interpolation =
      arguments.text("interpolation") == "nearest" ? Interpolation::nearest : Interpolation::linear;
  CGL_TRY_ASSIGN(const Resampler resampler, Resampler::create(header.geometry, grid, interpolation));
  CGL_TRY_ASSIGN(Json facts, facts_of_image(input, header.geometry, grid));

  const auto sidecar = std::make_shared<OutputSidecar>(out, write);
  NiftiWriteOptions options;
  options.file = with_sidecar(write, sidecar);
  options.type = element_type_of<float>();
  options.pool = pool;
  options.intent_code = header.intent_code;
  options.intent_name = header.intent_name;
  options.description = header.description;
  if (interpolation == Interpolation::nearest) {
    options.type = header.type;
    options.slope = header.slope;
    options.intercept = header.intercept;
  }
  const std::size_t rank = std::min<std::size_t>(3, header.shape.size());
  const std::vector<std::int64_t> further(header.shape.begin() + static_cast<std::ptrdiff_t>(rank), header.shape.end());
  CGL_TRY_ASSIGN(NiftiWriter writer, NiftiWriter::create(out, grid, further, options));
  const std::int64_t volumes = header.volume_count();
  const Status done = catch_out_of_memory([&]() -> Status {
    std::vector<double> from(static_cast<std::size_t>(header.geometry.voxel_count()));
    std::vector<double> to(static_cast<std::size_t>(grid.voxel_count()));
    Progress progress("resampling", static_cast<std::uint64_t>(volumes), "volumes", context.progress_options());
    for (std::int64_t volume = 0; volume < volumes; ++volume) {
      CGL_TRY(check_interrupt());
      CGL_TRY(reader.next_volume(std::span(from)));
      resampler.volume(from, to, pool);
      if (interpolation == Interpolation::nearest && is_wide_integer(header.type)) {
        // Numbers are read as float64, which has every whole number up to here.
        for (const double value : from) {
          if (std::abs((value - header.intercept) / header.slope) < 0x1p53) continue;
          return fail_file(input.string(), ErrorKind::unavailable,
                           "{} holds {} of {:.17g}: whole numbers from 2^53 on cannot be kept exactly", input.string(),
                           header.type.name(), value);
        }
      }
      CGL_TRY(writer.append(to));
      progress.advance(1);
    }
    progress.finish();
    return {};
  });
  CGL_TRY(done);
  for (const std::string& warning : header.warnings) log_warning("{}: {}", input.string(), warning);

  Json inputs = Json::array();
  for (const char* name : {"IMAGE", "like"}) {
    if (!arguments.given(name)) continue;
    const fs::path path = arguments.text(name);
    CGL_TRY_ASSIGN(const std::string hash, hash_of_file(path));
    inputs.push_back({{"option", name}, {"path", path.string()}, {"xxh3_128", hash}});
  }
  Json about = {{"command", "resample"},
                {"parameters",
                 {{"interpolation", arguments.text("interpolation")},
                  {"voxel_size", arguments.given("voxel-size") ? Json(arguments.text("voxel-size")) : Json()}}},
                {"inputs", inputs}};
  about.update(facts);
  sidecar->describe([&]() -> Json {
    about["run"] = run_facts(context.common().threads, seconds_since(start));
    return about;
  });
  CGL_TRY(writer.commit());

  const auto edges = grid.voxel_mm();
  if (context.common().json) {
    const Json json = {{"input", input.string()},
                       {"output", out.string()},
                       {"size", grid.size},
                       {"voxel_mm", edges},
                       {"volumes", volumes},
                       {"type", options.type.name()},
                       {"interpolation", arguments.text("interpolation")}};
    context.print(json_text(json));
    return {};
  }
  context.print_format("{}: {} voxels of {:.4g} mm, {} volume{}, {}\n", out.string(), fmt::join(grid.size, " x "),
                       fmt::join(edges, " x "), volumes, volumes == 1 ? "" : "s", options.type.name());
  return {};
}

}  // namespace

Verb resample_verb() {
  return {
      .name = "resample",
      .summary = "an image on the grid of another, or in voxels of another size",
      .description =
          "Takes the values of a NIfTI image (3-D, 4-D or more, any real type) at the voxel centres of another grid: "
          "that of --like, or the image's own axes and centre with other voxels (--voxel-size). World positions "
          "decide; "
          "nothing is registered. Outside of the image values are 0; a border voxel's value holds up to its outer "
          "face.\n\n"
          "Linear interpolation writes float32. The nearest voxel keeps the type, its scaling and every value, as "
          "labels "
          "need. Nothing is smoothed: a coarser grid takes samples.\n\n"
          "Numbers that are directions (peaks, tensors, spherical harmonics) are not turned. In world axes they need "
          "not be; an image whose sidecar says image axes is refused where the axes of the grids differ. Masks, seed "
          "masks and stopping maps of `fit` and `track` need no resampling: those verbs do it themselves.",
      .arguments = {{.name = "IMAGE",
                     .type = ArgumentType::file_in,
                     .help = "the image to read",
                     .positional = true,
                     .required = true},
                    {.name = "like",
                     .type = ArgumentType::file_in,
                     .help = "image whose grid the output gets",
                     .metavar = "REFERENCE"},
                    {.name = "voxel-size",
                     .type = ArgumentType::text,
                     .help =
                         "edges of the voxels in mm, one number or three as 2x2x2.5; the image keeps its centre and "
                         "is covered by whole voxels",
                     .metavar = "MM"},
                    {.name = "out",
                     .type = ArgumentType::file_out,
                     .help = "the image to write, .nii or .nii.gz",
                     .metavar = "FILE",
                     .letter = 'o',
                     .required = true},
                    {.name = "interpolation",
                     .type = ArgumentType::choice,
                     .help = "nearest for masks and labels, linear for what is measured",
                     .default_text = "linear",
                     .choices = {"nearest", "linear"}}},
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress},
      .examples = {{"cingulum resample fa.nii.gz --like t1.nii.gz --out fa-in-t1.nii.gz", "a map on another grid"},
                   {"cingulum resample labels.nii.gz --like dwi.nii.gz --interpolation nearest --out labels-dwi.nii.gz",
                    "labels stay labels"},
                   {"cingulum resample t1.nii.gz --voxel-size 2 --out t1-2mm.nii.gz",
                    "the same image in cubes of 2 mm"}},
      .run = run_resample,
  };
}

}  // namespace cingulum
