// The options by which `cingulum fit` and `track` take or estimate the response of CSD: the same names, help and checks
// in both.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "cli/verb.hpp"
#include "dmri/models/response.hpp"

namespace cingulum {

[[nodiscard]] std::vector<Argument> response_arguments();

// Where a response is estimated, as the options say. Beside --response they mean nothing, which is said in the log.
[[nodiscard]] Result<ResponseBox> response_box(const ParsedArguments& arguments);

}  // namespace cingulum
