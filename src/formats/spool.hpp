// Bytes that are set aside until the end of a stream: in memory while they are few, then in a temporary file beside the
// output that has no name any more, so that nothing is left of it whatever happens. Used by the TRX writer for the
// arrays that come after the positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file_layer.hpp"
#include "base/result.hpp"

namespace cingulum {

class Spool {
 public:
  // The temporary file is made as a partial file of `output`, and only when more than `memory_bytes` come.
  Spool(FileLayer& layer, std::string output, std::size_t memory_bytes);
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&&) = delete;
  ~Spool();

  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t crc() const noexcept { return crc_; }

  // Gives everything back in order, in pieces.
  [[nodiscard]] Status drain(const std::function<Status(std::span<const std::byte>)>& take);

 private:
  [[nodiscard]] Status spill();

  FileLayer& layer_;
  std::string output_;
  std::size_t memory_bytes_;
  std::vector<std::byte> memory_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t spilled_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace cingulum
