// The models of `cingulum fit`: each fits what was read and writes its maps into the folder.
#pragma once

#include "base/result.hpp"
#include "runs/fit/fit_input.hpp"

namespace cingulum {

// Fits input.model, by one of the following.
[[nodiscard]] Status fit_model(FitRun& run, const FitInput& input);

[[nodiscard]] Status fit_dti(FitRun& run, const FitInput& input);

[[nodiscard]] Status fit_opdt_or_csa(FitRun& run, const FitInput& input);

// Constrained spherical deconvolution.
[[nodiscard]] Status fit_constrained(FitRun& run, const FitInput& input);

}  // namespace cingulum
