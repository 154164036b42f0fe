#include "formats/file_bytes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/file_layer.hpp"

namespace cingulum {
namespace {

// Closes what open() gave, on every path.
struct Descriptor {
  int number = -1;
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

}  // namespace

Result<FileBytes> FileBytes::map(const std::filesystem::path& path) {
  // Not blocking: opening a pipe must not wait for its writer only to be refused.
  const Descriptor file(uninterrupted([&] {
    const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return opened >= 0 ? opened : -errno;
  }));
  if (file.number < 0) {
    const int error = -file.number;
    return fail(error == ENOENT ? ErrorKind::not_found : ErrorKind::io, "opening {}: {}", path.native(),
                system_error_text(error));
  }
  struct stat facts = {};
  if (::fstat(file.number, &facts) != 0) {
    return fail_file(path.native(), ErrorKind::io, "opening {}: {}", path.native(), system_error_text(errno));
  }
  if (!S_ISREG(facts.st_mode)) {
    return fail_file(path.native(), ErrorKind::invalid_argument, "opening {}: it is not a regular file", path.native());
  }
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size > std::numeric_limits<std::size_t>::max()) {
    return fail_file(path.native(), ErrorKind::io, "opening {}: {} bytes do not fit the address space", path.native(),
                     size);
  }
  FileBytes result;
  if (size == 0) return result;
  void* const mapping = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, file.number, 0);
  if (mapping == MAP_FAILED) {
    return fail(errno == ENOMEM ? ErrorKind::out_of_memory : ErrorKind::io, "mapping {} ({} bytes): {}", path.native(),
                size, system_error_text(errno));
  }
  (void)::madvise(mapping, static_cast<std::size_t>(size), MADV_SEQUENTIAL);
  result.mapping_ = mapping;
  result.mapping_bytes_ = static_cast<std::size_t>(size);
  return result;
}

FileBytes FileBytes::own(std::vector<std::byte> bytes) {
  FileBytes result;
  result.owned_ = std::move(bytes);
  return result;
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)),
      owned_(std::move(other.owned_)) {}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  if (this == &other) return *this;
  if (mapping_ != nullptr) (void)::munmap(mapping_, mapping_bytes_);
  mapping_ = std::exchange(other.mapping_, nullptr);
  mapping_bytes_ = std::exchange(other.mapping_bytes_, 0);
  owned_ = std::move(other.owned_);
  return *this;
}

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) (void)::munmap(mapping_, mapping_bytes_);
}

std::span<const std::byte> FileBytes::bytes() const noexcept {
  if (mapping_ != nullptr) return {static_cast<const std::byte*>(mapping_), mapping_bytes_};
  return owned_;
}

}  // namespace cingulum
