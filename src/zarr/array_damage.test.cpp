// Damage to arrays that we wrote: every flipped bit, every cut and every deletion of a file is detected
// or changes no value, in a folder and in an archive.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/read_file.hpp"
#include "support/long_tests.hpp"
#include "support/memory_store.hpp"
#include "support/temporary_folder.hpp"
#include "zarr/array.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::zarr {
namespace array_damage_tests {

using testing::MemoryOutput;
using testing::MemoryStore;
using testing::StoredKeys;

struct Example {
  ArrayMetadata metadata;
  std::vector<std::byte> elements;
  StoredKeys keys;
};

// Noise in chunks of 4 x 4, those at the end not whole; v3 has them in shards.
NewArray small_array(int format) {
  return {.format = format,
          .shape = {10, 9},
          .type = element_type_of<std::uint16_t>(),
          .chunk_shape = {4, 4},
          .shard_shape = {8, 8},
          .sharded = format == 3,
          .codec = {},
          .dimension_names = {}};
}

Example make_example(const NewArray& wanted) {
  Example example;
  auto metadata = describe_new_array(wanted);
  EXPECT_TRUE(metadata) << metadata.error().message();
  example.metadata = std::move(*metadata);
  std::mt19937 random(11);
  example.elements.resize(static_cast<std::size_t>(example.metadata.bytes()));
  for (std::byte& byte : example.elements) byte = static_cast<std::byte>(random());
  MemoryOutput output;
  EXPECT_TRUE(write_array_metadata("", example.metadata, output));
  const Array array = Array::describe(nullptr, "", example.metadata);
  const auto written = write_region(array, output, whole(example.metadata), example.elements);
  EXPECT_TRUE(written) << written.error().message();
  example.keys = output.keys();
  return example;
}

struct Outcome {
  Shape shape;
  std::vector<std::byte> elements;
  ReadReport report;
};

Result<Outcome> read_all(const std::shared_ptr<const Store>& store, bool complete = true) {
  CGL_TRY_ASSIGN(const Array array, Array::open(store, ""));
  constexpr std::uint64_t most_bytes = 1 << 20;  // of a shape that a flip has made long
  if (array.metadata().bytes() > most_bytes) return fail(ErrorKind::corrupt, "{}: too large", array.name());
  Outcome outcome{array.metadata().shape, {}, {}};
  outcome.elements.resize(static_cast<std::size_t>(array.metadata().bytes()), std::byte{0xee});
  CGL_TRY_ASSIGN(outcome.report, read_region(array, whole(array.metadata()), outcome.elements, {.complete = complete}));
  return outcome;
}

Result<Outcome> read_keys(StoredKeys keys, bool complete = true) {
  return read_all(std::make_shared<const MemoryStore>(std::move(keys)), complete);
}

bool is_metadata(const std::string& key) {
  return key == "zarr.json" || key == ".zarray" || key == ".zattrs";
}

// Elements at indices that both arrays have are the same.
bool agree_where_both_are(const Outcome& found, const Example& example) {
  const Shape& shape = example.metadata.shape;
  const std::size_t size = example.metadata.type.bytes();
  if (found.shape.size() != shape.size()) return false;
  if (found.elements.size() != found.shape[0] * found.shape[1] * size) return false;
  for (std::size_t i = 0; i < std::min(shape[0], found.shape[0]); ++i) {
    for (std::size_t j = 0; j < std::min(shape[1], found.shape[1]); ++j) {
      const std::byte* const a = found.elements.data() + (i * found.shape[1] + j) * size;
      const std::byte* const b = example.elements.data() + (i * shape[1] + j) * size;
      if (std::memcmp(a, b, size) != 0) return false;
    }
  }
  return true;
}

std::vector<NewArray> examples() {
  std::vector<NewArray> all = {small_array(3), small_array(2)};
  all.push_back(small_array(3));
  all.back().codec = *parse_codec_choice("zstd");
  all.push_back(small_array(3));
  all.back().codec = *parse_codec_choice("blosc-lz4");
  all.push_back(small_array(2));
  all.back().codec = *parse_codec_choice("gzip");
  return all;
}

TEST(ZarrFlips, every_flipped_bit_of_a_chunk_or_shard_is_detected_or_changes_no_value) {
  for (const NewArray& wanted : examples()) {
    const Example example = make_example(wanted);
    ASSERT_EQ(read_keys(example.keys)->elements, example.elements);
    std::size_t bits = 0, detected = 0;
    for (const auto& [key, bytes] : example.keys) {
      if (is_metadata(key)) continue;
      StoredKeys keys = example.keys;
      for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        keys[key][bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        const auto found = read_keys(keys);
        ++bits;
        if (found) {
          ASSERT_EQ(found->elements, example.elements) << key << ", bit " << bit << " is wrong silently";
        } else {
          ++detected;
          const std::string& message = found.error().message();
          ASSERT_EQ(found.error().kind(), ErrorKind::corrupt) << message;
          ASSERT_NE(message.find("memory.zarr"), std::string::npos) << message;
          ASSERT_NE(message.find(key), std::string::npos) << message;
        }
        keys[key] = bytes;
      }
    }
    // Shards have nothing that may change; frames of zstd and gzip have time, system and flags in their headers.
    EXPECT_GT(bits, 2000U);
    EXPECT_GE(detected, wanted.format == 3 ? bits : bits * 3 / 4) << "format " << wanted.format;
  }
}

// Metadata have no checksum. A flip that leaves them valid may change what the array is said to be (its extent, the
// fill value, names, attributes); it gives no element another value, with one exception: v2 says the byte order by "<"
// or ">", which are one bit apart.
TEST(ZarrFlips, no_flipped_bit_of_the_metadata_changes_a_value_that_is_stored) {
  for (const NewArray& wanted : examples()) {
    const Example example = make_example(wanted);
    std::size_t detected = 0, bits = 0, turned = 0;
    for (const auto& [key, bytes] : example.keys) {
      if (!is_metadata(key)) continue;
      StoredKeys keys = example.keys;
      for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        keys[key][bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        const auto found = read_keys(keys);
        ++bits;
        const std::string text(reinterpret_cast<const char*>(keys[key].data()), keys[key].size());
        if (text.find("\">u2\"") != std::string::npos) {
          ++turned;
        } else if (found) {
          ASSERT_TRUE(agree_where_both_are(*found, example)) << "bit " << bit << " is wrong silently: " << text;
        } else {
          ++detected;
        }
        keys[key] = bytes;
      }
    }
    EXPECT_GT(detected, bits * 4 / 5);
    EXPECT_EQ(turned, wanted.format == 2 ? 1U : 0U);
  }
}

TEST(ZarrTruncation, a_chunk_or_shard_cut_at_any_byte_is_refused_with_array_key_expected_and_found) {
  for (const NewArray& wanted : examples()) {
    const Example example = make_example(wanted);
    for (const auto& [key, bytes] : example.keys) {
      StoredKeys keys = example.keys;
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        keys[key].assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        const auto found = read_keys(keys);
        if (is_metadata(key) && size + 1 == bytes.size() && bytes[size] == std::byte{'\n'}) {
          ASSERT_TRUE(found);
          continue;
        }
        ASSERT_FALSE(found) << key << " cut at " << size << " of " << bytes.size();
        const std::string& message = found.error().message();
        EXPECT_EQ(found.error().kind(), ErrorKind::corrupt) << message;
        ASSERT_NE(message.find("memory.zarr"), std::string::npos) << message;
        ASSERT_NE(message.find(key), std::string::npos) << message;
        if (is_metadata(key)) continue;
        const bool says_sizes = message.find("expected") != std::string::npos ||
                                message.find("the shard has " + std::to_string(size)) != std::string::npos ||
                                message.find("the checksum is") != std::string::npos;
        ASSERT_TRUE(says_sizes) << message;
      }
    }
  }
}

