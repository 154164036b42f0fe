#include "zarr/data_type.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "formats/sidecar.hpp"

namespace cingulum::zarr {
namespace {

namespace data_type_tests {

using Code = ElementType::Code;

template <class T>
T filled(const std::string& json, ElementType type, bool base64 = false, bool big_endian = false) {
  const auto value = parse_fill_value(*parse_json(json), type, base64, big_endian);
  EXPECT_TRUE(value.has_value()) << json << ": " << (value ? "" : value.error().message());
  T number{};
  if (value) std::memcpy(&number, value->data(), sizeof(T));
  return number;
}

bool is_refused(const std::string& json, ElementType type) {
  return !parse_fill_value(*parse_json(json), type).has_value();
}

constexpr ElementType int8{Code::integer, 8}, uint8{Code::unsigned_integer, 8}, int64{Code::integer, 64};
constexpr ElementType uint64{Code::unsigned_integer, 64}, float16{Code::floating, 16}, float32{Code::floating, 32};
constexpr ElementType float64{Code::floating, 64}, complex64{Code::complex, 64}, boolean{Code::boolean, 8};

TEST(ZarrTypes, v2_types_are_read_with_their_byte_order) {
  const auto big = parse_v2_type(">f4");
  ASSERT_TRUE(big.has_value());
  EXPECT_EQ(big->type, float32);
  EXPECT_TRUE(big->big_endian);
  const auto one_byte = parse_v2_type(">u1");
  ASSERT_TRUE(one_byte.has_value());
  EXPECT_FALSE(one_byte->big_endian);
  EXPECT_EQ(parse_v2_type("|b1")->type, boolean);
  EXPECT_EQ(parse_v2_type("<c8")->type, complex64);
}

TEST(ZarrTypes, what_is_no_number_is_refused_by_name) {
  for (const char* text : {"<U7", "|S7", "|O", "<M8[ns]", "|V4"}) {
    const auto type = parse_v2_type(text);
    ASSERT_FALSE(type.has_value()) << text;
    EXPECT_NE(type.error().message().find(text), std::string::npos);
    EXPECT_NE(type.error().message().find("not supported"), std::string::npos) << type.error().message();
  }
  for (const char* text : {"", "f4", "<f3", "<f16", "|f4", "<b4", "<c4", "<i", "<i4x", "=i4", "<i-4"}) {
    EXPECT_FALSE(parse_v2_type(text).has_value()) << text;
  }
  for (const char* text : {"string", "bfloat16", "r16", "float8", "int128", "bool8", "Float32", ""}) {
    EXPECT_FALSE(parse_v3_type(text).has_value()) << text;
  }
}

TEST(ZarrTypes, every_name_is_read_as_it_was_written) {
  for (const ElementType type : {int8, uint8, int64, uint64, float16, float32, float64, complex64, boolean}) {
    EXPECT_EQ(*parse_v3_type(type.name()), type);
    EXPECT_EQ(parse_v2_type(v2_type_name(type, true))->type, type);
    EXPECT_EQ(parse_v2_type(v2_type_name(type, true))->big_endian, type.bytes() > 1);
  }
}

TEST(FillValues, whole_numbers_are_exact_up_to_their_limits) {
  EXPECT_EQ(filled<std::int8_t>("-128", int8), -128);
  EXPECT_TRUE(is_refused("-129", int8));
  EXPECT_EQ(filled<std::int8_t>("127", int8), 127);
  EXPECT_TRUE(is_refused("128", int8));
  EXPECT_EQ(filled<std::uint8_t>("255", uint8), 255);
  EXPECT_TRUE(is_refused("256", uint8));
  EXPECT_TRUE(is_refused("-1", uint8));
  EXPECT_EQ(filled<std::uint64_t>("18446744073709551615", uint64), 18446744073709551615U);
  EXPECT_EQ(filled<std::int64_t>("-9223372036854775808", int64), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(filled<std::int8_t>("3.0", int8), 3);
  EXPECT_TRUE(is_refused("3.5", int8));
  EXPECT_TRUE(is_refused("128.0", int8));
  EXPECT_TRUE(is_refused("\"NaN\"", int8));
}

TEST(FillValues, a_number_of_either_kind_of_json_is_taken) {
  const auto value = parse_fill_value(Json(5), uint8);
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ((*value)[0], std::byte{5});
}

TEST(FillValues, names_and_bits_of_floats) {
  EXPECT_TRUE(std::isnan(filled<float>("\"NaN\"", float32)));
  EXPECT_EQ(filled<float>("\"-Infinity\"", float32), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(filled<double>("\"Infinity\"", float64), std::numeric_limits<double>::infinity());
  EXPECT_EQ(filled<std::uint32_t>("\"0x7fc00001\"", float32), 0x7fc00001U);
  EXPECT_EQ(filled<std::uint16_t>("\"0x3c00\"", float16), 0x3c00);
  EXPECT_EQ(filled<std::uint16_t>("1.5", float16), 0x3e00);
  EXPECT_EQ(filled<float>("0.1", float32), 0.1f);
  EXPECT_TRUE(is_refused("\"0x7fc0000\"", float32));  // a digit is missing
  EXPECT_TRUE(is_refused("\"0x7fc0000g\"", float32));
  EXPECT_TRUE(is_refused("1e300", float32));
  EXPECT_TRUE(is_refused("70000", float16));
  EXPECT_TRUE(is_refused("\"nan\"", float32));
  EXPECT_TRUE(is_refused("null", float32));
}

TEST(FillValues, halves_are_rounded_once) {
  // Half of a unit in the last place above 1, and a little: through float32 it would become the tie, and 1.
  EXPECT_EQ(filled<std::uint16_t>("1.000488281250001", float16), 0x3c01);
}

TEST(FillValues, complex_numbers_are_pairs) {
  const auto value = filled<std::array<float, 2>>("[1.5, \"-Infinity\"]", complex64);
  EXPECT_EQ(value[0], 1.5f);
  EXPECT_EQ(value[1], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(is_refused("[1]", complex64));
  EXPECT_TRUE(is_refused("[1, 2, 3]", complex64));
  EXPECT_TRUE(is_refused("[1, \"x\"]", complex64));
}

TEST(FillValues, booleans_are_true_false_or_the_two_numbers) {
  EXPECT_EQ(filled<std::uint8_t>("true", boolean), 1);
  EXPECT_EQ(filled<std::uint8_t>("0", boolean), 0);
  EXPECT_TRUE(is_refused("2", boolean));
  EXPECT_TRUE(is_refused("\"true\"", boolean));
}

TEST(FillValues, base64_holds_the_stored_bytes) {
  // 00 00 80 3f is 1 in float32, little-endian.
  EXPECT_EQ(filled<float>("\"AACAPw==\"", float32, true), 1.0f);
  EXPECT_EQ(filled<float>("\"P4AAAA==\"", float32, true, true), 1.0f);
  EXPECT_FALSE(parse_fill_value(*parse_json("\"AACAPw==\""), float32).has_value());
  EXPECT_FALSE(parse_fill_value(*parse_json("\"AACA\""), float32, true).has_value());
  EXPECT_FALSE(parse_fill_value(*parse_json("\"AAC!Pw==\""), float32, true).has_value());
}

TEST(FillValues, what_is_written_is_read_as_the_same_bits) {
  const std::vector<std::pair<ElementType, std::string>> cases = {{float32, "\"NaN\""},
                                                                  {float32, "\"0x7fc00001\""},
                                                                  {float32, "\"Infinity\""},
                                                                  {float32, "0.1"},
                                                                  {float16, "\"NaN\""},
                                                                  {float16, "0.333"},
                                                                  {float64, "-0.0"},
                                                                  {float64, "1e-320"},
                                                                  {int64, "-5"},
                                                                  {uint64, "18446744073709551615"},
                                                                  {complex64, "[0.25, \"NaN\"]"},
                                                                  {boolean, "true"}};
  for (const auto& [type, json] : cases) {
    const auto value = parse_fill_value(*parse_json(json), type);
    ASSERT_TRUE(value.has_value()) << json;
    const auto again = parse_fill_value(*parse_json(fill_value_json(*value, type).dump()), type);
    ASSERT_TRUE(again.has_value()) << fill_value_json(*value, type).dump();
    EXPECT_EQ(*again, *value) << json;
  }
}

}  // namespace data_type_tests
}  // namespace
}  // namespace cingulum::zarr
