// The call "fit this": fit(request, machine) does all of `cingulum fit`, into the folder that the request names or into
// maps of the caller. Used by the command line, Python and C++ programs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "dmri/models/fit_folder.hpp"
#include "runs/fit/fit_request.hpp"
#include "runs/machine.hpp"

namespace cingulum {

struct FitOutcome {
  std::filesystem::path folder;  // empty: none
  std::string model;
  std::size_t voxels = 0;
  nlohmann::ordered_json parameters;
  nlohmann::ordered_json results;
  nlohmann::ordered_json run;    // device, threads, times: what may differ between equal fits
  nlohmann::ordered_json files;  // of the folder: {"file", "meaning"} each
  std::vector<std::string> warnings;
};

// Into the folder `out`.
[[nodiscard]] Result<FitOutcome> fit(FitRequest request, RunMachine& machine);

// Into maps that the caller makes, and that outlive the call. They are given the folder `out` where the request has one
// (else null), and hand on to it what is to be written.
using MakeMaps = std::function<FitMaps&(FitFolder* folder)>;
[[nodiscard]] Result<FitOutcome> fit(FitRequest request, RunMachine& machine, const MakeMaps& make_maps);

}  // namespace cingulum
