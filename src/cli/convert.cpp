// `cingulum convert`: a tractogram in another format (runs/convert_tractogram.hpp), or an image (NIfTI, OME-Zarr),
// which is zarr_convert.cpp's.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/verb.hpp"
#include "cli/zarr_actions.hpp"
#include "runs/convert_tractogram.hpp"

namespace cingulum {

Verb convert_verb();

namespace {

using Json = nlohmann::ordered_json;

LayoutParameters layout_of(const ParsedArguments& arguments) {
  LayoutParameters layout;
  const auto take = [&](Parameter<bool>& parameter, const char* name) {
    if (arguments.flag(name)) parameter = true;
  };
  take(layout.float16, "float16");
  take(layout.float64, "float64");
  take(layout.deflate, "deflate");
  return layout;
}

Result<ConvertRequest> request_of_conversion(const ParsedArguments& arguments) {
  ConvertRequest request{
      .input = arguments.text("IN"), .output = arguments.text("OUT"), .layout = layout_of(arguments)};
  if (arguments.has("reference")) request.reference = arguments.text("reference");
  if (arguments.given("max-segment-mm") && arguments.given("max-segment-length")) {
    return fail(ErrorKind::invalid_argument, "--max-segment-length and --max-segment-mm are the same; give one");
  }
  if (arguments.has("linearise")) {
    const char* const longest = arguments.given("max-segment-mm") ? "max-segment-mm" : "max-segment-length";
    request.linearise =
        LinearisePlan{.tolerance_mm = arguments.real("linearise"), .max_segment_mm = arguments.real(longest)};
  }
  return request;
}

Status run_tractogram_conversion(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const ConvertRequest request, request_of_conversion(arguments));
  CGL_TRY_ASSIGN(const ConvertOutcome made, convert_tractogram(request, context));
  if (context.common().json) {
    const Json json = {{"input", request.input.native()},
                       {"output", made.output.native()},
                       {"format", std::string(tractogram_format_name(made.format))},
                       {"position_type", made.position_type.name()},
                       {"streamlines", made.streamlines},
                       {"points", made.points},
                       {"points_read", made.points_read},
                       {"lost", made.lost},
                       {"warnings", made.warnings}};
    context.print(json_text(json));
    return {};
  }
  std::string text =
      fmt::format("{}: {}, {} streamlines, {} points", made.output.native(), tractogram_format_name(made.format),
                  format_count(made.streamlines), format_count(made.points));
  if (request.linearise) text += fmt::format(" of {}", format_count(made.points_read));
  context.print(text + "\n");
  return {};
}

// Options of one kind of conversion have no meaning in the other.
Status check_options(const ParsedArguments& arguments, bool images) {
  const auto refuse = [&](const char* name) {
    return fail(ErrorKind::invalid_argument, "--{} is for {}", name, images ? "tractograms" : "images (OME-Zarr)");
  };
  for (const char* name :
       {"float16", "float64", "deflate", "linearise", "max-segment-length", "max-segment-mm", "reference"}) {
    if (images && arguments.given(name)) return refuse(name);
  }
  for (const char* name : {"codec", "pyramid", "ome-version", "complete"}) {
    if (!images && arguments.given(name)) return refuse(name);
  }
  return {};
}

Status run_convert(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const ZarrConversion conversion, find_zarr_conversion(arguments.text("IN"), arguments.text("OUT")));
  CGL_TRY(check_options(arguments, conversion != ZarrConversion::none));
  if (conversion != ZarrConversion::none) return run_zarr_conversion(conversion, arguments, context);
  return run_tractogram_conversion(arguments, context);
}

