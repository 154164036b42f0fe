// How the bytes of leaf chunks come to a device: one class per engine. A StagedRead (staged_read.hpp) gives each leaf a
// slot of a slab, lets threads fill the slots, and delivers a batch of them when all are full; what is delivered is
// verified, decoded and lies on the device in the layout of the leaf coding.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "device/device.hpp"
#include "zarr/chunk_writer.hpp"
#include "zarr/codec_chain.hpp"
#include "zarr/direct/staging.hpp"
#include "zarr/region_plan.hpp"

namespace cingulum::zarr {

// Places and sizes at which disks are read past the page cache: where our own shards put their chunks.
constexpr std::uint64_t direct_page_bytes = inner_chunk_alignment;

// Where a leaf is: slot [at, at + bytes) of the slab, its elements from chunk_at on in what is delivered.
struct LeafSlot {
  std::size_t leaf = 0;  // of the window
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
  std::uint64_t chunk_at = 0;
  bool is_stored = false;
  bool on_host = false;             // direct, nvcomp: the host has read and decoded it after all, at chunk_at
  std::uint64_t encoded_bytes = 0;  // nvcomp: of the slot
};

// Leaves whose slots are in one slab, with the table of their boxes behind them.
struct LeafBatch {
  const LeafWindow* window = nullptr;
  std::span<LeafSlot> slots;
  std::uint64_t table_at = 0;
  std::uint64_t used_bytes = 0;  // slots and table
};

// What reading counts while many threads do it.
struct ReadCounters {
  std::atomic<std::uint64_t> filled_chunks{0};
  std::atomic<std::uint64_t> stored_bytes{0};
  std::atomic<std::uint64_t> retried_chunks{0};
};

class LeafTransport {
 public:
  virtual ~LeafTransport() = default;
  LeafTransport(const LeafTransport&) = delete;
  LeafTransport& operator=(const LeafTransport&) = delete;

  // Objects of the window before are gone. one caller at a time
  virtual void begin_window() {}
  // Whether fill() writes to the device's side of a slab, which must not be in use then.
  [[nodiscard]] virtual bool fills_the_device() const { return false; }
  // The slot of a stored leaf that begins at the next free byte of a slab or a little behind it, and chunk_at.
  [[nodiscard]] virtual LeafSlot slot_for(const LeafChunk& leaf, std::uint64_t free_at) const = 0;
  // Slots never need more than this.
  [[nodiscard]] virtual std::uint64_t most_slot_bytes() const = 0;
  // The bytes of a stored leaf into its slot. any thread
  [[nodiscard]] virtual Status fill(const LeafWindow& window, LeafSlot& slot, Slab& slab, CodecScratch& scratch) = 0;
  // All slots are full and the host's side of the slab has the table: brings both to the device by the queue of copies.
  // Answers the buffer that has the chunks. one caller at a time
  [[nodiscard]] virtual Result<const Buffer*> deliver(const LeafBatch& batch, Slab& slab) = 0;

 protected:
  LeafTransport() = default;
};

// Threads decode into pinned memory, one upload brings a batch to the device.
[[nodiscard]] std::unique_ptr<LeafTransport> make_host_transport(const RegionPlan& plan, Staging& staging,
                                                                 ReadCounters& counters);

// Whether leaves lie in the store as their elements are, with a checksum behind them or without.
[[nodiscard]] bool is_raw(const CodecChain& chain);
// Such a leaf, `to` has room for leaf.bytes: read and verified in pieces that stay in a core's cache.
[[nodiscard]] Status read_raw_leaf(const RegionPlan& plan, const LeafChunk& leaf, std::span<std::byte> to);

}  // namespace cingulum::zarr
