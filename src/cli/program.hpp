// The program without its process: words in; text, talk and an exit code out. main() connects it to stdout, stderr and
// the environment, tests to strings.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "cli/verb.hpp"

namespace cingulum {

struct Program {
  std::vector<Verb> verbs;
  Settings settings;
  VerbContext::Output output;        // results
  std::size_t output_width = 80;     // for help
  Log& log;                          // talk
  std::function<void()> leave = {};  // VerbContext::leave_process
};

// The exit code. Nothing is thrown; every failure is printed once, as "cingulum VERB: message".
[[nodiscard]] int run_program(Program& program, std::span<const std::string> words) noexcept;

}  // namespace cingulum
