#include "zarr/direct/staged_read.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include "base/first_failure.hpp"

namespace cingulum::zarr {
namespace {

struct Batch {
  Batch(const BoxLimits& limits, std::span<const std::byte> fill) : boxes(limits, fill) {}

  std::size_t first_leaf = 0;  // of the window
  std::size_t leaves = 0;
  BoxPlan boxes;
  std::uint64_t slot_bytes = 0;  // up to the end of the last slot
  std::size_t slab = 0;
  std::uint64_t turn = 0;  // how many batches the slab has had before
  std::atomic<std::size_t> unfilled{0};
  std::atomic<bool> failed{false};

  [[nodiscard]] std::uint64_t table_at() const { return round_up(slot_bytes, slab_alignment); }
};

// Whose turn it is to use a slab.
struct SlabTurn {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t turn = 0;
};

// Leaves are claimed in their order, and who has claimed one finishes it whatever happens elsewhere. So a batch is
// always waited for by those behind it alone, and of several failures the first leaf's is reported.
class StagedRead {
 public:
  explicit StagedRead(const StagedReadJob& job)
      : job_(job),
        metadata_(job.plan.array().metadata()),
        fill_(std::span<const std::byte>(metadata_.fill).first(metadata_.type.bytes())),
        limits_(job.staging.kernels().limits_of(job.to)) {}

  [[nodiscard]] Status run() {
    shape_ring();
    LeafWindow window;
    while (true) {
      CGL_TRY_ASSIGN(const bool more, job_.plan.next_window(window, job_.options));
      if (!more) return {};
      CGL_TRY(read_window(window));
    }
  }

 private:
  // A region that needs less than the whole ring takes no more than it needs.
  void shape_ring() {
    const std::uint64_t leaf = job_.transport.most_slot_bytes() + slab_alignment + sizeof(BoxRecord);
    const std::uint64_t leaves = job_.plan.leaf_count();
    slab_bytes_ = std::max(job_.ring.slab_bytes, leaf + slab_alignment);
    const std::uint64_t leaves_of_slab = (slab_bytes_ - slab_alignment) / leaf;
    if (leaves <= leaves_of_slab) {
      slab_bytes_ = leaves * leaf + slab_alignment;
      slab_count_ = 1;
      return;
    }
    // Two at least: one is filled while the other is copied.
    const std::uint64_t ring_bytes = job_.ring.slab_bytes * job_.ring.slabs;
    slab_count_ = static_cast<std::size_t>(std::clamp<std::uint64_t>(
        (leaves + leaves_of_slab - 1) / leaves_of_slab, 2, std::max<std::uint64_t>(2, ring_bytes / slab_bytes_)));
  }

  [[nodiscard]] Status read_window(const LeafWindow& window) {
    job_.transport.begin_window();
    make_batches(window);
    // Grows where a leaf's table takes more than was thought of; nothing is being filled now.
    CGL_TRY_ASSIGN(slabs_, job_.staging.slabs(slab_bytes_, slab_count_));
    while (turns_.size() < slab_count_) turns_.emplace_back();
    next_leaf_ = 0;

    ThreadPool* const pool = job_.options.pool;
    const std::size_t workers =
        pool == nullptr ? 1 : std::min(static_cast<std::size_t>(pool->threads()), window.size());
    if (job_.scratch.size() < workers) job_.scratch.resize(workers);
    const auto work = [&](std::size_t begin, std::size_t end) {
      for (std::size_t worker = begin; worker < end; ++worker) fill_leaves(window, job_.scratch[worker]);
    };
    if (workers <= 1) {
      work(0, workers);
    } else {
      pool->parallel_for(workers, 1, work);
    }
    return failure_.take();
  }

  void make_batches(const LeafWindow& window) {
    batches_.clear();
    slots_.assign(window.size(), {});
    batch_of_.resize(window.size());
    for (std::size_t i = 0; i < window.size(); ++i) {
      const LeafChunk& leaf = window.leaf(i);
      BoxTask task;
      task.move = job_.plan.move(window, i);
      task.move.place_offset += job_.to_offset;
      task.is_fill = leaf.object == nullptr;
      if (batches_.empty() || bytes_with(batches_.back(), leaf, task) > slab_bytes_) open_batch(i);
      Batch& batch = batches_.back();
      slab_bytes_ = std::max(slab_bytes_, bytes_with(batch, leaf, task));
      LeafSlot& slot = slots_[i];
      if (!task.is_fill) slot = job_.transport.slot_for(leaf, batch.slot_bytes);
      slot.leaf = i;
      if (slot.is_stored) batch.slot_bytes = slot.at + slot.bytes;
      task.chunk_at = slot.chunk_at;
      batch.boxes.add(task);
      batch_of_[i] = batches_.size() - 1;
      ++batch.leaves;
      ++batch.unfilled;
    }
  }

  // The bytes of a slab with one more leaf.
  [[nodiscard]] std::uint64_t bytes_with(const Batch& batch, const LeafChunk& leaf, const BoxTask& task) const {
    std::uint64_t end = batch.slot_bytes;
    if (!task.is_fill) {
      const LeafSlot slot = job_.transport.slot_for(leaf, end);
      end = slot.at + slot.bytes;
    }
    const std::size_t records = batch.boxes.records().size() + batch.boxes.records_for(task);
    return round_up(end, slab_alignment) + records * sizeof(BoxRecord);
  }

