// What a fit is asked to do: the series, the model and its parameters, what is written and where. A plain struct: fill
// in what matters and give it to fit() (fit_run.hpp); what stays out has the defaults of `cingulum fit`. What each
// member means, with unit, range and default, says the table of fit_fields.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runs/given_arrays.hpp"
#include "runs/parameter.hpp"
#include "runs/response_parameters.hpp"

namespace cingulum {

struct FitRequest : ResponseParameters {
  Parameter<std::string> dwi;
  Parameter<std::string> bvals;
  Parameter<std::string> bvecs;
  Parameter<std::string> grad;
  Parameter<std::string> bvec_frame;
  Parameter<std::string> mask;
  Parameter<std::string> model;
  Parameter<std::string> out;
  Parameter<double> b0_threshold;
  Parameter<double> shell;
  Parameter<std::int64_t> sh_order;
  Parameter<std::string> sh_basis;
  Parameter<std::string> frame;
  Parameter<std::string> min_signal;
  Parameter<double> sm_lambda;
  Parameter<double> csd_lambda;
  Parameter<double> csd_tau;
  Parameter<std::int64_t> csd_iterations;
  Parameter<std::string> csd_sphere;
  Parameter<std::string> sphere;
  Parameter<bool> full_sphere;
  Parameter<bool> odf;
  Parameter<bool> keep_negative;
  Parameter<std::int64_t> peaks;
  Parameter<double> relative_peak_threshold;
  Parameter<double> min_separation_angle;
  Parameter<std::string> fit_method;
  Parameter<std::string> tensor_order;
  Parameter<std::string> from;
  Parameter<std::vector<std::string>> device;  // one

  // What a caller has in memory in the place of files. A parameter that has its array here is given, as `in_memory`.
  GivenArrays arrays;
};

}  // namespace cingulum
