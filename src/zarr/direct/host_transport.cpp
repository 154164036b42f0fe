#include <algorithm>
#include <cstring>

#include "zarr/direct/leaf_transport.hpp"

namespace cingulum::zarr {
namespace {

// Half of a core's second cache: what was read is still there when its checksum is computed.
constexpr std::uint64_t piece_bytes = std::uint64_t{256} << 10;

class HostTransport final : public LeafTransport {
 public:
  HostTransport(const RegionPlan& plan, Staging& staging, ReadCounters& counters)
      : plan_(plan),
        staging_(staging),
        counters_(counters),
        chain_(plan.array().metadata().leaf_coding().chain),
        raw_(is_raw(chain_)),
        slot_bytes_(round_up(raw_ ? encoded_bytes(chain_, plan.leaf_bytes()) : plan.leaf_bytes(), slab_alignment)) {}

  [[nodiscard]] LeafSlot slot_for(const LeafChunk&, std::uint64_t free_at) const override {
    const std::uint64_t at = round_up(free_at, slab_alignment);
    return {0, at, slot_bytes_, at, true};
  }
  [[nodiscard]] std::uint64_t most_slot_bytes() const override { return slot_bytes_; }

  [[nodiscard]] Status fill(const LeafWindow& window, LeafSlot& slot, Slab& slab, CodecScratch& scratch) override {
    const LeafChunk& leaf = window.leaf(slot.leaf);
    const std::span<std::byte> to = slab.host_bytes().subspan(slot.at, slot.bytes);
    counters_.stored_bytes.fetch_add(leaf.bytes, std::memory_order_relaxed);
    if (raw_) {
      if (Status status = read_raw_leaf(plan_, leaf, to); !status) {
        return tl::make_unexpected(plan_.located(window, slot.leaf, std::move(status.error())));
      }
      return {};
    }
    CGL_TRY_ASSIGN(const std::span<const std::byte> encoded, plan_.read_encoded(window, slot.leaf, scratch));
    const std::span<std::byte> place = to.first(plan_.leaf_bytes());
    auto decoded = decode_chain_into(chain_, encoded, place, scratch);
    if (!decoded) return tl::make_unexpected(plan_.located(window, slot.leaf, std::move(decoded.error())));
    if (decoded->data() != place.data()) std::memcpy(place.data(), decoded->data(), place.size());
    return {};
  }

  [[nodiscard]] Result<const Buffer*> deliver(const LeafBatch& batch, Slab& slab) override {
    CGL_TRY(staging_.copies().upload(slab.device_buffer(), 0, slab.host_bytes().first(batch.used_bytes)));
    return &slab.device_buffer();
  }

 private:
  const RegionPlan& plan_;
  Staging& staging_;
  ReadCounters& counters_;
  const CodecChain& chain_;
  bool raw_;
  std::uint64_t slot_bytes_;
};

}  // namespace

std::unique_ptr<LeafTransport> make_host_transport(const RegionPlan& plan, Staging& staging, ReadCounters& counters) {
  return std::make_unique<HostTransport>(plan, staging, counters);
}

bool is_raw(const CodecChain& chain) {
  return chain.empty() || (chain.size() == 1 && chain.front().kind == CodecKind::crc32c);
}

Status read_raw_leaf(const RegionPlan& plan, const LeafChunk& leaf, std::span<std::byte> to) {
  const CodecChain& chain = plan.array().metadata().leaf_coding().chain;
  const std::uint64_t expected = encoded_bytes(chain, plan.leaf_bytes());
  if (leaf.bytes != expected) {
    return fail(ErrorKind::corrupt, "{} bytes expected, {} found", expected, leaf.bytes);
  }
  const auto in_memory = leaf.object->in_memory();
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < leaf.bytes; done += piece_bytes) {
    const std::uint64_t bytes = std::min(piece_bytes, leaf.bytes - done);
    const std::span<std::byte> piece = to.subspan(done, bytes);
    if (in_memory) {
      std::memcpy(piece.data(), in_memory->data() + leaf.offset + done, bytes);
    } else {
      CGL_TRY(leaf.object->read_at(leaf.offset + done, piece));
    }
    if (chain.empty() || done >= plan.leaf_bytes()) continue;
    crc = crc32c(piece.first(std::min(bytes, plan.leaf_bytes() - done)), crc);
  }
  if (chain.empty()) return {};
  std::uint32_t stored = 0;
  for (std::size_t b = 0; b < 4; ++b) {
    stored |= std::to_integer<std::uint32_t>(to[plan.leaf_bytes() + b]) << (8 * b);
  }
  if (stored == crc) return {};
  // Once more over all of it, for the words of the codec.
  auto verified = verified_content(chain.front(), std::span<const std::byte>(to).first(leaf.bytes));
  if (verified) return fail(ErrorKind::corrupt, "crc32c: the bytes changed while they were read");
  return tl::make_unexpected(std::move(verified.error()));
}

}  // namespace cingulum::zarr
