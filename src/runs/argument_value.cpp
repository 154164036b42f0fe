#include "runs/argument_value.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/atomic_file.hpp"
#include "base/edit_distance.hpp"
#include "base/quantity.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"

namespace cingulum {
namespace {

using Value = ArgumentValue;

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

// The nearest name in the same folder, for a file that is not there.
std::string nearest_file(const std::filesystem::path& path) {
  constexpr int most_entries = 10000;
  const std::filesystem::path folder = path.parent_path();
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error);
  for (int i = 0; !error && i < most_entries && entry != std::filesystem::directory_iterator(); ++i) {
    names.push_back(entry->path().filename().native());
    entry.increment(error);
  }
  const std::string nearest = nearest_name(path.filename().native(), names);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", (folder / nearest).native());
}

tl::unexpected<Error> misuse(std::string message) {
  return tl::make_unexpected(Error(ErrorKind::invalid_argument, std::move(message)));
}

}  // namespace

Argument seed_argument() {
  return {.name = "seed",
          .type = ArgumentType::key,
          .help = "key of the random numbers; the same key gives the same result on every device",
          .metavar = "KEY",
          .default_text = "0"};
}

Argument device_argument() {
  return {.name = "device",
          .type = ArgumentType::device_list,
          .help =
              "where to compute: auto, cpu, cuda, cuda:N, webgpu, metal, or several separated by commas; 'cingulum "
              "devices' lists them (setting CINGULUM_DEVICE)",
          .metavar = "DEVICE",
          .default_text = "auto"};
}

Argument threads_argument() {
  return {.name = "threads",
          .type = ArgumentType::integer,
          .help = "threads of the CPU; all processors unless given here or in CINGULUM_THREADS",
          .metavar = "N",
          .range = {.minimum = 1, .maximum = max_thread_count}};
}

Argument force_argument() {
  return {
      .name = "force", .type = ArgumentType::flag, .help = "replace outputs that exist; without it they are refused"};
}

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

std::string help_with_actions(const Argument& argument) {
  constexpr std::size_t a_few = 5;
  if (argument.actions.empty() || argument.actions.size() > a_few) return argument.help;
  return fmt::format("{}: {}", fmt::join(argument.actions, ", "), argument.help);
}

Result<Value> parse_value(const Argument& argument, std::string_view text) {
  if (auto value = convert(argument, text)) return std::move(*value);
  return fail(ErrorKind::invalid_argument, "{} '{}': accepted is {}{}", shown_name(argument), text,
              accepted_text(argument), did_you_mean(text, argument.choices));
}

Result<std::vector<Value>> values_of_texts(const Argument& argument, std::span<const std::string> texts) {
  if (argument.type == ArgumentType::flag) {
    return std::vector<Value>{texts.empty() || texts.front() != "false"};
  }
  if (texts.size() > 1 && !argument.repeatable) {
    return misuse(fmt::format("{} is given {} times; it takes one value", shown_name(argument), texts.size()));
  }
  std::vector<Value> values;
  for (const std::string& text : texts) {
    CGL_TRY_ASSIGN(auto value, parse_value(argument, text));
    values.push_back(std::move(value));
  }
  return values;
}

std::string text_of_value(const Value& value) {
  struct Text {
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(std::uint64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const Length& length) const {
      return fmt::format("{}{}", length.value, length.unit == LengthUnit::voxel ? "vox" : "mm");
    }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(const std::vector<std::string>& list) const {
      return fmt::format("{}", fmt::join(list, ","));
    }
  };
  return std::visit(Text{}, value);
}

Status check_named_argument(const Argument* known, const ArgumentText& named) {
  if (known == nullptr) {
    return fail(ErrorKind::invalid_argument, "{}: there is no such argument", argument_name(named.name));
  }
  if ((known->type == ArgumentType::flag) != named.is_flag) {
    return fail(ErrorKind::invalid_argument, "{} {}", argument_name(named.name),
                named.is_flag ? "needs a value" : "takes no value");
  }
  return {};
}

Status check_named_files(const Argument& argument, std::span<const std::string> texts, bool force) {
  for (const std::string& text : texts) {
    if (argument.type == ArgumentType::file_in) {
      std::error_code error;
      if (!std::filesystem::exists(text, error)) {
        return misuse(fmt::format("{} '{}': {}{}", shown_name(argument), text,
                                  error ? system_error_text(error.value()) : "no such file", nearest_file(text)));
      }
    } else if (argument.type == ArgumentType::file_out) {
      if (Status status = check_output(text, {.force = force}); !status) {
        if (status.error().kind() == ErrorKind::out_of_memory) return status;
        return misuse(fmt::format("{}: {}", shown_name(argument), status.error().marked_message()));
      }
    }
  }
  return {};
}

}  // namespace cingulum
