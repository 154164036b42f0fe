#include "device/webgpu/webgpu_queue.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <list>
#include <mutex>
#include <vector>

#include "device/webgpu/webgpu_kernel.hpp"

namespace cingulum {
namespace {

// Larger transfers go in pieces, so that staging memory stays bounded and copies overlap with the host's part.
constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20;
// wgpu stages uploads by itself and each piece is waited for, so fewer and larger ones are better.
constexpr std::uint64_t upload_piece_bytes = std::uint64_t{32} << 20;
constexpr std::uint64_t pattern_bytes = std::uint64_t{1} << 20;

constexpr std::uint64_t round_down(std::uint64_t value) {
  return value & ~std::uint64_t{3};
}
constexpr std::uint64_t round_up(std::uint64_t value) {
  return (value + 3) & ~std::uint64_t{3};
}
constexpr bool is_whole(std::uint64_t value) {
  return value % 4 == 0;
}

WGPUBuffer handle_of(const Buffer& buffer) {
  return static_cast<const WebgpuBuffer&>(buffer).handle();
}

// A download on its way: device -> staging buffer -> (mapped) -> host memory.
struct PendingDownload {
  enum class State { mapping, mapped, failed };
  WgpuHandle<WGPUBuffer> staging;
  std::uint64_t capacity = 0;      // of the staging buffer
  std::uint64_t staged_bytes = 0;  // of it in use
  std::uint64_t skip = 0;          // bytes before the first wanted one
  WGPUSubmissionIndex copied = 0;  // the submission that fills the staging buffer
  std::span<std::byte> to;
  std::atomic<State> state{State::mapping};
};

// What a queue shares with its events: the downloads that have not arrived, and staging buffers for the next ones.
// Making a staging buffer costs more than using it, so they are used again; what is on its way at once is bounded.
// Locked, since an event may be waited for in another thread than its queue's.
class Downloads {
 public:
  explicit Downloads(WebgpuDevice& device) : device_(device) {}

  // Queues the copy to a staging buffer and its mapping. Waits for older downloads when too much is on its way. On
  // failure all that was started has arrived: nothing will be written to the caller's memory later.
  Status start(std::span<std::byte> to, WGPUBuffer from, std::uint64_t offset) {
    Status status = start_one(to, from, offset);
    if (!status) static_cast<void>(finish());
    return status;
  }

  // Blocks until the submission is done (not those that others make meanwhile) and all downloads have arrived.
  Status finish(WGPUSubmissionIndex last) {
    Status status = device_.check_not_lost();
    if (status && last != 0) device_.library().wgpuDevicePoll(device_.handle(), 1, &last);
    return finish(std::move(status));
  }
  Status finish() { return finish(device_.check_not_lost()); }

 private:
  Status finish(Status status) {
    const std::lock_guard lock(mutex_);
    // All of them, whatever happens: the host memory of a download may go after this returns.
    while (!pending_.empty()) {
      Status arrived = finish_oldest();
      if (status) status = std::move(arrived);
    }
    if (Status uncaptured = device_.take_uncaptured_error(); status) status = std::move(uncaptured);
    return status;
  }

  Status start_one(std::span<std::byte> to, WGPUBuffer from, std::uint64_t offset);

  // 16 pieces in flight keep the bus busy; the rest of a large download waits for its turn.
  static constexpr std::uint64_t most_pending_bytes = 16 * piece_bytes;
  static constexpr std::uint64_t smallest_staging_bytes = std::uint64_t{64} << 10;

  struct Staging {
    WgpuHandle<WGPUBuffer> buffer;
    std::uint64_t capacity;
  };

  Result<Staging> take_staging(std::uint64_t bytes) {
    const auto fits =
        std::find_if(free_.begin(), free_.end(), [&](const Staging& one) { return one.capacity >= bytes; });
    if (fits != free_.end()) {
      Staging staging = std::move(*fits);
      free_.erase(fits);
      return staging;
    }
    const std::uint64_t capacity = std::max(smallest_staging_bytes, std::bit_ceil(bytes));
    CGL_TRY_ASSIGN(auto buffer, device_.create_buffer(capacity, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst,
                                                      "staging a download"));
    return Staging{std::move(buffer), capacity};
  }

