// The command line's spelling of arguments: what is called `max_angle` below cli/ is `--max-angle` here. Whatever
// prints a text that came from below (an error, a warning, the meaning of a setting) passes it through here; the log
// does it by itself, since run_program tells it to.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cingulum {

// "max_angle" -> "--max-angle"
[[nodiscard]] std::string option_name(std::string_view argument);
[[nodiscard]] inline std::string with_option_names(std::string_view marked) {
  return spell_argument_names(marked, option_name);
}
[[nodiscard]] inline std::string with_option_names(const Error& error) {
  return error.message_for(option_name);
}

}  // namespace cingulum
