// The table of OctRequest: what each member means, wherever it acts, and which actions of `cingulum oct` take it.
#pragma once

#include "runs/oct/oct_request.hpp"
#include "runs/request_table.hpp"

namespace cingulum {

// The first one is `tiles`, for which the command line has the inputs of any action; the last one is `device`, which it
// has among its common options.
[[nodiscard]] RequestTable<OctRequest> oct_fields();

}  // namespace cingulum
