// Completion scripts for shells, made from the verbs' data.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace cingulum {

[[nodiscard]] std::string bash_completion(const std::vector<Verb>& verbs);
[[nodiscard]] std::string zsh_completion(const std::vector<Verb>& verbs);
[[nodiscard]] std::string fish_completion(const std::vector<Verb>& verbs);

}  // namespace cingulum
