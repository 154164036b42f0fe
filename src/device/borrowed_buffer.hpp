// A Buffer over memory that someone else owns: a DLPack tensor, mapped host memory. It frees and charges nothing.
#pragma once

#include "device/device.hpp"

namespace cingulum {

class BorrowedBuffer final : public Buffer {
 public:
  BorrowedBuffer(Device& device, void* memory, std::uint64_t bytes) : Buffer(device, bytes), memory_(memory) {}
  [[nodiscard]] void* device_pointer() const override { return memory_; }

 private:
  void* memory_;
};

}  // namespace cingulum
