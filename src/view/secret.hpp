// Secrets of the viewer's server: the key of its link and the value of its cookie.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cingulum::view {

// 192 bits of the operating system's generator as 48 hexadecimal digits.
[[nodiscard]] Result<std::string> make_secret();

// Takes as long for a text that differs in its first letter as for one that differs in its last.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b);

}  // namespace cingulum::view
