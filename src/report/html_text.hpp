// Escapes text for a page: every name, path, parameter and message goes through here, whatever bytes it is made of.
// Also numbers as people read them. Used by the charts and the page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cingulum {

// & < > " ' escaped; bytes that are not UTF-8 and control characters become U+FFFD (line ends and tabs a blank). Fits
// element content and quoted attributes.
[[nodiscard]] std::string html_text(std::string_view text);

// "12 345", with narrow no-break spaces.
[[nodiscard]] std::string html_count(std::uint64_t count);

// A share as "12.3 %".
[[nodiscard]] std::string percent(double share);

}  // namespace cingulum
