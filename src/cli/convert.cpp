// `cingulum convert`: a tractogram in another format, in a stream. Images (NIfTI, OME-Zarr) are zarr_convert.cpp's.
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/elapsed.hpp"
#include "base/interrupt.hpp"
#include "base/json_text.hpp"
#include "base/option_name.hpp"
#include "base/quantity.hpp"
#include "cli/verb.hpp"
#include "cli/zarr_actions.hpp"
#include "formats/nifti.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram.hpp"
#include "formats/trk.hpp"
#include "formats/trx.hpp"
#include "runs/layout_parameters.hpp"
#include "streamlines/linearise.hpp"

namespace cingulum {

Verb convert_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr ElementType double_type = {ElementType::Code::floating, 64};

bool is_trx(TractogramFormat format) {
  return format == TractogramFormat::trx || format == TractogramFormat::trx_folder;
}

Result<ImageGeometry> read_reference(const fs::path& path) {
  const std::string& name = path.native();
  if (name.ends_with(".nii") || name.ends_with(".nii.gz")) {
    CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(path));
    return reader.header().geometry;
  }
  CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(path));
  if (!reader->layout().reference) {
    return fail(ErrorKind::invalid_argument,
                "--reference {}: {} files have no grid; name a NIfTI image, a TRK or a TRX", name,
                tractogram_format_name(reader->layout().format));
  }
  return *reader->layout().reference;
}

// What of the source's fields goes into the target, under which names, and what is said about the rest.
struct FieldPlan {
  std::vector<std::size_t> kept_point_fields;  // indices in the source
  std::vector<std::size_t> kept_streamline_fields;
  std::vector<std::string> warnings;
  std::vector<std::string> lost;  // "fa (per point)"
};

// A name that TRX can hold and that is not taken.
std::string trx_name(const std::string& name, std::set<std::string>& taken) {
  std::string plain;
  for (const char c : name.substr(0, 180)) {
    const bool bad = static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '.' || c == '/' || c == '\\' || c == ':';
    plain.push_back(bad ? '_' : c);
  }
  if (plain.empty()) plain = "unnamed";
  std::string unique = plain;
  for (int i = 2; !taken.insert(unique).second; ++i) unique = fmt::format("{}_{}", plain, i);
  return unique;
}

bool exact_as_float32(ElementType type) {
  if (type.code == ElementType::Code::floating) return type.bits <= 32;
  return type.bits <= 16;
}

void plan_fields(const char* kind, const std::vector<DataField>& source, TractogramFormat target,
                 std::vector<std::size_t>& kept, std::vector<DataField>& fields, FieldPlan& plan) {
  std::set<std::string> taken;
  const auto lose = [&](const DataField& field) { plan.lost.push_back(fmt::format("{} (per {})", field.name, kind)); };
  for (std::size_t i = 0; i < source.size(); ++i) {
    DataField field = source[i];
    if (target == TractogramFormat::tck) {
      lose(field);
      continue;
    }
    if (target == TractogramFormat::trk) {
      if (const Status fits = check_trk_field(field); !fits || fields.size() == trk_most_fields) {
        if (!fits) plan.warnings.push_back(with_option_names(fits.error()));
        lose(field);
        continue;
      }
      if (!exact_as_float32(field.type)) {
        plan.warnings.push_back(
            fmt::format("the field {} (per {}) is {} and is rounded to float32, the only type of TRK", field.name, kind,
                        field.type.name()));
      }
    } else {
      field.name = trx_name(field.name, taken);
      if (field.name != source[i].name) {
        plan.warnings.push_back(
            fmt::format("the field '{}' (per {}) is named '{}' in TRX", source[i].name, kind, field.name));
      }
    }
    kept.push_back(i);
    fields.push_back(std::move(field));
  }
}

void keep_only(const std::vector<std::size_t>& kept, std::vector<std::vector<std::byte>>& data) {
  std::vector<std::vector<std::byte>> result;
  result.reserve(kept.size());
  for (const std::size_t index : kept) result.push_back(std::move(data[index]));
  data = std::move(result);
}

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

Result<TractogramLayout> plan_layout(const ParsedArguments& arguments, const TractogramLayout& source,
                                     TractogramFormat format, FieldPlan& plan) {
  TractogramLayout layout;
  layout.format = format;
  layout.reference = source.reference;
  if (arguments.has("reference")) {
    CGL_TRY_ASSIGN(layout.reference, read_reference(arguments.text("reference")));
  }
  if (!layout.reference && format != TractogramFormat::tck) {
    return fail(
        ErrorKind::invalid_argument,
        "{} needs the grid of an image and {} files have none; name it by --reference IMAGE (a NIfTI image, a TRK "
        "or a TRX)",
        tractogram_format_name(format), tractogram_format_name(source.format));
  }
  layout.position_type = asked_position_type(layout_of(arguments)).value_or(source.position_type);
  layout.deflated = arguments.flag("deflate");
  if (format == TractogramFormat::trk && source.position_type == double_type) {
    plan.warnings.emplace_back("positions are float64 and are rounded to float32, the only type of TRK");
  }
  plan_fields("point", source.point_fields, format, plan.kept_point_fields, layout.point_fields, plan);
  plan_fields("streamline", source.streamline_fields, format, plan.kept_streamline_fields, layout.streamline_fields,
              plan);
  if (format == TractogramFormat::tck) layout.notes = source.notes;
  return layout;
}

