// The arguments of `cingulum track` as data. Called by track.cpp.
#pragma once

#include <vector>

#include "cli/verb.hpp"

namespace cingulum {

[[nodiscard]] std::vector<Argument> track_arguments();

}  // namespace cingulum
