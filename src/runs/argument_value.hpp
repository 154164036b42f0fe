// Values of one argument: from the text that the user wrote to the typed, range-checked value and back, and the words
// that say what is accepted. Used by the command line and by tables of requests; help and docs show the same words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runs/argument.hpp"

namespace cingulum {

// "--step-size" or, for a positional argument, "INPUT".
[[nodiscard]] std::string shown_name(const Argument& argument);

// The metavar, or the one of the type: FILE, N, X, LENGTH, ...; empty for a flag.
[[nodiscard]] std::string shown_metavar(const Argument& argument);

// "a whole number from 1 to 4096", "a length such as 1mm or 0.5vox, more than 0": empty when anything goes.
[[nodiscard]] std::string accepted_text(const Argument& argument);

// "stitch, run: weights where tiles overlap": the help, behind the actions that take it, where they are a few.
[[nodiscard]] std::string help_with_actions(const Argument& argument);

// Fails with the name of the argument, the value and what is accepted. Does not look at the file system.
[[nodiscard]] Result<ArgumentValue> parse_value(const Argument& argument, std::string_view text);

// All values of an argument: several where it is repeatable, one otherwise. A flag is on unless its text is "false".
[[nodiscard]] Result<std::vector<ArgumentValue>> values_of_texts(const Argument& argument,
                                                                 std::span<const std::string> texts);

// The text that parse_value() reads as the same value.
[[nodiscard]] std::string text_of_value(const ArgumentValue& value);

// Whether an argument that a caller names is there (null: it is not), and is given a value unless it is a flag.
[[nodiscard]] Status check_named_argument(const Argument* known, const ArgumentText& named);

// Whether the files that an argument names may be read, or written where `force` replaces outputs.
[[nodiscard]] Status check_named_files(const Argument& argument, std::span<const std::string> texts, bool force);

}  // namespace cingulum
