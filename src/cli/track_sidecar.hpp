// The options of `cingulum track` as text for the sidecar, and back: what `--from` repeats. Called by track.cpp.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/given_arrays.hpp"
#include "cli/verb.hpp"

namespace cingulum {

// Every option that the result depends on: name -> text, list of texts, or true; and which of them the user gave.
[[nodiscard]] nlohmann::ordered_json options_for_sidecar(const Verb& verb, const ParsedArguments& arguments);
// The same of these arguments alone.
[[nodiscard]] nlohmann::ordered_json options_for_sidecar(std::span<const Argument> known,
                                                         const ParsedArguments& arguments);

// The options of a sidecar, with those of the command line over them. Files with relative names are looked for in the
// folder of the run when they are not in the present one, and must have the hash that the sidecar has.
[[nodiscard]] Result<ParsedArguments> arguments_from_sidecar(const Verb& verb, const std::filesystem::path& sidecar,
                                                             const ParsedArguments& given);

// The same of the member `arguments` of a sidecar that is elsewhere, `where`; files are neither looked for nor
// compared.
[[nodiscard]] Result<ParsedArguments> arguments_of_run(const Verb& verb, const nlohmann::ordered_json& sidecar,
                                                       const std::filesystem::path& where,
                                                       const ParsedArguments& command_line);

// A file that the result depends on though no option names it: b-values found beside the series.
struct FoundInput {
  std::string option;
  std::filesystem::path path;
};

// The files and arrays that the result depends on, by option: {"option", "path", "xxh3_128"} each. Those among `known`
// are not read again.
[[nodiscard]] Result<nlohmann::ordered_json> input_facts(const Verb& verb, const ParsedArguments& arguments,
                                                         const GivenArrays& arrays,
                                                         const std::vector<FoundInput>& found,
                                                         const nlohmann::ordered_json& known);

// A repeated run without data must find the phantom that it had: `hash` is that of `dwi`.
[[nodiscard]] Status check_repeated_phantom(const ParsedArguments& command_line, const std::filesystem::path& dwi,
                                            const std::string& hash);

}  // namespace cingulum
