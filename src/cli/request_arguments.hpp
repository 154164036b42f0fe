// A request from the arguments of a verb that has its table: typed values go over as they were parsed, with what was
// given and what is a default. Called by the verbs that run requests.
#pragma once

#include "cli/verb.hpp"
#include "runs/request_table.hpp"

namespace cingulum {

template <class Request, class LeftOut>
[[nodiscard]] Request request_of_arguments(RequestTable<Request> table, const ParsedArguments& arguments,
                                           LeftOut&& left_out) {
  Request request;
  for (const RequestField<Request>& field : table) {
    if (left_out(field)) continue;
    field.set(request, arguments.values(field.argument.name), arguments.given(field.argument.name));
  }
  return request;
}
template <class Request>
[[nodiscard]] Request request_of_arguments(RequestTable<Request> table, const ParsedArguments& arguments) {
  return request_of_arguments(table, arguments, [](const RequestField<Request>&) { return false; });
}

// The arguments of a verb for all fields of a request but `left_out`, which it has among its common ones.
template <class Request, class LeftOut>
[[nodiscard]] std::vector<Argument> arguments_of_table(RequestTable<Request> table, LeftOut&& left_out) {
  std::vector<Argument> arguments;
  for (const RequestField<Request>& field : table) {
    if (!left_out(field)) arguments.push_back(field.argument);
  }
  return arguments;
}

}  // namespace cingulum
