// The end of a file that lies in memory, written in place by several threads. A system lets one thread at a time write
// to a file by calls; through a map all can, once the memory is there: it is taken ahead, by a thread of this class.
// Used by AtomicFile, which knows what the bytes are.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "base/file_layer.hpp"

namespace cingulum {

// one caller at a time
class MappedGrowth {
 public:
  // The file is in memory (FileLayer::is_in_memory) and has `size` bytes. Layer and descriptor outlive this.
  MappedGrowth(FileLayer& layer, int descriptor, std::uint64_t size)
      : layer_(layer), descriptor_(descriptor), allocated_(size), wanted_(size) {}
  ~MappedGrowth();
  MappedGrowth(const MappedGrowth&) = delete;
  MappedGrowth& operator=(const MappedGrowth&) = delete;

  // Bytes of the file while they are mapped.
  class Bytes {
   public:
    Bytes() = default;
    ~Bytes() {
      if (mapping_ != nullptr) layer_->unmap(mapping_, mapping_bytes_);
    }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

   private:
    friend class MappedGrowth;
    FileLayer* layer_ = nullptr;
    std::byte* mapping_ = nullptr;
    std::size_t mapping_bytes_ = 0;
    std::span<std::byte> bytes_;
  };

  // Maps the next `size` bytes from `offset`, the end of what was written, on. 0, or an errno: ENOSPC where there is no
  // memory for them.
  [[nodiscard]] int map(std::uint64_t offset, std::size_t size, Bytes& bytes);

  // Ends the thread and gives back what was taken ahead: the file has `size` bytes. 0 or an errno.
  [[nodiscard]] int finish(std::uint64_t size);

 private:
  void work();
  [[nodiscard]] int allocate_until(std::uint64_t end);
  void stop();

  FileLayer& layer_;
  const int descriptor_;
  std::thread thread_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::uint64_t allocated_;  // the file has memory up to here
  std::uint64_t wanted_;     // by the thread, if it can be had
  bool stop_ = false;
};

}  // namespace cingulum
