#include "zarr/array_metadata.hpp"

#include <gtest/gtest.h>

#include "formats/sidecar.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::zarr {
namespace {

namespace array_metadata_tests {

Json v3() {
  return *parse_json(R"({"zarr_format": 3, "node_type": "array", "shape": [10, 20], "data_type": "int16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 8]}},
    "chunk_key_encoding": {"name": "default"}, "fill_value": 7, "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]})");
}
Json v2() {
  return *parse_json(R"({"zarr_format": 2, "shape": [10, 20], "chunks": [4, 8], "dtype": ">i2", "compressor": null,
    "fill_value": 7, "order": "F", "filters": null})");
}

std::string refusal(const Json& json) {
  const auto metadata = json.value("zarr_format", 3) == 2 ? parse_v2_array(json, Json()) : parse_v3_array(json);
  return metadata ? std::string() : metadata.error().message();
}
std::string key(const Json& json, std::vector<std::uint64_t> index) {
  return parse_v3_array(json)->chunk_key(index);
}

TEST(ArrayMetadata, both_versions_become_the_same_record) {
  const auto three = parse_v3_array(v3());
  const auto two = parse_v2_array(v2(), Json());
  ASSERT_TRUE(three && two);
  EXPECT_EQ(three->shape, two->shape);
  EXPECT_EQ(three->chunk_shape, two->chunk_shape);
  EXPECT_EQ(three->type, two->type);
  EXPECT_EQ(three->fill, two->fill);
  EXPECT_TRUE(three->coding.layout.big_endian && two->coding.layout.big_endian);
  EXPECT_EQ(three->coding.layout.order, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(two->coding.layout.order, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(three->grid(), (Shape{3, 3}));
}

TEST(ArrayMetadata, keys_follow_their_encoding_and_its_own_separator) {
  EXPECT_EQ(key(v3(), {1, 2}), "c/1/2");
  Json json = v3();
  json["chunk_key_encoding"]["configuration"] = {{"separator", "."}};
  EXPECT_EQ(key(json, {1, 2}), "c.1.2");
  json["chunk_key_encoding"] = "v2";
  EXPECT_EQ(key(json, {1, 2}), "1.2");
  json["chunk_key_encoding"] = {{"name", "v2"}, {"configuration", {{"separator", "/"}}}};
  EXPECT_EQ(key(json, {1, 2}), "1/2");
  EXPECT_EQ(parse_v2_array(v2(), Json())->chunk_key(Shape{1, 2}), "1.2");
  json["shape"] = json["chunk_grid"]["configuration"]["chunk_shape"] = Json::array();
  EXPECT_EQ(key(json, {}), "0");
  json["chunk_key_encoding"] = "default";
  EXPECT_EQ(key(json, {}), "c");
}

TEST(ArrayMetadata, extensions_are_objects_or_names) {
  Json json = v3();
  json["codecs"] = {"bytes", "crc32c"};
  json["data_type"] = {{"name", "uint8"}};
  const auto metadata = parse_v3_array(json);
  ASSERT_TRUE(metadata.has_value()) << metadata.error().message();
  ASSERT_EQ(metadata->coding.chain.size(), 1U);
  EXPECT_EQ(metadata->coding.chain[0].kind, CodecKind::crc32c);
}

TEST(ArrayMetadata, what_must_be_understood_and_is_not_is_refused_by_name) {
  Json json = v3();
  json["future"] = {{"must_understand", false}};
  EXPECT_EQ(refusal(json), "");
  EXPECT_EQ(parse_v3_array(json)->notes.size(), 1U);
  json["future"] = {{"must_understand", true}};
  EXPECT_NE(refusal(json).find("'future'"), std::string::npos);
  json["future"] = 1;
  EXPECT_NE(refusal(json).find("'future'"), std::string::npos);
  json = v3();
  json["storage_transformers"] = Json::array({{{"name", "x"}}});
  EXPECT_NE(refusal(json).find("storage transformers"), std::string::npos);
  json["storage_transformers"] = Json::array();
  EXPECT_EQ(refusal(json), "");
}

TEST(ArrayMetadata, malformed_members_are_refused) {
  const std::vector<std::pair<const char*, const char*>> wrong_v3 = {
      {"zarr_format", "4"},
      {"node_type", "\"group\""},
      {"shape", "5"},
      {"shape", "[-1, 2]"},
      {"shape", "[1.5, 2]"},
      {"shape", "[1, 2, 3]"},
      {"shape", "[1e30, 2]"},
      {"shape", "[1152921504606846976, 2]"},
      {"data_type", "\"string\""},
      {"data_type", "5"},
      {"chunk_grid", R"({"name": "rectilinear"})"},
      {"chunk_grid", R"({"name": "regular", "configuration": {"chunk_shape": [0, 2]}})"},
      {"chunk_grid", R"({"name": "regular", "configuration": {"chunk_shape": [4294967296, 4294967296]}})"},
      {"chunk_key_encoding", R"({"name": "other"})"},
      {"chunk_key_encoding", R"({"name": "default", "configuration": {"separator": "-"}})"},
      {"fill_value", "null"},
      {"fill_value", "\"x\""},
      {"codecs", "[]"},
      {"codecs", "5"},
      {"codecs", R"(["crc32c", "bytes"])"},
      {"codecs", R"(["bytes", "bytes"])"},
      {"codecs", R"(["bytes", "lzma"])"},
      {"codecs", R"([{"name": "transpose", "configuration": {"order": [0, 0]}}, "bytes"])"},
      {"codecs", R"([{"name": "transpose", "configuration": {"order": [0]}}, "bytes"])"},
      {"codecs", R"([{"name": "bytes", "configuration": {"endian": "middle"}}])"},
      {"codecs", R"(["bytes", {"name": "gzip", "configuration": {"level": 10}}])"},
      {"codecs", R"(["bytes", {"name": "gzip", "level": 1}])"},
      {"dimension_names", "[\"a\"]"},
      {"attributes", "[]"}};
  for (const auto& [name, value] : wrong_v3) {
    Json json = v3();
    json[name] = *parse_json(value);
    EXPECT_NE(refusal(json), "") << name << " " << value;
  }
  const std::vector<std::pair<const char*, const char*>> wrong_v2 = {
      {"order", "\"K\""},
      {"dtype", "[[\"a\", \"<i4\"]]"},
      {"compressor", R"({"id": "lzma"})"},
      {"chunks", "[4]"},
      {"filters", "5"},
      {"dimension_separator", "\"-\""},
      {"fill_value", "[1,2]"},
      {"compressor", "{}"},
      {"filters", R"([{"id": "delta", "dtype": "<i4"}])"}};
  for (const auto& [name, value] : wrong_v2) {
    Json json = v2();
    json[name] = *parse_json(value);
    EXPECT_NE(refusal(json), "") << name << " " << value;
  }
}

Json sharding(Json inner_shape, Json codecs) {
  return {{"name", "sharding_indexed"},
          {"configuration",
           {{"chunk_shape", std::move(inner_shape)},
            {"codecs", std::move(codecs)},
            {"index_codecs", {"bytes", "crc32c"}}}}};
}

TEST(ArrayMetadata, orders_of_transposed_shards_are_composed) {
  Json json = v3();
  json["shape"] = {8, 6, 4};
  json["chunk_grid"]["configuration"]["chunk_shape"] = {8, 6, 4};
  // Stored as (2, 0, 1), and each inner chunk turned once more.
  json["codecs"] = {{{"name", "transpose"}, {"configuration", {{"order", {2, 0, 1}}}}},
                    sharding({2, 4, 3}, {{{"name", "transpose"}, {"configuration", {{"order", {1, 0, 2}}}}}, "bytes"})};
  const auto metadata = parse_v3_array(json);
  ASSERT_TRUE(metadata.has_value()) << metadata.error().message();
  EXPECT_EQ(metadata->leaf_shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(metadata->coding.sharding->order, (std::vector<std::uint32_t>{2, 0, 1}));
  EXPECT_EQ(metadata->leaf_coding().layout.order, (std::vector<std::uint32_t>{0, 2, 1}));
}

TEST(ArrayMetadata, shards_that_are_not_a_grid_of_chunks_are_refused) {
  Json json = v3();
  json["codecs"] = Json::array({sharding({3, 8}, {"bytes"})});
  EXPECT_NE(refusal(json).find("divide"), std::string::npos);
  json["codecs"] = Json::array({sharding({0, 8}, {"bytes"})});
  EXPECT_NE(refusal(json), "");
  json["codecs"] = Json::array({sharding({4}, {"bytes"})});
  EXPECT_NE(refusal(json), "");
  Json compressed_index = sharding({4, 8}, {"bytes"});
  compressed_index["configuration"]["index_codecs"] = {"bytes", "gzip"};
  json["codecs"] = Json::array({compressed_index});
  EXPECT_NE(refusal(json).find("index"), std::string::npos);
  json["codecs"] = {sharding({4, 8}, {"bytes"}), "gzip"};
  EXPECT_NE(refusal(json).find("behind sharding_indexed"), std::string::npos);
  Json nested = sharding({4, 8}, {"bytes"});
  for (int i = 0; i < 6; ++i) nested = sharding({4, 8}, Json::array({nested}));
  json["codecs"] = Json::array({nested});
  EXPECT_NE(refusal(json).find("nested"), std::string::npos);
}

TEST(ArrayMetadata, a_shuffle_of_whole_elements_is_part_of_the_layout_and_another_is_a_step) {
  Json json = v3();
  json["codecs"] = {"bytes", {{"name", "numcodecs.shuffle"}, {"configuration", {{"elementsize", 2}}}}};
  auto metadata = parse_v3_array(json);
  ASSERT_TRUE(metadata.has_value());
  EXPECT_TRUE(metadata->coding.layout.shuffled);
  EXPECT_TRUE(metadata->coding.chain.empty());
  json["codecs"][1]["configuration"]["elementsize"] = 4;
  metadata = parse_v3_array(json);
  ASSERT_TRUE(metadata.has_value());
  EXPECT_FALSE(metadata->coding.layout.shuffled);
  EXPECT_EQ(metadata->coding.chain.size(), 1U);
}

TEST(NewArrays, chunks_and_shards_that_nobody_names_have_their_sizes) {
  NewArray wanted;
  wanted.shape = {1000, 1000, 1000};
  wanted.type = {ElementType::Code::floating, 32};
  const auto metadata = describe_new_array(wanted);
  ASSERT_TRUE(metadata.has_value()) << metadata.error().message();
  EXPECT_EQ(metadata->leaf_shape(), (Shape{64, 64, 64}));
  EXPECT_EQ(metadata->chunk_shape, (Shape{256, 256, 256}));
  ASSERT_EQ(metadata->leaf_coding().chain.size(), 1U);
  EXPECT_EQ(metadata->leaf_coding().chain[0].kind, CodecKind::crc32c);
  wanted.shape = {3, 5};
  const auto small = describe_new_array(wanted);
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->leaf_shape(), (Shape{4, 8}));
}

TEST(NewArrays, in_v2_the_default_keeps_a_checksum_in_zstd_frames) {
  NewArray wanted;
  wanted.format = 2;
  wanted.shape = {100};
  const auto metadata = describe_new_array(wanted);
  ASSERT_TRUE(metadata.has_value());
  ASSERT_EQ(metadata->coding.chain.size(), 1U);
  EXPECT_EQ(metadata->coding.chain[0].kind, CodecKind::zstd);
  EXPECT_TRUE(has_checksum(metadata->coding.chain[0]));
}

TEST(NewArrays, shapes_that_do_not_fit_name_their_argument) {
  NewArray wanted;
  wanted.shape = {100, 100};
  wanted.chunk_shape = {10};
  EXPECT_EQ(describe_new_array(wanted).error().argument(), "chunks");
  wanted.chunk_shape = {10, 0};
  EXPECT_EQ(describe_new_array(wanted).error().argument(), "chunks");
  wanted.chunk_shape = {10, 10};
  wanted.shard_shape = {20, 25};
  EXPECT_EQ(describe_new_array(wanted).error().argument(), "shards");
}

TEST(NewArrays, codecs_are_chosen_by_name_and_level) {
  const auto zstd = parse_codec_choice("zstd:-3");
  ASSERT_TRUE(zstd.has_value());
  EXPECT_EQ(zstd->level, -3);
  EXPECT_EQ(parse_codec_choice("blosc-zstd:9")->compressor, BloscCompressor::zstd);
  EXPECT_FALSE(parse_codec_choice("none")->level.has_value());
  for (const char* text :
       {"", "zst", "zstd:", "zstd:23", "gzip:x", "blosc-x", "none:1", "bz2:0", "gzip:-1", "zstd:3:4"}) {
    const auto choice = parse_codec_choice(text);
    ASSERT_FALSE(choice.has_value()) << text;
    EXPECT_EQ(choice.error().argument(), "codec");
  }
}

}  // namespace array_metadata_tests
}  // namespace
}  // namespace cingulum::zarr
