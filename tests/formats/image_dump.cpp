// Images and gradient tables for the Python tests, without any verb in between:
//   image_dump read FILE RAW           the header as JSON on stdout, the values as float64 in RAW
//   image_dump read-float FILE RAW     the same through float32
//   image_dump read-many               lines "FILE<TAB>RAW" on stdin, one line of JSON each ("error" when refused)
//   image_dump write SPEC RAW FILE     writes float64 values of RAW as the JSON file SPEC says, with a sidecar if it
//   does image_dump sidecar FILE...         writes FILE.json with the hash of FILE image_dump fsl BVALS BVECS | mrtrix
//   TABLE    b-values and vectors as JSON
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/read_file.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"
#include "formats/nifti_header.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "support/sidecar_beside.hpp"

namespace {

using namespace cingulum;
using Json = nlohmann::ordered_json;

Json to_json(const NiftiHeader& header) {
  constexpr const char* sources[] = {"sform", "qform", "pixdim"};
  return {{"version", header.version},
          {"big_endian", header.big_endian},
          {"compressed", header.compressed},
          {"type", nifti_datatype_name(header.datatype)},
          {"shape", header.shape},
          {"slope", header.slope},
          {"intercept", header.intercept},
          {"affine_source", sources[static_cast<int>(header.affine_source)]},
          {"affine", header.geometry.voxel_to_world.rows},
          {"voxel_mm", header.geometry.voxel_mm()},
          {"axis_codes", header.geometry.axis_codes()},
          {"sform", header.sform.rows},
          {"qform", header.qform.rows},
          {"sform_code", header.sform_code},
          {"qform_code", header.qform_code},
          {"data_offset", header.data_offset},
          {"warnings", header.warnings}};
}

template <class Value>
Result<Json> read(const std::string& path, const std::string& raw) {
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(path));
  std::vector<Value> values(static_cast<std::size_t>(reader.header().geometry.voxel_count()));
  std::ofstream out(raw, std::ios::binary);
  while (reader.volumes_read() < reader.header().volume_count()) {
    CGL_TRY(reader.next_volume(std::span<Value>(values)));
    const std::vector<double> wide(values.begin(), values.end());
    out.write(reinterpret_cast<const char*>(wide.data()), static_cast<std::streamsize>(wide.size() * sizeof(double)));
  }
  return to_json(reader.header());
}

Result<Json> read_many() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::size_t tab = line.find('\t');
    auto header = read<double>(line.substr(0, tab), line.substr(tab + 1));
    const Json json = header ? *header : Json{{"error", header.error().message()}};
    fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
    std::fflush(stdout);
  }
  return Json();
}

Result<Json> write(const std::string& spec_path, const std::string& raw, const std::string& path) {
  CGL_TRY_ASSIGN(const std::string text, read_text_file(spec_path));
  CGL_TRY_ASSIGN(const Json spec, parse_json(text));
  CGL_TRY_ASSIGN(const std::vector<std::byte> bytes, read_file(raw));
  ImageGeometry geometry;
  std::vector<std::int64_t> further;
  for (std::size_t i = 0; i < spec["shape"].size(); ++i) {
    const std::int64_t length = spec["shape"][i];
    if (i < 3) geometry.size[i] = length;
    if (i >= 3) further.push_back(length);
  }
  for (std::size_t i = 0; i < 12; ++i) geometry.voxel_to_world.rows[i] = spec["affine"][i];
  NiftiWriteOptions options;
  options.file.force = spec.value("force", true);
  if (spec.contains("sidecar")) {
    const auto sidecar = std::make_shared<OutputSidecar>(path, options.file);
    sidecar->describe([content = spec["sidecar"]] { return content; });
    options.file = with_sidecar(options.file, sidecar);
  }
  const std::string type = spec.value("type", "float32");
  options.type.code = type.starts_with("int")    ? ElementType::Code::integer
                      : type.starts_with("uint") ? ElementType::Code::unsigned_integer
                                                 : ElementType::Code::floating;
  options.type.bits = static_cast<std::uint8_t>(std::stoi(type.substr(type.find_first_of("0123456789"))));
  options.slope = spec.value("slope", 1.0);
  options.intercept = spec.value("intercept", 0.0);
  options.version = spec.value("version", 0);
  options.compression_level = spec.value("level", 1);
  options.description = spec.value("description", "");
  options.intent_name = spec.value("intent_name", "");
  options.intent_code = spec.value("intent_code", 0);
  CGL_TRY_ASSIGN(const auto pool, ThreadPool::create(spec.value("threads", 1)));
  options.pool = pool.get();
  CGL_TRY_ASSIGN(NiftiWriter writer, NiftiWriter::create(path, geometry, further, options));
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  CGL_TRY(writer.append(std::span<const double>(values)));
  CGL_TRY(writer.commit());
  return Json{{"written", values.size()}};
}

Json to_json(const GradientTable& table) {
  Json vectors = Json::array();
  for (const auto& vector : table.vectors) vectors.push_back({vector.x, vector.y, vector.z});
  Json shells = Json::array();
  for (const GradientShell& shell : find_shells(table)) shells.push_back({shell.b_value, shell.volumes});
  return {{"b_values", table.b_values},
          {"vectors", vectors},
          {"shells", shells},
          {"bvals_text", format_bvals(table)},
          {"bvecs_text", format_bvecs(table)},
          {"mrtrix_text", format_mrtrix_table(table)},
          {"warnings", table.warnings}};
}

Result<Json> run(const std::vector<std::string>& words) {
  const std::string mode = words.empty() ? "" : words[0];
  if (mode == "read" && words.size() == 3) return read<double>(words[1], words[2]);
  if (mode == "read-float" && words.size() == 3) return read<float>(words[1], words[2]);
  if (mode == "read-many" && words.size() == 1) return read_many();
  if (mode == "write" && words.size() == 4) return write(words[1], words[2], words[3]);
  if (mode == "directions" && words.size() == 5) {
    CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(words[1]));
    CGL_TRY_ASSIGN(const GradientTable table, read_fsl_gradients(words[3], words[4]));
    const GradientFrame frame = words[2] == "fsl"     ? GradientFrame::fsl
                                : words[2] == "voxel" ? GradientFrame::voxel
                                                      : GradientFrame::world;
    Json json = Json::array();
    for (const auto& vector : directions_in_image_axes(table, frame, reader.header().geometry.voxel_to_world)) {
      json.push_back({vector.x, vector.y, vector.z});
    }
    return json;
  }
  if (mode == "sidecar") {
    for (std::size_t i = 1; i < words.size(); ++i) {
      CGL_TRY(test::write_sidecar_beside(words[i], Json::object()));
    }
    return Json();
  }
  if (mode == "fsl" && words.size() == 3) {
    CGL_TRY_ASSIGN(const GradientTable table, read_fsl_gradients(words[1], words[2]));
    return to_json(table);
  }
  if (mode == "mrtrix" && words.size() == 2) {
    CGL_TRY_ASSIGN(const GradientTable table, read_mrtrix_gradients(words[1]));
    return to_json(table);
  }
  return fail(ErrorKind::invalid_argument, "usage: see image_dump.cpp");
}

}  // namespace

int main(int count, char** words) {
  const auto result = run({words + 1, words + count});
  if (!result) {
    fmt::print(stderr, "image_dump: {}\n", result.error().message());
    return 1;
  }
  if (!result->is_null()) fmt::print("{}\n", result->dump(-1, ' ', false, Json::error_handler_t::replace));
  return 0;
}
