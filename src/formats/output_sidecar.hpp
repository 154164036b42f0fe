// The sidecar of an output that is being written: file and sidecar change as one, so that at any moment, also after
// kill -9 or a power failure, the sidecar fits the file that is under the name, be it the old one or the new one. The
// new sidecar comes first, with the hash of the new file (taken under its partial name) and, in its member `pending`,
// all that was said of the file that it replaces; then the file gets its name; then the sidecar is written anew without
// `pending`. Each step is synced before the next. Given to a writer as WriteOptions::companion. Writers of outputs
// without a sidecar take it without a description: the sidecar that an earlier run left is removed in the same steps.
#pragma once

#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/atomic_file.hpp"
#include "base/result.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {

// The check that comes before the work, as check_output() for the file itself: a sidecar that is there is replaced with
// options.force alone, but for one that a killed run left without its file.
[[nodiscard]] Status check_sidecar_output(const std::filesystem::path& file, const WriteOptions& options);

// one caller at a time
class OutputSidecar final : public OutputCompanion {
 public:
  OutputSidecar(std::filesystem::path file, const WriteOptions& options);

  // What the sidecar says besides name, size and hash of the file. Called once the file is complete and synced, so that
  // times include its writing.
  void describe(std::function<nlohmann::ordered_json()> content) { content_ = std::move(content); }

  // Hashes it while it is synced.
  void begin(const std::filesystem::path& partial) override;
  Status before_rename(const std::filesystem::path& partial) override;
  Status after_rename() override;
  void take_back() noexcept override;

 private:
  // The sidecar that was there before, and whether it is one.
  struct Old {
    std::string text;
    bool names_a_hash = false;
    bool replaceable = false;  // without force: a killed run left it without its file
  };

  [[nodiscard]] Status write_pending(const std::filesystem::path& partial);
  [[nodiscard]] Status remove();

  std::filesystem::path file_;
  std::filesystem::path path_;
  WriteOptions options_;
  std::function<nlohmann::ordered_json()> content_;
  std::future<Result<FileDigest>> digest_;  // of the new file, since begin()
  std::optional<Old> old_;
  std::optional<AtomicFile> final_;
  std::string pending_;  // the text of the sidecar between old and new; empty when there is none

  friend Status check_sidecar_output(const std::filesystem::path& file, const WriteOptions& options);
  [[nodiscard]] static Result<std::optional<Old>> read_old(const std::filesystem::path& file, FileLayer& layer);
};

// The options for an output whose sidecar is `sidecar`.
[[nodiscard]] WriteOptions with_sidecar(WriteOptions options, std::shared_ptr<OutputSidecar> sidecar);
// The options for an output that has no sidecar; those that name a companion stay as they are.
[[nodiscard]] WriteOptions without_sidecar(const std::filesystem::path& file, WriteOptions options);

}  // namespace cingulum
