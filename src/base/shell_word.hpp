// Words of the commands that are shown to users, who may give them to a shell.
#pragma once

#include <string>
#include <string_view>

namespace cingulum {

// The word as a POSIX shell takes it, quoted where it must be.
[[nodiscard]] std::string shell_word(std::string_view word);

}  // namespace cingulum
