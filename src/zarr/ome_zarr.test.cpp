#include "zarr/ome_zarr.hpp"

#include <gtest/gtest.h>

#include "zarr/ome_units.hpp"

namespace cingulum::zarr::ome_zarr_tests {
namespace {

Json parsed(const char* text) {
  return Json::parse(text);
}

Json plain_image() {
  return parsed(R"({"ome": {"version": "0.5", "multiscales": [{
      "axes": [{"name": "z", "type": "space", "unit": "micrometer"}, {"name": "y", "type": "space"},
               {"name": "x", "type": "space"}],
      "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 2, 3]}]},
                   {"path": "1", "coordinateTransformations": [{"type": "scale", "scale": [2, 4, 6]},
                                                               {"type": "translation", "translation": [0.5, 1, 1.5]}]}],
      "name": "brain", "unknown": 7}], "omero": {"channels": []}, "labels": ["a"]}, "mine": true})");
}

OmeImage image_of(const Json& attributes) {
  auto image = parse_ome_image(attributes, "g");
  EXPECT_TRUE(image) << image.error().message();
  EXPECT_TRUE(image->has_value());
  return std::move(**image);
}

std::string refusal(const Json& attributes) {
  const auto image = parse_ome_image(attributes, "g");
  return image ? std::string() : image.error().message();
}

TEST(OmeZarr, attributes_without_an_image_are_none) {
  EXPECT_FALSE(*parse_ome_image(parsed(R"({"a": 1})"), "g"));
  EXPECT_FALSE(*parse_ome_image(parsed(R"({"ome": {"version": "0.5", "labels": ["a"]}})"), "g"));
}

TEST(OmeZarr, both_versions_say_the_same_and_come_back_equal) {
  const OmeImage image = image_of(plain_image());
  EXPECT_EQ(image.version, OmeVersion::v0_5);
  const auto old = ome_attributes(image, OmeVersion::v0_4, "g");
  ASSERT_TRUE(old);
  EXPECT_EQ((*old)["multiscales"][0]["version"], "0.4");
  EXPECT_EQ((*old)["labels"][0], "a");
  EXPECT_EQ((*old)["mine"], true);
  const OmeImage again = image_of(*old);
  EXPECT_EQ(again.version, OmeVersion::v0_4);
  EXPECT_EQ(again.multiscales[0].axes, image.multiscales[0].axes);
  EXPECT_EQ(again.multiscales[0].levels[1].translation, (std::vector<double>{0.5, 1, 1.5}));
  EXPECT_EQ(again.multiscales[0].others["unknown"], 7);
  const auto back = ome_attributes(again, OmeVersion::v0_5, "g");
  ASSERT_TRUE(back);
  EXPECT_EQ(nlohmann::json(*back), nlohmann::json(plain_image()));
}

TEST(OmeZarr, an_image_of_0_6_is_not_written) {
  EXPECT_FALSE(ome_attributes(image_of(plain_image()), OmeVersion::v0_6, "g"));
}

TEST(OmeZarr, each_refusal_names_the_group_and_the_field) {
  const auto changed = [](const char* pointer, const Json& value) {
    Json json = plain_image();
    json[Json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  EXPECT_EQ(changed("/ome/version", "0.3"), "g: ome.version: OME-Zarr 0.3 is not supported (known: 0.4, 0.5, 0.6)");
  EXPECT_EQ(changed("/ome/multiscales/0/axes/1/name", "z"), "g: multiscales[0].axes[1].name: 'z' is there twice");
  EXPECT_EQ(changed("/ome/multiscales/0/axes/0/type", "time"), "");
  EXPECT_EQ(changed("/ome/multiscales/0/axes/1/type", "time"),
            "g: multiscales[0].axes[1].type: time is not the first axis");
  EXPECT_EQ(changed("/ome/multiscales/0/datasets/1/path", "0"),
            "g: multiscales[0].datasets[1].path: '0' is there twice");
  EXPECT_EQ(changed("/ome/multiscales/0/datasets/0/path", "a/../b"),
            "g: multiscales[0].datasets[0].path: 'a/../b' is no path below the group");
  EXPECT_EQ(changed("/ome/multiscales/0/datasets/0/coordinateTransformations/0/scale", {1, 2}),
            "g: multiscales[0].datasets[0].coordinateTransformations[0].scale: 2 numbers, expected 3");
  EXPECT_EQ(changed("/ome/multiscales/0/datasets/0/coordinateTransformations/0/type", "rotation"),
            "g: multiscales[0].datasets[0].coordinateTransformations[0]: it is no scale");
  EXPECT_EQ(changed("/ome/multiscales/0", 3), "g: multiscales[0]: it is no JSON object");
}

TEST(OmeZarr, sequences_are_bounded) {
  Json step = parsed(R"({"type": "identity"})");
  for (int i = 0; i < 20; ++i) step = {{"type", "sequence"}, {"transformations", Json::array({step})}};
  Json image = parsed(R"({"ome": {"version": "0.6", "multiscales": [{
      "coordinateSystems": [{"name": "a", "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]}],
      "datasets": [{"path": "0", "coordinateTransformations": []}]}]}})");
  step["output"] = "a";
  image["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"].push_back(step);
  EXPECT_NE(refusal(image).find("sequences inside each other"), std::string::npos) << refusal(image);
}

