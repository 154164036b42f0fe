// The bulk ring: one writer, one reader, plain slots and a published tail. For batches and for messages between two
// threads; batches move at memory speed because a whole run of slots is published by one store. Policies block, reject
// and drop_new (a full ring answers `full`); drop_oldest needs sequences in the slots: ring/fast_ring.hpp.
//
// Memory (BulkRingView) and the two ends are apart: host and device each hold their end, and only slots, writer's line
// and reader's line are shared. Protocol, each shared word having one writer:
//   writer: slots, then writer->position (release); reads reader->position (acquire) only when the ring seems full
//   reader: reads writer->position (acquire) only when it seems empty; then reader->position (release)
// Capacity is any power of two, all of it usable. Either end may be moved to another thread only with a handover.
#pragma once

#include "ring/atomics.hpp"
#include "ring/ring_types.hpp"

namespace cingulum::ring {

template <class T>
struct BulkRingView {
  T* slots = nullptr;
  RingLine* writer = nullptr;
  RingLine* reader = nullptr;
  std::uint32_t capacity = 0;  // a power of two
};

template <class T, class Atomics = HostAtomics>
class BulkWriter {
 public:
  BulkWriter() = default;
  // `start`: where both ends begin (tests start at the wrap); both lines' positions must hold it.
  CGL_HD explicit BulkWriter(BulkRingView<T> view, std::uint64_t start = 0)
      : view_(view), position_(start), credit_(start) {}

  // stored, full or closed (the reader has left).
  CGL_HD_GENERIC CGL_HD PutStatus try_put(const T& value) {
    const bool has_room = room(1) != 0;
    if (reader_left_) return PutStatus::closed;
    if (!has_room) return PutStatus::full;
    slot(0) = value;
    publish(1);
    return PutStatus::stored;
  }
  // Stores as many as there is room for and publishes them at once; answers how many.
  CGL_HD_GENERIC CGL_HD std::uint32_t put_batch(const T* values, std::uint32_t count) {
    const std::uint32_t stored = room(count);
    if (reader_left_) return 0;
    for (std::uint32_t i = 0; i < stored; ++i) slot(i) = values[i];
    if (stored != 0) publish(stored);
    return stored;
  }

  // In parts, for writers of many lanes: room(n) slots may be written through slot(0..n-1), then publish(n) by one
  // lane.
  CGL_HD_GENERIC CGL_HD std::uint32_t room(std::uint32_t wanted) {
    std::uint64_t free = view_.capacity - (position_ - credit_);
    if (free < wanted) {
      credit_ = Atomics::load_acquire(view_.reader->position);
      reader_left_ = Atomics::load_relaxed(view_.reader->closed) != 0;
      free = view_.capacity - (position_ - credit_);
    }
    return static_cast<std::uint32_t>(free < wanted ? free : wanted);
  }
  [[nodiscard]] CGL_HD T& slot(std::uint32_t offset) const {
    return view_.slots[(position_ + offset) & (view_.capacity - 1)];
  }
  CGL_HD_GENERIC CGL_HD void publish(std::uint32_t count) {
    position_ += count;
    Atomics::store_release(view_.writer->position, position_);
  }

  // No more will come; the reader still gets what is there.
  CGL_HD_GENERIC CGL_HD void close() { Atomics::store_release(view_.writer->closed, std::uint64_t{1}); }

  [[nodiscard]] CGL_HD std::uint64_t position() const { return position_; }

 private:
  BulkRingView<T> view_;
  std::uint64_t position_ = 0;
  std::uint64_t credit_ = 0;  // the reader's position as last seen
  bool reader_left_ = false;
};

template <class T, class Atomics = HostAtomics>
class BulkReader {
 public:
  BulkReader() = default;
  // `credit_interval`: after how many messages the reader's position is published. 1 between threads; capacity / 4
  // across a bus. It is published also when the ring is found empty, so a writer never waits for ever.
  CGL_HD explicit BulkReader(BulkRingView<T> view, std::uint64_t start = 0, std::uint32_t credit_interval = 1)
      : view_(view), position_(start), published_(start), seen_(start), credit_interval_(credit_interval) {}

  CGL_HD_GENERIC CGL_HD GetStatus try_get(T& value) {
    if (available(1) == 0) return ended() ? GetStatus::closed : GetStatus::empty;
    value = slot(0);
    release(1);
    return GetStatus::taken;
  }
  // Takes up to `count`; 0 means empty or closed (ended() tells).
  CGL_HD_GENERIC CGL_HD std::uint32_t get_batch(T* values, std::uint32_t count) {
    const std::uint32_t taken = available(count);
    for (std::uint32_t i = 0; i < taken; ++i) values[i] = slot(i);
    if (taken != 0) release(taken);
    return taken;
  }

  // In parts, as in the writer: available(n) slots may be read through slot(0..n-1), then release(n) by one lane.
  CGL_HD_GENERIC CGL_HD std::uint32_t available(std::uint32_t wanted) {
    if (seen_ - position_ < wanted) {
      seen_ = Atomics::load_acquire(view_.writer->position);
      if (seen_ == position_) publish_credit();
    }
    const std::uint64_t ready = seen_ - position_;
    return static_cast<std::uint32_t>(ready < wanted ? ready : wanted);
  }
  [[nodiscard]] CGL_HD const T& slot(std::uint32_t offset) const {
    return view_.slots[(position_ + offset) & (view_.capacity - 1)];
  }
  CGL_HD_GENERIC CGL_HD void release(std::uint32_t count) {
    position_ += count;
    if (position_ - published_ >= credit_interval_) publish_credit();
  }
  // Whether the writer has closed and everything was read.
  CGL_HD_GENERIC CGL_HD bool ended() {
    if (Atomics::load_acquire(view_.writer->closed) == 0) return false;
    return Atomics::load_acquire(view_.writer->position) == position_;  // published before it was closed
  }
  // The reader leaves: later puts answer `closed` as soon as the writer looks at the reader's line.
  CGL_HD_GENERIC CGL_HD void leave() { Atomics::store_release(view_.reader->closed, std::uint64_t{1}); }

  [[nodiscard]] CGL_HD std::uint64_t position() const { return position_; }

 private:
  CGL_HD_GENERIC CGL_HD void publish_credit() {
    if (published_ == position_) return;
    published_ = position_;
    Atomics::store_release(view_.reader->position, position_);
  }

  BulkRingView<T> view_;
  std::uint64_t position_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t seen_ = 0;  // the writer's position as last seen
  std::uint32_t credit_interval_ = 1;
};

}  // namespace cingulum::ring
