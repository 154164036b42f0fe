// Memory of a device as Python's Buffer holds it (cingulum/_buffer.py). Every call returns when its work is done, so
// that memory given to others (DLPack, __cuda_array_interface__) needs no order with our queue.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "device/borrowed_buffer.hpp"
#include "job.hpp"
#include "open_devices.hpp"

namespace cingulum::python {

class DeviceMemory {
 public:
  DeviceMemory(const std::string& device, std::uint64_t bytes) {
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      CGL_TRY_ASSIGN(home_, open_device(device));
      const std::lock_guard lock(home_->mutex);
      CGL_TRY_ASSIGN(buffer_, home_->device->allocate(bytes));
      return home_->queue->fill(*buffer_, 0, bytes, std::byte{0});
    });
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] std::string device() const { return home_->device->id(); }
  [[nodiscard]] std::string backend() const { return std::string(backend_name(home_->device->description().backend)); }
  // 0 where the memory has no address.
  [[nodiscard]] std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(buffer_->device_pointer()); }
  // DLPack's type and number of the device; (0, 0) where it has none.
  [[nodiscard]] std::tuple<int, int> dlpack_device() const {
    const auto& known = home_->device->description().dlpack;
    return known ? std::tuple<int, int>(static_cast<int>(known->type), static_cast<int>(known->id)) : std::tuple(0, 0);
  }

  void upload(const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& from) {
    transfer(
        [&](Queue& queue) { return queue.upload(*buffer_, 0, std::as_bytes(std::span(from.data(), from.size()))); });
  }
  void download(const nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& to) {
    transfer([&](Queue& queue) {
      return queue.download(std::as_writable_bytes(std::span(to.data(), to.size())), *buffer_, 0);
    });
  }
  // From memory of the same device that another library has.
  void copy_from_address(std::uintptr_t address, std::uint64_t bytes) {
    transfer([&](Queue& queue) -> Status {
      const BorrowedBuffer from(*home_->device, reinterpret_cast<void*>(address), bytes);
      // Waits: the borrowed buffer ends with this block.
      CGL_TRY(queue.copy(*buffer_, 0, from, 0, bytes));
      return queue.synchronise();
    });
  }

  [[nodiscard]] const std::shared_ptr<OpenDevice>& home() const { return home_; }
  [[nodiscard]] Buffer& buffer() const { return *buffer_; }

 private:
  void transfer(const std::function<Status(Queue&)>& work) {
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      const std::lock_guard lock(home_->mutex);
      CGL_TRY(work(*home_->queue));
      return home_->queue->synchronise();
    });
  }

  std::shared_ptr<OpenDevice> home_;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace cingulum::python