  void open_batch(std::size_t first_leaf) {
    Batch& batch = batches_.emplace_back(limits_, fill_);
    batch.first_leaf = first_leaf;
    batch.slab = static_cast<std::size_t>(batch_number_ % slab_count_);
    batch.turn = batch_number_ / slab_count_;
    ++batch_number_;
  }

  void fill_leaves(const LeafWindow& window, CodecScratch& scratch) {
    while (!stopped_) {
      const std::size_t i = next_leaf_.fetch_add(1);
      if (i >= window.size()) return;
      Batch& batch = batches_[batch_of_[i]];
      note(i, batch, fill_leaf(window, slots_[i], batch, scratch));
      if (batch.unfilled.fetch_sub(1) > 1) continue;
      note(batch.first_leaf + batch.leaves - 1, batch, send(window, batch));
      SlabTurn& slab = turns_[batch.slab];
      {
        const std::lock_guard lock(slab.mutex);
        ++slab.turn;
      }
      slab.changed.notify_all();
    }
  }

  void note(std::size_t leaf, Batch& batch, Status status) {
    if (status) return;
    batch.failed = true;
    stopped_ = true;
    failure_.note(leaf, std::move(status));
  }

  [[nodiscard]] Status fill_leaf(const LeafWindow& window, LeafSlot& slot, Batch& batch, CodecScratch& scratch) {
    CGL_TRY(job_.options.cancel.check());
    if (!slot.is_stored) {
      if (job_.options.complete) {
        return tl::make_unexpected(job_.plan.located(
            window, slot.leaf, Error(ErrorKind::corrupt, "it is not stored, and a complete array was asked for")));
      }
      job_.counters.filled_chunks.fetch_add(1, std::memory_order_relaxed);
      return {};
    }
    CGL_TRY(wait_for_slab(batch));
    return catch_out_of_memory([&] { return job_.transport.fill(window, slot, *slabs_[batch.slab], scratch); });
  }

  // Until the batch before it in its slab was sent, and has left the host.
  [[nodiscard]] Status wait_for_slab(const Batch& batch) {
    SlabTurn& turn = turns_[batch.slab];
    std::unique_lock lock(turn.mutex);
    turn.changed.wait(lock, [&] { return turn.turn == batch.turn; });
    Slab& slab = *slabs_[batch.slab];
    if (slab.uploaded != nullptr) {
      CGL_TRY(slab.uploaded->wait());
      slab.uploaded.reset();
    }
    if (job_.transport.fills_the_device() && slab.consumed != nullptr) {
      CGL_TRY(slab.consumed->wait());
      slab.consumed.reset();
    }
    return {};
  }

  // All leaves of the batch are in its slab, or have failed.
  [[nodiscard]] Status send(const LeafWindow& window, Batch& batch) {
    if (batch.failed || stopped_) return {};
    CGL_TRY(wait_for_slab(batch));
    return catch_out_of_memory([&]() -> Status {
      const std::lock_guard lock(queues_);
      Slab& slab = *slabs_[batch.slab];
      Queue& copies = job_.staging.copies();
      const std::span<const std::byte> table = std::as_bytes(batch.boxes.records());
      std::memcpy(slab.host_bytes().data() + batch.table_at(), table.data(), table.size());
      if (slab.consumed != nullptr) CGL_TRY(copies.wait_for(*slab.consumed));
      const LeafBatch leaves = {&window, std::span(slots_).subspan(batch.first_leaf, batch.leaves), batch.table_at(),
                                batch.table_at() + table.size()};
      CGL_TRY_ASSIGN(const Buffer* const chunks, job_.transport.deliver(leaves, slab));
      CGL_TRY_ASSIGN(slab.uploaded, copies.record());
      CGL_TRY(job_.queue.wait_for(*slab.uploaded));
      CGL_TRY(job_.staging.kernels().scatter(job_.queue, {&batch.boxes, &slab.device_buffer(), batch.table_at()},
                                             *chunks, job_.to));
      CGL_TRY_ASSIGN(slab.consumed, job_.queue.record());
      return {};
    });
  }

  const StagedReadJob& job_;
  const ArrayMetadata& metadata_;
  std::span<const std::byte> fill_;
  BoxLimits limits_;
  std::uint64_t slab_bytes_ = 0;
  std::size_t slab_count_ = 1;
  std::span<const std::unique_ptr<Slab>> slabs_;
  std::deque<SlabTurn> turns_;
  std::uint64_t batch_number_ = 0;

  // These belong to the window that is being read.
  std::deque<Batch> batches_;
  std::vector<LeafSlot> slots_;
  std::vector<std::size_t> batch_of_;
  std::atomic<std::size_t> next_leaf_{0};
  std::atomic<bool> stopped_{false};
  std::mutex queues_;  // the caller's and the staging's: one caller at a time
  FirstFailure failure_;
};

}  // namespace

Status run_staged_read(const StagedReadJob& job) {
  StagedRead read(job);
  return read.run();
}

}  // namespace cingulum::zarr
