#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/json_view.hpp"
#include "base/quantity.hpp"
#include "cli/file_report.hpp"
#include "cli/zarr_actions.hpp"
#include "formats/image_geometry.hpp"
#include "formats/nifti.hpp"
#include "formats/nifti_header.hpp"
#include "formats/sidecar.hpp"
#include "formats/verify.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string_view source_name(AffineSource source) {
  switch (source) {
    case AffineSource::sform: return "sform";
    case AffineSource::qform: return "qform";
    case AffineSource::pixdim: return "pixdim";
  }
  return "unknown";
}

struct ValueRange {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  std::uint64_t finite = 0;
  std::uint64_t not_finite = 0;
};

Result<ValueRange> find_range(NiftiReader& reader) {
  return catch_out_of_memory([&]() -> Result<ValueRange> {
    ValueRange range;
    std::vector<double> values(static_cast<std::size_t>(reader.header().geometry.voxel_count()));
    while (reader.volumes_read() < reader.header().volume_count()) {
      CGL_TRY(reader.next_volume(std::span(values)));
      for (const double value : values) {
        if (!std::isfinite(value)) {
          ++range.not_finite;
          continue;
        }
        range.smallest = value < range.smallest ? value : range.smallest;
        range.largest = value > range.largest ? value : range.largest;
        range.sum += value;
        ++range.finite;
      }
    }
    return range;
  });
}

void add_range(FileReport& report, const ValueRange& range) {
  const auto finite = static_cast<double>(range.finite);
  const double mean = range.finite > 0 ? range.sum / finite : std::numeric_limits<double>::quiet_NaN();
  report.json["range"] = {{"smallest", range.finite > 0 ? Json(range.smallest) : Json()},
                          {"largest", range.finite > 0 ? Json(range.largest) : Json()},
                          {"mean", range.finite > 0 ? Json(mean) : Json()},
                          {"not_finite", range.not_finite}};
  std::string text = range.finite > 0
                         ? fmt::format("{:.6g} to {:.6g}, mean {:.6g}", range.smallest, range.largest, mean)
                         : std::string("no finite value");
  if (range.not_finite > 0) text += fmt::format("; {} values are not finite", format_count(range.not_finite));
  report.add("values", text);
}

void add_header(FileReport& report, const NiftiHeader& header) {
  const std::string type = nifti_datatype_name(header.datatype);
  report.title = fmt::format("NIfTI-{} image{}", header.version, header.compressed ? ", gzip" : "");
  report.json["format"] = fmt::format("NIfTI-{}", header.version);
  report.json["compression"] = header.compressed ? "gzip" : "none";
  report.json["shape"] = header.shape;
  report.json["type"] = type;
  report.json["byte_order"] = header.big_endian ? "big" : "little";
  report.json["volumes"] = header.volume_count();
  report.add("size", fmt::format("{}{}", fmt::join(header.shape, " x "),
                                 header.volume_count() > 1
                                     ? fmt::format(" ({} volumes)",
                                                   format_count(static_cast<std::uint64_t>(header.volume_count())))
                                     : ""));
  report.add("type", fmt::format("{}, {}-endian", type, header.big_endian ? "big" : "little"));
  const bool scaled = header.slope != 1 || header.intercept != 0;
  report.json["scaling"] = {{"slope", header.slope}, {"intercept", header.intercept}};
  report.add("scaling", scaled ? fmt::format("stored * {} + {}", header.slope, header.intercept) : "none");
  add_geometry(report, header.geometry);
  report.json["affine_source"] = source_name(header.affine_source);
  report.json["sform_code"] = header.sform_code;
  report.json["qform_code"] = header.qform_code;
  report.json["units"] = {{"space", header.spatial_unit}, {"time", header.time_unit}};
  report.add("affine from", fmt::format("{} (sform code {}, qform code {})", source_name(header.affine_source),
                                        header.sform_code, header.qform_code));
  if (header.intent_code != 0 || !header.intent_name.empty()) {
    report.json["intent"] = {{"code", header.intent_code}, {"name", header.intent_name}};
    report.add("intent", fmt::format("{} {}", header.intent_code, header.intent_name));
  }
  if (!header.description.empty()) {
    report.json["description"] = header.description;
    report.add("description", header.description);
  }
}

}  // namespace

void add_geometry(FileReport& report, const ImageGeometry& geometry) {
  const auto edges = geometry.voxel_mm();
  const Affine& affine = geometry.voxel_to_world;
  report.json["voxel_mm"] = edges;
  report.json["axis_codes"] = geometry.axis_codes();
  Json rows = Json::array();
  for (int r = 0; r < 3; ++r) rows.push_back({affine.at(r, 0), affine.at(r, 1), affine.at(r, 2), affine.at(r, 3)});
  rows.push_back({0, 0, 0, 1});
  report.json["affine"] = rows;
  report.json["determinant"] = affine.determinant();
  report.add("voxel", fmt::format("{:.6g} x {:.6g} x {:.6g} mm", edges[0], edges[1], edges[2]));
  report.add("axes", fmt::format("{} (determinant {})", geometry.axis_codes(),
                                 affine.determinant() > 0 ? "positive" : "negative"));
  for (int r = 0; r < 3; ++r) {
    report.add(r == 0 ? "affine" : "",
               fmt::format("{:>10.5g} {:>10.5g} {:>10.5g} {:>10.5g}", affine.at(r, 0) + 0.0, affine.at(r, 1) + 0.0,
                           affine.at(r, 2) + 0.0, affine.at(r, 3) + 0.0));
  }
}

Status add_checksum(FileReport& report, const fs::path& path, std::string_view inner, bool verify) {
  if (verify) {
    CGL_TRY_ASSIGN(const Verification found, verify_file(path));
    report.json["checksums"] = found.checksums;
    report.json["verified"] = true;
    report.add("checksum", verified_text(found.checksums));
    return {};
  }
  std::vector<std::string> there;
  const auto sidecar = read_sidecar(path);
  if (sidecar && JsonView(*sidecar)["xxh3_128"].is_there()) there.push_back("sidecar XXH3-128");
  if (!inner.empty()) there.emplace_back(inner);
  report.json["checksums"] = there;
  report.json["verified"] = false;
  report.add("checksum", there.empty() ? std::string("no checksum")
                                       : fmt::format("{} (not verified; --verify does)", fmt::join(there, " and ")));
  return {};
}

Result<FileReport> report_image(const fs::path& path, const FileReportOptions& options) {
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(path));
  FileReport report;
  add_header(report, reader.header());
  if (options.range) {
    CGL_TRY_ASSIGN(const ValueRange range, find_range(reader));
    add_range(report, range);
  }
  CGL_TRY(add_checksum(report, path, reader.header().compressed ? "gzip CRC-32" : "", options.verify));
  // Who has read all values has met the CRC behind them.
  if (options.range && !options.verify && reader.header().compressed) {
    report.lines.back().second = "gzip CRC-32 verified";
    report.json["verified"] = true;
  }
  report.warnings = reader.header().warnings;
  return report;
}

}  // namespace cingulum