  Status finish_oldest() {
    const WgpuLibrary& wgpu = device_.library();
    std::unique_ptr<PendingDownload> download = std::move(pending_.front());
    pending_.pop_front();
    pending_bytes_ -= download->capacity;
    while (download->state.load(std::memory_order_acquire) == PendingDownload::State::mapping) {
      if (Status lost = device_.check_not_lost(); !lost) {
        // Left alive on purpose: wgpu may still call back. Nothing is written to the host any more.
        static_cast<void>(download.release());
        return lost;
      }
      wgpu.wgpuDevicePoll(device_.handle(), 1, &download->copied);
    }
    if (download->state.load() == PendingDownload::State::failed) {
      return fail(ErrorKind::device, "device {}: a download could not be mapped", device_.id());
    }
    const void* const data = wgpu.wgpuBufferGetConstMappedRange(download->staging.get(), 0, download->staged_bytes);
    std::memcpy(download->to.data(), static_cast<const std::byte*>(data) + download->skip, download->to.size());
    wgpu.wgpuBufferUnmap(download->staging.get());
    // Sorted by size, so that the smallest that fits is found first.
    const auto place = std::find_if(free_.begin(), free_.end(),
                                    [&](const Staging& one) { return one.capacity >= download->capacity; });
    free_.insert(place, Staging{std::move(download->staging), download->capacity});
    return {};
  }

  WebgpuDevice& device_;
  std::mutex mutex_;  // guards everything below
  std::list<std::unique_ptr<PendingDownload>> pending_;
  std::uint64_t pending_bytes_ = 0;
  std::vector<Staging> free_;
};

// Records commands with `record(encoder)` and submits them. Finished and submitted in two steps: wgpu-native aborts the
// process when it is given commands that it has already refused.
template <class Record>
Result<WGPUSubmissionIndex> submit(WebgpuDevice& device, std::string_view what, Record&& record) {
  const WgpuLibrary& wgpu = device.library();
  CGL_TRY(device.check_not_lost());
  CGL_TRY_ASSIGN(const auto commands, device.checked(what, [&] {
    const WgpuHandle<WGPUCommandEncoder> encoder(wgpu.wgpuDeviceCreateCommandEncoder(device.handle(), nullptr),
                                                 wgpu.wgpuCommandEncoderRelease);
    record(encoder.get());
    return WgpuHandle<WGPUCommandBuffer>(wgpu.wgpuCommandEncoderFinish(encoder.get(), nullptr),
                                         wgpu.wgpuCommandBufferRelease);
  }));
  const WGPUCommandBuffer list[] = {commands.get()};
  return device.checked(what, [&] { return wgpu.wgpuQueueSubmitForIndex(device.queue_handle(), 1, list); });
}

Result<WGPUSubmissionIndex> copy_words(WebgpuDevice& device, WGPUBuffer to, std::uint64_t to_offset, WGPUBuffer from,
                                       std::uint64_t from_offset, std::uint64_t bytes) {
  return submit(device, "copying", [&](WGPUCommandEncoder encoder) {
    device.library().wgpuCommandEncoderCopyBufferToBuffer(encoder, from, from_offset, to, to_offset, bytes);
  });
}

Status Downloads::start_one(std::span<std::byte> to, WGPUBuffer from, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const WgpuLibrary& wgpu = device_.library();
  auto download = std::make_unique<PendingDownload>();
  const std::uint64_t first = round_down(offset);
  download->staged_bytes = round_up(offset + to.size()) - first;
  download->skip = offset - first;
  download->to = to;
  while (!pending_.empty() && pending_bytes_ + download->staged_bytes > most_pending_bytes) CGL_TRY(finish_oldest());
  CGL_TRY_ASSIGN(Staging staging, take_staging(download->staged_bytes));
  download->staging = std::move(staging.buffer);
  download->capacity = staging.capacity;
  CGL_TRY_ASSIGN(download->copied,
                 copy_words(device_, download->staging.get(), 0, from, first, download->staged_bytes));
  WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowSpontaneous;
  callback.userdata1 = download.get();
  callback.callback = [](WGPUMapAsyncStatus status, WGPUStringView, void* arrived, void*) {
    static_cast<PendingDownload*>(arrived)->state.store(
        status == WGPUMapAsyncStatus_Success ? PendingDownload::State::mapped : PendingDownload::State::failed,
        std::memory_order_release);
  };
  wgpu.wgpuBufferMapAsync(download->staging.get(), WGPUMapMode_Read, 0, download->staged_bytes, callback);
  pending_bytes_ += download->capacity;
  pending_.push_back(std::move(download));
  return {};
}

// A timestamp written by the device where it can, else nothing but a place in the order.
class WebgpuEvent final : public Event {
 public:
  WebgpuEvent(WebgpuDevice& device, std::shared_ptr<Downloads> downloads)
      : device_(device), downloads_(std::move(downloads)) {}

