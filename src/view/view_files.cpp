#include "view/view_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/read_file.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"
#include "runs/track/track_series.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

// Empty: it cannot be shown.
std::string view_kind_of(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto ends_with_one_of = [&](std::initializer_list<std::string_view> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
  };
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  if (ends_with_one_of({".trx", ".trk", ".tck"})) return "tractogram";
  if (!ends_with_one_of({".nii", ".nii.gz"})) return {};
  return fs::exists(beside_series(path, ".bval"), ignored) ? "series" : "image";
}

}  // namespace

Result<std::vector<view::ViewFile>> find_view_files(const std::vector<std::string>& names) {
  std::vector<view::ViewFile> files;
  const auto add = [&](const fs::path& path, std::string kind) {
    std::error_code ignored;
    files.push_back({.id = fmt::format("f{}", files.size() + 1),
                     .name = path.filename().string(),
                     .kind = std::move(kind),
                     .path = path,
                     .bytes = fs::file_size(path, ignored)});
  };
  for (const std::string& name : names) {
    std::error_code error;
    if (fs::is_directory(name, error)) {
      std::vector<fs::path> inside;
      for (auto entry = fs::directory_iterator(name, error); !error && entry != fs::directory_iterator();
           entry.increment(error)) {
        if (!view_kind_of(entry->path()).empty()) inside.push_back(entry->path());
      }
      if (error) return fail_file(name, ErrorKind::io, "reading the folder {}: {}", name, error.message());
      std::sort(inside.begin(), inside.end());
      for (const fs::path& path : inside) add(path, view_kind_of(path));
      continue;
    }
    std::string kind = view_kind_of(name);
    if (kind.empty()) {
      return fail(ErrorKind::invalid_argument, "{}: accepted are .nii, .nii.gz, .trx, .trk, .tck and folders of them",
                  name);
    }
    add(name, std::move(kind));
  }
  return files;
}

Result<view::ViewFile> series_image(const view::ViewFile& series, const fs::path& scratch) {
  CGL_TRY_ASSIGN(const std::string text, read_text_file(beside_series(series.path, ".bval")));
  CGL_TRY_ASSIGN(const std::vector<double> b_values, parse_bvals(text));
  const auto smallest = std::min_element(b_values.begin(), b_values.end());
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(series.path));
  std::vector<float> volume(static_cast<std::size_t>(reader.header().geometry.voxel_count()));
  const std::int64_t last = std::min<std::int64_t>(smallest - b_values.begin(), reader.header().volume_count() - 1);
  for (std::int64_t i = 0; i <= last; ++i) CGL_TRY(reader.next_volume(std::span<float>(volume)));
  std::string name = series.name;
  for (const std::string_view ending : {".gz", ".nii"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  view::ViewFile image{.id = {}, .name = name + "-b0.nii", .kind = "image", .path = scratch / (series.id + "-b0.nii")};
  CGL_TRY(write_image(image.path, reader.header().geometry, 1, volume, {.file = {.sync = false}}));
  std::error_code ignored;
  image.bytes = fs::file_size(image.path, ignored);
  return image;
}

Result<ScratchFolder> ScratchFolder::create() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "cingulum-view-XXXXXX").string();
  if (error || ::mkdtemp(name.data()) == nullptr) {
    return fail(ErrorKind::io, "making a folder in {}: {}", fs::path(name).parent_path().string(),
                error ? error.message() : std::strerror(errno));
  }
  return ScratchFolder(name);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace cingulum
