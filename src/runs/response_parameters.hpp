// The members by which requests of fits and of tracking take or estimate the response of CSD: the same names, help and
// checks in both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "dmri/models/response.hpp"
#include "runs/argument.hpp"
#include "runs/request_table.hpp"

namespace cingulum {

struct ResponseParameters {
  Parameter<std::string> response;
  Parameter<double> response_fa;
  Parameter<std::int64_t> response_radius;
  Parameter<std::string> response_centre;
};

// In the order of the members.
[[nodiscard]] std::vector<Argument> response_arguments();

// Where a response is estimated. Beside a given response that means nothing, which is said in the log.
[[nodiscard]] Result<ResponseBox> response_box(const ResponseParameters& parameters);

template <class Request>
void add_response_parameters(std::vector<RequestField<Request>>& rows) {
  const std::vector<Argument> arguments = response_arguments();
  rows.push_back({&Request::response, Phase::field, arguments[0]});
  rows.push_back({&Request::response_fa, Phase::field, arguments[1]});
  rows.push_back({&Request::response_radius, Phase::field, arguments[2]});
  rows.push_back({&Request::response_centre, Phase::field, arguments[3]});
}

}  // namespace cingulum
