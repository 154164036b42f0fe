// Requests of the library from what Python gives: keywords as arguments in text (cingulum/_options.py, given_of),
// arrays in the place of files, and the machine that runs them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/settings.hpp"
#include "job.hpp"
#include "runs/given_arrays.hpp"
#include "runs/machine.hpp"
#include "runs/request_table.hpp"

namespace cingulum::python {

// Name, texts, whether it is a flag.
using GivenArgument = std::tuple<std::string, std::vector<std::string>, bool>;
[[nodiscard]] std::vector<ArgumentText> argument_texts(const std::vector<GivenArgument>& given);

// From a dict of Python: what is there of series, bvals, bvecs, bvec_frame, affine, sf, sh, peaks, tensor, mask,
// seed_mask, stop_map, seeds, directions, sphere. The arrays of the dict outlive the result. With the GIL.
struct TakenArrays {
  nb::dict kept;  // keeps the arrays, and so ends after what reads them
  GivenArrays arrays;
  std::vector<std::string> options;  // arguments that have an array
};
[[nodiscard]] TakenArrays take_arrays(const nb::dict& from);

// The machine of a run, from the environment and from what was given of it, which is taken out of the list: `threads`,
// `force`.
struct PythonMachine {
  Settings settings = Settings::from_variables({});
  std::unique_ptr<RunMachine> machine;

  [[nodiscard]] Status open(std::vector<ArgumentText>& given);
};

// What was given, with the arrays of `taken` in the place of files.
template <class Request>
[[nodiscard]] Status fill_request(RequestTable<Request> table, std::span<const ArgumentText> given,
                                  const std::vector<std::string>& of_arrays, Request& request) {
  CGL_TRY(set_given(table, given, request));
  for (const std::string& name : of_arrays) {
    const RequestField<Request>* const field = find_field(table, name);
    if (field == nullptr) return fail(ErrorKind::invalid_state, "there is no argument '{}' for an array", name);
    field->set(request, {std::string(in_memory)}, true);
  }
  return {};
}

}  // namespace cingulum::python
