#include "runs/argument_value.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace {

std::string error_of(const Argument& argument, std::string_view text) {
  const auto value = parse_value(argument, text);
  return value ? "(accepted)" : value.error().message();
}

template <class T>
T value_of(const Argument& argument, std::string_view text) {
  const auto value = parse_value(argument, text);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message());
  return value ? std::get<T>(*value) : T{};
}

TEST(ArgumentValue, whole_numbers_are_checked_against_their_range) {
  const Argument argument{.name = "threads", .type = ArgumentType::integer, .range = {.minimum = 1, .maximum = 8}};
  EXPECT_EQ(value_of<std::int64_t>(argument, "1"), 1);
  EXPECT_EQ(value_of<std::int64_t>(argument, "8"), 8);
  for (const std::string text : {"0", "9", "-1", "1.5", "", "many"}) {
    EXPECT_EQ(error_of(argument, text), "--threads '" + text + "': accepted is a whole number from 1 to 8");
  }
}

TEST(ArgumentValue, real_numbers_take_their_unit) {
  const Argument argument{.name = "min-length", .type = ArgumentType::real, .unit = "mm", .range = {.minimum = 0}};
  EXPECT_EQ(value_of<double>(argument, "2.5"), 2.5);
  EXPECT_EQ(value_of<double>(argument, "2.5mm"), 2.5);
  EXPECT_EQ(value_of<double>(argument, "2.5 mm"), 2.5);
  for (const std::string text : {"-1", "2.5cm", "mm", "nan"}) {
    EXPECT_EQ(error_of(argument, text), "--min-length '" + text + "': accepted is a number in mm, at least 0");
  }
}

TEST(ArgumentValue, lengths_are_in_mm_or_voxels) {
  Argument argument{
      .name = "step-size", .type = ArgumentType::length, .range = {.minimum = 0, .maximum = 10, .above = true}};
  EXPECT_EQ(value_of<Length>(argument, "1mm"), (Length{1, LengthUnit::millimetre}));
  EXPECT_EQ(value_of<Length>(argument, "0.5vox"), (Length{0.5, LengthUnit::voxel}));
  EXPECT_EQ(value_of<Length>(argument, "0.5 vox"), (Length{0.5, LengthUnit::voxel}));
  EXPECT_EQ(value_of<Length>(argument, "2"), (Length{2, LengthUnit::millimetre}));
  for (const std::string text : {"0", "0mm", "-1vox", "11mm", "1m", "vox", "1 mm mm"}) {
    EXPECT_EQ(error_of(argument, text),
              "--step-size '" + text +
                  "': accepted is a length such as 1mm or 0.5vox (a bare number is in mm), more "
                  "than 0, at most 10");
  }
  argument.unit = "vox";
  EXPECT_EQ(value_of<Length>(argument, "2"), (Length{2, LengthUnit::voxel}));
  EXPECT_EQ(value_of<Length>(argument, "2mm"), (Length{2, LengthUnit::millimetre}));
}

TEST(ArgumentValue, a_length_in_voxels_becomes_mm_by_the_smallest_edge) {
  EXPECT_EQ((Length{0.5, LengthUnit::voxel}.in_mm(1.8)), 0.9);
  EXPECT_EQ((Length{0.5, LengthUnit::millimetre}.in_mm(1.8)), 0.5);
}

TEST(ArgumentValue, angles_are_in_degrees) {
  const Argument argument{.name = "max-angle", .type = ArgumentType::angle, .range = {.minimum = 0, .maximum = 90}};
  EXPECT_EQ(value_of<double>(argument, "45"), 45);
  EXPECT_EQ(value_of<double>(argument, "45deg"), 45);
  EXPECT_EQ(error_of(argument, "91"), "--max-angle '91': accepted is an angle in degrees from 0 to 90");
  EXPECT_EQ(error_of(argument, "1rad"), "--max-angle '1rad': accepted is an angle in degrees from 0 to 90");
}

TEST(ArgumentValue, sizes_keys_and_devices_have_their_own_forms) {
  EXPECT_EQ(value_of<std::uint64_t>({.name = "limit", .type = ArgumentType::bytes}, "1.5 GiB"), 1610612736U);
  EXPECT_EQ(value_of<std::uint64_t>({.name = "seed", .type = ArgumentType::key}, "18446744073709551615"),
            ~std::uint64_t{0});
  EXPECT_EQ(value_of<std::vector<std::string>>({.name = "device", .type = ArgumentType::device_list}, "cuda:0,cpu"),
            (std::vector<std::string>{"cuda:0", "cpu"}));
  EXPECT_EQ(error_of({.name = "seed", .type = ArgumentType::key}, "-1"),
            "--seed '-1': accepted is a whole number from 0 to 2^64-1, decimal or 0x...");
}

TEST(ArgumentValue, choices_suggest_the_nearest) {
  const Argument argument{.name = "shell",
                          .type = ArgumentType::choice,
                          .metavar = "SHELL",
                          .choices = {"bash", "zsh", "fish"},
                          .positional = true};
  EXPECT_EQ(value_of<std::string>(argument, "zsh"), "zsh");
  EXPECT_EQ(error_of(argument, "bsh"), "SHELL 'bsh': accepted is bash, zsh or fish; did you mean 'bash'?");
  EXPECT_EQ(error_of(argument, "powershell"), "SHELL 'powershell': accepted is bash, zsh or fish");
}

}  // namespace
}  // namespace cingulum
