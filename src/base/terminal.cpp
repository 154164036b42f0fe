#include "base/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <system_error>

namespace cingulum {
namespace {

struct Character {
  std::uint32_t code;
  std::size_t bytes;
};

// The first character of a text that is not empty; an invalid byte is a character of its own.
Character first_character(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = lead < 0x80                   ? 1
                            : lead >= 0xc2 && lead < 0xe0 ? 2
                            : lead >= 0xe0 && lead < 0xf0 ? 3
                            : lead >= 0xf0 && lead < 0xf5 ? 4
                                                          : 1;
  if (bytes == 1 || text.size() < bytes) return {lead, 1};
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80U) return {lead, 1};
    code = (code << 6U) | (next & 0x3fU);
  }
  return {code, bytes};
}

std::size_t character_width(std::uint32_t code) noexcept {
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
  };
  // Combining marks, zero-width characters, variation selectors.
  constexpr Range none[] = {{0x300, 0x36f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
                            {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
  // East Asian wide and full-width blocks, emoji.
  constexpr Range two[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},
                           {0xf900, 0xfaff},   {0xfe30, 0xfe4f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
                           {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
  for (const Range& range : none) {
    if (code >= range.first && code <= range.last) return 0;
  }
  for (const Range& range : two) {
    if (code >= range.first && code <= range.last) return 2;
  }
  return 1;
}

}  // namespace

bool is_terminal(int descriptor) noexcept {
  return ::isatty(descriptor) == 1;
}

std::size_t terminal_width(int descriptor, std::size_t fallback) noexcept {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* columns = std::getenv("COLUMNS")) {
    const std::string_view text = columns;
    std::size_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && stop == text.data() + text.size() && value >= 20 && value <= 10000) return value;
  }
  return fallback;
}

std::size_t display_width(std::string_view text) noexcept {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    width += character_width(character.code);
    text.remove_prefix(character.bytes);
  }
  return width;
}

std::string_view truncate_to_width(std::string_view text, std::size_t columns) noexcept {
  std::size_t width = 0;
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Character character = first_character(text.substr(bytes));
    width += character_width(character.code);
    if (width > columns) break;
    bytes += character.bytes;
  }
  return text.substr(0, bytes);
}

std::string escape_control_characters(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
      safe += fmt::format("\\x{:02x}", byte);
    } else {
      safe.push_back(c);
    }
  }
  return safe;
}

}  // namespace cingulum
