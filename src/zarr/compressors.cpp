#include "zarr/compressors.hpp"

#include <blosc.h>
#include <bzlib.h>
#include <isa-l.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <memory>
#include <string>

#include "formats/byte_order.hpp"
#include "formats/byte_stream.hpp"
#include "formats/gzip.hpp"
#include "zarr/codec_failure.hpp"

namespace cingulum::zarr {
namespace {

// zlib and bzip2 count what they are given in 32 bits.
constexpr std::size_t largest_part = std::size_t{1} << 30U;

constexpr std::uint64_t unknown_size = std::numeric_limits<std::uint64_t>::max();

tl::unexpected<Error> too_many_bytes(const Codec& codec, std::size_t expected) {
  return codec_damage(codec, "{} bytes expected, more found", expected);
}

tl::unexpected<Error> no_memory(const Codec& codec) {
  return codec_failure(codec, ErrorKind::out_of_memory, "out of memory");
}

tl::unexpected<Error> ends_early(const Codec& codec, std::size_t in_bytes, std::size_t made) {
  return codec_damage(codec, "the {} encoded bytes end early: more expected, {} bytes decoded", in_bytes, made);
}

tl::unexpected<Error> bytes_behind(const Codec& codec, std::size_t in_bytes, std::size_t behind) {
  return codec_damage(codec, "{} encoded bytes expected, {} found", in_bytes - behind, in_bytes);
}

// --- gzip and zlib

constexpr int window_bits = 15, gzip_wrapper = 16, default_memory_level = 8;

Result<std::size_t> compress_deflate(const Codec& codec, bool gzip, std::span<const std::byte> in,
                                     std::span<std::byte> out) {
  z_stream stream{};
  const int begun = ::deflateInit2(&stream, codec.level, Z_DEFLATED, window_bits + (gzip ? gzip_wrapper : 0),
                                   default_memory_level, Z_DEFAULT_STRATEGY);
  if (begun == Z_MEM_ERROR) return no_memory(codec);
  if (begun != Z_OK) {
    return codec_failure(codec, ErrorKind::invalid_argument, "level {} is not within -1 to 9", codec.level);
  }
  std::size_t taken = 0, made = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    const std::size_t part = std::min(in.size() - taken, largest_part);
    const std::size_t room = std::min(out.size() - made, largest_part);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data() + taken));
    stream.avail_in = static_cast<uInt>(part);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = static_cast<uInt>(room);
    code = ::deflate(&stream, taken + part == in.size() ? Z_FINISH : Z_NO_FLUSH);
    taken += part - stream.avail_in;
    made += room - stream.avail_out;
  }
  ::deflateEnd(&stream);
  assert(code == Z_STREAM_END);  // `out` has room
  return made;
}

Result<std::size_t> decompress_gzip(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  CGL_TRY_ASSIGN(const auto stream, open_gzip(std::make_unique<MemoryStream>(in)));
  std::size_t made = 0;
  while (true) {
    std::byte surplus;
    const bool full = made == out.size();
    auto got = stream->read(full ? std::span(&surplus, 1) : out.subspan(made));
    if (!got) return add_context(std::move(got), "codec {}", codec.name);
    if (*got == 0) return made;  // every checksum was right
    if (full) return too_many_bytes(codec, out.size());
    made += *got;
  }
}

