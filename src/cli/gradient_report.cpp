#include <fmt/format.h>

#include "base/read_file.hpp"
#include "cli/file_report.hpp"
#include "formats/gradient_table.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view fsl_note =
    "an FSL pair does not say its frame: fsl (x negated when the determinant is positive) unless --bvec-frame says "
    "otherwise";
constexpr std::string_view mrtrix_note = "world axes (RAS), as MRtrix writes them";

void add_shells(FileReport& report, const GradientTable& table) {
  report.json["count"] = table.size();
  report.add("volumes", fmt::format("{}", table.size()));
  Json shells = Json::array();
  for (const GradientShell& shell : find_shells(table)) {
    const bool b0 = shell.largest <= default_b0_threshold;
    shells.push_back({{"b_value", shell.b_value},
                      {"smallest", shell.smallest},
                      {"largest", shell.largest},
                      {"count", shell.volumes.size()},
                      {"b0", b0}});
    report.add(
        b0 ? "b0" : "shell",
        fmt::format(
            "b = {:.6g}{}: {} {}", shell.b_value,
            shell.smallest == shell.largest ? "" : fmt::format(" ({:.6g} to {:.6g})", shell.smallest, shell.largest),
            shell.volumes.size(), shell.volumes.size() == 1 ? "volume" : "volumes"));
  }
  report.json["shells"] = std::move(shells);
}

void add_vectors(FileReport& report, const GradientTable& table) {
  std::size_t zero = 0;
  for (const auto& vector : table.vectors) zero += dot(vector, vector) == 0 ? 1U : 0U;
  report.json["zero_vectors"] = zero;
  report.add("vectors", fmt::format("{} of unit length{}, {} zero", table.size() - zero,
                                    table.warnings.empty() ? "" : " (after what the warnings say)", zero));
}

void finish(FileReport& report, const GradientTable& table, std::string_view frame_note) {
  report.json["frame"] = gradient_frame_name(table.frame);
  report.json["frame_note"] = frame_note;
  report.add("frame", std::string(frame_note));
  report.json["checksums"] = Json::array();
  report.add("checksum", "no checksum");
  report.warnings = table.warnings;
}

}  // namespace

Result<FileReport> report_fsl_gradients(const fs::path& values, const fs::path& vectors) {
  FileReport report;
  GradientTable table;
  if (!values.empty() && !vectors.empty()) {
    CGL_TRY_ASSIGN(table, read_fsl_gradients(values, vectors));
    report.title = "gradient table, a pair of FSL files";
    report.json["format"] = "FSL";
    report.json["bvals"] = values.native();
    report.json["bvecs"] = vectors.native();
    add_shells(report, table);
    add_vectors(report, table);
    finish(report, table, fsl_note);
    return report;
  }
  report.json["checksums"] = Json::array();
  if (vectors.empty()) {
    CGL_TRY_ASSIGN(const std::string text, read_text_file(values));
    CGL_TRY_ASSIGN(table.b_values, add_context(parse_bvals(text), "reading {}", values.native()));
    report.title = "b-values";
    report.json["format"] = "FSL b-values";
    add_shells(report, table);
    report.add("vectors", "name the bvec file too to have them checked together");
  } else {
    report.title = "b-vectors";
    report.json["format"] = "FSL b-vectors";
    report.add("b-values", "name the bval file too: the two are checked together");
    report.json["frame_note"] = fsl_note;
    report.add("frame", std::string(fsl_note));
  }
  report.add("checksum", "no checksum");
  return report;
}

Result<FileReport> report_mrtrix_gradients(const fs::path& path) {
  CGL_TRY_ASSIGN(const GradientTable table, read_mrtrix_gradients(path));
  FileReport report;
  report.title = "gradient table of MRtrix";
  report.json["format"] = "MRtrix gradients";
  add_shells(report, table);
  add_vectors(report, table);
  finish(report, table, mrtrix_note);
  return report;
}

}  // namespace cingulum
