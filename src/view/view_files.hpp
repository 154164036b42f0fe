// The files that `cingulum view` was given: images, series and tractograms, with the identifiers by which a page asks
// for them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "view/view_host.hpp"

namespace cingulum {

// Files by name; of folders those that can be shown, sorted, without going deeper. A name that is not there or cannot
// be shown is refused.
[[nodiscard]] Result<std::vector<view::ViewFile>> find_view_files(const std::vector<std::string>& names);

// The volume of a series with the smallest b-value, the first of several, as an image in `scratch`; its identifier is
// the caller's to give.
[[nodiscard]] Result<view::ViewFile> series_image(const view::ViewFile& series, const std::filesystem::path& scratch);

// A folder of the process's own, which goes with it.
class ScratchFolder {
 public:
  [[nodiscard]] static Result<ScratchFolder> create();
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace cingulum
