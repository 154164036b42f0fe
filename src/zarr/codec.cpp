#include "zarr/codec.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "formats/byte_order.hpp"
#include "zarr/byte_filters.hpp"
#include "zarr/checksums.hpp"
#include "zarr/codec_failure.hpp"
#include "zarr/compressors.hpp"
#include "zarr/number_filters.hpp"

namespace cingulum::zarr {
namespace {

constexpr std::array<std::string_view, 6> compressor_names = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};

bool is_filter(CodecKind kind) {
  switch (kind) {
    case CodecKind::swap_bytes:
    case CodecKind::permute:
    case CodecKind::shuffle:
    case CodecKind::delta:
    case CodecKind::fixed_scale_offset:
    case CodecKind::bitround: return true;
    default: return false;
  }
}

// Bytes of an element of a filter, before it and behind it.
struct ElementSizes {
  std::size_t decoded = 1, encoded = 1;
};
ElementSizes element_sizes(const Codec& codec) {
  switch (codec.kind) {
    case CodecKind::delta:
    case CodecKind::fixed_scale_offset:
      return {std::max<std::size_t>(codec.decoded.type.bytes(), 1),
              std::max<std::size_t>(codec.encoded.type.bytes(), 1)};
    case CodecKind::bitround: {
      const std::size_t bytes = std::max<std::size_t>(codec.decoded.type.bytes(), 1);
      return {bytes, bytes};
    }
    default: {
      const std::size_t bytes = std::max<std::size_t>(codec.element_bytes, 1);
      return {bytes, bytes};
    }
  }
}

std::uint64_t permuted_bytes(const Codec& codec) {
  std::uint64_t bytes = codec.element_bytes;
  for (const std::uint64_t extent : codec.shape) bytes *= extent;
  return bytes;
}

// Checks the number of bytes that a filter is to take: whole elements, and all of an array that is permuted. Encoding
// finds our own mistakes so, decoding damage.
Status check_filter_input(const Codec& codec, ErrorKind kind, std::size_t bytes, std::size_t element_bytes) {
  if (codec.kind == CodecKind::permute && bytes != permuted_bytes(codec)) {
    return codec_failure(codec, kind, "{} bytes expected, {} found", permuted_bytes(codec), bytes);
  }
  if (bytes % element_bytes != 0) {
    return codec_failure(codec, kind, "a multiple of {} bytes expected, {} found", element_bytes, bytes);
  }
  return {};
}

Result<std::size_t> encode_filter(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  const ElementSizes sizes = element_sizes(codec);
  CGL_TRY(check_filter_input(codec, ErrorKind::invalid_argument, in.size(), sizes.decoded));
  out = out.first(in.size() / sizes.decoded * sizes.encoded);
  switch (codec.kind) {
    case CodecKind::swap_bytes: swap_elements(sizes.decoded, in, out); break;
    case CodecKind::permute: permute_dimensions(codec.shape, codec.order, sizes.decoded, in, out); break;
    case CodecKind::shuffle: shuffle_elements(sizes.decoded, in, out); break;
    case CodecKind::delta: CGL_TRY(encode_delta(codec, in, out)); break;
    case CodecKind::fixed_scale_offset: CGL_TRY(encode_fixed_scale_offset(codec, in, out)); break;
    default: CGL_TRY(encode_bitround(codec, in, out)); break;
  }
  return out.size();
}

Result<std::size_t> decode_filter(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  const ElementSizes sizes = element_sizes(codec);
  CGL_TRY(check_filter_input(codec, ErrorKind::corrupt, in.size(), sizes.encoded));
  const std::size_t bytes = in.size() / sizes.encoded * sizes.decoded;
  if (bytes > out.size()) return codec_damage(codec, "{} bytes expected, {} found", out.size(), bytes);
  out = out.first(bytes);
  switch (codec.kind) {
    case CodecKind::swap_bytes: swap_elements(sizes.decoded, in, out); break;
    case CodecKind::permute: unpermute_dimensions(codec.shape, codec.order, sizes.decoded, in, out); break;
    case CodecKind::shuffle: unshuffle_elements(sizes.decoded, in, out); break;
    case CodecKind::delta: CGL_TRY(decode_delta(codec, in, out)); break;
    case CodecKind::fixed_scale_offset: CGL_TRY(decode_fixed_scale_offset(codec, in, out)); break;
    default: std::copy(in.begin(), in.end(), out.begin()); break;  // bitround leaves numbers that others can read
  }
  return out.size();
}

}  // namespace

