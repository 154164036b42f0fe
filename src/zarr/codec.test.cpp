#include "zarr/codec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "zarr/byte_filters.hpp"
#include "zarr/checksums.hpp"

namespace cingulum::zarr {
namespace codec_tests {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
Bytes bytes_of(std::string_view text) {
  return bytes_of(std::vector<char>(text.begin(), text.end()));
}

// Compressible, not regular.
Bytes some_bytes(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = i > 100 && random() % 4 != 0 ? bytes[i - 1 - random() % 100] : static_cast<std::byte>(random());
  }
  return bytes;
}

Codec codec_of(CodecKind kind, std::string name) {
  return {.kind = kind, .name = std::move(name), .element_bytes = 4, .level = 1};
}

std::vector<Codec> all_compressors() {
  std::vector<Codec> codecs = {codec_of(CodecKind::gzip, "gzip"), codec_of(CodecKind::zlib, "zlib"),
                               codec_of(CodecKind::bz2, "bz2"),   codec_of(CodecKind::zstd, "zstd"),
                               codec_of(CodecKind::zstd, "zstd"), codec_of(CodecKind::lz4, "lz4")};
  codecs[4].checksum = true;
  for (const char* const compressor : {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"}) {
    for (const BloscShuffle shuffle : {BloscShuffle::none, BloscShuffle::bytes, BloscShuffle::bits}) {
      Codec codec = codec_of(CodecKind::blosc, "blosc");
      codec.compressor = blosc_compressor_of(compressor).value();
      codec.blosc_shuffle = shuffle;
      codecs.push_back(codec);
    }
  }
  return codecs;
}

std::string named(const Codec& codec) {
  return codec.name + " " + std::string(blosc_compressor_name(codec.compressor));
}

Result<Bytes> encoded(const Codec& codec, std::span<const std::byte> in) {
  Bytes out(encoded_bytes(codec, in.size()));
  CGL_TRY_ASSIGN(const std::size_t made, encode(codec, in, out));
  out.resize(made);
  return out;
}

// `room` with a fence behind it, which decoding must leave alone.
Result<Bytes> decoded(const Codec& codec, std::span<const std::byte> in, std::size_t room) {
  constexpr std::size_t fence = 64;
  Bytes out(room + fence, std::byte{0xa5});
  auto made = decode(codec, in, std::span(out).first(room));
  for (std::size_t i = room; i < out.size(); ++i) EXPECT_EQ(out[i], std::byte{0xa5}) << named(codec);
  if (!made) return tl::make_unexpected(std::move(made.error()));
  EXPECT_LE(*made, room);
  out.resize(*made);
  return out;
}

TEST(ZarrCodec, crc32c_gives_the_value_of_its_standard_and_goes_on_from_a_part) {
  const Bytes text = bytes_of("123456789");
  EXPECT_EQ(crc32c(text), 0xe3069283U);  // RFC 3720, appendix B.4, the check value
  EXPECT_EQ(crc32c(Bytes(32)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::span(text).subspan(4), crc32c(std::span(text).first(4))), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
  Bytes copy(300'001);
  const Bytes from = some_bytes(copy.size());
  EXPECT_EQ(copy_with_crc32c(from, copy.data()), crc32c(from));
  EXPECT_EQ(copy, from);
}

TEST(ZarrCodec, fletcher32_keeps_65535_and_takes_an_odd_byte_as_the_upper_half) {
  EXPECT_EQ(fletcher32({}), 0U);
  EXPECT_EQ(fletcher32(Bytes(10)), 0U);
  EXPECT_EQ(fletcher32(bytes_of("ab")), 0x61626162U);
  EXPECT_EQ(fletcher32(bytes_of("a")), 0x61006100U);
  EXPECT_EQ(fletcher32(Bytes(2, std::byte{0xff})), 0xffffffffU);
}

TEST(ZarrCodec, every_compressor_gives_back_what_it_took) {
  for (const Codec& codec : all_compressors()) {
    for (const std::size_t size : {0U, 1U, 3U, 4U, 1000U, 65536U, 200'003U}) {
      const Bytes content = some_bytes(size);
      const auto stored = encoded(codec, content);
      ASSERT_TRUE(stored) << named(codec) << ' ' << stored.error().message();
      EXPECT_LE(stored->size(), encoded_bytes(codec, size));
      EXPECT_GE(most_decoded_bytes(codec, *stored), size) << named(codec);
      const auto back = decoded(codec, *stored, size);
      ASSERT_TRUE(back) << named(codec) << ' ' << size << ' ' << back.error().message();
      EXPECT_EQ(*back, content) << named(codec);
      EXPECT_EQ(*encoded(codec, content), *stored) << named(codec) << ": other bytes the second time";
    }
  }
}

TEST(ZarrCodec, more_room_than_needed_is_left_and_less_is_refused_with_both_sizes) {
  for (const Codec& codec : all_compressors()) {
    const Bytes content = some_bytes(5000);
    const Bytes stored = *encoded(codec, content);
    EXPECT_EQ(decoded(codec, stored, 9000).value(), content) << named(codec);
    for (const std::size_t room : {0U, 1U, 4999U}) {
      const auto refused = decoded(codec, stored, room);
      ASSERT_FALSE(refused) << named(codec) << ' ' << room;
      EXPECT_EQ(refused.error().kind(), ErrorKind::corrupt);
      EXPECT_NE(refused.error().message().find(fmt::format("codec {}: {} bytes expected", codec.name, room)),
                std::string::npos)
          << refused.error().message();
    }
  }
}

TEST(ZarrCodec, every_cut_of_compressed_bytes_is_refused) {
  for (const Codec& codec : all_compressors()) {
    const Bytes content = some_bytes(600);
    const Bytes stored = *encoded(codec, content);
    for (std::size_t size = 0; size < stored.size(); ++size) {
      const auto refused = decoded(codec, std::span(stored).first(size), content.size());
      ASSERT_FALSE(refused) << named(codec) << " cut to " << size << " of " << stored.size();
      EXPECT_EQ(refused.error().kind(), ErrorKind::corrupt);
      EXPECT_EQ(refused.error().message().rfind("codec " + codec.name + ": ", 0), 0U) << refused.error().message();
      if (codec.kind == CodecKind::blosc && size >= 16) {
        const std::string sizes = fmt::format("{} encoded bytes expected, {} found", stored.size(), size);
        EXPECT_NE(refused.error().message().find(sizes), std::string::npos) << refused.error().message();
      }
    }
  }
}

// Where bytes carry a checksum a flip is found or changes nothing; elsewhere it stays inside the fence.
TEST(ZarrCodec, no_flip_of_a_bit_gives_other_bytes_where_there_is_a_checksum) {
  std::vector<Codec> codecs = all_compressors();
  codecs.push_back(codec_of(CodecKind::crc32c, "crc32c"));
  codecs.push_back(codec_of(CodecKind::fletcher32, "fletcher32"));
  std::size_t found = 0;
  for (const Codec& codec : codecs) {
    const Bytes content = some_bytes(300);
    Bytes stored = *encoded(codec, content);
    for (std::size_t bit = 0; bit < 8 * stored.size(); ++bit) {
      const auto mask = static_cast<std::byte>(1U << (bit % 8));
      stored[bit / 8] ^= mask;
      const auto back = decoded(codec, stored, content.size());
      if (has_checksum(codec) && back) {
        EXPECT_EQ(*back, content) << named(codec) << " bit " << bit;
      }
      found += back ? 0U : 1U;
      stored[bit / 8] ^= mask;
    }
  }
  EXPECT_GT(found, 8 * 300U);
}

TEST(ZarrCodec, bytes_behind_the_end_of_a_stream_are_refused) {
  for (const CodecKind kind :
       {CodecKind::zlib, CodecKind::bz2, CodecKind::zstd, CodecKind::blosc, CodecKind::lz4, CodecKind::gzip}) {
    const Codec codec = codec_of(kind, "it");
    Bytes stored = *encoded(codec, some_bytes(100));
    stored.push_back(std::byte{7});
    EXPECT_FALSE(decoded(codec, stored, 100)) << static_cast<int>(kind);
  }
}

TEST(ZarrCodec, a_damaged_checksum_is_told_with_both_values) {
  const Codec codec = codec_of(CodecKind::crc32c, "crc32c");
  Bytes stored = *encoded(codec, bytes_of("123456789"));
  EXPECT_EQ(verified_content(codec, stored)->size(), 9U);
  stored[0] ^= std::byte{1};
  const auto refused = verified_content(codec, stored);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("codec crc32c: the checksum is 0xe3069283, the 9 bytes give 0x"),
            std::string::npos)
      << refused.error().message();
  EXPECT_FALSE(verified_content(codec, std::span(stored).first(3)));
}

TEST(ZarrCodec, shuffled_planes_come_back_for_every_size_of_element) {
  const Bytes pairs = bytes_of("aAbBcC");
  Bytes planes(6);
  shuffle_elements(2, pairs, planes);
  EXPECT_EQ(planes, bytes_of("abcABC"));
  for (const std::size_t size : {1U, 2U, 3U, 4U, 7U, 8U, 16U}) {
    for (const std::size_t count : {0U, 1U, 17U, 1023U, 1024U, 3000U}) {
      const Bytes content = some_bytes(size * count);
      Bytes shuffled(content.size()), back(content.size());
      shuffle_elements(size, content, shuffled);
      unshuffle_elements(size, shuffled, back);
      ASSERT_EQ(back, content) << size << ' ' << count;
      if (count > 1 && size > 1) {
        EXPECT_EQ(shuffled[1], content[size]);
      }
    }
  }
}

TEST(ZarrCodec, a_permuted_array_is_the_transposed_one) {
  const Codec codec = {
      .kind = CodecKind::permute, .name = "transpose", .element_bytes = 1, .shape = {2, 3}, .order = {1, 0}};
  EXPECT_EQ(encoded(codec, bytes_of("abcdef")).value(), bytes_of("adbecf"));
  EXPECT_EQ(decoded(codec, bytes_of("adbecf"), 6).value(), bytes_of("abcdef"));
  // Three dimensions, so that an order and its inverse differ.
  const Codec turned = {
      .kind = CodecKind::permute, .name = "t", .element_bytes = 2, .shape = {2, 3, 4}, .order = {2, 0, 1}};
  const Bytes content = some_bytes(48);
  const Bytes stored = encoded(turned, content).value();
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(stored[2 * (k * 6 + i * 3 + j)], content[2 * (i * 12 + j * 4 + k)]);
      }
    }
  }
  EXPECT_EQ(decoded(turned, stored, 48).value(), content);
  EXPECT_FALSE(decoded(turned, some_bytes(50), 50));
}

TEST(ZarrCodec, differences_go_round_at_the_ends_of_integers) {
  const FilterType type{element_type_of<std::int8_t>()};
  const Codec codec = {.kind = CodecKind::delta, .name = "delta", .decoded = type, .encoded = type};
  const auto values = bytes_of(std::vector<std::int8_t>{100, -100, 127, -128});
  EXPECT_EQ(encoded(codec, values).value(), bytes_of(std::vector<std::int8_t>{100, 56, -29, 1}));
  EXPECT_EQ(decoded(codec, encoded(codec, values).value(), 4).value(), values);
}

TEST(ZarrCodec, differences_run_on_from_block_to_block) {
  const FilterType type{element_type_of<std::uint32_t>()};
  const Codec codec = {.kind = CodecKind::delta, .name = "delta", .decoded = type, .encoded = type};
  std::vector<std::uint32_t> values(3000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i * i);
  const Bytes stored = encoded(codec, bytes_of(values)).value();
  std::vector<std::uint32_t> differences(values.size());
  std::memcpy(differences.data(), stored.data(), stored.size());
  for (std::size_t i = 1; i < values.size(); ++i) ASSERT_EQ(differences[i], 2 * i - 1);
  EXPECT_EQ(decoded(codec, stored, stored.size()).value(), bytes_of(values));
}

TEST(ZarrCodec, a_filter_into_a_smaller_type_changes_the_number_of_bytes) {
  const Codec codec = {.kind = CodecKind::fixed_scale_offset,
                       .name = "fixedscaleoffset",
                       .decoded = {element_type_of<double>()},
                       .encoded = {element_type_of<std::uint16_t>(), true},
                       .scale = 10,
                       .offset = 1000};
  EXPECT_EQ(encoded_bytes(codec, 24), 6U);
  const Bytes stored = encoded(codec, bytes_of(std::vector<double>{1000.05, 1000.15, 1025.6})).value();
  // 0.5 and 1.5 (not exactly: the products decide), 256 with its higher byte first.
  EXPECT_EQ(stored[4], std::byte{1});
  EXPECT_EQ(stored[5], std::byte{0});
  std::vector<double> back(3);
  const Bytes decoded_bytes = decoded(codec, stored, 24).value();
  std::memcpy(back.data(), decoded_bytes.data(), 24);
  EXPECT_EQ(back[2], 256 / 10.0 + 1000);
  EXPECT_FALSE(decoded(codec, some_bytes(5), 24));  // no multiple of two bytes
  EXPECT_FALSE(decoded(codec, stored, 16));
}

TEST(ZarrCodec, fractions_are_rounded_to_even_and_read_as_they_are) {
  const Codec codec = {
      .kind = CodecKind::bitround, .name = "bitround", .decoded = {element_type_of<float>()}, .keep_bits = 1};
  const auto values = bytes_of(std::vector<float>{1.0F, 1.25F, 1.75F, 1.2F, -1.3F});
  EXPECT_EQ(encoded(codec, values).value(), bytes_of(std::vector<float>{1.0F, 1.0F, 2.0F, 1.0F, -1.5F}));
  EXPECT_EQ(decoded(codec, values, 20).value(), values);
  Codec too_many = codec;
  too_many.keep_bits = 24;
  EXPECT_NE(encoded(too_many, values).error().message().find("0 to 23 bits of a float32 can be kept, not 24"),
            std::string::npos);
}

TEST(ZarrCodec, types_that_a_filter_cannot_take_are_refused_by_name) {
  const Codec mixed = {.kind = CodecKind::delta,
                       .name = "delta",
                       .decoded = {{ElementType::Code::complex, 64}},
                       .encoded = {element_type_of<float>()}};
  EXPECT_NE(encoded(mixed, Bytes(16)).error().message().find("codec delta: numbers of complex64 as float32"),
            std::string::npos);
  const Codec integers = {.kind = CodecKind::bitround, .name = "bitround", .decoded = {element_type_of<int>()}};
  EXPECT_NE(encoded(integers, Bytes(16)).error().message().find("found int32"), std::string::npos);
}

TEST(ZarrCodec, levels_that_a_compressor_does_not_have_are_refused) {
  for (const CodecKind kind : {CodecKind::gzip, CodecKind::zlib, CodecKind::bz2}) {
    Codec codec = codec_of(kind, "it");
    codec.level = 10;
    const auto refused = encoded(codec, some_bytes(10));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("level 10 is not within"), std::string::npos);
  }
}

TEST(ZarrCodec, names_of_blosc_compressors_are_those_of_its_library) {
  for (const char* const name : {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"}) {
    EXPECT_EQ(blosc_compressor_name(blosc_compressor_of(name).value()), name);
  }
  EXPECT_FALSE(blosc_compressor_of("lzma"));
}

}  // namespace codec_tests
}  // namespace cingulum::zarr
