// The command line's spelling of arguments: what is called `max_angle` in the library is `--max-angle` there, and on
// pages of the viewer. Whatever prints a text of the library (an error, a warning, the meaning of a setting) at these
// edges passes it through here; the log does it by itself, since run_program sets its naming.
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
