// `cingulum verify`: whether files are still what was written.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/option_name.hpp"
#include "cli/verb.hpp"
#include "cli/zarr_actions.hpp"
#include "formats/verify.hpp"
#include "zarr/hierarchy.hpp"

namespace cingulum {

Verb verify_verb();

namespace {

using Json = nlohmann::ordered_json;

Status run_verify(const ParsedArguments& arguments, VerbContext& context) {
  Json results = Json::array();
  std::size_t damaged = 0, without = 0;
  const std::vector<std::string> paths = arguments.texts("files");
  for (const std::string& path : paths) {
    if (const auto zarr = zarr::is_zarr(path); zarr && *zarr) {
      CGL_TRY_ASSIGN(ZarrVerdict verdict, verify_zarr(path, false, context));
      if (verdict.damaged) ++damaged;
      if (!verdict.damaged && !verdict.has_checksum) ++without;
      if (!context.common().json) context.print(verdict.text);
      results.push_back(std::move(verdict.json));
      continue;
    }
    const auto found = verify_file(path);
    if (!found && found.error().kind() == ErrorKind::interrupted) return tl::make_unexpected(found.error());
    Json result = {{"file", path}, {"damaged", !found.has_value()}};
    if (!found) {
      ++damaged;
      result["error"] = with_option_names(found.error());
      if (!context.common().json) context.print_format("{}: DAMAGED: {}\n", path, with_option_names(found.error()));
    } else {
      if (found->checksums.empty()) ++without;
      result["checksums"] = found->checksums;
      result["complete"] = found->complete;
      const std::string checked = found->checksums.empty()
                                      ? std::string("no checksum")
                                      : fmt::format("{} verified", fmt::join(found->checksums, " and "));
      if (!context.common().json) {
        context.print_format("{}: {}{}\n", path, found->complete ? "complete, " : "", checked);
      }
    }
    results.push_back(std::move(result));
  }
  if (context.common().json) {
    const Json json = {{"files", std::move(results)}, {"damaged", damaged}, {"without_checksum", without}};
    context.print(json_text(json));
  }
  if (damaged > 0) {
    return fail(ErrorKind::corrupt, "{} of {} {} damaged or cannot be read", damaged, paths.size(),
                paths.size() == 1 ? "file is" : "files are");
  }
  if (without > 0 && arguments.flag("require")) {
    return fail(ErrorKind::corrupt, "{} of {} {} no checksum, and --require was given", without, paths.size(),
                paths.size() == 1 ? "file has" : "files have");
  }
  return {};
}

}  // namespace

Verb verify_verb() {
  return {
      .name = "verify",
      .summary = "compare files with the checksums in them and beside them",
      .description =
          "Reads each file to its end and compares it with every checksum there is: the XXH3-128 hash in its sidecar "
          "(FILE.json), which all outputs of Cingulum have, the CRC-32 of gzip, and the CRC-32 of every entry of a TRX "
          "archive. Plain .nii, .trk and .tck have no checksum of their own: without a sidecar only their completeness "
          "is seen, and the answer says 'no checksum'. Of Zarr every chunk is read, as `cingulum zarr verify` does, "
          "which "
          "has more to ask for.\n\n"
          "The exit code is 1 when a file is damaged or cannot be read. The other files are verified all the same.",
      .arguments = {{.name = "files",
                     .type = ArgumentType::file_in,
                     .help = "images, tractograms, Zarr, or any file with a sidecar",
                     .metavar = "FILE",
                     .positional = true,
                     .required = true,
                     .repeatable = true},
                    {.name = "require", .type = ArgumentType::flag, .help = "a file without a checksum is a failure"}},
      .common = {CommonOption::json},
      .examples = {{"cingulum verify tracks.trx fa.nii.gz", "before they are archived"},
                   {"cingulum verify --require --json *.trk", "for a script; fails where nothing could be compared"}},
      .run = run_verify,
  };
}

}  // namespace cingulum
