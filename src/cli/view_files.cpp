#include "cli/view_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/track_series.hpp"

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
