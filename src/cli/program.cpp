#include "cli/program.hpp"

#include <algorithm>
#include <exception>

#include "base/edit_distance.hpp"
#include "base/interrupt.hpp"
#include "base/option_name.hpp"
#include "base/version.hpp"
#include "cli/command_line.hpp"
#include "cli/help.hpp"

namespace cingulum {
namespace {

enum ExitStatus : int { done = 0, failed = 1, misused = 2 };

int exit_code_of(const Error& error) {
  if (error.kind() == ErrorKind::interrupted) return interrupted_exit_code;
  return error.kind() == ErrorKind::invalid_argument ? misused : failed;
}

Status prepare_log(Log& log, const Verb& verb, const CommonValues& common, const Settings& settings) {
  if (common.quiet) {
    log.set_level(LogLevel::error);
  } else if (common.verbose) {
    log.set_level(LogLevel::debug);
  } else if (const Result<LogLevel> level = settings.log_level()) {
    log.set_level(*level);
  } else if (verb.needs_settings) {
    return tl::make_unexpected(level.error());
  }
  return {};
}

Status run_verb(Program& program, const Verb& verb, std::span<const std::string> words) {
  CGL_TRY_ASSIGN(const ParsedArguments arguments, parse_command_line(verb, words));
  if (verb.needs_settings) CGL_TRY(program.settings.check());
  CGL_TRY_ASSIGN(CommonValues common, common_values(verb, arguments, program.settings));
  CGL_TRY(prepare_log(program.log, verb, common, program.settings));
  for (const std::string& warning : program.settings.warnings()) program.log.write(LogLevel::warning, warning);
  VerbContext context(program.verbs, program.settings, std::move(common), program.output, program.output_width,
                      program.log);
  context.set_leave(program.leave);
  return verb.run(arguments, context);
}

// Words that begin with an option instead of a verb.
Status run_without_verb(Program& program, std::span<const std::string> words) {
  const std::string& first = words.front();
  if (first == "--help" || first == "-h") {
    program.output(overview_text(program.verbs, program.output_width));
    return {};
  }
  if (first == "--version") {
    const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
    program.output(json ? version_json() : version_text());
    return {};
  }
  const std::string suggestion = did_you_mean(first, std::vector<std::string>{"--help", "--version"});
  return fail(ErrorKind::invalid_argument, "unknown option '{}'{}", first,
              suggestion.empty() ? "; options follow a verb, see 'cingulum --help'" : suggestion);
}

Status run_words(Program& program, std::span<const std::string> words) {
  if (words.front().starts_with('-')) return run_without_verb(program, words);
  CGL_TRY_ASSIGN(const Verb* verb, find_verb(program.verbs, words.front()));
  program.log.set_prefix("cingulum " + verb->name);
  if (asks_for_help(words.subspan(1))) {
    program.output(verb_help_text(verb_of_action(*verb, words.subspan(1)), program.output_width));
    return {};
  }
  return run_verb(program, *verb, words.subspan(1));
}

// A last net: exceptions do not cross functions by design, but a library may throw what nobody expected.
Status run_guarded(Program& program, std::span<const std::string> words) {
  try {
    return run_words(program, words);
  } catch (const std::bad_alloc&) {
    return tl::make_unexpected(Error(ErrorKind::out_of_memory, "out of memory"));
  } catch (const std::exception& exception) {
    return fail(ErrorKind::invalid_state, "internal error, please report it: {}", exception.what());
  }
}

// With the arguments spelled as options; plainly where there is no memory for that.
void print_error(Log& log, const Error& error) noexcept {
  try {
    log.write(LogLevel::error, error.marked_message());
  } catch (const std::bad_alloc&) {
    log.write(LogLevel::error, error.message());
  }
}

}  // namespace

int run_program(Program& program, std::span<const std::string> words) noexcept {
  try {
    program.log.set_prefix("cingulum");
    program.log.set_argument_naming(option_name);
    if (words.empty()) {
      program.log.stream().write_line(overview_text(program.verbs, program.output_width));
      return misused;
    }
    const Status status = run_guarded(program, words);
    if (status) return done;
    print_error(program.log, status.error());
    return exit_code_of(status.error());
  } catch (...) {
    program.log.write(LogLevel::error, "out of memory");
    return failed;
  }
}

}  // namespace cingulum
