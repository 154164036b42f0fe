// The shared memory in which a process shows its telemetry to others: the file NAME.ring in a folder of the user's,
// that one process writes and any may read. A sequence number is odd while the writer is at work, so that a reader sees
// a torn copy and looks again; the content is JSON (ring/telemetry/telemetry_export.hpp) with its length and checksum.
// `cingulum ring top` reads; a TelemetryPublisher writes. Nothing is ever locked: a reader cannot hold up the writer,
// nor a dead writer a reader.
//
// Layout, little-endian: the words of TelemetryPageHeader, then `capacity` bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cingulum::ring {

// Only whole 64-bit words, each read and written atomically.
struct TelemetryPageHeader {
  std::uint64_t magic = 0;
  std::uint64_t process = 0;
  std::uint64_t capacity = 0;  // bytes that follow the header; a multiple of 8
  std::uint64_t sequence = 0;  // odd: being written
  std::uint64_t bytes = 0;     // of the content
  std::uint64_t checksum = 0;  // of the content
  std::uint64_t reserved[2] = {};
};
static_assert(sizeof(TelemetryPageHeader) == 64);

// The writer's side. The file is removed when it goes; a process that is killed leaves it, and the next one that makes
// a page in the same folder clears it away.
class TelemetryPage {
 public:
  // Refuses a file that is there and belongs to a process that lives.
  [[nodiscard]] static Result<TelemetryPage> create(const std::filesystem::path& path,
                                                    std::size_t capacity = std::size_t{64} << 10U);
  TelemetryPage(TelemetryPage&& other) noexcept;
  TelemetryPage& operator=(TelemetryPage&& other) noexcept;
  ~TelemetryPage();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  // By one thread at a time. Content that does not fit gets a larger page under the same name.
  [[nodiscard]] Status write(std::string_view content);

 private:
  TelemetryPage() = default;
  void close() noexcept;

  std::filesystem::path path_;
  std::byte* memory_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

// The content of a page. Looks again while the writer is at work, for a tenth of a second at most.
// ErrorKind::not_found: no such file; corrupt: not a page, or damaged; unavailable: the writer was at work all the time
// (it may have died there).
[[nodiscard]] Result<std::string> read_telemetry_page(const std::filesystem::path& path);

// Where pages lie unless a path is given: $XDG_RUNTIME_DIR/cingulum, or /tmp/cingulum-UID where that variable is not
// set. `create`: makes it, for this user only. A folder of another user's is refused.
[[nodiscard]] Result<std::filesystem::path> telemetry_folder(std::string_view xdg_runtime_dir, bool create);

struct TelemetryPageFile {
  std::filesystem::path path;
  std::int64_t process = 0;
  bool alive = false;  // the process that writes it runs
};

// The pages of a folder, the lowest process number first. A folder that does not exist has none.
[[nodiscard]] std::vector<TelemetryPageFile> list_telemetry_pages(const std::filesystem::path& folder);

}  // namespace cingulum::ring
