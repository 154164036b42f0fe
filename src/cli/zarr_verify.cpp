// `cingulum zarr verify`, and what `cingulum verify` says of Zarr: every chunk read, every checksum compared.
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/option_name.hpp"
#include "base/quantity.hpp"
#include "cli/zarr_actions.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Result<FileVerdict> verify_zarr(const std::string& path, bool complete, VerbContext& context) {
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  FileVerdict verdict;
  Progress progress("verifying", 0, "chunks", context.progress_options());
  zarr::ArrayCheckOptions options;
  options.pool = pool;
  options.progress = &progress;
  const auto found = zarr::check_hierarchy(path, options);
  if (!found && found.error().kind() == ErrorKind::interrupted) return tl::make_unexpected(found.error());
  if (!found) {
    const std::string message = with_option_names(found.error());
    verdict.damaged = true;
    verdict.json = {{"file", path}, {"damaged", true}, {"error", message}};
    verdict.text = fmt::format("{}: DAMAGED: {}\n", path, message);
    return verdict;
  }
  progress.finish();
  Json arrays = Json::array();
  std::uint64_t chunks = 0;
  std::vector<std::string> without;
  for (const auto& array : found->arrays) {
    chunks += array.check.chunks;
    if (!array.has_checksum) without.push_back(array.path.empty() ? path : array.path);
    arrays.push_back({{"path", array.path},
                      {"chunks", array.check.chunks},
                      {"missing", array.check.missing},
                      {"damaged", array.check.fault_count},
                      {"stored_bytes", array.check.stored_bytes},
                      {"checksum", array.has_checksum}});
  }
  const bool lacking = complete && found->missing > 0;
  // A hash of everything, or an archive's checksums, stand in for those that chunks lack.
  const bool around = std::any_of(found->checksums.begin(), found->checksums.end(), [](const std::string& name) {
    return name.starts_with("sidecar") || name.starts_with("zip");
  });
  verdict.has_checksum = around || without.empty();
  verdict.damaged = found->fault_count > 0 || lacking;
  verdict.json = {{"file", path},
                  {"damaged", verdict.damaged},
                  {"checksums", found->checksums},
                  {"complete", found->missing == 0},
                  {"chunks", chunks},
                  {"missing_chunks", found->missing},
                  {"damaged_chunks", found->fault_count},
                  {"faults", found->faults},
                  {"arrays", std::move(arrays)}};
  for (const std::string& fault : found->faults) verdict.text += fmt::format("{}: DAMAGED: {}\n", path, fault);
  if (found->fault_count > found->faults.size()) {
    verdict.text +=
        fmt::format("{}: DAMAGED: {} more are not listed\n", path, found->fault_count - found->faults.size());
  }
  if (lacking) {
    verdict.text += fmt::format("{}: NOT COMPLETE: {} of {} chunks are missing\n", path, format_count(found->missing),
                                format_count(chunks));
  }
  if (verdict.damaged) return verdict;
  verdict.text = fmt::format(
      "{}: {}, {} chunks read{}{}\n", path, verified_text(found->checksums), format_count(chunks),
      found->missing > 0 ? fmt::format(", {} missing and read as the fill value", format_count(found->missing)) : "",
      !without.empty() && !around && !found->checksums.empty()
          ? fmt::format("; no checksum in {}", fmt::join(without, ", "))
          : "");
  return verdict;
}

std::string verified_text(const std::vector<std::string>& checksums) {
  return checksums.empty() ? std::string("no checksum") : fmt::format("{} verified", fmt::join(checksums, " and "));
}

Status verify_each(const std::vector<std::string>& paths, const VerifiedKind& kind, bool require, VerbContext& context,
                   const std::function<Result<FileVerdict>(const std::string& path)>& verify) {
  Json results = Json::array();
  std::size_t damaged = 0, without = 0;
  for (const std::string& path : paths) {
    CGL_TRY_ASSIGN(FileVerdict verdict, verify(path));
    if (verdict.damaged) ++damaged;
    if (!verdict.damaged && !verdict.has_checksum) ++without;
    if (!context.common().json) context.print(verdict.text);
    results.push_back(std::move(verdict.json));
  }
  if (context.common().json) {
    const Json json = {{"files", std::move(results)}, {"damaged", damaged}, {"without_checksum", without}};
    context.print(json_text(json));
  }
  const bool alone = paths.size() == 1;
  const std::string_view them = alone ? kind.one : kind.several;
  if (damaged > 0) {
    return fail(ErrorKind::corrupt, "{} of {} {} {} {}", damaged, paths.size(), them, alone ? "is" : "are",
                kind.damaged);
  }
  if (without > 0 && require) {
    return fail(ErrorKind::corrupt, "{} of {} {} {} no checksum, and --require was given", without, paths.size(), them,
                alone ? "has" : "have");
  }
  return {};
}

Status run_zarr_verify(const ParsedArguments& arguments, VerbContext& context) {
  const VerifiedKind kind = {"hierarchy", "hierarchies", "damaged, not complete or cannot be read"};
  return verify_each(arguments.texts("paths"), kind, arguments.flag("require"), context,
                     [&](const std::string& path) { return verify_zarr(path, arguments.flag("complete"), context); });
}

}  // namespace cingulum
