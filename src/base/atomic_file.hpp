// The one file writer. It writes beside the final name (NAME.partial-PID-N), syncs the data, renames, and syncs the
// folder: whoever looks under the final name finds the old content or the complete new one, whatever happens in between
// (error, full disk, Ctrl-C, kill -9, power loss). Every output of Cingulum goes through it; it knows nothing of
// formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.hpp"
#include "base/file_layer.hpp"
#include "base/result.hpp"

namespace cingulum {

class ThreadPool;

// What stands beside an output and changes together with it: its sidecar (formats/output_sidecar.hpp). AtomicFile and
// FolderOutput call it when they commit.
class OutputCompanion {
 public:
  virtual ~OutputCompanion() = default;
  // The output is complete under the name `partial`, and is being synced: what takes long can begin.
  virtual void begin(const std::filesystem::path& partial) { (void)partial; }
  // The output is complete and synced under the name `partial`. After a failure the output is given up.
  [[nodiscard]] virtual Status before_rename(const std::filesystem::path& partial) = 0;
  // The output has its final name, and the folder is synced. A failure is reported; the output stays.
  [[nodiscard]] virtual Status after_rename() = 0;
  // The output did not get its name: what was beside the old one comes back.
  virtual void take_back() noexcept = 0;
};

struct WriteOptions {
  bool force = false;                                // replace an existing file
  bool sync = true;                                  // false: scratch files, no promise at power loss
  std::uint64_t expected_bytes = 0;                  // when known: refused at once where it does not fit
  std::size_t buffer_bytes = std::size_t{1} << 20U;  // the memory that a stream of any length takes
  bool remove_leftovers = true;                      // false: the caller cleans its folder of many files once
  FileLayer* layer = nullptr;                        // default: the system's
  ThreadPool* pool = nullptr;                        // shares the making of large content (append_parts)
  CancelToken cancel = {};                           // polled by writers that take long
  std::shared_ptr<OutputCompanion> companion = {};   // of this one output
};

// The check that comes before the work: the output may be created (its folder exists, nothing is under the name that
// may not be replaced). AtomicFile::create and commit check again.
[[nodiscard]] Status check_output(const std::filesystem::path& path, const WriteOptions& options = {});

class AtomicFile {
 public:
  // Refuses an existing file without `force`, and always what is not a regular file; a symbolic link is followed.
  // Removes partial files of the same name whose processes are dead.
  [[nodiscard]] static Result<AtomicFile> create(const std::filesystem::path& path, const WriteOptions& options = {});

  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;
  ~AtomicFile();  // without commit nothing is left

  // Buffered. After a failure the partial file is gone and every further call fails.
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  [[nodiscard]] Status append(std::string_view text);

  // Appends what `make` writes: part i are the bytes offsets[i] to offsets[i + 1]; the first offset is 0. Parts are
  // made by the threads of options.pool in any order, into the file itself where that lies in memory. `make` keeps to
  // itself what fails in it, for the caller to look at afterwards.
  using MakePart = std::function<void(std::size_t part, std::span<std::byte> place)>;
  [[nodiscard]] Status append_parts(std::span<const std::uint64_t> offsets, const MakePart& make);

  // Overwrites bytes that were appended before: headers whose counts are known at the end.
  [[nodiscard]] Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);

  [[nodiscard]] std::uint64_t size() const noexcept;

  // Gives the file its final name. When this fails nothing is under that name that was not there before, with one
  // exception that the message states: the complete new file is there, and syncing the folder after an old one was
  // replaced, or finishing the companion, failed.
  [[nodiscard]] Status commit();

  void discard() noexcept;

 private:
  struct State;
  explicit AtomicFile(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

[[nodiscard]] Status write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                                           WriteOptions options = {});
[[nodiscard]] Status write_file_atomically(const std::filesystem::path& path, std::string_view text,
                                           WriteOptions options = {});

}  // namespace cingulum
