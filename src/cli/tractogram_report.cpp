#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/interrupt.hpp"
#include "base/quantity.hpp"
#include "cli/file_report.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Lengths {
  std::vector<float> mm;  // of every streamline
  double sum = 0;
  std::uint64_t points = 0;
  std::uint64_t not_finite = 0;  // streamlines with a point that is no number
};

Result<Lengths> measure(TractogramReader& reader) {
  return catch_out_of_memory([&]() -> Result<Lengths> {
    Lengths lengths;
    TractogramBatch batch;
    while (true) {
      CGL_TRY(check_interrupt());
      CGL_TRY_ASSIGN(const bool more, reader.next(batch, default_batch_points, true));
      if (!more) return lengths;
      for (std::size_t s = 0; s < batch.streamline_count(); ++s) {
        const auto xyz = batch.streamline(s);
        double length = 0;
        for (std::size_t i = 3; i + 2 < xyz.size(); i += 3) {
          const double dx = static_cast<double>(xyz[i]) - static_cast<double>(xyz[i - 3]);
          const double dy = static_cast<double>(xyz[i + 1]) - static_cast<double>(xyz[i - 2]);
          const double dz = static_cast<double>(xyz[i + 2]) - static_cast<double>(xyz[i - 1]);
          length += std::sqrt((dx * dx + dy * dy) + dz * dz);
        }
        lengths.points += xyz.size() / 3;
        if (!std::isfinite(length)) {
          ++lengths.not_finite;
          continue;
        }
        lengths.sum += length;
        lengths.mm.push_back(static_cast<float>(length));
      }
    }
  });
}

Json to_json(const std::vector<DataField>& fields) {
  Json json = Json::array();
  for (const DataField& field : fields) {
    json.push_back({{"name", field.name}, {"type", field.type.name()}, {"columns", field.columns}});
  }
  return json;
}

std::string to_text(const std::vector<DataField>& fields) {
  std::vector<std::string> words;
  for (const DataField& field : fields) {
    words.push_back(field.columns == 1 ? fmt::format("{} ({})", field.name, field.type.name())
                                       : fmt::format("{} ({} x {})", field.name, field.columns, field.type.name()));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

void add_lengths(FileReport& report, Lengths& lengths) {
  const std::size_t streamlines = lengths.mm.size() + static_cast<std::size_t>(lengths.not_finite);
  report.json["streamlines"] = streamlines;
  report.json["points"] = lengths.points;
  report.add("streamlines", format_count(streamlines));
  report.add("points", format_count(lengths.points));
  if (lengths.not_finite > 0) {
    report.warnings.push_back(fmt::format("{} streamlines have points that are not finite", lengths.not_finite));
  }
  if (lengths.mm.empty()) return;
  std::sort(lengths.mm.begin(), lengths.mm.end());
  const std::size_t middle = lengths.mm.size() / 2;
  const double upper = static_cast<double>(lengths.mm[middle]);
  const double median =
      lengths.mm.size() % 2 == 1 ? upper : 0.5 * (static_cast<double>(lengths.mm[middle - 1]) + upper);
  const double mean = lengths.sum / static_cast<double>(lengths.mm.size());
  report.json["length_mm"] = {
      {"smallest", lengths.mm.front()}, {"mean", mean}, {"median", median}, {"largest", lengths.mm.back()}};
  report.add("length", fmt::format("{:.4g} to {:.4g} mm, mean {:.4g}, median {:.4g}", lengths.mm.front(),
                                   lengths.mm.back(), mean, median));
}

}  // namespace

Result<FileReport> report_tractogram(const fs::path& path, const FileReportOptions& options) {
  CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(path));
  FileReport report;
  const TractogramFormat format = reader->layout().format;
  report.title = fmt::format("{} tractogram, {}{}", tractogram_format_name(format),
                             reader->layout().position_type.name(), reader->layout().deflated ? ", deflated" : "");
  report.json["format"] = tractogram_format_name(format);
  report.json["position_type"] = reader->layout().position_type.name();
  if (format == TractogramFormat::trx) report.json["deflated"] = reader->layout().deflated;
  CGL_TRY_ASSIGN(Lengths lengths, measure(*reader));
  add_lengths(report, lengths);
  const TractogramLayout& layout = reader->layout();
  report.json["point_fields"] = to_json(layout.point_fields);
  report.json["streamline_fields"] = to_json(layout.streamline_fields);
  if (!layout.point_fields.empty()) report.add("per point", to_text(layout.point_fields));
  if (!layout.streamline_fields.empty()) report.add("per streamline", to_text(layout.streamline_fields));
  CGL_TRY_ASSIGN(const std::vector<TractogramGroup> groups, reader->groups());
  report.json["groups"] = Json::object();
  for (const TractogramGroup& group : groups) {
    report.json["groups"][group.name] = group.streamlines.size();
    report.add("group", fmt::format("{}: {} streamlines", group.name, format_count(group.streamlines.size())));
  }
  for (const auto& [key, value] : layout.notes) report.json["notes"][key] = value;
  if (layout.reference) {
    FileReport grid;
    add_geometry(grid, *layout.reference);
    grid.json["size"] = layout.reference->size;
    report.json["reference"] = grid.json;
    report.add("grid", fmt::format("{}", fmt::join(layout.reference->size, " x ")));
    for (auto& [label, text] : grid.lines) report.add(std::move(label), std::move(text));
  } else {
    report.json["reference"] = nullptr;
    report.add("grid", "none in this format");
  }
  const std::string_view inner = format == TractogramFormat::trx ? "zip CRC-32" : "";
  CGL_TRY(add_checksum(report, path, inner, options.verify));
  report.warnings.insert(report.warnings.begin(), layout.warnings.begin(), layout.warnings.end());
  return report;
}

}  // namespace cingulum
