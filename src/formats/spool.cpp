#include "formats/spool.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/partial_file.hpp"
#include "base/quantity.hpp"
#include "formats/crc32.hpp"

namespace cingulum {

Spool::Spool(FileLayer& layer, std::string output, std::size_t memory_bytes)
    : layer_(layer), output_(std::move(output)), memory_bytes_(memory_bytes) {}

Spool::Spool(Spool&& other) noexcept
    : layer_(other.layer_),
      output_(std::move(other.output_)),
      memory_bytes_(other.memory_bytes_),
      memory_(std::move(other.memory_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      spilled_(other.spilled_),
      crc_(other.crc_) {}

Spool::~Spool() {
  if (descriptor_ >= 0) (void)layer_.close(descriptor_);
}

Status Spool::append(std::span<const std::byte> bytes) {
  crc_ = crc32(bytes, crc_);
  size_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), memory_bytes_ - memory_.size());
    memory_.insert(memory_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (memory_.size() == memory_bytes_ && !bytes.empty()) CGL_TRY(spill());
  }
  return {};
}

Status Spool::spill() {
  const auto failure = [&](int error) {
    return fail_file(output_, ErrorKind::io, "writing {}: the temporary file beside it: {} after {}", output_,
                     system_error_text(error), format_bytes(spilled_));
  };
  if (descriptor_ < 0) {
    std::string partial;
    descriptor_ = create_partial_file(layer_, output_, 0600, partial);
    if (descriptor_ < 0) return failure(-std::exchange(descriptor_, -1));
    if (const int error = -uninterrupted([&] { return layer_.unlink(partial.c_str()); }); error != 0) {
      (void)uninterrupted([&] { return layer_.unlink(partial.c_str()); });
      return failure(error);
    }
  }
  std::span<const std::byte> rest = memory_;
  while (!rest.empty()) {
    const ssize_t written = uninterrupted([&] { return layer_.write(descriptor_, rest.data(), rest.size()); });
    if (written <= 0) return failure(written < 0 ? static_cast<int>(-written) : EIO);
    rest = rest.subspan(static_cast<std::size_t>(written));
    spilled_ += static_cast<std::uint64_t>(written);
  }
  memory_.clear();
  return {};
}

Status Spool::drain(const std::function<Status(std::span<const std::byte>)>& take) {
  if (spilled_ > 0) {
    std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(spilled_, std::uint64_t{1} << 20U)));
    for (std::uint64_t at = 0; at < spilled_;) {
      const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), spilled_ - at));
      const ssize_t got = uninterrupted([&]() -> ssize_t {
        const ssize_t count = ::pread(descriptor_, piece.data(), wanted, static_cast<off_t>(at));
        return count >= 0 ? count : -errno;
      });
      if (got <= 0) {
        return fail_file(output_, ErrorKind::io, "writing {}: reading its temporary file back: {} after {}", output_,
                         got < 0 ? system_error_text(static_cast<int>(-got)) : "it ends", format_bytes(at));
      }
      CGL_TRY(take(std::span(piece).first(static_cast<std::size_t>(got))));
      at += static_cast<std::uint64_t>(got);
    }
  }
  return take(memory_);
}

}  // namespace cingulum
