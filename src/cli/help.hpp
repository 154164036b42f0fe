// The texts of --help, made from the verbs' data and wrapped to a width.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/verb.hpp"

namespace cingulum {

[[nodiscard]] std::string overview_text(const std::vector<Verb>& verbs, std::size_t width);
[[nodiscard]] std::string verb_help_text(const Verb& verb, std::size_t width);

// The part of a verb with several actions that belongs to the one which the words name; the whole verb where they name
// none.
[[nodiscard]] Verb verb_of_action(const Verb& verb, std::span<const std::string> words);

// "cingulum docs [options] FOLDER"
[[nodiscard]] std::string usage_line(const Verb& verb);

// "-o, --out FILE"
[[nodiscard]] std::string option_label(const Argument& argument);

// An unknown name is an error that suggests the nearest.
[[nodiscard]] Result<const Verb*> find_verb(const std::vector<Verb>& verbs, std::string_view name);

// The numbers that the program ends with, and what each means.
struct ExitCode {
  int code;
  std::string_view meaning;
};
[[nodiscard]] const std::vector<ExitCode>& exit_codes();

}  // namespace cingulum