// RFC 1950: two bytes, DEFLATE, Adler-32 big-endian. By ISA-L, which is twice as fast as zlib.
Result<std::size_t> decompress_zlib(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  constexpr std::size_t header_bytes = 2, trailer_bytes = 4;
  constexpr unsigned method_mask = 0x0f, deflate_method = 8, dictionary_flag = 0x20;
  if (in.size() < header_bytes + trailer_bytes) {
    return codec_damage(codec, "at least {} encoded bytes expected, {} found", header_bytes + trailer_bytes, in.size());
  }
  const auto first = std::to_integer<unsigned>(in[0]), second = std::to_integer<unsigned>(in[1]);
  if ((first & method_mask) != deflate_method || (first * 256 + second) % 31 != 0 || (second & dictionary_flag) != 0) {
    return codec_damage(codec, "a header of zlib without dictionary expected, found 0x{:02x}{:02x}", first, second);
  }
  const auto state = std::make_unique_for_overwrite<inflate_state>();
  ::isal_inflate_init(state.get());
  std::size_t taken = header_bytes, made = 0;
  while (state->block_state != ISAL_BLOCK_FINISH) {
    const std::size_t part = std::min(in.size() - taken, largest_part);
    std::byte surplus;
    const bool full = made == out.size();
    const std::size_t room = full ? 1 : std::min(out.size() - made, largest_part);
    state->next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(in.data() + taken));
    state->avail_in = static_cast<std::uint32_t>(part);
    state->next_out = reinterpret_cast<std::uint8_t*>(full ? &surplus : out.data() + made);
    state->avail_out = static_cast<std::uint32_t>(room);
    const int code = ::isal_inflate(state.get());
    const std::size_t used = part - state->avail_in, got = room - state->avail_out;
    taken += used;
    if (code < 0) return codec_damage(codec, "damaged data near byte {}, after {} decoded bytes", taken, made + got);
    if (full && got != 0) return too_many_bytes(codec, out.size());
    made += got;
    if (used == 0 && got == 0 && state->block_state != ISAL_BLOCK_FINISH) return ends_early(codec, in.size(), made);
  }
  taken -= std::min(taken, static_cast<std::size_t>(std::max(state->read_in_length, 0)) / 8);  // was read too far
  if (in.size() - taken < trailer_bytes) return ends_early(codec, in.size(), made);
  const auto stored = load<std::uint32_t>(in, taken, true);
  const std::uint32_t found = ::isal_adler32(1, reinterpret_cast<const unsigned char*>(out.data()), made);
  if (stored != found) {
    return codec_damage(codec, "the Adler-32 is 0x{:08x}, the {} decoded bytes give 0x{:08x}", stored, made, found);
  }
  taken += trailer_bytes;
  if (taken != in.size()) return bytes_behind(codec, in.size(), in.size() - taken);
  return made;
}

// --- bz2

Result<std::size_t> compress_bz2(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  bz_stream stream{};
  const int begun = ::BZ2_bzCompressInit(&stream, codec.level, 0, 0);
  if (begun == BZ_MEM_ERROR) return no_memory(codec);
  if (begun != BZ_OK) {
    return codec_failure(codec, ErrorKind::invalid_argument, "level {} is not within 1 to 9", codec.level);
  }
  std::size_t taken = 0, made = 0;
  int code = BZ_RUN_OK;
  while (code == BZ_RUN_OK || code == BZ_FINISH_OK) {
    const std::size_t part = std::min(in.size() - taken, largest_part);
    const std::size_t room = std::min(out.size() - made, largest_part);
    stream.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data() + taken));
    stream.avail_in = static_cast<unsigned>(part);
    stream.next_out = reinterpret_cast<char*>(out.data() + made);
    stream.avail_out = static_cast<unsigned>(room);
    code = ::BZ2_bzCompress(&stream, taken + part == in.size() ? BZ_FINISH : BZ_RUN);
    taken += part - stream.avail_in;
    made += room - stream.avail_out;
  }
  ::BZ2_bzCompressEnd(&stream);
  assert(code == BZ_STREAM_END);  // `out` has room
  return made;
}

struct Bz2Ended {
  void operator()(bz_stream* stream) const { ::BZ2_bzDecompressEnd(stream); }
};

