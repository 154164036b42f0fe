// A folder that appears as a whole: it is filled as NAME.partial-PID-N beside its final name and renamed when it is
// complete. Used for TRX folders. Files in it are AtomicFiles; their data are synced before the rename. A new folder
// never replaces one that appeared meanwhile (renameat2 with NOREPLACE where the system has it). With `force` the old
// and the new folder are exchanged in one step where the system can (RENAME_EXCHANGE); elsewhere the old one is moved
// aside first, and a process killed between the two renames leaves both under names with ".partial-". Folders left by
// killed processes are removed by the next writer of the same name.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/atomic_file.hpp"
#include "base/result.hpp"

namespace cingulum {

class FolderOutput {
 public:
  // Refuses what exists without `force`; with it, replaces a TRX folder (it has a header.json) and nothing else.
  [[nodiscard]] static Result<FolderOutput> create(const std::filesystem::path& path, const WriteOptions& options);
  FolderOutput(FolderOutput&&) noexcept;
  FolderOutput& operator=(FolderOutput&&) noexcept;
  ~FolderOutput();  // without commit nothing is left

  // A new file in it; folders in the name are made.
  [[nodiscard]] Result<AtomicFile> create_file(const std::string& name);
  [[nodiscard]] Status commit();

 private:
  struct State;
  explicit FolderOutput(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace cingulum
