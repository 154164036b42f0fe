// The actions of `cingulum zarr`, each in a file of its own: zarr_info.cpp, zarr_copy.cpp, zarr_verify.cpp,
// zarr_bench.cpp. zarr.cpp declares their arguments. `info`, `verify` and `convert` use the same parts.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "cli/file_report.hpp"
#include "cli/verb.hpp"
#include "zarr/array.hpp"
#include "zarr/hierarchy_check.hpp"
#include "zarr/hierarchy_copy.hpp"

namespace cingulum {

[[nodiscard]] Status run_zarr_info(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_zarr_copy(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_zarr_verify(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_zarr_bench(const ParsedArguments& arguments, VerbContext& context);

struct ZarrReportOptions {
  std::string node = {};  // in the store; "" is the root
  bool verify = false;    // every chunk is decoded
  ThreadPool* pool = nullptr;
};
// What is in a Zarr hierarchy: zarr_report.cpp.
[[nodiscard]] Result<FileReport> report_zarr(const std::filesystem::path& path, const ZarrReportOptions& options);
// The node where it is an array, else the first array below it: of an image its finest level. None: there is none.
[[nodiscard]] Result<std::optional<zarr::Array>> first_zarr_array(const std::string& path, const std::string& node);
// A report as people see it.
[[nodiscard]] std::string report_text(const std::string& name, const FileReport& report);

// What verifying a hierarchy, or another file, found, as a line or several for people and as JSON for programs.
struct FileVerdict {
  bool damaged = false;
  bool has_checksum = false;
  std::string text;
  nlohmann::ordered_json json;
};
// `complete`: a missing chunk is damage.
[[nodiscard]] Result<FileVerdict> verify_zarr(const std::string& path, bool complete, VerbContext& context);

// "XXH3-128 verified", or that there is no checksum.
[[nodiscard]] std::string verified_text(const std::vector<std::string>& checksums);
// Verifies each path and says what was found; fails where one is damaged ("1 of 2 files are ..."), or where one has no
// checksum and --require was given.
struct VerifiedKind {
  std::string_view one;      // "file"
  std::string_view several;  // "files"
  std::string_view damaged;  // "damaged or cannot be read"
};
[[nodiscard]] Status verify_each(const std::vector<std::string>& paths, const VerifiedKind& kind, bool require,
                                 VerbContext& context,
                                 const std::function<Result<FileVerdict>(const std::string& path)>& verify);

// From NIfTI to OME-Zarr, or back: zarr_convert.cpp. Which of them `convert` is asked for, or neither.
enum class ZarrConversion { none, from_nifti, to_nifti };
[[nodiscard]] Result<ZarrConversion> find_zarr_conversion(const std::filesystem::path& input,
                                                          const std::filesystem::path& output);
[[nodiscard]] Status run_zarr_conversion(ZarrConversion conversion, const ParsedArguments& arguments,
                                         VerbContext& context);

// --format and --ome-version: the version of Zarr to write. They may not contradict each other.
[[nodiscard]] Result<int> asked_zarr_format(const ParsedArguments& arguments);
// --pyramid.
[[nodiscard]] Result<zarr::PyramidChoice> parse_pyramid(const std::string& text);

}  // namespace cingulum