Status write_groups(std::vector<TractogramGroup> groups, TractogramWriter& writer, FieldPlan& plan) {
  std::set<std::string> taken;
  for (TractogramGroup& group : groups) {
    const std::string name = trx_name(group.name, taken);
    if (name != group.name) plan.warnings.push_back(fmt::format("the group '{}' is named '{}'", group.name, name));
    group.name = name;
    CGL_TRY(writer.add_group(std::move(group)));
  }
  return {};
}

Status convert_tractogram(const ParsedArguments& arguments, VerbContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const fs::path input = arguments.text("IN");
  fs::path output = arguments.text("OUT");
  CGL_TRY_ASSIGN(const TractogramFormat format, format_of_name(output));
  if (!output.has_filename()) output = output.parent_path();
  const WriteOptions options = context.write_options();
  CGL_TRY(check_tractogram_output(output, format, options));
  CGL_TRY(check_layout_options(layout_of(arguments), format, output));
  CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(input));

  FieldPlan plan;
  CGL_TRY_ASSIGN(TractogramLayout layout, plan_layout(arguments, reader->layout(), format, plan));
  if (layout.deflated) {
    CGL_TRY_ASSIGN(layout.deflating_pool, context.pool());
  }
  CGL_TRY_ASSIGN(std::vector<TractogramGroup> groups, reader->groups());
  if (!is_trx(format)) {
    for (const TractogramGroup& group : groups) plan.lost.push_back(fmt::format("{} (group)", group.name));
  }
  std::optional<LinearisePlan> linearise_plan;
  if (arguments.given("max-segment-mm") && arguments.given("max-segment-length")) {
    return fail(ErrorKind::invalid_argument, "--max-segment-length and --max-segment-mm are the same; give one");
  }
  if (arguments.has("linearise")) {
    const char* const longest = arguments.given("max-segment-mm") ? "max-segment-mm" : "max-segment-length";
    linearise_plan =
        LinearisePlan{.tolerance_mm = arguments.real("linearise"), .max_segment_mm = arguments.real(longest)};
  }
  const auto sidecar = std::make_shared<OutputSidecar>(output, options);
  CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(output, layout, with_sidecar(options, sidecar)));
  if (is_trx(format)) CGL_TRY(write_groups(std::move(groups), *writer, plan));
  if (!plan.lost.empty()) {
    plan.warnings.push_back(fmt::format("{} cannot hold, and {} is lost: {}", tractogram_format_name(format),
                                        plan.lost.size() == 1 ? "this" : "all of this", fmt::join(plan.lost, ", ")));
  }

  std::uint64_t streamlines = 0;
  std::uint64_t points_read = 0;
  std::uint64_t points = 0;
  {
    const auto total = static_cast<std::uint64_t>(std::max<std::int64_t>(0, reader->layout().streamline_count));
    Progress progress("converting", total, "streamlines", context.progress_options());
    TractogramBatch batch;
    while (true) {
      CGL_TRY(check_interrupt());
      CGL_TRY_ASSIGN(const bool more, reader->next(batch, default_batch_points, false));
      if (!more) break;
      keep_only(plan.kept_point_fields, batch.point_data);
      keep_only(plan.kept_streamline_fields, batch.streamline_data);
      points_read += batch.point_count();
      if (linearise_plan) {
        CGL_TRY_ASSIGN(batch, linearise(batch, layout, *linearise_plan));
      }
      CGL_TRY(writer->append(batch));
      points += batch.point_count();
      streamlines += batch.streamline_count();
      progress.advance(batch.streamline_count());
    }
    progress.finish();
  }
  // Readers add to their warnings until the end.
  for (const std::string& warning : reader->layout().warnings) {
    plan.warnings.push_back(fmt::format("{}: {}", input.native(), warning));
  }
  for (const std::string& warning : plan.warnings) log_warning("{}", warning);

  CGL_TRY_ASSIGN(const std::string input_hash, hash_of_file(input));
  Json parameters = {{"format", std::string(tractogram_format_name(format))},
                     {"position_type", layout.position_type.name()},
                     {"deflated", layout.deflated},
                     {"reference", arguments.has("reference") ? Json(arguments.text("reference")) : Json()},
                     {"linearise_mm", linearise_plan ? Json(linearise_plan->tolerance_mm) : Json()},
                     {"max_segment_mm", linearise_plan ? Json(linearise_plan->max_segment_mm) : Json()}};
  sidecar->describe([&]() -> Json {
    return {{"command", "convert"},
            {"parameters", parameters},
            {"inputs", Json::array({{{"file", input.filename().native()}, {"xxh3_128", input_hash}}})},
            {"streamlines", streamlines},
            {"points", points},
            {"lost", plan.lost},
            {"warnings", plan.warnings},
            {"run", run_facts(context.common().threads, seconds_since(start))}};
  });
  CGL_TRY(writer->commit());

  if (context.common().json) {
    const Json json = {{"input", input.native()},
                       {"output", output.native()},
                       {"format", std::string(tractogram_format_name(format))},
                       {"position_type", layout.position_type.name()},
                       {"streamlines", streamlines},
                       {"points", points},
                       {"points_read", points_read},
                       {"lost", plan.lost},
                       {"warnings", plan.warnings}};
    context.print(json_text(json));
    return {};
  }
  std::string text = fmt::format("{}: {}, {} streamlines, {} points", output.native(), tractogram_format_name(format),
                                 format_count(streamlines), format_count(points));
  if (linearise_plan) text += fmt::format(" of {}", format_count(points_read));
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
  return convert_tractogram(arguments, context);
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
