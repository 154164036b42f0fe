#include "cli/argument_value.hpp"

#include <algorithm>

#include "base/edit_distance.hpp"
#include "base/quantity.hpp"

namespace cingulum {
namespace {

using Value = ParsedArguments::Value;

std::string range_text(const Range& range) {
  if (range.minimum && range.maximum) {
    return range.above ? fmt::format("more than {}, at most {}", *range.minimum, *range.maximum)
                       : fmt::format("from {} to {}", *range.minimum, *range.maximum);
  }
  if (range.minimum) return fmt::format("{} {}", range.above ? "more than" : "at least", *range.minimum);
  if (range.maximum) return fmt::format("at most {}", *range.maximum);
  return {};
}

// "a whole number" + "from 1 to 9" reads as one phrase; other ranges follow a comma.
std::string with_range(std::string text, const Range& range) {
  const std::string limits = range_text(range);
  if (limits.empty()) return text;
  return text + (limits.starts_with("from") ? " " : ", ") + limits;
}

std::string list_text(const std::vector<std::string>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

bool in_range(const Range& range, double value) {
  if (range.minimum && (range.above ? value <= *range.minimum : value < *range.minimum)) return false;
  return !range.maximum || value <= *range.maximum;
}

// "2mm" with the suffix "mm" is "2"; a bare number stays.
std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  if (!suffix.empty() && text.size() > suffix.size() && text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return trim(text);
}

std::optional<Length> parse_length(std::string_view text, std::string_view bare_unit) {
  Length length{.unit = bare_unit == "vox" ? LengthUnit::voxel : LengthUnit::millimetre};
  text = trim(text);
  if (text.ends_with("mm")) {
    length.unit = LengthUnit::millimetre;
    text = without_suffix(text, "mm");
  } else if (text.ends_with("vox")) {
    length.unit = LengthUnit::voxel;
    text = without_suffix(text, "vox");
  }
  const Result<double> value = parse_real(text);
  if (!value) return std::nullopt;
  length.value = *value;
  return length;
}

// The value, or nothing when the text is not of the argument's type or out of its range.
std::optional<Value> convert(const Argument& argument, std::string_view text) {
  switch (argument.type) {
    case ArgumentType::text: return std::string(text);
    case ArgumentType::file_in:
    case ArgumentType::file_out:
      if (text.empty()) return std::nullopt;
      return std::string(text);
    case ArgumentType::integer:
      if (const auto value = parse_integer(text); value && in_range(argument.range, static_cast<double>(*value))) {
        return *value;
      }
      return std::nullopt;
    case ArgumentType::real:
    case ArgumentType::angle: {
      const std::string_view suffix = argument.type == ArgumentType::angle ? "deg" : std::string_view(argument.unit);
      if (const auto value = parse_real(without_suffix(text, suffix)); value && in_range(argument.range, *value)) {
        return *value;
      }
      return std::nullopt;
    }
    case ArgumentType::length:
      if (const auto value = parse_length(text, argument.unit); value && in_range(argument.range, value->value)) {
        return *value;
      }
      return std::nullopt;
    case ArgumentType::bytes:
      if (const auto value = parse_bytes(text); value && in_range(argument.range, static_cast<double>(*value))) {
        return *value;
      }
      return std::nullopt;
    case ArgumentType::key:
      if (const auto value = parse_key(text)) return *value;
      return std::nullopt;
    case ArgumentType::choice:
      if (std::find(argument.choices.begin(), argument.choices.end(), text) == argument.choices.end()) {
        return std::nullopt;
      }
      return std::string(text);
    case ArgumentType::flag: return true;
    case ArgumentType::device_list:
      if (auto value = parse_device_list(text)) return std::move(*value);
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::string shown_name(const Argument& argument) {
  return argument.positional ? shown_metavar(argument) : "--" + argument.name;
}

std::string shown_metavar(const Argument& argument) {
  if (!argument.metavar.empty()) return argument.metavar;
  switch (argument.type) {
    case ArgumentType::text: return "TEXT";
    case ArgumentType::file_in:
    case ArgumentType::file_out: return "FILE";
    case ArgumentType::integer: return "N";
    case ArgumentType::real: return "X";
    case ArgumentType::length: return "LENGTH";
    case ArgumentType::angle: return "ANGLE";
    case ArgumentType::bytes: return "SIZE";
    case ArgumentType::key: return "KEY";
    case ArgumentType::choice: return "NAME";
    case ArgumentType::flag: return "";
    case ArgumentType::device_list: return "DEVICE";
  }
  return {};
}

std::string accepted_text(const Argument& argument) {
  const std::string unit = argument.unit.empty() ? "" : " in " + argument.unit;
  switch (argument.type) {
    case ArgumentType::text:
    case ArgumentType::flag: return {};
    case ArgumentType::file_in: return "an existing file";
    case ArgumentType::file_out: return "the name of a file";
    case ArgumentType::integer: return with_range("a whole number" + unit, argument.range);
    case ArgumentType::real: return with_range("a number" + unit, argument.range);
    case ArgumentType::length:
      return with_range(fmt::format("a length such as 1mm or 0.5vox (a bare number is in {})",
                                    argument.unit == "vox" ? "voxel edges" : "mm"),
                        argument.range);
    case ArgumentType::angle: return with_range("an angle in degrees", argument.range);
    case ArgumentType::bytes: return with_range("a size such as 512M or 1.5 GiB", argument.range);
    case ArgumentType::key: return "a whole number from 0 to 2^64-1, decimal or 0x...";
    case ArgumentType::choice: return list_text(argument.choices);
    case ArgumentType::device_list: return std::string(setting_info(Setting::device).accepted);
  }
  return {};
}

Result<Value> parse_value(const Argument& argument, std::string_view text) {
  if (auto value = convert(argument, text)) return std::move(*value);
  return fail(ErrorKind::invalid_argument, "{} '{}': accepted is {}{}", shown_name(argument), text,
              accepted_text(argument), did_you_mean(text, argument.choices));
}

}  // namespace cingulum
