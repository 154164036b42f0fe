// `cingulum convert` from NIfTI to OME-Zarr and back.
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/disk_space.hpp"
#include "base/elapsed.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/zarr_actions.hpp"
#include "formats/content_kind.hpp"
#include "formats/nifti.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/nifti_image.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool names_zarr(const fs::path& path) {
  const std::string name = path.has_filename() ? path.native() : path.parent_path().native();
  return name.ends_with(".zarr") || name.ends_with(".zarr.zip");
}

bool names_nifti(const fs::path& path) {
  return path.native().ends_with(".nii") || path.native().ends_with(".nii.gz");
}

Json about_conversion(const ParsedArguments& arguments, const fs::path& input, const std::string& input_hash) {
  Json parameters = Json::object();
  for (const char* name : {"codec", "pyramid", "ome-version"}) {
    if (arguments.given(name)) parameters[name] = arguments.text(name);
  }
  return {{"command", "convert"},
          {"parameters", std::move(parameters)},
          {"inputs", Json::array({{{"file", input.filename().native()}, {"xxh3_128", input_hash}}})}};
}

Status convert_from_nifti(const ParsedArguments& arguments, VerbContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const fs::path input = arguments.text("IN");
  fs::path output = arguments.text("OUT");
  if (!output.has_filename()) output = output.parent_path();
  WriteOptions write = context.write_options();
  CGL_TRY(check_sidecar_output(output, write));
  CGL_TRY_ASSIGN(write.pool, context.pool());
  zarr::CopyLayout layout;
  layout.format = arguments.given("ome-version") && arguments.text("ome-version") == "0.4" ? 2 : 3;
  if (arguments.given("codec")) {
    CGL_TRY_ASSIGN(layout.codec, zarr::parse_codec_choice(arguments.text("codec")));
  }
  zarr::PyramidChoice pyramid{1};
  if (arguments.given("pyramid")) {
    CGL_TRY_ASSIGN(pyramid, parse_pyramid(arguments.text("pyramid")));
  }
  zarr::NiftiImagePlan plan;
  std::vector<std::string> warnings;
  {
    CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(input));
    fs::path name = input.filename();
    while (name.has_extension()) name = name.stem();
    CGL_TRY_ASSIGN(plan, add_file_context(zarr::plan_nifti_image(reader.header(), name.string(), layout, pyramid),
                                          "converting", input.native()));
    warnings = reader.header().warnings;
  }
  warnings.insert(warnings.end(), plan.notes.begin(), plan.notes.end());
  for (const std::string& warning : warnings) log_warning("{}: {}", input.native(), warning);
  write.expected_bytes = plan.needed_bytes();
  const auto sidecar = std::make_shared<OutputSidecar>(output, write);
  CGL_TRY_ASSIGN(const std::unique_ptr<zarr::StoreOutput> target,
                 zarr::new_hierarchy(output, with_sidecar(write, sidecar)));
  zarr::NiftiConversionOptions options;
  options.pool = write.pool;
  options.run.progress = context.progress_options();
  CGL_TRY(zarr::write_nifti_image(input, plan, *target, options));
  CGL_TRY_ASSIGN(const std::string input_hash, hash_of_file(input));
  sidecar->describe([&]() -> Json {
    Json json = about_conversion(arguments, input, input_hash);
    json["warnings"] = warnings;
    json["run"] = run_facts(context.common().threads, seconds_since(start));
    return json;
  });
  CGL_TRY(target->commit());
  const zarr::ArrayMetadata& finest = plan.levels.front();
  if (context.common().json) {
    const Json json = {{"input", input.native()},
                       {"output", output.native()},
                       {"format", plan.format == 2 ? "OME-Zarr 0.4" : "OME-Zarr 0.5"},
                       {"shape", finest.shape},
                       {"type", finest.type.name()},
                       {"levels", plan.levels.size()},
                       {"warnings", warnings}};
    context.print(json_text(json));
    return {};
  }
  context.print_format("{}: OME-Zarr {}, {}, {}, {} level{}\n", output.native(), plan.format == 2 ? "0.4" : "0.5",
                       fmt::join(finest.shape, " x "), finest.type.name(), plan.levels.size(),
                       plan.levels.size() == 1 ? "" : "s");
  return {};
}

