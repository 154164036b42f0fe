#include "zarr/codec_chain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace cingulum::zarr {
namespace codec_chain_tests {

using Bytes = std::vector<std::byte>;

Bytes ramp(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i / 3);
  return bytes;
}

Codec step(CodecKind kind) {
  return {.kind = kind, .name = fmt::format("step{}", static_cast<int>(kind)), .element_bytes = 4, .level = 1};
}
const FilterType f32{element_type_of<float>()};
Codec widening() {  // float32 kept as float64
  return {.kind = CodecKind::delta, .name = "delta", .decoded = f32, .encoded = {element_type_of<double>()}};
}

bool lies_in(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return !part.empty() && part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

Bytes stored(const CodecChain& chain, std::span<const std::byte> plain) {
  CodecScratch scratch;
  const auto made = encode_chain(chain, plain, scratch);
  EXPECT_TRUE(made) << made.error().message();
  return Bytes(made->begin(), made->end());
}

std::string failure(const CodecChain& chain, std::span<const std::byte> encoded, std::uint64_t bytes) {
  CodecScratch scratch;
  const auto made = decode_chain(chain, encoded, bytes, scratch);
  EXPECT_FALSE(made);
  if (made) return "";
  EXPECT_EQ(made.error().kind(), ErrorKind::corrupt);
  return made.error().message();
}

TEST(ZarrCodecChain, random_chains_give_back_what_they_took) {
  constexpr unsigned seed = 3;
  std::mt19937 random(seed);
  const std::vector<CodecKind> kinds = {
      CodecKind::swap_bytes, CodecKind::shuffle, CodecKind::crc32c, CodecKind::fletcher32, CodecKind::gzip,
      CodecKind::zlib,       CodecKind::bz2,     CodecKind::zstd,   CodecKind::blosc,      CodecKind::lz4};
  CodecScratch scratch;
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t size = 4 * (random() % 3000);
    CodecChain chain;
    // Filters need whole elements, so nothing but compressors and checksums behind the first of these.
    for (std::size_t i = random() % 5; i > 0; --i) {
      const CodecKind kind = kinds[random() % kinds.size()];
      const bool filter = kind == CodecKind::swap_bytes || kind == CodecKind::shuffle;
      const bool whole = std::all_of(chain.begin(), chain.end(), [](const Codec& codec) {
        return codec.kind == CodecKind::swap_bytes || codec.kind == CodecKind::shuffle ||
               codec.kind == CodecKind::crc32c || codec.kind == CodecKind::fletcher32;
      });
      if (!filter || whole) chain.push_back(step(kind));
    }
    const Bytes plain = ramp(size);
    const Bytes kept = stored(chain, plain);
    EXPECT_LE(kept.size(), encoded_bytes(chain, size));
    if (has_fixed_size(chain)) {
      EXPECT_EQ(kept.size(), encoded_bytes(chain, size));
    }
    const auto back = decode_chain(chain, kept, size, scratch);
    ASSERT_TRUE(back) << trial << ' ' << back.error().message();
    EXPECT_TRUE(std::equal(back->begin(), back->end(), plain.begin(), plain.end())) << trial;
    Bytes place(size);
    const auto placed = decode_chain_into(chain, kept, place, scratch);
    ASSERT_TRUE(placed) << trial << ' ' << placed.error().message();
    EXPECT_TRUE(std::equal(placed->begin(), placed->end(), plain.begin(), plain.end())) << trial;
  }
}

TEST(ZarrCodecChain, checksums_alone_are_verified_where_the_bytes_lie) {
  const CodecChain chain = {step(CodecKind::crc32c), step(CodecKind::fletcher32)};
  const Bytes kept = stored(chain, ramp(100));
  EXPECT_EQ(kept.size(), 108U);
  CodecScratch scratch;
  const auto back = decode_chain(chain, kept, 100, scratch);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->data(), kept.data());
  EXPECT_TRUE(scratch.front.empty() && scratch.back.empty());
}

TEST(ZarrCodecChain, the_last_step_that_moves_bytes_puts_them_into_the_place_given) {
  CodecScratch scratch;
  Bytes place(400);
  for (const CodecChain& chain :
       {CodecChain{step(CodecKind::zstd)}, CodecChain{step(CodecKind::shuffle), step(CodecKind::lz4)},
        CodecChain{step(CodecKind::zstd), step(CodecKind::crc32c)}}) {
    const auto back = decode_chain_into(chain, stored(chain, ramp(400)), place, scratch);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->data(), place.data());
    EXPECT_EQ(place, ramp(400));
    std::fill(place.begin(), place.end(), std::byte{0});
  }
  // A checksum of the plain bytes is compressed with them: they do not fit, and are verified in the scratch.
  const CodecChain inner = {step(CodecKind::crc32c), step(CodecKind::zstd)};
  const auto back = decode_chain_into(inner, stored(inner, ramp(400)), place, scratch);
  ASSERT_TRUE(back);
  EXPECT_TRUE(lies_in(*back, scratch.front) || lies_in(*back, scratch.back));
}

