// What a run of `track` or `fit` in memory keeps of the command line: the verb with its table of options, the settings,
// the arguments, and the context with its pool of threads.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "cli/command_line.hpp"
#include "cli/given_arrays.hpp"
#include "cli/help.hpp"
#include "cli/verb.hpp"
#include "cli/verbs.hpp"
#include "job.hpp"

namespace cingulum::python {

// The arguments of words, and of those that have an array (`of_arrays`), which are given.
[[nodiscard]] inline Result<ParsedArguments> parse_with_arrays(Verb verb, const std::vector<std::string>& words,
                                                               const std::vector<std::string>& of_arrays,
                                                               const std::vector<std::string>& not_required) {
  const auto is_in = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (Argument& argument : verb.arguments) {
    if (is_in(of_arrays, argument.name) || is_in(not_required, argument.name)) argument.required = false;
  }
  CGL_TRY_ASSIGN(ParsedArguments arguments, parse_command_line(verb, words));
  for (const std::string& name : of_arrays) arguments.set(name, {std::string(in_memory)}, true);
  return arguments;
}

struct VerbRun {
  std::vector<Verb> verbs;
  const Verb* verb = nullptr;
  Settings settings = Settings::from_variables({});
  ParsedArguments arguments;
  std::unique_ptr<VerbContext> context;

  [[nodiscard]] Status open(const std::string& name, const std::vector<std::string>& words,
                            const std::vector<std::string>& of_arrays, const std::vector<std::string>& not_required) {
    verbs = all_verbs();
    CGL_TRY_ASSIGN(verb, find_verb(verbs, name));
    CGL_TRY_ASSIGN(settings, Settings::from_environment());
    CGL_TRY(settings.check());
    CGL_TRY_ASSIGN(arguments, parse_with_arrays(*verb, words, of_arrays, not_required));
    CGL_TRY_ASSIGN(CommonValues common, common_values(*verb, arguments, settings));
    context = std::make_unique<VerbContext>(
        verbs, settings, std::move(common), [](std::string_view) {}, 80, Log::standard());
    return {};
  }
};

// From a dict of Python: what is there of series, bvals, bvecs, bvec_frame, affine, sf, sh, peaks, tensor, mask,
// seed_mask, stop_map, seeds, directions, sphere. The arrays of the dict outlive the result. With the GIL.
struct TakenArrays {
  nb::dict kept;  // keeps the arrays, and so ends after what reads them
  GivenArrays arrays;
  std::vector<std::string> options;  // that have an array
};
[[nodiscard]] TakenArrays take_arrays(const nb::dict& from);

}  // namespace cingulum::python
