#include "zarr/codec_chain.hpp"

#include <algorithm>
#include <cstdint>

#include "zarr/codec_failure.hpp"

namespace cingulum::zarr {
namespace {

// The two halves of a scratch, each in turn: a step reads what the step before it has written to the other.
class Alternation {
 public:
  explicit Alternation(CodecScratch& scratch) : scratch_(scratch) {}
  [[nodiscard]] std::span<std::byte> next(std::size_t bytes) {
    in_front_ = !in_front_;
    return scratch_.room(in_front_ ? scratch_.front : scratch_.back, bytes);
  }

 private:
  CodecScratch& scratch_;
  bool in_front_ = false;
};

// Metadata can ask for any chunk; no machine has room for one of these, and vectors do not count so far.
constexpr std::uint64_t most_chunk_bytes = std::uint64_t{1} << 47U;

Status check_room(std::uint64_t bytes) {
  if (bytes <= most_chunk_bytes) return {};
  return fail(ErrorKind::out_of_memory, "a chunk of {} bytes is more than any memory holds", bytes);
}

// Bytes before a step: exactly so many, or at most.
struct StepSize {
  std::uint64_t bytes = 0;
  bool exact = true;
};
StepSize size_before(const CodecChain& chain, std::size_t step, std::uint64_t bytes) {
  StepSize size{bytes, true};
  for (std::size_t i = 0; i < step; ++i) {
    size.bytes = encoded_bytes(chain[i], size.bytes);
    size.exact = size.exact && has_fixed_size(chain[i].kind);
  }
  return size;
}

// Undone by looking at the bytes alone.
bool leaves_bytes_in_place(CodecKind kind) {
  return is_checksum(kind) || kind == CodecKind::bitround;  // whose numbers are read as they are
}

Result<std::span<const std::byte>> decode_step(const Codec& codec, StepSize size, std::span<const std::byte> encoded,
                                               std::span<std::byte> place, Alternation& memory) {
  // A size that cannot be reached is refused before there is memory for it: a few bytes may claim to be a large chunk.
  const std::uint64_t most = most_decoded_bytes(codec, encoded);
  if (size.exact && most < size.bytes) {
    return codec_damage(codec, "{} bytes expected, the {} encoded bytes hold at most {}", size.bytes, encoded.size(),
                        most);
  }
  if (!size.exact || place.size() != size.bytes) {
    const std::uint64_t room = std::min(size.bytes, most);
    CGL_TRY(check_room(room));
    place = memory.next(static_cast<std::size_t>(room));
  }
  CGL_TRY_ASSIGN(const std::size_t made, decode(codec, encoded, place));
  return std::span<const std::byte>(place.first(made));
}

// `place` is where the last step that moves bytes may put them; empty: into the scratch.
Result<std::span<const std::byte>> decode_all(const CodecChain& chain, std::span<const std::byte> encoded,
                                              std::uint64_t bytes, std::span<std::byte> place, CodecScratch& scratch) {
  const auto last_move =
      std::find_if(chain.begin(), chain.end(), [](const Codec& codec) { return !leaves_bytes_in_place(codec.kind); });
  Alternation memory(scratch);
  std::span<const std::byte> content = encoded;
  for (std::size_t step = chain.size(); step-- > 0;) {
    const Codec& codec = chain[step];
    const StepSize size = size_before(chain, step, bytes);
    if (is_checksum(codec.kind)) {
      CGL_TRY_ASSIGN(content, verified_content(codec, content));
    } else if (!leaves_bytes_in_place(codec.kind)) {
      const bool last = &codec == &*last_move;
      CGL_TRY_ASSIGN(content, decode_step(codec, size, content, last ? place : std::span<std::byte>{}, memory));
    }
    if (size.exact ? content.size() != size.bytes : content.size() > size.bytes) {
      return codec_damage(codec, "{} bytes expected, {} found", size.bytes, content.size());
    }
  }
  if (content.size() != bytes) {  // without steps
    return fail(ErrorKind::corrupt, "{} bytes expected, {} found", bytes, content.size());
  }
  return content;
}

Result<std::span<const std::byte>> encode_all(const CodecChain& chain, std::span<const std::byte> plain,
                                              CodecScratch& scratch) {
  Alternation memory(scratch);
  std::span<const std::byte> content = plain;
  std::span<std::byte> place;  // where `content` lies, with room behind it; empty while it is `plain`
  for (std::size_t step = 0; step < chain.size(); ++step) {
    const Codec& codec = chain[step];
    if (is_checksum(codec.kind) && place.size() >= content.size() + checksum_bytes) {
      append_checksum(codec, content, place.subspan(content.size(), checksum_bytes));
      content = place.first(content.size() + checksum_bytes);
      continue;
    }
    const std::uint64_t room = encoded_bytes(codec, content.size()) + checksum_bytes * (chain.size() - step - 1);
    CGL_TRY(check_room(room));
    place = memory.next(static_cast<std::size_t>(room));
    CGL_TRY_ASSIGN(const std::size_t made, encode(codec, content, place));
    content = place.first(made);
  }
  return content;
}

}  // namespace

Result<std::span<const std::byte>> decode_chain(const CodecChain& chain, std::span<const std::byte> encoded,
                                                std::uint64_t bytes, CodecScratch& scratch) {
  return catch_out_of_memory([&] { return decode_all(chain, encoded, bytes, {}, scratch); });
}

Result<std::span<const std::byte>> decode_chain_into(const CodecChain& chain, std::span<const std::byte> encoded,
                                                     std::span<std::byte> place, CodecScratch& scratch) {
  return catch_out_of_memory([&] { return decode_all(chain, encoded, place.size(), place, scratch); });
}

Result<std::span<const std::byte>> encode_chain(const CodecChain& chain, std::span<const std::byte> plain,
                                                CodecScratch& scratch) {
  return catch_out_of_memory([&] { return encode_all(chain, plain, scratch); });
}

std::uint64_t encoded_bytes(const CodecChain& chain, std::uint64_t bytes) {
  return size_before(chain, chain.size(), bytes).bytes;
}

bool has_fixed_size(const CodecChain& chain) {
  return std::all_of(chain.begin(), chain.end(), [](const Codec& codec) { return has_fixed_size(codec.kind); });
}

}  // namespace cingulum::zarr