TEST(ZarrCodecChain, memory_is_kept_from_chunk_to_chunk) {
  const CodecChain chain = {step(CodecKind::shuffle), step(CodecKind::zstd), step(CodecKind::crc32c)};
  const Bytes kept = stored(chain, ramp(40'000));
  CodecScratch scratch;
  ASSERT_TRUE(decode_chain(chain, kept, 40'000, scratch));
  const auto* const front = scratch.front.data();
  const auto* const back = scratch.back.data();
  const Bytes smaller = stored(chain, ramp(20'000));
  ASSERT_TRUE(decode_chain(chain, smaller, 20'000, scratch));
  ASSERT_TRUE(decode_chain(chain, kept, 40'000, scratch));
  EXPECT_EQ(scratch.front.data(), front);
  EXPECT_EQ(scratch.back.data(), back);
}

TEST(ZarrCodecChain, a_wrong_size_is_told_with_what_was_expected_and_found) {
  EXPECT_EQ(failure({}, ramp(7), 8), "8 bytes expected, 7 found");
  const CodecChain checked = {step(CodecKind::crc32c)};
  EXPECT_EQ(failure(checked, stored(checked, ramp(7)), 8), "codec step6: 8 bytes expected, 7 found");
  const CodecChain packed = {{.kind = CodecKind::zstd, .name = "zstd"}};
  EXPECT_EQ(failure(packed, stored(packed, ramp(700)), 800).rfind("codec zstd: 800 bytes expected", 0), 0U);
  EXPECT_EQ(failure(packed, stored(packed, ramp(700)), 600).rfind("codec zstd: 600 bytes expected", 0), 0U);
  const CodecChain filtered = {widening(), {.kind = CodecKind::lz4, .name = "lz4"}};
  EXPECT_EQ(encoded_bytes(CodecChain{widening()}, 40), 80U);
  EXPECT_EQ(failure(filtered, stored(filtered, ramp(40)), 36).rfind("codec lz4: 72 bytes expected", 0), 0U);
  // Behind a compressor no size is known but a bound.
  const CodecChain twice = {step(CodecKind::gzip), step(CodecKind::zstd)};
  EXPECT_NE(failure(twice, stored(twice, ramp(40)), 41), "");
}

TEST(ZarrCodecChain, a_size_that_cannot_be_reached_is_refused_before_there_is_memory_for_it) {
  const Bytes content = ramp(1000);
  for (const CodecKind kind :
       {CodecKind::gzip, CodecKind::zlib, CodecKind::zstd, CodecKind::blosc, CodecKind::lz4, CodecKind::bz2}) {
    const CodecChain chain = {step(kind)};
    const Bytes kept = stored(chain, content);
    CodecScratch scratch;
    const auto made = decode_chain(chain, kept, std::uint64_t{1} << 40U, scratch);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind(), ErrorKind::corrupt) << made.error().message();
    EXPECT_TRUE(scratch.front.empty() && scratch.back.empty()) << static_cast<int>(kind);
  }
}

TEST(ZarrCodecChain, the_bounds_on_what_can_come_out_hold_for_the_longest_runs) {
  const Bytes zeros(std::size_t{8} << 20U);
  for (const CodecKind kind :
       {CodecKind::gzip, CodecKind::zlib, CodecKind::zstd, CodecKind::blosc, CodecKind::lz4, CodecKind::bz2}) {
    CodecChain chain = {step(kind)};
    chain[0].level = kind == CodecKind::lz4 ? 1 : 9;
    const Bytes kept = stored(chain, zeros);
    EXPECT_GE(most_decoded_bytes(chain[0], kept), zeros.size()) << static_cast<int>(kind) << ' ' << kept.size();
    CodecScratch scratch;
    const auto back = decode_chain(chain, kept, zeros.size(), scratch);
    ASSERT_TRUE(back) << back.error().message();
    EXPECT_EQ(back->size(), zeros.size());
  }
}

TEST(ZarrCodecChain, numbers_that_were_rounded_are_read_where_they_lie) {
  const CodecChain chain = {{.kind = CodecKind::bitround, .name = "bitround", .decoded = f32, .keep_bits = 5}};
  const Bytes kept = stored(chain, ramp(40));
  CodecScratch scratch;
  EXPECT_EQ(decode_chain(chain, kept, 40, scratch)->data(), kept.data());
}

}  // namespace codec_chain_tests
}  // namespace cingulum::zarr
