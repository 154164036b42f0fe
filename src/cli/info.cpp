// `cingulum info`: what files are.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/option_name.hpp"
#include "base/quantity.hpp"
#include "cli/file_report.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "cli/zarr_actions.hpp"
#include "formats/content_kind.hpp"
#include "zarr/hierarchy.hpp"

namespace cingulum {

Verb info_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// One file, or two that belong together.
struct Subject {
  ContentKind kind = ContentKind::unknown;
  fs::path path;
  fs::path partner;   // the b-vectors to the b-values in `path`
  bool zarr = false;  // a folder or archive of Zarr: known here, above the other formats
};

std::string stem_of(const fs::path& path) {
  return (path.parent_path() / path.stem()).native();
}

// Pairs b-values with b-vectors: those of the same stem, and the one left of each where there is just one.
std::vector<Subject> pair_gradients(std::vector<Subject> subjects) {
  const auto is_free = [](const Subject& subject, ContentKind kind) {
    return subject.kind == kind && !subject.zarr && subject.partner.empty() && !subject.path.empty();
  };
  const auto count = [&](ContentKind kind) {
    return std::count_if(subjects.begin(), subjects.end(), [&](const Subject& s) { return is_free(s, kind); });
  };
  const auto join = [&](bool by_stem) {
    for (Subject& values : subjects) {
      if (!is_free(values, ContentKind::b_values)) continue;
      for (Subject& vectors : subjects) {
        if (!is_free(vectors, ContentKind::b_vectors)) continue;
        if (by_stem && stem_of(values.path) != stem_of(vectors.path)) continue;
        values.partner = std::exchange(vectors.path, {});
        break;
      }
    }
  };
  join(true);
  if (count(ContentKind::b_values) == 1 && count(ContentKind::b_vectors) == 1) join(false);
  std::erase_if(subjects, [](const Subject& subject) { return subject.path.empty(); });
  return subjects;
}

Result<FileReport> report_on(const Subject& subject, const FileReportOptions& options) {
  const std::string& shown = subject.path.native();
  if (subject.zarr) return report_zarr(subject.path, {.verify = options.verify, .pool = options.pool});
  switch (subject.kind) {
    case ContentKind::nifti: return report_image(subject.path, options);
    case ContentKind::tractogram: return report_tractogram(subject.path, options);
    case ContentKind::b_values: return report_fsl_gradients(subject.path, subject.partner);
    case ContentKind::b_vectors: return report_fsl_gradients({}, subject.path);
    case ContentKind::mrtrix_table: return report_mrtrix_gradients(subject.path);
    case ContentKind::json: {
      FileReport report;
      report.title = "JSON";
      report.json["format"] = "JSON";
      CGL_TRY(add_checksum(report, subject.path, "", options.verify));
      return report;
    }
    case ContentKind::mrtrix_image:
      return fail(ErrorKind::invalid_argument,
                  "reading {}: MRtrix images (.mif, .mih) are not read; convert it: mrconvert IN.mif OUT.nii.gz "
                  "-export_grad_fsl OUT.bvec OUT.bval",
                  shown);
    case ContentKind::gzip:
      return fail(ErrorKind::invalid_argument,
                  "reading {}: what is inside gzip is neither a NIfTI image nor a tractogram", shown);
    case ContentKind::folder:
      return fail(ErrorKind::invalid_argument,
                  "reading {}: a folder without header.json is no TRX folder, one without zarr.json, .zarray or "
                  ".zgroup no Zarr",
                  shown);
    case ContentKind::unknown: break;
  }
  return fail(
      ErrorKind::invalid_argument,
      "reading {}: it is neither a NIfTI image nor a tractogram (TRK, TCK, TRX) nor Zarr nor a table of gradients",
      shown);
}

Status run_info(const ParsedArguments& arguments, VerbContext& context) {
  FileReportOptions options{.verify = arguments.flag("verify"), .range = arguments.flag("range")};
  std::vector<Subject> subjects;
  std::vector<std::pair<std::string, std::string>> unreadable;  // name, message
  for (const std::string& name : arguments.texts("files")) {
    const auto zarr = zarr::is_zarr(name);
    if (zarr && *zarr) {
      if (options.pool == nullptr) {
        CGL_TRY_ASSIGN(options.pool, context.pool());
      }
      subjects.push_back({.path = name, .partner = {}, .zarr = true});
      continue;
    }
    const auto kind = find_content_kind(name);
    if (kind) {
      subjects.push_back({.kind = *kind, .path = name, .partner = {}});
    } else {
      unreadable.emplace_back(name, with_option_names(kind.error()));
    }
  }
  Json results = Json::array();
  std::size_t failures = unreadable.size();
  bool first = true;
  const auto begin_text = [&] {
    if (!std::exchange(first, false)) context.print("\n");
  };
  const auto show_failure = [&](const std::string& name, const std::string& message) {
    results.push_back({{"file", name}, {"error", message}});
    if (context.common().json) return;
    begin_text();
    context.print_format("{}: cannot be read\n  error  {}\n", name, message);
  };
  for (const Subject& subject : pair_gradients(std::move(subjects))) {
    const std::string name = subject.partner.empty()
                                 ? subject.path.native()
                                 : fmt::format("{} and {}", subject.path.native(), subject.partner.native());
    auto report = report_on(subject, options);
    if (!report && report.error().kind() == ErrorKind::interrupted) return tl::make_unexpected(report.error());
    if (!report) {
      ++failures;
      show_failure(name, with_option_names(report.error()));
      continue;
    }
    Json result = {{"file", subject.path.native()},
                   {"content", subject.zarr ? "Zarr" : content_kind_name(subject.kind)}};
    result.update(report->json);
    result["warnings"] = report->warnings;
    results.push_back(std::move(result));
    if (context.common().json) continue;
    begin_text();
    context.print(report_text(name, *report));
  }
  for (const auto& [name, message] : unreadable) show_failure(name, message);
  if (context.common().json) {
    context.print(json_text(Json{{"files", std::move(results)}}));
  }
  if (failures == 0) return {};
  return fail(ErrorKind::corrupt, "{} of the files cannot be read", failures);
}

}  // namespace

