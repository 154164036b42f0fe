// The folder that a model fit leaves: one NIfTI image per map with its sidecar, text files, and fit.json, which is
// written last, so that a folder without it is not a complete fit. Called by `cingulum fit`. It holds one volume of an
// image at a time; values come as records per voxel of a mask.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/image_geometry.hpp"

namespace cingulum {

class FitFolder {
 public:
  // Refuses a folder that holds a fit (fit.json) without options.force, what is not a folder, and one whose parent is
  // not there. The folder is made, and the old fit.json removed, with the first file.
  [[nodiscard]] static Result<FitFolder> create(std::filesystem::path folder, const WriteOptions& options);

  // `facts` is what every sidecar of the fit says; `voxels` are the indices of the records, ascending.
  void describe(const ImageGeometry& geometry, std::vector<std::uint32_t> voxels, nlohmann::ordered_json facts);

  // NAME.nii.gz, float32: `columns` volumes, zero outside the mask, and its sidecar with `meaning` and what `more` has.
  // It gets its name in a thread of its own, since disks take long to say that they have a file and take several at
  // once; finish() waits for that and tells what failed.
  [[nodiscard]] Status write_map(const std::string& name, std::span<const float> records, std::size_t columns,
                                 std::string_view meaning, ThreadPool& pool, const nlohmann::ordered_json& more = {});
  // The mask itself: uint8.
  [[nodiscard]] Status write_mask(std::span<const std::uint8_t> mask, const nlohmann::ordered_json& more,
                                  ThreadPool& pool);
  [[nodiscard]] Status write_text(const std::string& name, std::string_view text, std::string_view meaning);
  // Then fit.json: the facts, the files, `results`, and `run`, which alone may differ between equal runs.
  [[nodiscard]] Status finish(const nlohmann::ordered_json& results, const nlohmann::ordered_json& run);

  [[nodiscard]] const std::filesystem::path& path() const { return folder_; }
  [[nodiscard]] const nlohmann::ordered_json& files() const { return files_; }

 private:
  [[nodiscard]] Status make_folder();
  // The options for an image whose sidecar says `facts`.
  [[nodiscard]] WriteOptions with_facts(const std::filesystem::path& path, nlohmann::ordered_json facts) const;

  std::filesystem::path folder_;
  bool made_ = false;
  WriteOptions options_;
  ImageGeometry geometry_;
  std::vector<std::uint32_t> voxels_;
  nlohmann::ordered_json facts_;
  nlohmann::ordered_json files_ = nlohmann::ordered_json::array();
  std::vector<std::future<Status>> commits_;  // of maps, in their order
};

}  // namespace cingulum
