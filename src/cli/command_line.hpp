// From the words behind a verb to checked values. CLI11 splits the words into options and values; types, ranges, files
// and suggestions are checked here against the verb's data, so that every message has the same form. Python names the
// arguments of a verb themselves, which then need no splitting.
#pragma once

#include <span>
#include <string>

#include "base/result.hpp"
#include "cli/verb.hpp"

namespace cingulum {

// True when the words ask for help (--help or -h before a "--"): help is given whatever else they say.
[[nodiscard]] bool asks_for_help(std::span<const std::string> words);

// Every failure is of kind invalid_argument: the command line has to be written differently.
[[nodiscard]] Result<ParsedArguments> parse_command_line(const Verb& verb, std::span<const std::string> words);

// The same of arguments that are named, each at most once.
[[nodiscard]] Result<ParsedArguments> parse_named_arguments(const Verb& verb, std::span<const ArgumentText> named);

// The common options of a parsed command line, with the settings where an option was not given.
[[nodiscard]] Result<CommonValues> common_values(const Verb& verb, const ParsedArguments& arguments,
                                                 const Settings& settings);

}  // namespace cingulum
