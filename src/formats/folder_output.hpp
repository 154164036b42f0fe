// A folder that appears as a whole: it is filled as NAME.partial-PID-N beside its final name and renamed when it is
// complete. Used for TRX folders and Zarr hierarchies. Files in it are AtomicFiles, or are written whole by
// write_file(); their data are synced before the rename. A new folder never replaces one that appeared meanwhile
// (renameat2 with NOREPLACE where the system has it). With `force` the old and the new folder are exchanged in one step
// where the system can (RENAME_EXCHANGE); elsewhere the old one is moved aside first, and a process killed between the
// two renames leaves both under names with ".partial-". What killed processes left is removed by the next writer
// of the same name.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/atomic_file.hpp"
#include "base/result.hpp"

namespace cingulum {

// Which folder may be replaced by a new one of its kind; no other is, whatever is asked for.
struct FolderKind {
  std::string_view name;  // "TRX folder"
  bool (*is_one)(const std::filesystem::path& folder) = nullptr;
};

class FolderOutput {
 public:
  // Refuses what exists without `force`; with it, replaces an empty folder, or one of this kind.
  [[nodiscard]] static Result<FolderOutput> create(const std::filesystem::path& path, const FolderKind& kind,
                                                   const WriteOptions& options);
  FolderOutput(FolderOutput&&) noexcept;
  FolderOutput& operator=(FolderOutput&&) noexcept;
  ~FolderOutput();  // without commit nothing is left

  // A new file in it; folders in the name are made.
  [[nodiscard]] Result<AtomicFile> create_file(const std::string& name);
  // A new file in it, whole: `parts` one behind the other, synced. any thread
  [[nodiscard]] Status write_file(const std::string& name, std::span<const std::span<const std::byte>> parts);
  // The same piece by piece. any thread; each File has one caller at a time and ends before the folder does
  class File;
  [[nodiscard]] Result<File> begin_file(const std::string& name);
  [[nodiscard]] Status commit();

 private:
  struct State;
  explicit FolderOutput(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

class FolderOutput::File {
 public:
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();  // without end() it stays incomplete, and the folder must not be committed

  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  // Synced and closed; nothing is appended afterwards.
  [[nodiscard]] Status end();

 private:
  friend class FolderOutput;
  File(State& folder, int descriptor) noexcept : folder_(&folder), descriptor_(descriptor) {}
  State* folder_;
  int descriptor_;  // -1: closed
};

}  // namespace cingulum
