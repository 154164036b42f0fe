// The bulk ring: one writer, one reader, plain slots and a published tail. For batches and for messages between two
// threads; batches move at memory speed because a whole run of slots is published by one store. Policies block, reject
// and drop_new (a full ring answers `full`); drop_oldest needs sequences in the slots: ring/queue/fast_ring.hpp.
//
// Memory (BulkRingView) and the two ends are apart: host and device each hold their end, and only slots, writer's line
// and reader's line are shared. Protocol, each shared word having one writer:
//   writer: slots, then writer->position (release); reads reader->position (acquire) only when the ring seems full
//   reader: reads writer->position (acquire) only when it seems empty; then reader->position (release)
// Capacity is any power of two, all of it usable. Either end may be moved to another thread only with a handover.
#pragma once

#include "ring/queue/atomics.hpp"
#include "ring/queue/ring_types.hpp"

namespace cingulum::ring {

template <class T>
struct BulkRingView {
  T* slots = nullptr;
  RingLine* writer = nullptr;
  RingLine* reader = nullptr;
  std::uint32_t capacity = 0;  // a power of two
};

// Both ends: what is done with every message touches as few words as it can, and each of them once. Copying a message
// may change any word as far as the compiler knows, so positions and lines are looked up before it.
template <class T, class Atomics = HostAtomics>
class BulkWriter {
 public:
  BulkWriter() = default;
  // `start`: where both ends begin (tests start at the wrap); both lines' positions must hold it.
  CGL_HD explicit BulkWriter(BulkRingView<T> view, std::uint64_t start = 0)
      : view_(view), position_(start), limit_(start + view.capacity) {}

  // stored, full or closed (the reader has left; seen when the ring seems full).
  CGL_HD_GENERIC CGL_HD PutStatus try_put(const T& value) {
    const std::uint64_t position = position_;
    if (position == limit_) {
      look_for_room();
      if (reader_left_) return PutStatus::closed;
      if (position == limit_) return PutStatus::full;
    }
    RingLine* const line = view_.writer;
    view_.slots[position & (view_.capacity - 1)] = value;
    position_ = position + 1;
    Atomics::store_release(line->position, position + 1);
    return PutStatus::stored;
  }
  // Stores as many as there is room for and publishes them at once; answers how many.
  CGL_HD_GENERIC CGL_HD std::uint32_t put_batch(const T* values, std::uint32_t count) {
    const std::uint32_t stored = room(count);
    for (std::uint32_t i = 0; i < stored; ++i) slot(i) = values[i];
    if (stored != 0) publish(stored);
    return stored;
  }

  // In parts, for writers of many lanes: room(n) slots may be written through slot(0..n-1), then publish(n) by one
  // lane. 0: full, or the reader has left.
  CGL_HD_GENERIC CGL_HD std::uint32_t room(std::uint32_t wanted) {
    if (limit_ - position_ < wanted) look_for_room();
    const std::uint64_t free = limit_ - position_;
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
  // A reader that has left gives no room any more, so that this is asked again.
  CGL_HD_GENERIC CGL_HD void look_for_room() {
    limit_ = Atomics::load_acquire(view_.reader->position) + view_.capacity;
    reader_left_ = Atomics::load_relaxed(view_.reader->closed) != 0;
    if (reader_left_) limit_ = position_;
  }

  BulkRingView<T> view_;
  std::uint64_t position_ = 0;
  std::uint64_t limit_ = 0;  // the position at which the ring is full, by the reader's as last seen
  bool reader_left_ = false;
};

template <class T, class Atomics = HostAtomics>
class BulkReader {
 public:
  BulkReader() = default;
  // `credit_interval`, a power of two: the reader's position is published at its multiples. 1 between threads;
  // capacity / 4 across a bus. It is published also when the ring is found empty, so a writer never waits for ever.
  CGL_HD explicit BulkReader(BulkRingView<T> view, std::uint64_t start = 0, std::uint32_t credit_interval = 1)
      : view_(view), position_(start), seen_(start), credit_mask_(credit_interval - 1), published_(start) {}

  CGL_HD_GENERIC CGL_HD GetStatus try_get(T& value) {
    const std::uint64_t position = position_;
    if (position == seen_ && !look_for_more()) return ended() ? GetStatus::closed : GetStatus::empty;
    RingLine* const line = view_.reader;
    const bool gives_credit = ((position + 1) & credit_mask_) == 0;
    value = view_.slots[position & (view_.capacity - 1)];
    position_ = position + 1;
    if (gives_credit) Atomics::store_release(line->position, position + 1);
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
    if (seen_ - position_ < wanted) look_for_more();
    const std::uint64_t ready = seen_ - position_;
    return static_cast<std::uint32_t>(ready < wanted ? ready : wanted);
  }
  [[nodiscard]] CGL_HD const T& slot(std::uint32_t offset) const {
    return view_.slots[(position_ + offset) & (view_.capacity - 1)];
  }
  CGL_HD_GENERIC CGL_HD void release(std::uint32_t count) {
    const std::uint64_t before = position_;
    position_ += count;
    if (((before ^ position_) & ~credit_mask_) != 0) publish_credit();
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
  CGL_HD_GENERIC CGL_HD bool look_for_more() {
    seen_ = Atomics::load_acquire(view_.writer->position);
    if (seen_ != position_) return true;
    // Once for an empty ring, not at every look: the writer may wait for this line. With an interval of one nothing is
    // ever owed.
    if (credit_mask_ != 0 && published_ != position_) publish_credit();
    return false;
  }
  CGL_HD_GENERIC CGL_HD void publish_credit() {
    published_ = position_;
    Atomics::store_release(view_.reader->position, position_);
  }

  BulkRingView<T> view_;
  std::uint64_t position_ = 0;
  std::uint64_t seen_ = 0;  // the writer's position as last seen
  std::uint64_t credit_mask_ = 0;
  std::uint64_t published_ = 0;  // what the writer knows at least; not kept up by try_get
};

}  // namespace cingulum::ring
