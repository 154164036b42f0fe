// One value of one argument: from the text that the user wrote to the typed, range-checked value, and the words that
// say what is accepted. Used by the command line; help and docs show the same words.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/verb.hpp"

namespace cingulum {

// "--step-size" or, for a positional argument, "INPUT".
[[nodiscard]] std::string shown_name(const Argument& argument);

// The metavar, or the one of the type: FILE, N, X, LENGTH, ...; empty for a flag.
[[nodiscard]] std::string shown_metavar(const Argument& argument);

// "a whole number from 1 to 4096", "a length such as 1mm or 0.5vox, more than 0": empty when anything goes.
[[nodiscard]] std::string accepted_text(const Argument& argument);

// Fails with the name of the argument, the value and what is accepted. Does not look at the file system.
[[nodiscard]] Result<ParsedArguments::Value> parse_value(const Argument& argument, std::string_view text);

}  // namespace cingulum
