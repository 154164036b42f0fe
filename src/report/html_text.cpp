#include "report/html_text.hpp"

#include <fmt/format.h>

namespace cingulum {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

// The length of the UTF-8 character at the beginning of `text`, or 0 where there is none (overlong forms, surrogates
// and what lies beyond U+10FFFF are none).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) {
      escaped += replacement;
      text.remove_prefix(1);
      continue;
    }
    const std::string_view character = text.substr(0, length);
    text.remove_prefix(length);
    const char first = character.front();
    // C1 controls are two bytes: c2 80 to c2 9f.
    const bool control = length == 1 ? (static_cast<unsigned char>(first) < 0x20 || first == 0x7f)
                                     : character >= "\xc2\x80" && character <= "\xc2\x9f";
    if (control) {
      escaped += first == '\n' || first == '\t' || first == '\r' ? std::string_view(" ") : replacement;
    } else if (first == '&') {
      escaped += "&amp;";
    } else if (first == '<') {
      escaped += "&lt;";
    } else if (first == '>') {
      escaped += "&gt;";
    } else if (first == '"') {
      escaped += "&quot;";
    } else if (first == '\'') {
      escaped += "&#39;";
    } else {
      escaped += character;
    }
  }
  return escaped;
}

std::string html_count(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += "\xe2\x80\xaf";  // U+202F
    text += digits[i];
  }
  return text;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace cingulum
