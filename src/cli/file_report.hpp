// What `cingulum info` says of one file: the same facts as JSON for programs and as lines for people. One function for
// each kind of content; info.cpp chooses among them and prints.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/image_geometry.hpp"

namespace cingulum {

struct FileReport {
  std::string title;  // "NIfTI-1 image, gzip"
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  std::vector<std::pair<std::string, std::string>> lines;  // label, text
  std::vector<std::string> warnings;

  void add(std::string label, std::string text) { lines.emplace_back(std::move(label), std::move(text)); }
};

struct FileReportOptions {
  bool verify = false;  // read everything and compare checksums
  bool range = false;   // smallest and largest value of an image
  ThreadPool* pool = nullptr;
};

[[nodiscard]] Result<FileReport> report_image(const std::filesystem::path& path, const FileReportOptions& options);
[[nodiscard]] Result<FileReport> report_tractogram(const std::filesystem::path& path, const FileReportOptions& options);
// A pair of FSL files, one of them alone, or an MRtrix table (`vectors` empty, `values` the table).
[[nodiscard]] Result<FileReport> report_fsl_gradients(const std::filesystem::path& values,
                                                      const std::filesystem::path& vectors);
[[nodiscard]] Result<FileReport> report_mrtrix_gradients(const std::filesystem::path& table);

// Size, affine and axes of a grid.
void add_geometry(FileReport& report, const ImageGeometry& geometry);
// The line "checksum", and what verify_file found when `verify` is set.
[[nodiscard]] Status add_checksum(FileReport& report, const std::filesystem::path& path, std::string_view inner,
                                  bool verify);

}  // namespace cingulum