std::vector<Argument> convert_arguments() {
  std::vector<Argument> list = {{.name = "IN",
                                 .type = ArgumentType::file_in,
                                 .help = "the tractogram or image to read",
                                 .positional = true,
                                 .required = true},
                                {.name = "OUT",
                                 .type = ArgumentType::text,
                                 .help = "what to write: the name says the format",
                                 .positional = true,
                                 .required = true}};
  for (Argument& argument : layout_arguments()) list.push_back(std::move(argument));
  list.push_back({.name = "linearise",
                  .type = ArgumentType::real,
                  .help = "drop points while the line stays within this distance of each of them",
                  .metavar = "TOL_MM",
                  .unit = "mm",
                  .range = {.minimum = 0}});
  list.push_back({.name = "max-segment-length",
                  .type = ArgumentType::real,
                  .help = "the longest segment that --linearise makes",
                  .unit = "mm",
                  .range = {.minimum = 0, .above = true},
                  .default_text = "10"});
  list.push_back({.name = "max-segment-mm",
                  .type = ArgumentType::real,
                  .help = "the same as --max-segment-length, its older name",
                  .unit = "mm",
                  .range = {.minimum = 0, .above = true}});
  list.push_back({.name = "reference",
                  .type = ArgumentType::file_in,
                  .help = "NIfTI image, TRK or TRX whose grid the output gets; needed from TCK to TRK or TRX",
                  .metavar = "IMAGE"});
  list.push_back({.name = "codec",
                  .type = ArgumentType::text,
                  .help = "to OME-Zarr: none, zstd, gzip, blosc-lz4, ..., with a level as zstd:5",
                  .metavar = "CODEC",
                  .default_note = "none (0.5), zstd (0.4)"});
  list.push_back({.name = "pyramid",
                  .type = ArgumentType::text,
                  .help = "to OME-Zarr: so many levels in all, or auto: until a level is one chunk",
                  .metavar = "N|auto",
                  .default_note = "1"});
  list.push_back({.name = "ome-version",
                  .type = ArgumentType::choice,
                  .help = "to OME-Zarr: its version; 0.4 is Zarr v2",
                  .default_note = "0.5",
                  .choices = {"0.4", "0.5"}});
  list.push_back({.name = "complete",
                  .type = ArgumentType::flag,
                  .help = "from OME-Zarr: a chunk that is not stored is a failure"});
  return list;
}

}  // namespace

Verb convert_verb() {
  return {
      .name = "convert",
      .summary = "write a tractogram or an image in another format: TRX, TRK, TCK; NIfTI, OME-Zarr",
      .description =
          "Reads a tractogram (TRK, TRK.GZ, TCK, TRX as archive or folder; told apart by content) and writes it in the "
          "format that the name of the output says: .trk, .tck, .trx, or a TRX folder when the name ends in / or "
          ".trx.d. "
          "It works in a stream: the size of the file does not matter.\n\n"
          "Per-point and per-streamline data and groups are kept where the target can hold them; a warning names what "
          "is lost. Checksums of the input are verified. Beside the output a sidecar OUT.json holds the parameters and "
          "the hash of the file, by which damage is found later.\n\n"
          "A NIfTI image becomes OME-Zarr where the name of the output ends in .zarr or .zarr.zip, with dimensions "
          "(t,) "
          "z, y, x and the voxel size in millimetres; OME-Zarr becomes NIfTI (.nii, .nii.gz). The affine and what else "
          "the header says are kept in an attribute, so that the way back gives the same data and affine; OME-Zarr of "
          "others gets the affine of its scale, translation and units.",
      .arguments = convert_arguments(),
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress},
      .examples = {{"cingulum convert bundle.trk bundle.trx", "TRK to TRX, with its fields"},
                   {"cingulum convert tracks.tck tracks.trx --reference fa.nii.gz", "TCK knows no grid"},
                   {"cingulum convert whole.trx small.trx --float16 --linearise 0.1",
                    "a tenth of the size, for display"},
                   {"cingulum convert t1.nii.gz t1.ome.zarr --pyramid auto", "an image for viewers of OME-Zarr"},
                   {"cingulum convert volume.ome.zarr volume.nii.gz", "the finest level as NIfTI"}},
      .references =
          {"Presseau et al. 2015, A new compression format for fiber tracking datasets, NeuroImage 109:73-83"},
      .run = run_convert,
  };
}

}  // namespace cingulum
