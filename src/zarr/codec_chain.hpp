// The steps of a chunk one behind the other. Called for every chunk by whoever reads or writes one, from many threads:
// what a thread needs of memory it keeps in a CodecScratch from chunk to chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/result.hpp"
#include "zarr/codec.hpp"

namespace cingulum::zarr {

// Steps in the order in which they encode.
using CodecChain = std::vector<Codec>;

// Memory that grows to what the largest chunk needs and stays. one caller at a time
struct CodecScratch {
  BulkVector<std::byte> encoded;  // what was read
  BulkVector<std::byte> front, back;
  // What `memory` held is lost. Throws std::bad_alloc.
  [[nodiscard]] std::span<std::byte> room(BulkVector<std::byte>& memory, std::size_t bytes) {
    if (memory.size() < bytes) {
      memory.clear();  // else it would be copied
      memory.resize(bytes);
    }
    return std::span(memory).first(bytes);
  }
};

// Undoes all steps. The result has exactly `bytes` bytes, or it fails with kind corrupt; it lies in `encoded` where
// nothing but checksums and bitround had to be undone, else in `scratch` (front or back, never scratch.encoded).
// `encoded` lies in neither front nor back.
[[nodiscard]] Result<std::span<const std::byte>> decode_chain(const CodecChain& chain,
                                                              std::span<const std::byte> encoded, std::uint64_t bytes,
                                                              CodecScratch& scratch);
// The same for place.size() bytes, which the last step that moves any puts into `place`; it is used by whoever wants
// them there, and saves a copy. The result lies elsewhere where no step moves bytes, or where one that does not is the
// first of the chain.
[[nodiscard]] Result<std::span<const std::byte>> decode_chain_into(const CodecChain& chain,
                                                                   std::span<const std::byte> encoded,
                                                                   std::span<std::byte> place, CodecScratch& scratch);
// Does them. The result lies in `plain` where there are no steps, else in `scratch`.
[[nodiscard]] Result<std::span<const std::byte>> encode_chain(const CodecChain& chain, std::span<const std::byte> plain,
                                                              CodecScratch& scratch);

// Bytes that `bytes` become: exactly where every step is of fixed size, else at most.
[[nodiscard]] std::uint64_t encoded_bytes(const CodecChain& chain, std::uint64_t bytes);
[[nodiscard]] bool has_fixed_size(const CodecChain& chain);

}  // namespace cingulum::zarr
