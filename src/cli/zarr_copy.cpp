// `cingulum zarr copy`: an array or an image in another layout.
#include <fmt/ranges.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/disk_space.hpp"
#include "base/elapsed.hpp"
#include "base/json_text.hpp"
#include "base/option_name.hpp"
#include "base/quantity.hpp"
#include "cli/zarr_actions.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "zarr/hierarchy_copy.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The parts of "64,64,64" or "64x64x64".
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = std::min(text.find_first_of(",x"), text.size());
    parts.push_back(trim(text.substr(0, end)));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

Result<zarr::Shape> parse_shape(const char* option, const std::string& text) {
  zarr::Shape shape;
  for (const std::string_view part : parts_of(text)) {
    const auto extent = parse_integer(part);
    if (!extent || *extent < 1) {
      return fail(ErrorKind::invalid_argument, "--{} '{}': accepted are whole numbers from 1 on, as 64,64,64", option,
                  text);
    }
    shape.push_back(static_cast<std::uint64_t>(*extent));
  }
  return shape;
}

// "10:20,:,5:": from and up to; one of them, or both, may be left out. A single number is one element.
Result<std::vector<zarr::CropRange>> parse_crop(const std::string& text) {
  const auto refuse = [&] {
    return fail(ErrorKind::invalid_argument,
                "--crop '{}': accepted is a range a dimension, as 0:64,:,100:200 (from, and up to but without)", text);
  };
  std::vector<zarr::CropRange> ranges;
  for (const std::string_view part : parts_of(text)) {
    zarr::CropRange range;
    const std::size_t colon = part.find(':');
    const std::string_view first = part.substr(0, colon);
    if (!first.empty()) {
      const auto begin = parse_integer(first);
      if (!begin || *begin < 0) return refuse();
      range.begin = static_cast<std::uint64_t>(*begin);
    }
    if (colon == std::string_view::npos) {
      if (first.empty()) return refuse();
      range.end = range.begin + 1;
    } else if (const std::string_view last = part.substr(colon + 1); !last.empty()) {
      const auto end = parse_integer(last);
      if (!end || *end < 0) return refuse();
      range.end = static_cast<std::uint64_t>(*end);
    }
    ranges.push_back(range);
  }
  return ranges;
}

Result<std::vector<double>> parse_scale(const std::string& text) {
  std::vector<double> scale;
  for (const std::string_view part : parts_of(text)) {
    const auto number = parse_real(part);
    if (!number || !(*number > 0)) {
      return fail(ErrorKind::invalid_argument, "--scale '{}': accepted are numbers above 0, as 3.5,10,10", text);
    }
    scale.push_back(*number);
  }
  return scale;
}

Result<zarr::CopyRequest> request_of(const ParsedArguments& arguments) {
  zarr::CopyRequest request;
  if (arguments.given("path")) request.path = arguments.text("path");
  CGL_TRY_ASSIGN(request.layout.format, asked_zarr_format(arguments));
  if (arguments.given("chunks")) {
    CGL_TRY_ASSIGN(request.layout.chunks, parse_shape("chunks", arguments.text("chunks")));
  }
  if (arguments.given("shards")) {
    if (request.layout.format == 2 && arguments.text("shards") != "none") {
      return fail(ErrorKind::invalid_argument, "--shards {}: Zarr v2 has no shards", arguments.text("shards"));
    }
    request.layout.sharded = arguments.text("shards") != "none";
    if (request.layout.sharded) {
      CGL_TRY_ASSIGN(request.layout.shards, parse_shape("shards", arguments.text("shards")));
    }
  }
  if (arguments.given("codec")) {
    CGL_TRY_ASSIGN(request.layout.codec, zarr::parse_codec_choice(arguments.text("codec")));
  }
  if (arguments.given("crop")) {
    CGL_TRY_ASSIGN(request.crop, parse_crop(arguments.text("crop")));
  }
  if (arguments.given("pyramid")) {
    CGL_TRY_ASSIGN(request.pyramid, parse_pyramid(arguments.text("pyramid")));
  }
  if (arguments.given("downsampling")) {
    request.downsampling =
        arguments.text("downsampling") == "nearest" ? zarr::Downsampling::nearest : zarr::Downsampling::mean;
  }
  if (arguments.given("scale")) {
    CGL_TRY_ASSIGN(request.scale, parse_scale(arguments.text("scale")));
  }
  if (arguments.given("unit")) request.unit = arguments.text("unit");
  request.window = arguments.flag("window");
  request.image = arguments.given("ome-version") || arguments.given("scale") || arguments.given("unit");
  return request;
}

// What was asked for, without what is the same for everybody.
Json parameters_of(const ParsedArguments& arguments) {
  Json parameters = Json::object();
  for (const char* name : {"path", "format", "ome-version", "chunks", "shards", "codec", "crop", "pyramid",
                           "downsampling", "scale", "unit"}) {
    if (arguments.given(name)) parameters[name] = arguments.text(name);
  }
  for (const char* name : {"window", "complete"}) {
    if (arguments.flag(name)) parameters[name] = true;
  }
  return parameters;
}

}  // namespace

