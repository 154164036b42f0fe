// Programs that a bench starts and waits for, peers and our own, with their time and memory; and the folder in which
// they leave their files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace cingulum::measure {

// This program; the others of the build lie beside it.
[[nodiscard]] std::filesystem::path own_program();

struct ChildRun {
  double seconds = 0;
  double processor_seconds = 0;
  std::uint64_t peak_bytes = 0;
  bool succeeded = false;
  bool too_long = false;  // it was ended at the limit
};

enum class ChildErrors { shown, with_output };

// Standard output replaces `output`; errors go to ours, or to its end as well. With a limit (seconds, not 0) the
// program and all that it started are killed at the limit, and when an interrupt is requested.
[[nodiscard]] ChildRun run_child(const std::vector<std::string>& words, const std::filesystem::path& output,
                                 ChildErrors errors = ChildErrors::shown, double limit_seconds = 0);

// A folder that is removed at the end with all that is in it.
class ScratchFolder {
 public:
  [[nodiscard]] static Result<ScratchFolder> create(const std::filesystem::path& where);
  ~ScratchFolder();
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ScratchFolder& operator=(ScratchFolder&&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace cingulum::measure
