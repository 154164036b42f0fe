// The input of a fit: the request becomes one of dmri/series/dwi_series.hpp, and the series what the models take, in
// the frame of the output; and what a fit keeps while it runs. Called by fit_run.cpp and fit_models.cpp.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/option_name.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/models/fit_folder.hpp"
#include "dmri/series/dwi_series.hpp"
#include "dmri/series/volume_selection.hpp"
#include "numerics/vec3.hpp"
#include "runs/fit/fit_request.hpp"
#include "runs/machine.hpp"
#include "runs/wanted_devices.hpp"

namespace cingulum {

// What every model has been given: read, checked, and in the frame of the output.
struct FitInput {
  std::string model;
  bool world = false;  // frame of directions, coefficients, tensors and peaks
  DwiSignals signals;  // of the volumes of `selection`
  VolumeSelection selection;
  std::vector<numerics::Vec3d> image_directions;  // per volume of `signals`, image axes
  std::vector<numerics::Vec3d> directions;        // the same in the output's frame
};

// Everything that a fit keeps while it runs.
struct FitRun {
  const FitRequest& request;
  RunMachine& machine;
  ThreadPool& pool;
  FitMaps& maps;
  std::optional<WantedDevices> wanted;     // absent: the CPU; outlives `device`
  std::unique_ptr<FitDevice> device = {};  // where models are fitted, once the series is read; null: on the pool
  nlohmann::ordered_json parameters = nlohmann::ordered_json::object();
  nlohmann::ordered_json results = nlohmann::ordered_json::object();
  std::vector<std::string> warnings = {};
  std::optional<BrainMask> made_mask = {};  // written with the results

  [[nodiscard]] FitMachine fitting() const { return {pool, device.get(), machine.cancel()}; }
  void warn(std::string text) {
    log_warning("{}", text);
    warnings.push_back(with_option_names(text));
  }
};

// The request of the fit.json that `from` names, with what is given over it; its inputs are those of the run.
[[nodiscard]] Result<FitRequest> repeated_fit(const FitRequest& given);

[[nodiscard]] Result<FitInput> read_fit_input(FitRun& run);

// Writes what the folder says of all its files: parameters, inputs, warnings; and the mask where one was made. Called
// once the parameters are known and before the first map.
[[nodiscard]] Status describe_fit(FitRun& run, const FitInput& input);

}  // namespace cingulum
