// `cingulum verify`: whether files are still what was written.
#include "formats/verify.hpp"
#include "base/option_name.hpp"
#include "cli/verb.hpp"
#include "cli/zarr_actions.hpp"
#include "zarr/hierarchy.hpp"

namespace cingulum {

Verb verify_verb();

namespace {

Result<FileVerdict> verify_plain_file(const std::string& path) {
  const auto found = verify_file(path);
  if (!found && found.error().kind() == ErrorKind::interrupted) return tl::make_unexpected(found.error());
  FileVerdict verdict;
  verdict.damaged = !found.has_value();
  verdict.json = {{"file", path}, {"damaged", verdict.damaged}};
  if (!found) {
    verdict.json["error"] = with_option_names(found.error());
    verdict.text = fmt::format("{}: DAMAGED: {}\n", path, with_option_names(found.error()));
    return verdict;
  }
  verdict.has_checksum = !found->checksums.empty();
  verdict.json["checksums"] = found->checksums;
  verdict.json["complete"] = found->complete;
  verdict.text = fmt::format("{}: {}{}\n", path, found->complete ? "complete, " : "", verified_text(found->checksums));
  return verdict;
}

Status run_verify(const ParsedArguments& arguments, VerbContext& context) {
  const VerifiedKind kind = {"file", "files", "damaged or cannot be read"};
  return verify_each(arguments.texts("files"), kind, arguments.flag("require"), context, [&](const std::string& path) {
    const auto zarr = zarr::is_zarr(path);
    return zarr && *zarr ? verify_zarr(path, false, context) : verify_plain_file(path);
  });
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
