#include "base/json_fields.hpp"

#include <gtest/gtest.h>

namespace cingulum::json_fields_tests {
namespace {

using Json = nlohmann::ordered_json;

struct Place {
  std::array<double, 3> mm = {};
  std::optional<double> radius_mm;

  template <class Visit, class Self>
  static void json_fields(Visit& visit, Self& self) {
    visit("mm", self.mm);
    visit("radius_mm", self.radius_mm);
  }
};

struct Survey {
  std::string name;
  std::filesystem::path file;
  bool whole = false;
  std::uint16_t small = 0;
  std::int64_t large = 0;
  std::vector<Place> places;
  Json model;
  int level = 5;

  template <class Visit, class Self>
  static void json_fields(Visit& visit, Self& self) {
    visit("name", self.name);
    visit("file", self.file);
    visit("whole", self.whole);
    visit("small", self.small);
    visit("large", self.large);
    visit("places", self.places);
    visit("model", self.model);
    visit.optional("level", self.level);
  }
};

constexpr const char* good_text = R"({"name":"s","file":"a/b.nii","whole":true,"small":65535,"large":-9,)"
                                  R"("places":[{"mm":[1.5,-2.0,0.25],"radius_mm":null},)"
                                  R"({"mm":[0.0,0.0,1.0],"radius_mm":3.0}],"model":{"any":[1]},"level":2})";

// What is said where the member at `pointer` is `value`.
std::string refusal(const char* pointer, const Json& value) {
  Json json = Json::parse(good_text);
  json[Json::json_pointer(pointer)] = value;
  Survey survey;
  const Status read = read_json(json, "survey", survey);
  return read ? "" : read.error().message();
}

TEST(json_fields, what_is_read_is_written_again_with_its_members_in_their_order) {
  Survey survey;
  ASSERT_TRUE(read_json(Json::parse(good_text), "survey", survey));
  EXPECT_EQ(survey.name, "s");
  EXPECT_EQ(survey.file, "a/b.nii");
  EXPECT_TRUE(survey.whole);
  EXPECT_EQ(survey.small, 65535);
  EXPECT_EQ(survey.large, -9);
  ASSERT_EQ(survey.places.size(), 2u);
  EXPECT_EQ(survey.places[0].mm, (std::array<double, 3>{1.5, -2, 0.25}));
  EXPECT_EQ(survey.places[0].radius_mm, std::nullopt);
  EXPECT_EQ(survey.places[1].radius_mm, 3.0);
  EXPECT_EQ(survey.model["any"][0], 1);
  EXPECT_EQ(survey.level, 2);
  EXPECT_EQ(write_json(survey).dump(), good_text);
}

TEST(json_fields, a_refusal_names_the_place_and_what_was_expected) {
  EXPECT_EQ(refusal("/name", 7), "survey.name is not a text");
  EXPECT_EQ(refusal("/file", nullptr), "survey.file is not a text");
  EXPECT_EQ(refusal("/whole", 1u), "survey.whole is not true or false");
  EXPECT_EQ(refusal("/places", "none"), "survey.places is not a list");
  EXPECT_EQ(refusal("/places/1", Json::array()), "survey.places[1] is not an object");
  EXPECT_EQ(refusal("/places/1", Json::object()), "survey.places[1] has no member 'mm'");
  EXPECT_EQ(refusal("/places/0/mm", Json::array({1, 2})), "survey.places[0].mm is not a list of 3");
  EXPECT_EQ(refusal("/places/0/mm/2", "1"), "survey.places[0].mm[2] is not a number");
  EXPECT_EQ(refusal("/places/0/mm/2", std::numeric_limits<double>::infinity()),
            "survey.places[0].mm[2] is not a number");
  EXPECT_EQ(refusal("/places/0/radius_mm", false), "survey.places[0].radius_mm is not a number");
}

TEST(json_fields, whole_numbers_keep_to_the_range_of_their_member) {
  EXPECT_EQ(refusal("/small", 65536u), "survey.small is not a whole number from 0 to 65535");
  EXPECT_EQ(refusal("/small", -1), "survey.small is not a whole number from 0 to 65535");
  EXPECT_EQ(refusal("/small", 1.0), "survey.small is not a whole number from 0 to 65535");
  EXPECT_EQ(refusal("/large", std::uint64_t{1} << 63U),
            "survey.large is not a whole number from -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(refusal("/large", (std::uint64_t{1} << 63U) - 1), "");
}

TEST(json_fields, a_member_may_be_absent_only_where_that_is_said) {
  for (const char* const name : {"name", "file", "whole", "small", "large", "places", "model"}) {
    Json json = Json::parse(good_text);
    json.erase(name);
    Survey survey;
    const Status read = read_json(json, "survey", survey);
    ASSERT_FALSE(read) << name;
    EXPECT_EQ(read.error().message(), fmt::format("survey has no member '{}'", name));
    EXPECT_EQ(read.error().kind(), ErrorKind::corrupt);
  }
  Json json = Json::parse(good_text);
  json.erase("level");
  Survey survey;
  ASSERT_TRUE(read_json(json, "survey", survey));
  EXPECT_EQ(survey.level, 5);
  EXPECT_EQ(refusal("/level", "high"), "survey.level is not a whole number from -2147483648 to 2147483647");
}

TEST(json_fields, a_reader_keeps_to_the_first_refusal_and_takes_nothing_behind_it) {
  const Json json = {{"a", 1u}, {"b", "two"}, {"d", 4u}};
  int a = 0, b = 0, c = 0, d = 0;
  JsonReader reader(json, "counts");
  reader("a", a);
  reader("b", b);
  reader("c", c);
  reader.optional("d", d);
  EXPECT_EQ(reader.refused(), "b");
  EXPECT_FALSE(reader.status());
  EXPECT_EQ(a, 1);
  EXPECT_EQ(d, 0);
  const Json number = 3;
  JsonReader of_no_object(number, "counts");
  of_no_object("a", a);
  EXPECT_EQ(of_no_object.refused(), "a");
}

}  // namespace
}  // namespace cingulum::json_fields_tests
