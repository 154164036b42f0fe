// The arguments of `cingulum fit` as data. Called by fit.cpp.
#pragma once

#include <vector>

#include "cli/verb.hpp"

namespace cingulum {

[[nodiscard]] std::vector<Argument> fit_arguments();

}  // namespace cingulum
