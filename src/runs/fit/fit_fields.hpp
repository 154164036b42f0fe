// The table of FitRequest: what each member means, wherever it acts.
#pragma once

#include "runs/fit/fit_request.hpp"
#include "runs/request_table.hpp"

namespace cingulum {

// The last one is `device`, which the command line has among its common options.
[[nodiscard]] RequestTable<FitRequest> fit_fields();

}  // namespace cingulum
