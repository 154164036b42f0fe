// A file that is sent piece by piece, and stays the one that was opened when another takes its name. Called by
// connection.hpp.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

namespace cingulum::view {

class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(const std::filesystem::path& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  // The size of a regular file that could be opened; none of anything else.
  [[nodiscard]] std::optional<std::uint64_t> bytes() const {
    struct stat facts {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
    return static_cast<std::uint64_t>(facts.st_size);
  }
  // How many were read; 0 at the end and where reading fails.
  [[nodiscard]] std::size_t read(std::uint64_t first, char* into, std::size_t count) const {
    const ssize_t got = ::pread(descriptor_, into, count, static_cast<off_t>(first));
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

 private:
  int descriptor_ = -1;
};

}  // namespace cingulum::view
