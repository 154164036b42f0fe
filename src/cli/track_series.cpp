#include "cli/track_series.hpp"

#include <unistd.h>

#include "base/log.hpp"
#include "dmri/phantom/phantom_files.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

Result<fs::path> one_of(const ParsedArguments& arguments, const std::string& option,
                        const std::vector<std::string>& data, std::size_t place) {
  const bool positional = data.size() > place;
  if (positional && arguments.given(option)) {
    return fail(ErrorKind::invalid_argument, "--{} {}: argument {} after DWI already names it: {}", option,
                arguments.text(option), place, data[place]);
  }
  if (positional) return fs::path(data[place]);
  return arguments.given(option) ? fs::path(arguments.text(option)) : fs::path();
}

// The phantom of a run without data, made once and kept: the score needs its truth.
Result<fs::path> phantom_folder(const ParsedArguments& arguments, const fs::path& out, VerbContext& context) {
  const fs::path folder =
      (arguments.given("cache-dir") ? fs::path(arguments.text("cache-dir")) : out.parent_path()) / "brain-phantom";
  std::error_code ignored;
  if (fs::exists(folder / "phantom.json", ignored)) {
    log_info("no data given: tracking the phantom in {}", folder.string());
    return folder;
  }
  log_info("no data given: making the phantom `brain` in {} and tracking it", folder.string());
  PhantomRequest request;
  CGL_TRY_ASSIGN(request.model, brain_phantom());
  request.grid.voxel_mm = {request.model.voxel_mm, request.model.voxel_mm, request.model.voxel_mm};
  CGL_TRY_ASSIGN(request.scheme, named_scheme(request.model.scheme));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  // It appears as a whole, since another process may make it at the same time; whoever comes second takes the first's.
  const fs::path partial = fmt::format("{}.partial-{}", folder.string(), ::getpid());
  const auto made = write_phantom(request, partial, context.write_options(), *pool, context.progress_options());
  std::error_code error;
  if (made) fs::rename(partial, folder, error);
  if (!made || error) fs::remove_all(partial, ignored);
  if (!made) return tl::make_unexpected(made.error());
  if (error && !fs::exists(folder / "phantom.json", ignored)) {
    return fail(ErrorKind::io, "making the phantom {}: {}; remove what is there", folder.string(), error.message());
  }
  return folder;
}

}  // namespace

fs::path beside_series(const fs::path& series, std::string_view ending) {
  std::string name = series.string();
  for (const std::string_view known : {".nii.gz", ".nii"}) {
    if (name.ends_with(known)) {
      name.resize(name.size() - known.size());
      break;
    }
  }
  return name + std::string(ending);
}

Result<SeriesPaths> series_paths(const ParsedArguments& arguments, const fs::path& out, VerbContext& context) {
  const std::vector<std::string> data = arguments.texts("data");
  if (data.size() > 5) {
    return fail(ErrorKind::invalid_argument, "{} files given: accepted are DWI BVALS BVECS MASK SEED_MASK",
                data.size());
  }
  SeriesPaths paths;
  if (data.empty()) {
    CGL_TRY_ASSIGN(const fs::path folder, phantom_folder(arguments, out, context));
    paths.files = {.dwi = folder / "dwi.nii.gz",
                   .bvals = folder / "dwi.bval",
                   .bvecs = folder / "dwi.bvec",
                   .grad = {},
                   .mask = folder / "mask.nii.gz"};
    paths.phantom = true;
    if (arguments.given("mask")) paths.files.mask = arguments.text("mask");
    if (arguments.given("seed-mask")) paths.seed_mask = arguments.text("seed-mask");
    return paths;
  }
  SeriesFiles& files = paths.files;
  files.dwi = data[0];
  CGL_TRY_ASSIGN(files.bvals, one_of(arguments, "bvals", data, 1));
  CGL_TRY_ASSIGN(files.bvecs, one_of(arguments, "bvecs", data, 2));
  CGL_TRY_ASSIGN(files.mask, one_of(arguments, "mask", data, 3));
  CGL_TRY_ASSIGN(paths.seed_mask, one_of(arguments, "seed-mask", data, 4));
  if (arguments.given("grad")) {
    if (!files.bvals.empty() || !files.bvecs.empty()) {
      return fail(ErrorKind::invalid_argument, "--grad and --bvals with --bvecs exclude each other");
    }
    files.grad = arguments.text("grad");
    return paths;
  }
  const auto find = [&](fs::path& path, const std::string& option, std::string_view ending) -> Status {
    if (!path.empty()) return {};
    path = beside_series(files.dwi, ending);
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
      log_info("--{} {}", option, path.string());
      paths.found.push_back({option, path});
      return {};
    }
    return fail(ErrorKind::invalid_argument, "--{} is missing, and there is no {}", option, path.string());
  };
  CGL_TRY(find(files.bvals, "bvals", ".bval"));
  CGL_TRY(find(files.bvecs, "bvecs", ".bvec"));
  return paths;
}

}  // namespace cingulum