// Several streams may stand one behind the other. Each block and each stream has a CRC, which bzip2 verifies.
Result<std::size_t> decompress_bz2(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  std::size_t taken = 0, made = 0;
  do {
    bz_stream stream{};
    if (::BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) return no_memory(codec);
    const std::unique_ptr<bz_stream, Bz2Ended> guard(&stream);
    int code = BZ_OK;
    while (code == BZ_OK) {
      const std::size_t part = std::min(in.size() - taken, largest_part);
      std::byte surplus;
      const bool full = made == out.size();
      const std::size_t room = full ? 1 : std::min(out.size() - made, largest_part);
      stream.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data() + taken));
      stream.avail_in = static_cast<unsigned>(part);
      stream.next_out = reinterpret_cast<char*>(full ? &surplus : out.data() + made);
      stream.avail_out = static_cast<unsigned>(room);
      code = ::BZ2_bzDecompress(&stream);
      const std::size_t used = part - stream.avail_in, got = room - stream.avail_out;
      taken += used;
      if (code == BZ_MEM_ERROR) return no_memory(codec);
      if (code != BZ_OK && code != BZ_STREAM_END) {
        return codec_damage(codec, "damaged data near byte {}, after {} decoded bytes", taken, made + got);
      }
      if (full && got != 0) return too_many_bytes(codec, out.size());
      made += got;
      if (code == BZ_OK && used == 0 && got == 0) return ends_early(codec, in.size(), made);
    }
  } while (taken < in.size());
  return made;
}

// --- zstd

struct ZstdFreed {
  void operator()(ZSTD_CCtx* context) const { ::ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
};

// Contexts stay with their thread: making one takes longer than decoding a small chunk.
ZSTD_CCtx* zstd_compression() {
  thread_local std::unique_ptr<ZSTD_CCtx, ZstdFreed> context;
  if (!context) context.reset(::ZSTD_createCCtx());
  return context.get();
}
ZSTD_DCtx* zstd_decompression() {
  thread_local std::unique_ptr<ZSTD_DCtx, ZstdFreed> context;
  if (!context) context.reset(::ZSTD_createDCtx());
  return context.get();
}

Result<std::size_t> compress_zstd(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  ZSTD_CCtx* const context = zstd_compression();
  if (context == nullptr) return no_memory(codec);
  ::ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, codec.level);  // levels beyond its own become the nearest
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, codec.checksum ? 1 : 0);
  const std::size_t made = ::ZSTD_compress2(context, out.data(), out.size(), in.data(), in.size());
  if (::ZSTD_isError(made) != 0) {
    return codec_failure(codec, ErrorKind::out_of_memory, "level {}, {} bytes: {}", codec.level, in.size(),
                         ::ZSTD_getErrorName(made));
  }
  return made;
}

// What the frames say that they hold; unknown_size where one does not say it.
std::uint64_t most_of_zstd(std::span<const std::byte> in) {
  std::uint64_t all = 0;
  while (!in.empty()) {
    const std::uint64_t content = ::ZSTD_getFrameContentSize(in.data(), in.size());
    const std::size_t frame = ::ZSTD_findFrameCompressedSize(in.data(), in.size());
    if (content == ZSTD_CONTENTSIZE_UNKNOWN || content == ZSTD_CONTENTSIZE_ERROR || ::ZSTD_isError(frame) != 0) {
      return unknown_size;
    }
    if (all + content < all) return unknown_size;
    all += content;
    in = in.subspan(frame);
  }
  return all;
}

// Frames with and without their size, several one behind the other; a frame's checksum is verified where it has one.
Result<std::size_t> decompress_zstd(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  ZSTD_DCtx* const context = zstd_decompression();
  if (context == nullptr) return no_memory(codec);
  if (in.empty()) return codec_damage(codec, "a zstd frame expected, 0 encoded bytes found");
  const std::size_t made = ::ZSTD_decompressDCtx(context, out.data(), out.size(), in.data(), in.size());
  if (::ZSTD_isError(made) != 0) {
    if (const std::uint64_t most = most_of_zstd(in); most != unknown_size && most > out.size()) {
      return codec_damage(codec, "{} bytes expected, the frames say {}", out.size(), most);
    }
    return codec_damage(codec, "{} bytes expected, {} encoded bytes found: {}", out.size(), in.size(),
                        ::ZSTD_getErrorName(made));
  }
  return made;
}

// --- blosc

