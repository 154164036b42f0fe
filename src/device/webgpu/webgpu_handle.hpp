// Owning handles for objects of the WebGPU C API: released when they go out of scope.
#pragma once

#include <utility>

#include "device/webgpu/wgpu_library.hpp"

namespace cingulum {

// A handle and the library function that releases it. The library's table outlives every handle (it is process-wide).
template <class Object>
class WgpuHandle {
 public:
  using Release = void (*)(Object);
  WgpuHandle() = default;
  WgpuHandle(Object object, Release release) : object_(object), release_(release) {}
  WgpuHandle(WgpuHandle&& other) noexcept : object_(std::exchange(other.object_, nullptr)), release_(other.release_) {}
  WgpuHandle& operator=(WgpuHandle&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  WgpuHandle(const WgpuHandle&) = delete;
  WgpuHandle& operator=(const WgpuHandle&) = delete;
  ~WgpuHandle() {
    if (object_ != nullptr) release_(object_);
  }
  [[nodiscard]] Object get() const { return object_; }
  [[nodiscard]] explicit operator bool() const { return object_ != nullptr; }

 private:
  Object object_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace cingulum