TEST(OmeZarr, a_level_lies_where_half_pixel_centres_put_it) {
  const OmeLevel finest{.path = "0", .scale = {1, 2, 3}, .translation = {10, 0, 0}};
  const Shape shape = {4, 5, 6}, coarser = {4, 3, 3};
  const OmeLevel level = level_of_size(finest, shape, coarser, "1");
  EXPECT_EQ(level.scale, (std::vector<double>{1, 2.0 * 5 / 3, 6}));
  EXPECT_EQ(level.translation, (std::vector<double>{10, (2.0 * 5 / 3 - 2) / 2, 1.5}));
  EXPECT_EQ(cropped_level(finest, Shape{2, 0, 5}).translation, (std::vector<double>{12, 0, 15}));
}

TEST(OmeZarr, axes_follow_names_where_those_make_an_image) {
  const std::vector<std::string> names = {"c", "y", "x"}, odd = {"y", "c", "x"};
  EXPECT_EQ(axes_of_names(names, 3)[0].type, "channel");
  EXPECT_EQ(axes_of_names(odd, 3)[0].name, "z");
  EXPECT_EQ(axes_of_names({}, 4)[0].type, "time");
  EXPECT_EQ(axes_of_names({}, 5)[1].type, "channel");
  EXPECT_EQ(axes_of_names({}, 2)[0].name, "y");
}

TEST(OmeUnits, a_unit_that_is_there_is_never_overruled) {
  const std::vector<OmeAxis> with = {{"y", "space", "micrometer"}, {"x", "space", "micrometer"}};
  const std::vector<OmeAxis> without = {{"t", "time", ""}, {"y", "space", ""}, {"x", "space", ""}};
  const std::vector<double> small = {0.5, 0.5}, small3 = {1, 0.5, 7}, large3 = {0.1, 3.5, 7};
  EXPECT_EQ(axes_in_mm(with, small)->factors, (std::vector<double>{1e-3, 1e-3}));
  EXPECT_FALSE(axes_in_mm(with, small)->guessed);
  EXPECT_EQ(axes_in_mm(without, small3)->factors, (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(axes_in_mm(without, large3)->factors, (std::vector<double>{1, 1e-3, 1e-3}));
  EXPECT_TRUE(axes_in_mm(without, large3)->guessed);
  EXPECT_EQ(*length_unit_in_mm("inch"), 25.4);
  EXPECT_FALSE(length_unit_in_mm("second"));
}

TEST(OmeZarr, windows_that_lack_a_number_are_told) {
  std::vector<std::string> notes;
  const auto channels =
      ome_channels(parsed(R"({"channels": [{"label": "a", "window": {"min": 0, "max": 9, "start": 1, "end": 8}},
                              {"color": "FF0000", "window": {"min": 0}}, 7]})"),
                   notes);
  ASSERT_EQ(channels.size(), 3U);
  EXPECT_EQ(channels[0].window->end, 8);
  EXPECT_FALSE(channels[1].window);
  EXPECT_EQ(notes.size(), 1U);
}

}  // namespace
}  // namespace cingulum::zarr::ome_zarr_tests