TEST(ZarrDeletion, a_missing_key_is_filled_and_counted_or_refused_where_completeness_is_asked_for) {
  for (const NewArray& wanted : examples()) {
    const Example example = make_example(wanted);
    for (const auto& [key, bytes] : example.keys) {
      StoredKeys keys = example.keys;
      keys.erase(key);
      const auto refused = read_keys(keys);
      ASSERT_FALSE(refused) << key;
      const std::string& message = refused.error().message();
      EXPECT_NE(message.find("memory.zarr"), std::string::npos) << message;
      if (is_metadata(key)) continue;
      EXPECT_NE(message.find(key), std::string::npos) << message;
      EXPECT_NE(message.find("not stored"), std::string::npos) << message;
      const auto filled = read_keys(keys, false);
      ASSERT_TRUE(filled) << filled.error().message();
      EXPECT_GT(filled->report.filled_chunks, 0U);
      // What is elsewhere is what it was; what is missing is the fill value.
      std::size_t zeros = 0;
      for (std::size_t i = 0; i < example.elements.size(); i += 2) {
        std::uint16_t was = 0, is = 0;
        std::memcpy(&was, example.elements.data() + i, 2);
        std::memcpy(&is, filled->elements.data() + i, 2);
        ASSERT_TRUE(is == was || is == 0);
        zeros += is == 0 ? 1U : 0U;
      }
      EXPECT_GT(zeros, 0U);
    }
  }
}

// Archives carry a CRC of every entry, so that metadata cannot change either.
TEST(ZarrArchive, every_flipped_bit_and_every_cut_is_detected_or_changes_nothing) {
  const TemporaryFolder folder;
  NewArray wanted = small_array(3);
  wanted.shape = {6, 6};
  const Example example = make_example(wanted);
  const std::filesystem::path path = folder / "a.zarr.zip";
  {
    auto output = new_hierarchy(path, {.sync = false});
    ASSERT_TRUE(output) << output.error().message();
    for (const auto& [key, bytes] : example.keys) ASSERT_TRUE((*output)->put(key, std::span(bytes)));
    ASSERT_TRUE((*output)->commit());
  }
  std::string bytes = folder.content("a.zarr.zip");
  const auto read = [&]() -> Result<Outcome> {
    folder.put("b.zarr.zip", bytes);
    CGL_TRY_ASSIGN(auto store, Store::open(folder / "b.zarr.zip"));
    return read_all(store);
  };
  ASSERT_TRUE(read()) << read().error().message();
  const std::size_t step = test::may_take_long() ? 1 : 3;
  std::size_t detected = 0, flips = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += step) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const auto found = read();
    ++flips;
    if (found) {
      ASSERT_EQ(found->shape, example.metadata.shape) << "bit " << bit;
      ASSERT_EQ(found->elements, example.elements) << "bit " << bit << " is wrong silently";
    } else {
      ++detected;
    }
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  }
  EXPECT_GT(detected, flips / 2);
  const std::string whole_file = bytes;
  for (std::size_t size = 0; size < whole_file.size(); ++size) {
    bytes = whole_file.substr(0, size);
    ASSERT_FALSE(read()) << "cut at " << size;
  }
}

}  // namespace array_damage_tests
}  // namespace cingulum::zarr