Status convert_to_nifti(const ParsedArguments& arguments, VerbContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const fs::path input = arguments.text("IN");
  const fs::path output = arguments.text("OUT");
  const WriteOptions write = context.write_options();
  CGL_TRY(check_output(output, write));
  CGL_TRY(check_sidecar_output(output, write));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(const std::shared_ptr<const zarr::Store> store, zarr::Store::open(input));
  CGL_TRY_ASSIGN(const zarr::ImageForNifti image, zarr::open_for_nifti(store, ""));
  for (const std::string& note : image.notes) log_warning("{}: {}", input.native(), note);
  const auto sidecar = std::make_shared<OutputSidecar>(output, write);
  NiftiWriteOptions options;
  options.file = with_sidecar(write, sidecar);
  options.type = image.type;
  options.slope = image.slope;
  options.intercept = image.intercept;
  options.intent_code = image.intent_code;
  options.intent_name = image.intent_name;
  options.description = image.description;
  options.pool = pool;
  CGL_TRY_ASSIGN(NiftiWriter writer, NiftiWriter::create(output, image.geometry, image.further_axes, options));
  zarr::NiftiConversionOptions conversion;
  conversion.pool = pool;
  conversion.run.progress = context.progress_options();
  CGL_TRY_ASSIGN(const zarr::ReadReport report,
                 zarr::write_as_nifti(image, writer, arguments.flag("complete"), conversion));
  if (report.filled_chunks > 0) {
    log_warning("{}: {} of {} chunks are not stored and were read as the fill value", input.native(),
                format_count(report.filled_chunks), format_count(report.chunks));
  }
  CGL_TRY_ASSIGN(const std::string input_hash, hash_of_file(input));
  sidecar->describe([&]() -> Json {
    Json json = about_conversion(arguments, input, input_hash);
    json["warnings"] = image.notes;
    json["filled_chunks"] = report.filled_chunks;
    json["run"] = run_facts(context.common().threads, seconds_since(start));
    return json;
  });
  CGL_TRY(writer.commit());
  std::vector<std::int64_t> shape(image.geometry.size.begin(), image.geometry.size.end());
  shape.insert(shape.end(), image.further_axes.begin(), image.further_axes.end());
  if (context.common().json) {
    const Json json = {{"input", input.native()},
                       {"output", output.native()},
                       {"format", "NIfTI"},
                       {"shape", shape},
                       {"type", image.type.name()},
                       {"affine_kept", image.by_affine},
                       {"filled_chunks", report.filled_chunks},
                       {"warnings", image.notes}};
    context.print(json_text(json));
    return {};
  }
  context.print_format("{}: NIfTI, {}, {}, affine {}\n", output.native(), fmt::join(shape, " x "), image.type.name(),
                       image.by_affine ? "as it was kept" : "by scale and translation");
  return {};
}

}  // namespace

Result<ZarrConversion> find_zarr_conversion(const fs::path& input, const fs::path& output) {
  // What cannot be looked at is told by the reader of its format.
  const auto from_zarr = zarr::is_zarr(input);
  if (from_zarr && *from_zarr) {
    if (names_nifti(output)) return ZarrConversion::to_nifti;
    return fail(ErrorKind::invalid_argument,
                "{}: OME-Zarr is converted to NIfTI (.nii, .nii.gz); `cingulum zarr copy` writes Zarr",
                output.native());
  }
  if (!names_zarr(output)) return ZarrConversion::none;
  CGL_TRY_ASSIGN(const ContentKind kind, find_content_kind(input));
  if (kind == ContentKind::nifti) return ZarrConversion::from_nifti;
  return fail(ErrorKind::invalid_argument, "{}: {} is not converted to OME-Zarr; a NIfTI image is", input.native(),
              content_kind_name(kind));
}

Status run_zarr_conversion(ZarrConversion conversion, const ParsedArguments& arguments, VerbContext& context) {
  return conversion == ZarrConversion::from_nifti ? convert_from_nifti(arguments, context)
                                                  : convert_to_nifti(arguments, context);
}

}  // namespace cingulum
