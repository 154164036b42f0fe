#include "base/quantity.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace cingulum {
namespace {

constexpr std::string_view bytes_accepted = "a size such as 4096, 64K, 1.5 GiB or 2 GB";

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i]))) return false;
  }
  return true;
}

struct NumberAndUnit {
  std::string_view number;
  std::string_view unit;
};

// Splits "1.5 GiB" behind its last digit or point. Exponents are not part of a size or a duration.
NumberAndUnit split_unit(std::string_view text) {
  text = trim(text);
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos) return {text, {}};
  return {text.substr(0, end), trim(text.substr(end))};
}

struct ByteUnit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::uint64_t kilo = 1000;
constexpr std::uint64_t kibi = 1024;
constexpr std::array<ByteUnit, 14> byte_units = {{{"", 1},
                                                  {"B", 1},
                                                  {"K", kibi},
                                                  {"KiB", kibi},
                                                  {"KB", kilo},
                                                  {"M", kibi* kibi},
                                                  {"MiB", kibi* kibi},
                                                  {"MB", kilo* kilo},
                                                  {"G", kibi* kibi* kibi},
                                                  {"GiB", kibi* kibi* kibi},
                                                  {"GB", kilo* kilo* kilo},
                                                  {"T", kibi* kibi* kibi* kibi},
                                                  {"TiB", kibi* kibi* kibi* kibi},
                                                  {"TB", kilo* kilo* kilo* kilo}}};

template <class Number>
bool parse_whole(std::string_view text, Number& value, int base = 10) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && stop == end && !text.empty();
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const auto refuse = [&] {
    return fail(ErrorKind::invalid_argument, "'{}' is not a size; accepted is {}", text, bytes_accepted);
  };
  const auto [number, unit_name] = split_unit(text);
  const ByteUnit* unit = nullptr;
  for (const ByteUnit& candidate : byte_units) {
    if (equal_ignoring_case(candidate.name, unit_name)) unit = &candidate;
  }
  if (unit == nullptr) return refuse();

  // Whole numbers are exact up to 2^64 - 1; a double would lose the low bits.
  if (std::uint64_t whole = 0; parse_whole(number, whole)) {
    if (whole > std::numeric_limits<std::uint64_t>::max() / unit->bytes) return refuse();
    return whole * unit->bytes;
  }
  const Result<double> fraction = parse_real(number);
  if (!fraction) return refuse();
  const double bytes = std::round(*fraction * static_cast<double>(unit->bytes));
  if (bytes >= 0x1p64) return refuse();
  return static_cast<std::uint64_t>(bytes);
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < kibi) return fmt::format("{} B", bytes);
  constexpr std::array<std::string_view, 6> names = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / static_cast<double>(kibi);
  std::size_t unit = 0;
  // 1023.95 would be printed as "1024.0".
  while (value >= 1023.95 && unit + 1 < names.size()) {
    value /= static_cast<double>(kibi);
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, names[unit]);
}

std::string format_duration(std::chrono::duration<double> duration) {
  const double seconds = duration.count();
  if (!(seconds >= 0)) return "0 s";
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  if (seconds > 1e15) return "very long";
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  const std::uint64_t minutes = (whole + 30) / 60;
  if (minutes < 24 * 60) return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
  const std::uint64_t hours = (minutes + 30) / 60;
  return fmt::format("{} d {:02} h", hours / 24, hours % 24);
}

std::string format_count(std::uint64_t count) {
  const std::string digits = fmt::format("{}", count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(' ');
    text.push_back(digits[i]);
  }
  return text;
}

Result<std::int64_t> parse_integer(std::string_view text) {
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  if (std::int64_t value = 0; parse_whole(digits, value)) return value;
  return fail(ErrorKind::invalid_argument, "'{}' is not a whole number of 64 bits", text);
}

Result<std::uint64_t> parse_key(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  std::uint64_t value = 0;
  if (parse_whole(hexadecimal ? text.substr(2) : text, value, hexadecimal ? 16 : 10)) return value;
  return fail(ErrorKind::invalid_argument, "'{}' is not a number from 0 to 2^64-1, decimal or 0x...", text);
}

Result<double> parse_real(std::string_view text) {
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  const char* end = digits.data() + digits.size();
  double value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error == std::errc() && stop == end && !digits.empty() && std::isfinite(value)) return value;
  return fail(ErrorKind::invalid_argument, "'{}' is not a number", text);
}

Result<bool> parse_flag(std::string_view text) {
  for (const std::string_view yes : {"1", "yes", "true", "on"}) {
    if (equal_ignoring_case(text, yes)) return true;
  }
  for (const std::string_view no : {"0", "no", "false", "off"}) {
    if (equal_ignoring_case(text, no)) return false;
  }
  return fail(ErrorKind::invalid_argument, "'{}' is neither yes (1, yes, true, on) nor no (0, no, false, off)", text);
}

}  // namespace cingulum
