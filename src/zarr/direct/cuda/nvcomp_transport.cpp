#include "zarr/direct/nvcomp_transport.hpp"

#include <cstring>
#include <vector>

#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"

namespace cingulum::zarr {
namespace {

constexpr std::size_t lz4_prefix_bytes = 4;  // numcodecs puts the size before the block

// The arrays of a batch, one behind the other in device memory.
struct BatchArrays {
  explicit BatchArrays(std::size_t count) : chunks(count) {}
  std::size_t chunks;
  [[nodiscard]] std::uint64_t encoded() const { return 0; }
  [[nodiscard]] std::uint64_t encoded_bytes() const { return 8 * chunks; }
  [[nodiscard]] std::uint64_t room_bytes() const { return 16 * chunks; }
  [[nodiscard]] std::uint64_t decoded() const { return 24 * chunks; }
  [[nodiscard]] std::uint64_t inputs() const { return 32 * chunks; }  // bytes up to here are uploaded
  [[nodiscard]] std::uint64_t decoded_bytes() const { return 32 * chunks; }
  [[nodiscard]] std::uint64_t statuses() const { return 40 * chunks; }
  [[nodiscard]] std::uint64_t bytes() const { return 44 * chunks; }
};

class NvcompTransport final : public LeafTransport {
 public:
  NvcompTransport(const RegionPlan& plan, Staging& staging, ReadCounters& counters,
                  std::shared_ptr<const NvcompLibrary> library)
      : plan_(plan),
        chain_(plan.array().metadata().leaf_coding().chain),
        decoder_(*library->decoder(chain_.front().kind)),
        prefix_(chain_.front().kind == CodecKind::lz4 ? lz4_prefix_bytes : 0),
        decoded_bytes_(round_up(plan.leaf_bytes(), slab_alignment)),
        staging_(staging),
        counters_(counters),
        library_(std::move(library)) {}

  // Encoded bytes first, room for the decoded ones behind them.
  [[nodiscard]] LeafSlot slot_for(const LeafChunk& leaf, std::uint64_t free_at) const override {
    const std::uint64_t at = round_up(free_at, slab_alignment);
    const std::uint64_t encoded = round_up(leaf.bytes, slab_alignment);
    return {0, at, encoded + decoded_bytes_, at + encoded, true};
  }
  [[nodiscard]] std::uint64_t most_slot_bytes() const override {
    return round_up(encoded_bytes(chain_, plan_.leaf_bytes()), slab_alignment) + decoded_bytes_;
  }

  [[nodiscard]] Status fill(const LeafWindow& window, LeafSlot& slot, Slab& slab, CodecScratch& scratch) override {
    const LeafChunk& leaf = window.leaf(slot.leaf);
    counters_.stored_bytes.fetch_add(leaf.bytes, std::memory_order_relaxed);
    CGL_TRY_ASSIGN(std::span<const std::byte> encoded, plan_.read_encoded(window, slot.leaf, scratch));
    for (std::size_t step = chain_.size(); step-- > 1;) {
      auto content = verified_content(chain_[step], encoded);
      if (!content) return tl::make_unexpected(plan_.located(window, slot.leaf, std::move(content.error())));
      encoded = *content;
    }
    // A leaf shorter than its prefix, and a frame with a checksum that nvCOMP would not look at: by the host.
    const bool sealed = chain_.size() == 1 && chain_.front().kind == CodecKind::zstd && encoded.size() > 4 &&
                        (std::to_integer<unsigned>(encoded[4]) & 4u) != 0;
    if (sealed || encoded.size() <= prefix_) return decode_on_host(window, slot, slab, scratch);
    const std::span<const std::byte> content = encoded.subspan(prefix_);
    std::memcpy(slab.host_bytes().data() + slot.at, content.data(), content.size());
    // The engine's own: how many of the slot's bytes are to be decoded.
    slot.encoded_bytes = content.size();
    return {};
  }

  [[nodiscard]] Result<const Buffer*> deliver(const LeafBatch& batch, Slab& slab) override {
    Queue& copies = staging_.copies();
    Buffer& device = slab.device_buffer();
    const std::span<std::byte> host = slab.host_bytes();
    CGL_TRY(copies.upload(device, batch.table_at, host.subspan(batch.table_at, batch.used_bytes - batch.table_at)));
    std::vector<LeafSlot*> encoded;
    for (LeafSlot& slot : batch.slots) {
      if (!slot.is_stored) continue;
      if (slot.on_host) {
        CGL_TRY(copies.upload(device, slot.chunk_at, host.subspan(slot.chunk_at, plan_.leaf_bytes())));
      } else {
        CGL_TRY(copies.upload(device, slot.at, host.subspan(slot.at, slot.encoded_bytes)));
        encoded.push_back(&slot);
      }
    }
    if (encoded.empty()) return &device;
    CGL_TRY(decode(encoded, slab));
    for (std::size_t i = 0; i < encoded.size(); ++i) {
      if (statuses_[i] == 0 && sizes_[i] == plan_.leaf_bytes()) continue;
      // Damage, or a frame that nvCOMP does not know: the host decides.
      CGL_TRY(decode_on_host(*batch.window, *encoded[i], slab, scratch_));
      CGL_TRY(copies.upload(device, encoded[i]->chunk_at, host.subspan(encoded[i]->chunk_at, plan_.leaf_bytes())));
    }
    return &device;
  }

