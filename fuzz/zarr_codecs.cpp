// Encoded chunks of Zarr: the first byte says which codecs, three more how many bytes are expected (below 1 MiB), the
// rest is what was stored.
#include <algorithm>
#include <array>

#include "fuzz/fuzz_target.hpp"
#include "zarr/codec_chain.hpp"

namespace {

using namespace cingulum;
using namespace cingulum::zarr;

struct Coding {
  CodecChain chain;
  bool lossless = true;
};

Codec codec(CodecKind kind, const char* name) {
  return {.kind = kind, .name = name, .element_bytes = 4, .level = 1};
}

template <class Decoded, class Encoded>
Codec filter(CodecKind kind, bool big_endian = false) {
  return {.kind = kind,
          .name = "filter",
          .decoded = {element_type_of<Decoded>(), big_endian},
          .encoded = {element_type_of<Encoded>(), big_endian},
          .scale = 10,
          .offset = 3,
          .keep_bits = 7};
}

// fuzz/make_zarr_corpus.py counts the same.
const std::array<Coding, 20>& codings() {
  static const std::array<Coding, 20> all = {{
      {{}},
      {{codec(CodecKind::crc32c, "crc32c")}},
      {{codec(CodecKind::fletcher32, "fletcher32")}},
      {{codec(CodecKind::gzip, "gzip")}},
      {{codec(CodecKind::zlib, "zlib")}},
      {{codec(CodecKind::bz2, "bz2")}},
      {{codec(CodecKind::zstd, "zstd")}},
      {{codec(CodecKind::lz4, "lz4")}},
      {{codec(CodecKind::blosc, "blosc")}},
      {{codec(CodecKind::shuffle, "shuffle"), codec(CodecKind::zstd, "zstd"), codec(CodecKind::crc32c, "crc32c")}},
      {{codec(CodecKind::swap_bytes, "bytes"), codec(CodecKind::gzip, "gzip")}},
      {{codec(CodecKind::zstd, "zstd"), codec(CodecKind::lz4, "lz4")}},
      {{{.kind = CodecKind::permute, .name = "transpose", .element_bytes = 2, .shape = {5, 3, 4}, .order = {2, 0, 1}}}},
      {{filter<std::int32_t, std::int32_t>(CodecKind::delta)}},
      {{filter<std::int16_t, std::int64_t>(CodecKind::delta, true), codec(CodecKind::lz4, "lz4")}},
      {{filter<float, float>(CodecKind::delta)}, false},
      {{filter<double, std::int16_t>(CodecKind::fixed_scale_offset)}, false},
      {{filter<std::uint8_t, float>(CodecKind::fixed_scale_offset), codec(CodecKind::zlib, "zlib")}, false},
      {{filter<float, float>(CodecKind::bitround), codec(CodecKind::blosc, "blosc")}, false},
      {{codec(CodecKind::crc32c, "crc32c"), codec(CodecKind::bz2, "bz2")}},
  }};
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t header_bytes = 4, most_bytes = std::size_t{1} << 20U;
  if (size < header_bytes) return 0;
  const Coding& coding = codings()[data[0] % codings().size()];
  const std::size_t bytes = data[1] | std::size_t{data[2]} << 8U | std::size_t{data[3]} << 16U;
  if (bytes > most_bytes) return 0;
  const auto stored = fuzz::as_bytes(data, size).subspan(header_bytes);
  CodecScratch scratch;
  const auto decoded = decode_chain(coding.chain, stored, bytes, scratch);
  std::vector<std::byte> place(bytes, std::byte{1});
  CodecScratch other;
  const auto placed = decode_chain_into(coding.chain, stored, place, other);
  fuzz::require(decoded.has_value() == placed.has_value(), "both ways of decoding do not agree");
  if (!decoded) {
    fuzz::require(decoded.error().kind() == ErrorKind::corrupt, "not told as damage", decoded.error().message());
    return 0;
  }
  fuzz::require(decoded->size() == bytes, "another number of bytes");
  fuzz::require(std::equal(decoded->begin(), decoded->end(), placed->begin(), placed->end()),
                "both ways of decoding differ");
  const std::vector<std::byte> content(decoded->begin(), decoded->end());
  const auto encoded = fuzz::expect(encode_chain(coding.chain, content, scratch), "encoding again");
  CodecScratch third;
  const auto again = fuzz::expect(decode_chain(coding.chain, encoded, bytes, third), "decoding again");
  fuzz::require(!coding.lossless || std::equal(again.begin(), again.end(), content.begin(), content.end()),
                "content has changed");
  return 0;
}
