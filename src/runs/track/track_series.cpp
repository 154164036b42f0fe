#include "runs/track/track_series.hpp"

#include <unistd.h>

#include "base/log.hpp"
#include "dmri/phantom/phantom_files.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

// A file that is named by a parameter or by its place behind the series.
Result<fs::path> one_of(const Parameter<std::string>& parameter, std::string_view name,
                        const std::vector<std::string>& data, std::size_t place) {
  const bool positional = data.size() > place;
  if (positional && parameter.given()) {
    return fail(ErrorKind::invalid_argument, "{} {}: argument {} after DWI already names it: {}", argument_name(name),
                parameter.value(), place, data[place]);
  }
  if (positional) return fs::path(data[place]);
  return parameter.given() ? fs::path(parameter.value()) : fs::path();
}

// The phantom of a run without data, made once and kept: the score needs its truth.
Result<fs::path> phantom_folder(const TrackRequest& request, const fs::path& out, RunMachine& machine) {
  const fs::path folder =
      (request.cache_dir.given() ? fs::path(request.cache_dir.value()) : out.parent_path()) / "brain-phantom";
  std::error_code ignored;
  if (fs::exists(folder / "phantom.json", ignored)) {
    log_info("no data given: tracking the phantom in {}", folder.string());
    return folder;
  }
  log_info("no data given: making the phantom `brain` in {} and tracking it", folder.string());
  PhantomRequest phantom;
  CGL_TRY_ASSIGN(phantom.model, brain_phantom());
  phantom.grid.voxel_mm = {phantom.model.voxel_mm, phantom.model.voxel_mm, phantom.model.voxel_mm};
  CGL_TRY_ASSIGN(phantom.scheme, named_scheme(phantom.model.scheme));
  CGL_TRY_ASSIGN(ThreadPool* const pool, machine.pool());
  // It appears as a whole, since another process may make it at the same time; whoever comes second takes the first's.
  const fs::path partial = fmt::format("{}.partial-{}", folder.string(), ::getpid());
  const auto made = write_phantom(phantom, partial, machine.write_options(), *pool, machine.progress_options());
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

Result<SeriesPaths> series_paths(const TrackRequest& request, const fs::path& out, RunMachine& machine) {
  const std::vector<std::string> data = request.data.value();
  if (data.size() > 5) {
    return fail(ErrorKind::invalid_argument, "{} files given: accepted are DWI BVALS BVECS MASK SEED_MASK",
                data.size());
  }
  SeriesPaths paths;
  if (data.empty()) {
    CGL_TRY_ASSIGN(const fs::path folder, phantom_folder(request, out, machine));
    paths.files = {.dwi = folder / "dwi.nii.gz",
                   .bvals = folder / "dwi.bval",
                   .bvecs = folder / "dwi.bvec",
                   .grad = {},
                   .mask = folder / "mask.nii.gz"};
    paths.phantom = true;
    if (request.mask.given()) paths.files.mask = request.mask.value();
    if (request.seed_mask.given()) paths.seed_mask = request.seed_mask.value();
    return paths;
  }
  SeriesFiles& files = paths.files;
  files.dwi = data[0];
  CGL_TRY_ASSIGN(files.bvals, one_of(request.bvals, "bvals", data, 1));
  CGL_TRY_ASSIGN(files.bvecs, one_of(request.bvecs, "bvecs", data, 2));
  CGL_TRY_ASSIGN(files.mask, one_of(request.mask, "mask", data, 3));
  CGL_TRY_ASSIGN(paths.seed_mask, one_of(request.seed_mask, "seed_mask", data, 4));
  if (request.grad.given()) {
    if (!files.bvals.empty() || !files.bvecs.empty()) {
      return fail(ErrorKind::invalid_argument, "{} and {} with {} exclude each other", argument_name("grad"),
                  argument_name("bvals"), argument_name("bvecs"));
    }
    files.grad = request.grad.value();
    return paths;
  }
  const auto find = [&](fs::path& path, const std::string& option, std::string_view ending) -> Status {
    if (!path.empty()) return {};
    path = beside_series(files.dwi, ending);
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
      log_info("{} {}", argument_name(option), path.string());
      paths.found.push_back({option, path});
      return {};
    }
    return fail(ErrorKind::invalid_argument, "{} is missing, and there is no {}", argument_name(option), path.string());
  };
  CGL_TRY(find(files.bvals, "bvals", ".bval"));
  CGL_TRY(find(files.bvecs, "bvecs", ".bvec"));
  return paths;
}

}  // namespace cingulum
