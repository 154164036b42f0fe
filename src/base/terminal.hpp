// What a terminal shows: whether a descriptor is one, how wide it is, how many columns a text takes, and texts made
// safe to print. Used by the log, the progress bar, help and tables. It does not write anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cingulum {

[[nodiscard]] bool is_terminal(int descriptor) noexcept;

// Columns of the terminal, else of the variable COLUMNS, else `fallback`.
[[nodiscard]] std::size_t terminal_width(int descriptor, std::size_t fallback = 80) noexcept;

// Columns that a UTF-8 text takes: combining marks take none, East Asian wide characters and emoji two. Invalid bytes
// take one each. Enough for tables and bars, not a replacement of wcwidth for every script.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

// The longest beginning of `text` that takes at most `columns`; whole characters only.
[[nodiscard]] std::string_view truncate_to_width(std::string_view text, std::size_t columns) noexcept;

// Control characters (other than newline and tab) as \x1b: a file name must not command the terminal.
[[nodiscard]] std::string escape_control_characters(std::string_view text);

}  // namespace cingulum