  Status record() {
    const WgpuLibrary& wgpu = device_.library();
    if (device_.capabilities().device_timestamps) {
      WGPUQuerySetDescriptor descriptor = WGPU_QUERY_SET_DESCRIPTOR_INIT;
      descriptor.type = WGPUQueryType_Timestamp;
      descriptor.count = 1;
      CGL_TRY_ASSIGN(query_, device_.checked("recording an event", [&] {
        return WgpuHandle<WGPUQuerySet>(wgpu.wgpuDeviceCreateQuerySet(device_.handle(), &descriptor),
                                        wgpu.wgpuQuerySetRelease);
      }));
    }
    CGL_TRY_ASSIGN(index_, submit(device_, "recording an event", [&](WGPUCommandEncoder encoder) {
                     if (query_) wgpu.wgpuCommandEncoderWriteTimestamp(encoder, query_.get(), 0);
                   }));
    WGPUQueueWorkDoneCallbackInfo callback = WGPU_QUEUE_WORK_DONE_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_AllowSpontaneous;
    // The event may be gone when the callback comes: the flag is shared with it.
    callback.userdata1 = new std::shared_ptr<std::atomic<bool>>(done_);
    callback.callback = [](WGPUQueueWorkDoneStatus, WGPUStringView, void* flag, void*) {
      const std::unique_ptr<std::shared_ptr<std::atomic<bool>>> owned(
          static_cast<std::shared_ptr<std::atomic<bool>>*>(flag));
      (*owned)->store(true);
    };
    wgpu.wgpuQueueOnSubmittedWorkDone(device_.queue_handle(), callback);
    return {};
  }

  [[nodiscard]] Result<bool> done() override {
    CGL_TRY(device_.check_not_lost());
    if (!done_->load()) device_.library().wgpuDevicePoll(device_.handle(), 0, nullptr);
    if (!done_->load()) return false;
    // Done means arrived.
    CGL_TRY(downloads_->finish());
    return true;
  }

  [[nodiscard]] Status wait() override {
    CGL_TRY(device_.check_not_lost());
    device_.library().wgpuDevicePoll(device_.handle(), 1, &index_);
    return downloads_->finish();
  }

  [[nodiscard]] WGPUSubmissionIndex index() const { return index_; }
  [[nodiscard]] bool belongs_to(const WebgpuDevice& device) const { return &device_ == &device; }

  [[nodiscard]] Result<double> milliseconds_since(const Event& earlier) const override {
    const auto* other = dynamic_cast<const WebgpuEvent*>(&earlier);
    if (other == nullptr || &other->device_ != &device_) {
      return fail(ErrorKind::invalid_argument, "timing: the events belong to different devices");
    }
    if (!device_.capabilities().device_timestamps) {
      return fail(ErrorKind::unavailable, "device {}: the adapter has no timestamps", device_.id());
    }
    CGL_TRY_ASSIGN(const std::uint64_t start, other->ticks());
    CGL_TRY_ASSIGN(const std::uint64_t end, ticks());
    const double nanoseconds_per_tick = device_.library().wgpuQueueGetTimestampPeriod(device_.queue_handle());
    return (static_cast<double>(end) - static_cast<double>(start)) * nanoseconds_per_tick * 1e-6;
  }

 private:
  [[nodiscard]] Result<std::uint64_t> ticks() const {
    CGL_TRY_ASSIGN(const auto resolved, device_.create_buffer(8, WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc,
                                                              "reading a timestamp"));
    CGL_TRY(submit(device_, "reading a timestamp", [&](WGPUCommandEncoder encoder) {
              device_.library().wgpuCommandEncoderResolveQuerySet(encoder, query_.get(), 0, 1, resolved.get(), 0);
            }).map([](WGPUSubmissionIndex) {}));
    std::uint64_t value = 0;
    Downloads download(device_);
    CGL_TRY(download.start(std::as_writable_bytes(std::span(&value, 1)), resolved.get(), 0));
    CGL_TRY(download.finish());
    return value;
  }

  WebgpuDevice& device_;
  std::shared_ptr<Downloads> downloads_;
  WgpuHandle<WGPUQuerySet> query_;
  WGPUSubmissionIndex index_ = 0;
  std::shared_ptr<std::atomic<bool>> done_ = std::make_shared<std::atomic<bool>>(false);
};

class WebgpuQueue final : public Queue {
 public:
  explicit WebgpuQueue(WebgpuDevice& device)
      : Queue(device), device_(device), wgpu_(device.library()), downloads_(std::make_shared<Downloads>(device)) {}
  ~WebgpuQueue() override {
    // Host memory of unfinished downloads may go with our caller: nothing may be written to it later.
    static_cast<void>(downloads_->finish(last_));
  }

