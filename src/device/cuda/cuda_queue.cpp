#include "device/cuda/cuda_queue.hpp"

#include <type_traits>

#include "device/cuda/cuda_kernel.hpp"
#include "device/cuda/cuda_status.hpp"

namespace cingulum {
namespace {

struct EventDeleter {
  void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
};
using EventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EventDeleter>;

struct StreamDeleter {
  void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
};
using StreamHandle = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamDeleter>;

class CudaEvent final : public Event {
 public:
  CudaEvent(CudaDevice& device, EventHandle event) : device_(device), event_(std::move(event)) {}

  [[nodiscard]] cudaEvent_t get() const { return event_.get(); }
  [[nodiscard]] Result<bool> done() override {
    const cudaError_t code = cudaEventQuery(event_.get());
    if (code == cudaErrorNotReady) return false;
    CGL_TRY(cuda_status(code, "device {}: querying an event", device_.id()));
    return true;
  }
  [[nodiscard]] Status wait() override {
    return cuda_status(cudaEventSynchronize(event_.get()), "device {}: waiting for an event", device_.id());
  }
  [[nodiscard]] Result<double> milliseconds_since(const Event& earlier) const override {
    const auto* other = dynamic_cast<const CudaEvent*>(&earlier);
    if (other == nullptr || &other->device_ != &device_) {
      return fail(ErrorKind::invalid_argument, "timing: the events belong to different devices");
    }
    float milliseconds = 0;
    CGL_TRY(cuda_status(cudaEventElapsedTime(&milliseconds, other->event_.get(), event_.get()), "device {}: timing",
                        device_.id()));
    return static_cast<double>(milliseconds);
  }

 private:
  CudaDevice& device_;
  EventHandle event_;
};

class CudaQueue final : public Queue {
 public:
  CudaQueue(CudaDevice& device, StreamHandle stream) : Queue(device), device_(device), stream_(std::move(stream)) {}
  ~CudaQueue() override {
    // Host memory of unfinished copies may go with our caller.
    static_cast<void>(cudaStreamSynchronize(stream()));
  }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }

  [[nodiscard]] Result<std::unique_ptr<Event>> do_record() override {
    CGL_TRY(device_.make_current());
    cudaEvent_t event = nullptr;
    CGL_TRY(cuda_status(cudaEventCreate(&event), "device {}: making an event", device_.id()));
    EventHandle handle(event);
    auto owner = std::make_unique<CudaEvent>(device_, std::move(handle));
    CGL_TRY(cuda_status(cudaEventRecord(event, stream()), "device {}: recording an event", device_.id()));
    return owner;
  }
  [[nodiscard]] Status wait_for(Event& event) override {
    auto* const other = dynamic_cast<CudaEvent*>(&event);
    if (other == nullptr) return event.wait();
    return cuda_status(cudaStreamWaitEvent(stream(), other->get(), 0), "device {}: waiting for an event", device_.id());
  }
  [[nodiscard]] Status synchronise() override {
    return cuda_status(cudaStreamSynchronize(stream()), "device {}: synchronising", device_.id());
  }

 protected:
  Status do_upload(Buffer& to, std::uint64_t offset, std::span<const std::byte> from) override {
    return copy_bytes(address(to, offset), from.data(), from.size(), cudaMemcpyHostToDevice, "uploading");
  }
  Status do_download(std::span<std::byte> to, const Buffer& from, std::uint64_t offset) override {
    return copy_bytes(to.data(), address(from, offset), to.size(), cudaMemcpyDeviceToHost, "downloading");
  }
  Status do_copy(Buffer& to, std::uint64_t to_offset, const Buffer& from, std::uint64_t from_offset,
                 std::uint64_t bytes) override {
    return copy_bytes(address(to, to_offset), address(from, from_offset), bytes, cudaMemcpyDeviceToDevice, "copying");
  }
  Status do_copy_to_peer(Buffer& to, std::uint64_t to_offset, const Buffer& from, std::uint64_t from_offset,
                         std::uint64_t bytes) override {
    const auto& peer = static_cast<const CudaDevice&>(to.device());
    CGL_TRY(device_.make_current());
    // Without this the copy goes through the host. Once per pair and process; asking again is answered so.
    const cudaError_t enabled = cudaDeviceEnablePeerAccess(peer.ordinal(), 0);
    if (enabled == cudaErrorPeerAccessAlreadyEnabled) {
      static_cast<void>(cudaGetLastError());
    } else {
      CGL_TRY(cuda_status(enabled, "device {}: reaching {}", device_.id(), peer.id()));
    }
    return cuda_status(cudaMemcpyPeerAsync(address(to, to_offset), peer.ordinal(), address(from, from_offset),
                                           device_.ordinal(), bytes, stream()),
                       "device {}: copying to a peer", device_.id());
  }
  Status do_fill(Buffer& to, std::uint64_t offset, std::uint64_t bytes, std::byte value) override {
    CGL_TRY(device_.make_current());
    return cuda_status(cudaMemsetAsync(address(to, offset), std::to_integer<int>(value), bytes, stream()),
                       "device {}: filling", device_.id());
  }
  Status do_launch(Kernel& kernel, const LaunchShape& shape, std::span<const KernelArgument> arguments) override {
    CGL_TRY(device_.make_current());
    return static_cast<CudaKernel&>(kernel).launch(shape, arguments, stream());
  }

 private:
  Status copy_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, std::string_view what) {
    CGL_TRY(device_.make_current());
    return cuda_status(cudaMemcpyAsync(to, from, bytes, kind, stream()), "device {}: {}", device_.id(), what);
  }
  static std::byte* address(const Buffer& buffer, std::uint64_t offset) {
    return static_cast<std::byte*>(buffer.device_pointer()) + offset;
  }

  CudaDevice& device_;
  StreamHandle stream_;
};

}  // namespace

Result<std::unique_ptr<Queue>> make_cuda_queue(CudaDevice& device) {
  CGL_TRY(device.make_current());
  cudaStream_t stream = nullptr;
  // Non-blocking: never waits for, nor is waited for by, the legacy default stream (persistent kernels depend on it).
  CGL_TRY(
      cuda_status(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "device {}: making a queue", device.id()));
  return std::make_unique<CudaQueue>(device, StreamHandle(stream));
}

cudaStream_t cuda_stream_of(const Queue& queue) {
  const auto* const cuda = dynamic_cast<const CudaQueue*>(&queue);
  return cuda == nullptr ? nullptr : cuda->stream();
}

}  // namespace cingulum