Result<std::size_t> compress_blosc(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  if (in.size() > BLOSC_MAX_BUFFERSIZE) {
    return codec_failure(codec, ErrorKind::invalid_argument, "at most {} bytes can be encoded, not {}",
                         BLOSC_MAX_BUFFERSIZE, in.size());
  }
  const int shuffle = codec.blosc_shuffle == BloscShuffle::none    ? BLOSC_NOSHUFFLE
                      : codec.blosc_shuffle == BloscShuffle::bytes ? BLOSC_SHUFFLE
                                                                   : BLOSC_BITSHUFFLE;
  const char* const name = blosc_compressor_name(codec.compressor).data();  // all of a literal
  const int made = ::blosc_compress_ctx(codec.level, shuffle, std::max<std::size_t>(codec.element_bytes, 1), in.size(),
                                        in.data(), out.data(), out.size(), name, codec.block_bytes, 1);
  if (made <= 0) {
    return codec_failure(codec, ErrorKind::invalid_argument, "{} at level {} cannot encode {} bytes (code {})", name,
                         codec.level, in.size(), made);
  }
  return static_cast<std::size_t>(made);
}

// blosc's own header of 16 bytes: version, inner version, flags, type size, then three sizes in 32 bits.
Result<std::size_t> decompress_blosc(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  if (in.size() < BLOSC_MIN_HEADER_LENGTH) {
    return codec_damage(codec, "at least {} encoded bytes expected, {} found", BLOSC_MIN_HEADER_LENGTH, in.size());
  }
  std::size_t decoded = 0, encoded = 0, block = 0;
  ::blosc_cbuffer_sizes(in.data(), &decoded, &encoded, &block);
  // blosc decodes what was cut off, as long as the cut is behind the last byte that it looks at.
  if (encoded != in.size()) return codec_damage(codec, "{} encoded bytes expected, {} found", encoded, in.size());
  if (decoded > out.size()) return codec_damage(codec, "{} bytes expected, the header says {}", out.size(), decoded);
  std::size_t validated = 0;
  if (::blosc_cbuffer_validate(in.data(), in.size(), &validated) != 0 || validated != decoded) {
    return codec_damage(codec, "the header of {} encoded bytes is not one of blosc", in.size());
  }
  if (decoded == 0) return std::size_t{0};
  const int made = ::blosc_decompress_ctx(in.data(), out.data(), out.size(), 1);
  if (made < 0 || static_cast<std::size_t>(made) != decoded) {
    return codec_damage(codec, "damaged data: {} bytes expected, found {}", decoded,
                        made < 0 ? std::string("none") : std::to_string(made));
  }
  return decoded;
}

// --- lz4

constexpr std::size_t lz4_prefix_bytes = 4;

Result<std::size_t> compress_lz4(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  if (in.size() > LZ4_MAX_INPUT_SIZE) {
    return codec_failure(codec, ErrorKind::invalid_argument, "at most {} bytes can be encoded, not {}",
                         LZ4_MAX_INPUT_SIZE, in.size());
  }
  store(out, 0, static_cast<std::int32_t>(in.size()));
  const std::size_t room = std::min<std::size_t>(out.size() - lz4_prefix_bytes, std::numeric_limits<int>::max());
  const int made = ::LZ4_compress_fast(
      reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data() + lz4_prefix_bytes),
      static_cast<int>(in.size()), static_cast<int>(room), codec.level);  // below 1 is taken as 1
  assert(made > 0);                                                       // `out` has room
  return lz4_prefix_bytes + static_cast<std::size_t>(made);
}

Result<std::size_t> decompress_lz4(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  if (in.size() < lz4_prefix_bytes) {
    return codec_damage(codec, "at least {} encoded bytes expected, {} found", lz4_prefix_bytes, in.size());
  }
  const auto declared = load<std::int32_t>(in, 0);
  if (declared < 0 || static_cast<std::size_t>(declared) > out.size()) {
    return codec_damage(codec, "{} bytes expected, the prefix says {}", out.size(), declared);
  }
  const auto block = in.subspan(lz4_prefix_bytes);
  if (block.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return codec_damage(codec, "a block of at most 2^31 - 1 bytes expected, found {}", block.size());
  }
  const int made = ::LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()),
                                         reinterpret_cast<char*>(out.data()), static_cast<int>(block.size()), declared);
  if (made != declared) {
    return codec_damage(codec, "damaged data: {} bytes expected, found {}", declared,
                        made < 0 ? std::string("none") : std::to_string(made));
  }
  return static_cast<std::size_t>(made);
}

}  // namespace