  [[nodiscard]] Status wait_for(Event& event) override {
    // All work of a WebGPU device is in one order: what was submitted before runs before.
    const auto* const own = dynamic_cast<const WebgpuEvent*>(&event);
    return own != nullptr && own->belongs_to(device_) ? Status{} : event.wait();
  }
  [[nodiscard]] Status synchronise() override {
    if (unsubmitted_bytes_ > 0) CGL_TRY(flush());
    return downloads_->finish(last_);
  }

 protected:
  Result<std::unique_ptr<Event>> do_record() override {
    auto event = std::make_unique<WebgpuEvent>(device_, downloads_);
    CGL_TRY(event->record());
    last_ = event->index();
    unsubmitted_bytes_ = 0;
    return event;
  }
  Status do_upload(Buffer& to, std::uint64_t offset, std::span<const std::byte> from) override {
    const std::uint64_t end = offset + from.size();
    // Padding after the buffer's own end may be overwritten; other partial words keep their neighbours.
    const bool whole_end = is_whole(end) || end == to.bytes();
    if (is_whole(offset) && whole_end) {
      const std::uint64_t whole = round_down(from.size());
      for (std::uint64_t done = 0; done < whole; done += upload_piece_bytes) {
        CGL_TRY(write_words(to, offset + done, from.subspan(done, std::min(upload_piece_bytes, whole - done))));
      }
      if (whole == from.size()) return {};
      std::byte last[4] = {};
      std::memcpy(last, from.data() + whole, from.size() - whole);
      return write_words(to, offset + whole, last);
    }
    return rewrite_words(to, offset, from.size(), [&](std::span<std::byte> target, std::uint64_t done) {
      std::memcpy(target.data(), from.data() + done, target.size());
    });
  }

  Status do_download(std::span<std::byte> to, const Buffer& from, std::uint64_t offset) override {
    for (std::uint64_t done = 0; done < to.size(); done += piece_bytes) {
      CGL_TRY(downloads_->start(to.subspan(done, std::min<std::uint64_t>(piece_bytes, to.size() - done)),
                                handle_of(from), offset + done));
    }
    return {};
  }

  Status do_copy(Buffer& to, std::uint64_t to_offset, const Buffer& from, std::uint64_t from_offset,
                 std::uint64_t bytes) override {
    const bool to_end = is_whole(bytes) || to_offset + bytes == to.bytes();
    const bool from_end = is_whole(bytes) || round_up(from_offset + bytes) <= from.bytes() + 3;
    if (is_whole(to_offset) && is_whole(from_offset) && to_end && from_end) {
      const std::uint64_t words = round_up(bytes);
      if (&to != &from) {
        CGL_TRY_ASSIGN(last_, copy_words(device_, handle_of(to), to_offset, handle_of(from), from_offset, words));
        return {};
      }
      // WebGPU refuses a copy within one buffer: it goes through a second one.
      CGL_TRY_ASSIGN(const auto between, device_.create_buffer(words, WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst,
                                                               "copying within a buffer"));
      CGL_TRY_ASSIGN(last_, copy_words(device_, between.get(), 0, handle_of(from), from_offset, words));
      CGL_TRY_ASSIGN(last_, copy_words(device_, handle_of(to), to_offset, between.get(), 0, words));
      return {};
    }
    std::vector<std::byte> bytes_between(std::min(bytes, piece_bytes));
    for (std::uint64_t done = 0; done < bytes; done += piece_bytes) {
      const auto piece = std::span(bytes_between).first(std::min(piece_bytes, bytes - done));
      CGL_TRY(do_download(piece, from, from_offset + done));
      CGL_TRY(synchronise());
      CGL_TRY(do_upload(to, to_offset + done, piece));
    }
    return {};
  }

  Status do_fill(Buffer& to, std::uint64_t offset, std::uint64_t bytes, std::byte value) override {
    const std::uint64_t end = offset + bytes;
    if (!is_whole(offset) || !(is_whole(end) || end == to.bytes())) {
      return rewrite_words(to, offset, bytes, [&](std::span<std::byte> target, std::uint64_t) {
        std::fill(target.begin(), target.end(), value);
      });
    }
    const std::uint64_t words = round_up(bytes);
    if (value == std::byte{0}) {
      return submit_work("filling", [&](WGPUCommandEncoder encoder) {
        wgpu_.wgpuCommandEncoderClearBuffer(encoder, handle_of(to), offset, words);
      });
    }
    const std::uint64_t pattern_size = std::min(words, pattern_bytes);
    CGL_TRY_ASSIGN(const auto pattern,
                   device_.create_buffer(pattern_size, WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst, "filling"));
    const std::vector<std::byte> values(pattern_size, value);
    wgpu_.wgpuQueueWriteBuffer(device_.queue_handle(), pattern.get(), 0, values.data(), values.size());
    return submit_work("filling", [&](WGPUCommandEncoder encoder) {
      for (std::uint64_t done = 0; done < words; done += pattern_size) {
        wgpu_.wgpuCommandEncoderCopyBufferToBuffer(encoder, pattern.get(), 0, handle_of(to), offset + done,
                                                   std::min(pattern_size, words - done));
      }
    });
  }