std::string_view blosc_compressor_name(BloscCompressor compressor) {
  return compressor_names[static_cast<std::size_t>(compressor)];
}

std::optional<BloscCompressor> blosc_compressor_of(std::string_view name) {
  const auto found = std::find(compressor_names.begin(), compressor_names.end(), name);
  if (found == compressor_names.end()) return std::nullopt;
  return static_cast<BloscCompressor>(found - compressor_names.begin());
}

bool is_checksum(CodecKind kind) {
  return kind == CodecKind::crc32c || kind == CodecKind::fletcher32;
}

bool has_fixed_size(CodecKind kind) {
  return is_filter(kind) || is_checksum(kind);
}

bool has_checksum(const Codec& codec) {
  switch (codec.kind) {
    case CodecKind::crc32c:
    case CodecKind::fletcher32:
    case CodecKind::gzip:
    case CodecKind::zlib:
    case CodecKind::bz2: return true;
    case CodecKind::zstd: return codec.checksum;
    default: return false;
  }
}

std::uint64_t encoded_bytes(const Codec& codec, std::uint64_t bytes) {
  if (is_checksum(codec.kind)) return bytes + checksum_bytes;
  if (!is_filter(codec.kind)) return largest_compressed(codec, bytes);
  const ElementSizes sizes = element_sizes(codec);
  return bytes / sizes.decoded * sizes.encoded;
}

std::uint64_t most_decoded_bytes(const Codec& codec, std::span<const std::byte> in) {
  if (is_checksum(codec.kind)) return in.size() < checksum_bytes ? 0 : in.size() - checksum_bytes;
  if (!is_filter(codec.kind)) return most_decompressed(codec, in);
  const ElementSizes sizes = element_sizes(codec);
  return in.size() / sizes.encoded * sizes.decoded;
}

Result<std::size_t> encode(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  assert(out.size() >= encoded_bytes(codec, in.size()));
  if (is_filter(codec.kind)) return encode_filter(codec, in, out);
  if (!is_checksum(codec.kind)) return compress(codec, in, out);
  std::uint32_t checksum = 0;
  if (codec.kind == CodecKind::crc32c) {
    checksum = copy_with_crc32c(in, out.data());
  } else {
    std::copy(in.begin(), in.end(), out.begin());
    checksum = fletcher32(in);
  }
  store(out, in.size(), checksum);
  return in.size() + checksum_bytes;
}

Result<std::size_t> decode(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  if (is_filter(codec.kind)) return decode_filter(codec, in, out);
  if (!is_checksum(codec.kind)) return decompress(codec, in, out);
  CGL_TRY_ASSIGN(const auto content, verified_content(codec, in));
  if (content.size() > out.size())
    return codec_damage(codec, "{} bytes expected, {} found", out.size(), content.size());
  std::copy(content.begin(), content.end(), out.begin());
  return content.size();
}

Result<std::span<const std::byte>> verified_content(const Codec& codec, std::span<const std::byte> in) {
  assert(is_checksum(codec.kind));
  if (in.size() < checksum_bytes) {
    return codec_damage(codec, "at least {} bytes expected, {} found", checksum_bytes, in.size());
  }
  const auto content = in.first(in.size() - checksum_bytes);
  const auto stored = load<std::uint32_t>(in, content.size());
  const std::uint32_t found = codec.kind == CodecKind::crc32c ? crc32c(content) : fletcher32(content);
  if (stored != found) {
    return codec_damage(codec, "the checksum is 0x{:08x}, the {} bytes give 0x{:08x}", stored, content.size(), found);
  }
  return content;
}

void append_checksum(const Codec& codec, std::span<const std::byte> content, std::span<std::byte> place) {
  assert(is_checksum(codec.kind) && place.size() >= checksum_bytes);
  store(place, 0, codec.kind == CodecKind::crc32c ? crc32c(content) : fletcher32(content));
}

}  // namespace cingulum::zarr