 private:
  [[nodiscard]] Status decode_on_host(const LeafWindow& window, LeafSlot& slot, Slab& slab, CodecScratch& scratch) {
    CGL_TRY_ASSIGN(const std::span<const std::byte> decoded, plan_.load(window, slot.leaf, scratch));
    std::memcpy(slab.host_bytes().data() + slot.chunk_at, decoded.data(), decoded.size());
    slot.on_host = true;
    counters_.retried_chunks.fetch_add(1, std::memory_order_relaxed);
    return {};
  }

  [[nodiscard]] Status nvcomp_status(int status, std::string_view doing) const {
    if (status == 0) return {};
    return fail(ErrorKind::device, "nvCOMP: {}: {}", doing, library_->status_text(status));
  }

  // Decodes, and brings statuses and sizes to the host.
  [[nodiscard]] Status decode(const std::vector<LeafSlot*>& slots, Slab& slab) {
    Queue& copies = staging_.copies();
    const BatchArrays at(slots.size());
    void* const stream = cuda_stream_of(copies);
    CGL_TRY(static_cast<CudaDevice&>(staging_.device()).make_current());
    const auto leaf_bytes = static_cast<std::size_t>(plan_.leaf_bytes());
    std::size_t temp_bytes = 0;
    CGL_TRY(
        nvcomp_status(decoder_.temp_size(slots.size(), leaf_bytes, {}, &temp_bytes, slots.size() * leaf_bytes, stream),
                      "asking for its memory"));
    const std::uint64_t temp_at = round_up(at.bytes(), slab_alignment);
    if (memory_ == nullptr || memory_->bytes() < temp_at + temp_bytes) {
      CGL_TRY(copies.synchronise());
      CGL_TRY_ASSIGN(memory_, staging_.device().allocate(temp_at + temp_bytes));
    }
    auto* const base = static_cast<std::byte*>(memory_->device_pointer());
    auto* const slab_base = static_cast<std::byte*>(slab.device_buffer().device_pointer());
    std::vector<std::uint64_t> inputs(4 * slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      inputs[i] = reinterpret_cast<std::uint64_t>(slab_base + slots[i]->at);
      inputs[slots.size() + i] = slots[i]->encoded_bytes;
      inputs[2 * slots.size() + i] = leaf_bytes;
      inputs[3 * slots.size() + i] = reinterpret_cast<std::uint64_t>(slab_base + slots[i]->chunk_at);
    }
    CGL_TRY(copies.upload(*memory_, 0, std::as_bytes(std::span(inputs))));
    CGL_TRY(
        nvcomp_status(decoder_.decode(reinterpret_cast<const void* const*>(base + at.encoded()),
                                      reinterpret_cast<const std::size_t*>(base + at.encoded_bytes()),
                                      reinterpret_cast<const std::size_t*>(base + at.room_bytes()),
                                      reinterpret_cast<std::size_t*>(base + at.decoded_bytes()), slots.size(),
                                      base + temp_at, temp_bytes, reinterpret_cast<void* const*>(base + at.decoded()),
                                      {}, reinterpret_cast<int*>(base + at.statuses()), stream),
                      "decoding"));
    sizes_.resize(slots.size());
    statuses_.resize(slots.size());
    CGL_TRY(download(copies, std::span(sizes_), *memory_, at.decoded_bytes()));
    CGL_TRY(download(copies, std::span(statuses_), *memory_, at.statuses()));
    return copies.synchronise();
  }

  const RegionPlan& plan_;
  const CodecChain& chain_;
  const NvcompDecoder& decoder_;
  std::size_t prefix_;
  std::uint64_t decoded_bytes_;
  Staging& staging_;
  ReadCounters& counters_;
  std::shared_ptr<const NvcompLibrary> library_;
  std::unique_ptr<Buffer> memory_;  // the arrays, and what nvCOMP needs behind them
  std::vector<std::uint64_t> sizes_;
  std::vector<std::int32_t> statuses_;
  CodecScratch scratch_;  // of deliver()
};

}  // namespace

Result<std::unique_ptr<LeafTransport>> make_nvcomp_transport(const RegionPlan& plan, Staging& staging,
                                                             ReadCounters& counters,
                                                             std::shared_ptr<const NvcompLibrary> library) {
  return std::make_unique<NvcompTransport>(plan, staging, counters, std::move(library));
}

}  // namespace cingulum::zarr