  Status do_launch(Kernel& kernel, const LaunchShape& shape, std::span<const KernelArgument> arguments) override {
    auto& compiled = static_cast<WebgpuKernel&>(kernel);
    // The scalars' block serves all launches of a kernel: nobody may write it between ours and the submission.
    const std::lock_guard lock(compiled.launch_mutex());
    CGL_TRY_ASSIGN(const auto bind_group, compiled.bind(arguments));
    return submit_work("launching " + kernel.name(), [&](WGPUCommandEncoder encoder) {
      const WgpuHandle<WGPUComputePassEncoder> pass(wgpu_.wgpuCommandEncoderBeginComputePass(encoder, nullptr),
                                                    wgpu_.wgpuComputePassEncoderRelease);
      wgpu_.wgpuComputePassEncoderSetPipeline(pass.get(), compiled.pipeline());
      wgpu_.wgpuComputePassEncoderSetBindGroup(pass.get(), 0, bind_group.get(), 0, nullptr);
      wgpu_.wgpuComputePassEncoderDispatchWorkgroups(pass.get(), shape.grid[0], shape.grid[1], shape.grid[2]);
      wgpu_.wgpuComputePassEncoderEnd(pass.get());
    });
  }

 private:
  Status write_words(Buffer& to, std::uint64_t offset, std::span<const std::byte> from) {
    CGL_TRY(device_.check_not_lost());
    CGL_TRY(device_
                .checked("uploading",
                         [&] {
                           wgpu_.wgpuQueueWriteBuffer(device_.queue_handle(), handle_of(to), offset, from.data(),
                                                      from.size());
                           return true;
                         })
                .map([](bool) {}));
    // wgpu stages what is written until the next submission: it must not pile up.
    unsubmitted_bytes_ += from.size();
    if (unsubmitted_bytes_ >= upload_piece_bytes) return flush();
    return {};
  }

  // A submission takes the uploads that wgpu has staged along.
  template <class Record>
  Status submit_work(std::string_view what, Record&& record) {
    CGL_TRY_ASSIGN(last_, submit(device_, what, std::forward<Record>(record)));
    unsubmitted_bytes_ = 0;
    return {};
  }

  // Submits what wgpu has staged and waits for it.
  Status flush() {
    CGL_TRY(submit_work("uploading", [](WGPUCommandEncoder) {}));
    wgpu_.wgpuDevicePoll(device_.handle(), 1, &last_);
    return {};
  }

  // The slow way for ranges that begin or end inside a word: read the words, change the bytes, write the words.
  template <class Change>
  Status rewrite_words(Buffer& to, std::uint64_t offset, std::uint64_t bytes, Change&& change) {
    const std::uint64_t padded = static_cast<WebgpuBuffer&>(to).padded_bytes();
    std::vector<std::byte> words(std::min(round_up(bytes) + 4, piece_bytes + 4));
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t begin = offset + done;
      const std::uint64_t count = std::min(piece_bytes - begin % 4, bytes - done);
      const std::uint64_t first = round_down(begin);
      const std::uint64_t last = std::min(round_up(begin + count), padded);
      const auto piece = std::span(words).first(last - first);
      CGL_TRY(downloads_->start(piece, handle_of(to), first));
      CGL_TRY(synchronise());
      change(piece.subspan(begin - first, count), done);
      CGL_TRY(write_words(to, first, piece));
      done += count;
    }
    return {};
  }

  WebgpuDevice& device_;
  const WgpuLibrary& wgpu_;
  std::shared_ptr<Downloads> downloads_;
  std::uint64_t unsubmitted_bytes_ = 0;
  WGPUSubmissionIndex last_ = 0;  // what this queue submitted last; 0: nothing
};

}  // namespace

Result<std::unique_ptr<Queue>> make_webgpu_queue(WebgpuDevice& device) {
  return std::make_unique<WebgpuQueue>(device);
}

}  // namespace cingulum