Verb info_verb() {
  return {
      .name = "info",
      .summary = "show what images, Zarr arrays, gradient tables and tractograms are",
      .description =
          "Tells by content what each file is: NIfTI images (size, voxels, type, orientation, affine and where it "
          "comes "
          "from, scaling, checksum), gradient tables (a bval and a bvec file named together, or an MRtrix table: "
          "counts, "
          "shells, norms, frame), and tractograms in TRK, TCK or TRX (counts, lengths, fields, groups, the grid they "
          "belong to). Zarr arrays and OME-Zarr images are shown as `cingulum zarr info` does. What is odd in a file "
          "stands "
          "there as a warning.\n\n"
          "A file that is damaged, or of another kind, is reported in its place; the others are shown all the same, "
          "and "
          "the exit code is 1.",
      .arguments = {{.name = "files",
                     .type = ArgumentType::file_in,
                     .help = "images, Zarr folders and archives, gradient tables, tractograms",
                     .metavar = "FILE",
                     .positional = true,
                     .required = true,
                     .repeatable = true},
                    {.name = "verify",
                     .type = ArgumentType::flag,
                     .help = "read everything and compare every checksum, as `cingulum verify` does"},
                    {.name = "range",
                     .type = ArgumentType::flag,
                     .help = "smallest, largest and mean value of images"}},
      .common = {CommonOption::json},
      .examples = {{"cingulum info dwi.nii.gz dwi.bval dwi.bvec", "a diffusion series and its gradients"},
                   {"cingulum info --verify tracks.trx", "with its checksums"},
                   {"cingulum info --json --range fa.nii.gz", "for a program"}},
      .run = run_info,
  };
}

}  // namespace cingulum
