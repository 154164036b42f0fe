// What a model fit leaves (FitMaps), and the folder of `cingulum fit` (FitFolder): one NIfTI image per map with its
// sidecar, text files, and fit.json, which is written last, so that a folder without it is not a complete fit. Called
// by `cingulum fit` and Python. It holds one volume of an image at a time; values come as records per voxel of a mask.
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

// Where the maps of a fit go: a folder, or the memory of a caller.
class FitMaps {
 public:
  FitMaps() = default;
  FitMaps(const FitMaps&) = delete;
  FitMaps& operator=(const FitMaps&) = delete;
  FitMaps(FitMaps&&) = default;
  FitMaps& operator=(FitMaps&&) = default;
  virtual ~FitMaps() = default;

  // `facts` is what is said of every map of the fit; `voxels` are the indices of the records, ascending.
  virtual void describe(const ImageGeometry& geometry, std::vector<std::uint32_t> voxels,
                        nlohmann::ordered_json facts) = 0;
  // `columns` numbers per voxel of the mask, with `meaning` and what `more` has.
  [[nodiscard]] virtual Status write_map(const std::string& name, std::span<const float> records, std::size_t columns,
                                         std::string_view meaning, ThreadPool& pool,
                                         const nlohmann::ordered_json& more = {}) = 0;
  // The mask that was made, a byte per voxel of the image.
  [[nodiscard]] virtual Status write_mask(std::span<const std::uint8_t> mask, const nlohmann::ordered_json& more,
                                          ThreadPool& pool) = 0;
  [[nodiscard]] virtual Status write_text(const std::string& name, std::string_view text, std::string_view meaning) = 0;
  // For messages: where the map `name` will be.
  [[nodiscard]] virtual std::string place_of(std::string_view name) const = 0;
};

class FitFolder final : public FitMaps {
 public:
  // Refuses a folder that holds a fit (fit.json) without options.force, what is not a folder, and one whose parent is
  // not there. The folder is made, and the old fit.json removed, with the first file.
  [[nodiscard]] static Result<FitFolder> create(std::filesystem::path folder, const WriteOptions& options);

  // `facts` is what every sidecar of the fit says.
  void describe(const ImageGeometry& geometry, std::vector<std::uint32_t> voxels,
                nlohmann::ordered_json facts) override;

  // NAME.nii.gz, float32: `columns` volumes, zero outside the mask, and its sidecar with `meaning` and what `more` has.
  // It gets its name in a thread of its own, since disks take long to say that they have a file and take several at
  // once; finish() waits for that and tells what failed.
  [[nodiscard]] Status write_map(const std::string& name, std::span<const float> records, std::size_t columns,
                                 std::string_view meaning, ThreadPool& pool,
                                 const nlohmann::ordered_json& more = {}) override;
  // The mask itself: uint8.
  [[nodiscard]] Status write_mask(std::span<const std::uint8_t> mask, const nlohmann::ordered_json& more,
                                  ThreadPool& pool) override;
  [[nodiscard]] Status write_text(const std::string& name, std::string_view text, std::string_view meaning) override;
  [[nodiscard]] std::string place_of(std::string_view name) const override {
    return (folder_ / (std::string(name) + ".nii.gz")).string();
  }
  // Writes fit.json last: the facts, the files, `results`, and `run`, which alone may differ between equal runs.
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