Result<int> asked_zarr_format(const ParsedArguments& arguments) {
  const bool by_format = arguments.given("format");
  const bool by_version = arguments.given("ome-version");
  const int format = by_format && arguments.text("format") == "2" ? 2 : 3;
  const int version_format = by_version && arguments.text("ome-version") == "0.4" ? 2 : 3;
  if (by_format && by_version && format != version_format) {
    return fail(ErrorKind::invalid_argument, "--format {} and --ome-version {}: 0.4 is written in Zarr v2, 0.5 in v3",
                format, arguments.text("ome-version"));
  }
  return by_format ? format : version_format;
}

Result<zarr::PyramidChoice> parse_pyramid(const std::string& text) {
  if (text == "auto") return zarr::PyramidChoice{};
  const auto levels = parse_integer(text);
  if (!levels || *levels < 1 || *levels > 64) {
    return fail(ErrorKind::invalid_argument, "--pyramid '{}': accepted are 1 to 64 levels, or auto", text);
  }
  return zarr::PyramidChoice{static_cast<std::size_t>(*levels)};
}

Status run_zarr_copy(const ParsedArguments& arguments, VerbContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> paths = arguments.texts("paths");
  if (paths.size() != 2) {
    return fail(ErrorKind::invalid_argument, "cingulum zarr copy takes a source and a destination, {} given",
                paths.size());
  }
  const fs::path input = paths[0];
  fs::path output = paths[1];
  if (!output.has_filename()) output = output.parent_path();
  CGL_TRY_ASSIGN(const zarr::CopyRequest request, request_of(arguments));
  WriteOptions write = context.write_options();
  CGL_TRY(check_sidecar_output(output, write));
  CGL_TRY_ASSIGN(write.pool, context.pool());
  CGL_TRY_ASSIGN(const std::shared_ptr<const zarr::Store> store, zarr::Store::open(input));
  CGL_TRY_ASSIGN(const zarr::CopyPlan plan, zarr::plan_copy(store, request));
  write.expected_bytes = plan.needed_bytes();
  CGL_TRY(check_space(FileLayer::system(), output.native(),
                      output.has_parent_path() ? output.parent_path().native() : std::string("."),
                      write.expected_bytes));
  for (const std::string& note : plan.notes) log_warning("{}", note);

  const auto sidecar = std::make_shared<OutputSidecar>(output, write);
  CGL_TRY_ASSIGN(const std::unique_ptr<zarr::StoreOutput> target,
                 zarr::new_hierarchy(output, with_sidecar(write, sidecar)));
  zarr::CopyOptions options;
  options.pool = write.pool;
  options.run.progress = context.progress_options();
  options.complete = arguments.flag("complete");
  options.memory_bytes = arguments.bytes("memory");
  CGL_TRY_ASSIGN(const zarr::CopyReport report, zarr::run_copy(*store, plan, *target, output, options));
  if (report.read.filled_chunks > 0) {
    log_warning("{}: {} of {} chunks are not stored and were read as the fill value", input.native(),
                format_count(report.read.filled_chunks), format_count(report.read.chunks));
  }
  CGL_TRY_ASSIGN(const std::string input_hash, hash_of_file(input));
  sidecar->describe([&]() -> Json {
    return {{"command", "zarr copy"},
            {"parameters", parameters_of(arguments)},
            {"inputs", Json::array({{{"file", input.filename().native()}, {"xxh3_128", input_hash}}})},
            {"filled_chunks", report.read.filled_chunks},
            {"run", run_facts(context.common().threads, seconds_since(start))}};
  });
  CGL_TRY(target->commit());

  std::uint64_t elements = 0;
  Json arrays = Json::array();
  for (const zarr::PlannedArray& array : plan.arrays) {
    elements += array.metadata.bytes();
    arrays.push_back({{"path", array.path},
                      {"shape", array.metadata.shape},
                      {"type", array.metadata.type.name()},
                      {"codecs", zarr::describe_coding(array.metadata)}});
  }
  if (context.common().json) {
    const Json json = {{"input", input.native()},
                       {"output", output.native()},
                       {"zarr_format", plan.format},
                       {"arrays", std::move(arrays)},
                       {"levels_made", report.made_levels},
                       {"chunks_read", report.read.chunks},
                       {"filled_chunks", report.read.filled_chunks},
                       {"bytes", elements},
                       {"notes", plan.notes}};
    context.print(json_text(json));
    return {};
  }
  context.print_format("{}: Zarr v{}, {} array{}, {}{}\n", output.native(), plan.format, plan.arrays.size(),
                       plan.arrays.size() == 1 ? "" : "s", format_bytes(elements),
                       report.made_levels > 0 ? fmt::format(", {} levels made", report.made_levels) : "");
  return {};
}

}  // namespace cingulum
