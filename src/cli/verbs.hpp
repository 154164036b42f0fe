// The verbs of the program, in the order in which help lists them.
#pragma once

#include <vector>

#include "cli/verb.hpp"

namespace cingulum {

[[nodiscard]] std::vector<Verb> all_verbs();

}  // namespace cingulum