std::uint64_t largest_compressed(const Codec& codec, std::uint64_t bytes) {
  constexpr std::uint64_t gzip_wrapper_bytes = 18, zlib_wrapper_bytes = 6;
  switch (codec.kind) {
    case CodecKind::gzip: return ::compressBound(bytes) - zlib_wrapper_bytes + gzip_wrapper_bytes;
    case CodecKind::zlib: return ::compressBound(bytes);
    case CodecKind::bz2: return bytes + bytes / 100 + 601;  // bzlib.h: 1 % and 600 more
    case CodecKind::zstd: return ::ZSTD_compressBound(bytes);
    case CodecKind::blosc: return bytes + BLOSC_MAX_OVERHEAD;
    case CodecKind::lz4: return lz4_prefix_bytes + bytes + bytes / 255 + 16;  // LZ4_COMPRESSBOUND, without its limit
    default: return bytes;
  }
}

std::uint64_t most_decompressed(const Codec& codec, std::span<const std::byte> in) {
  constexpr std::uint64_t largest_lz4_ratio = 255;  // a byte of a length stands for as many bytes
  // A block that repeats one byte has four bytes, and 128 KiB at most come out (RFC 8878, section 3.1.1.2).
  constexpr std::uint64_t largest_zstd_ratio = 32 * 1024;
  // A block takes more than 24 bytes and holds 900 000 at most, each five of which stand for a run of up to 259.
  constexpr std::uint64_t largest_bz2_ratio = 2'000'000;
  const auto bytes = static_cast<std::uint64_t>(in.size());
  switch (codec.kind) {
    case CodecKind::gzip:
    case CodecKind::zlib: return bytes * largest_deflate_ratio;
    case CodecKind::zstd: return std::min(bytes * largest_zstd_ratio, most_of_zstd(in));
    case CodecKind::bz2: return bytes * largest_bz2_ratio;
    case CodecKind::blosc: return in.size() < BLOSC_MIN_HEADER_LENGTH ? 0 : load<std::uint32_t>(in, 4);
    case CodecKind::lz4:
      return in.size() < lz4_prefix_bytes
                 ? 0
                 : std::min(bytes * largest_lz4_ratio, std::uint64_t{load<std::uint32_t>(in, 0)});
    default: return unknown_size;
  }
}

Result<std::size_t> compress(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  assert(out.size() >= largest_compressed(codec, in.size()));
  switch (codec.kind) {
    case CodecKind::gzip: return compress_deflate(codec, true, in, out);
    case CodecKind::zlib: return compress_deflate(codec, false, in, out);
    case CodecKind::bz2: return compress_bz2(codec, in, out);
    case CodecKind::zstd: return compress_zstd(codec, in, out);
    case CodecKind::blosc: return compress_blosc(codec, in, out);
    case CodecKind::lz4: return compress_lz4(codec, in, out);
    default: return codec_failure(codec, ErrorKind::invalid_argument, "it compresses nothing");
  }
}

Result<std::size_t> decompress(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  switch (codec.kind) {
    case CodecKind::gzip: return decompress_gzip(codec, in, out);
    case CodecKind::zlib: return decompress_zlib(codec, in, out);
    case CodecKind::bz2: return decompress_bz2(codec, in, out);
    case CodecKind::zstd: return decompress_zstd(codec, in, out);
    case CodecKind::blosc: return decompress_blosc(codec, in, out);
    case CodecKind::lz4: return decompress_lz4(codec, in, out);
    default: return codec_failure(codec, ErrorKind::invalid_argument, "it compresses nothing");
  }
}

}  // namespace cingulum::zarr
