#include "zarr/direct/direct_transport.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "zarr/direct/checksum_kernels.hpp"

namespace cingulum::zarr {
namespace {

class DirectTransport final : public LeafTransport {
 public:
  DirectTransport(const RegionPlan& plan, Staging& staging, ReadCounters& counters,
                  std::shared_ptr<const CufileLibrary> library, std::unique_ptr<ChecksumKernels> checksums)
      : plan_(plan),
        chain_(plan.array().metadata().leaf_coding().chain),
        stored_bytes_(encoded_bytes(chain_, plan.leaf_bytes())),
        staging_(staging),
        counters_(counters),
        library_(std::move(library)),
        checksums_(std::move(checksums)) {}

  // Slabs may be exchanged for larger ones between windows.
  void begin_window() override {
    files_.clear();
    memories_.clear();
  }
  [[nodiscard]] bool fills_the_device() const override { return true; }

  [[nodiscard]] LeafSlot slot_for(const LeafChunk& leaf, std::uint64_t free_at) const override {
    const std::uint64_t begin = place_in_file(leaf);
    const std::uint64_t first_page = begin / direct_page_bytes * direct_page_bytes;
    const std::uint64_t at = round_up(free_at, direct_page_bytes);
    return {0, at, round_up(begin + leaf.bytes, direct_page_bytes) - first_page, at + begin - first_page, true};
  }
  [[nodiscard]] std::uint64_t most_slot_bytes() const override {
    return round_up(stored_bytes_, direct_page_bytes) + 2 * direct_page_bytes;
  }

  [[nodiscard]] Status fill(const LeafWindow& window, LeafSlot& slot, Slab& slab, CodecScratch&) override {
    const LeafChunk& leaf = window.leaf(slot.leaf);
    counters_.stored_bytes.fetch_add(leaf.bytes, std::memory_order_relaxed);
    if (leaf.bytes == stored_bytes_ && read_past_the_host(leaf, slot, slab)) return {};
    // By the host: what it says of a leaf of another size is what everybody says.
    if (leaf.bytes == stored_bytes_) counters_.retried_chunks.fetch_add(1, std::memory_order_relaxed);
    const std::span<std::byte> to = slab.host_bytes().subspan(slot.chunk_at, leaf.bytes);
    if (Status status = read_raw_leaf(plan_, leaf, to); !status) {
      return tl::make_unexpected(plan_.located(window, slot.leaf, std::move(status.error())));
    }
    slot.on_host = true;
    return {};
  }

  [[nodiscard]] Result<const Buffer*> deliver(const LeafBatch& batch, Slab& slab) override {
    Queue& copies = staging_.copies();
    const std::span<std::byte> host = slab.host_bytes();
    CGL_TRY(copies.upload(slab.device_buffer(), batch.table_at,
                          host.subspan(batch.table_at, batch.used_bytes - batch.table_at)));
    std::vector<ChecksumPlace> places;
    std::vector<std::size_t> leaves;
    for (const LeafSlot& slot : batch.slots) {
      if (!slot.is_stored) continue;
      if (slot.on_host) {
        CGL_TRY(copies.upload(slab.device_buffer(), slot.chunk_at, host.subspan(slot.chunk_at, plan_.leaf_bytes())));
      } else if (!chain_.empty()) {
        places.push_back({slot.chunk_at, plan_.leaf_bytes()});
        leaves.push_back(slot.leaf);
      }
    }
    if (places.empty()) return &slab.device_buffer();
    CGL_TRY_ASSIGN(const std::vector<bool> right, checksums_->verify(copies, slab.device_buffer(), places));
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (!right[i]) return tl::make_unexpected(damage(*batch.window, leaves[i], places[i], slab));
    }
    return &slab.device_buffer();
  }

 private:
  [[nodiscard]] static std::uint64_t place_in_file(const LeafChunk& leaf) {
    const auto extent = leaf.object->extent();
    return (extent ? extent->offset : 0) + leaf.offset;
  }

  [[nodiscard]] bool read_past_the_host(const LeafChunk& leaf, const LeafSlot& slot, Slab& slab) {
    const auto opened = open(leaf, slab);
    if (!opened) return false;
    const std::uint64_t first_page = place_in_file(leaf) / direct_page_bytes * direct_page_bytes;
    const auto arrived = opened->file->read(*opened->memory, slot.at, first_page, slot.bytes);
    return arrived && *arrived >= slot.chunk_at - slot.at + leaf.bytes;
  }

  struct Opened {
    const CufileFile* file;
    const CufileMemory* memory;
  };
  // Files and slabs are registered when they are first met.
  [[nodiscard]] std::optional<Opened> open(const LeafChunk& leaf, Slab& slab) {
    const auto extent = leaf.object->extent();
    if (!extent) return std::nullopt;
    const std::lock_guard lock(mutex_);
    auto file = files_.find(leaf.object);
    if (file == files_.end()) {
      auto registered = library_->register_file(extent->descriptor);
      file = files_.emplace(leaf.object, registered ? std::move(*registered) : nullptr).first;
    }
    auto memory = memories_.find(&slab);
    if (memory == memories_.end()) {
      auto registered = library_->register_memory(slab.device_buffer().device_pointer(),
                                                  static_cast<std::size_t>(slab.device_buffer().bytes()));
      memory = memories_.emplace(&slab, registered ? std::move(*registered) : nullptr).first;
    }
    if (file->second == nullptr || memory->second == nullptr) return std::nullopt;
    return Opened{file->second.get(), memory->second.get()};
  }

  // The words of the codec, over the bytes that are on the device.
  [[nodiscard]] Error damage(const LeafWindow& window, std::size_t leaf, const ChecksumPlace& place, Slab& slab) {
    const std::span<std::byte> bytes = slab.host_bytes().subspan(place.at, stored_bytes_);
    Status status = staging_.copies().download(bytes, slab.device_buffer(), place.at);
    if (status) status = staging_.copies().synchronise();
    if (!status) return std::move(status.error());
    auto verified = verified_content(chain_.front(), bytes);
    Error error = verified ? Error(ErrorKind::device, "the checksum that the device computed is wrong")
                           : std::move(verified.error());
    return plan_.located(window, leaf, std::move(error));
  }

  const RegionPlan& plan_;
  const CodecChain& chain_;
  std::uint64_t stored_bytes_;
  Staging& staging_;
  ReadCounters& counters_;
  std::shared_ptr<const CufileLibrary> library_;
  std::unique_ptr<ChecksumKernels> checksums_;
  std::mutex mutex_;  // guards what follows
  std::map<const StoredObject*, std::unique_ptr<CufileFile>> files_;
  std::map<const Slab*, std::unique_ptr<CufileMemory>> memories_;
};

}  // namespace

Result<std::unique_ptr<LeafTransport>> make_direct_transport(const RegionPlan& plan, Staging& staging,
                                                             ReadCounters& counters,
                                                             std::shared_ptr<const CufileLibrary> library) {
  CGL_TRY_ASSIGN(auto checksums, ChecksumKernels::create(staging.device()));
  return std::make_unique<DirectTransport>(plan, staging, counters, std::move(library), std::move(checksums));
}

}  // namespace cingulum::zarr
