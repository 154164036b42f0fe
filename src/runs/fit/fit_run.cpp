#include "runs/fit/fit_run.hpp"

#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include "base/elapsed.hpp"
#include "formats/sidecar.hpp"
#include "runs/fit/fit_fields.hpp"
#include "runs/fit/fit_input.hpp"
#include "runs/fit/fit_models.hpp"
#include "runs/wanted_devices.hpp"

namespace cingulum {

namespace fs = std::filesystem;

namespace {

// The device of a fit is opened while the series is read. Absent: the CPU's threads fit.
Result<std::optional<WantedDevices>> begin_to_open(const FitRequest& request, const RunMachine& machine) {
  CGL_TRY_ASSIGN(const std::vector<std::string> names, wanted_device_names(request.device, machine));
  if (names.size() != 1) {
    return fail(ErrorKind::invalid_argument, "{} {}: a fit runs on one device; name one", argument_name("device"),
                fmt::join(names, ","));
  }
  const std::string& name = names.front();
  if (name == "cpu" || name == "numba") return std::nullopt;
  const bool webgpu = name != "auto";  // it does not fit
  return WantedDevices::begin(name, 1, machine, webgpu);
}

}  // namespace

Result<FitOutcome> fit(FitRequest request, RunMachine& machine) {
  if (!request.out.given()) {
    return fail_argument("out", "{} is missing: name the folder of the fit", argument_name("out"));
  }
  return fit(std::move(request), machine, [](FitFolder* folder) -> FitMaps& { return *folder; });
}

Result<FitOutcome> fit(FitRequest request, RunMachine& machine, const MakeMaps& make_maps) {
  const auto start = std::chrono::steady_clock::now();
  if (request.from.given()) {
    CGL_TRY_ASSIGN(request, repeated_fit(request));
  }
  CGL_TRY(fill_in_defaults(fit_fields(), request));
  if (!request.dwi.given()) return fail_argument("dwi", "{} is missing: name a series", argument_name("dwi"));
  if (!request.model.has()) {
    return fail_argument("model", "{} is missing: one of dti, opdt, csa, csd", argument_name("model"));
  }
  CGL_TRY_ASSIGN(ThreadPool* const pool, machine.pool());
  CGL_TRY_ASSIGN(std::optional<WantedDevices> wanted, begin_to_open(request, machine));
  std::optional<FitFolder> folder;
  if (request.out.given()) {
    CGL_TRY_ASSIGN(folder, FitFolder::create(request.out.value(), machine.write_options()));
  }
  FitRun run = {.request = request,
                .machine = machine,
                .pool = *pool,
                .maps = make_maps(folder ? &*folder : nullptr),
                .wanted = std::move(wanted)};
  CGL_TRY_ASSIGN(const FitInput input, read_fit_input(run));
  CGL_TRY(fit_model(run, input));
  FitOutcome outcome;
  outcome.run = run_facts(machine.threads(), seconds_since(start));
  outcome.run["device"] = run.device ? run.device->name() : "cpu";
  std::error_code ignored;
  outcome.run["folder"] = fs::current_path(ignored).string();
  if (folder) {
    CGL_TRY(folder->finish(run.results, outcome.run));
    outcome.folder = folder->path();
    outcome.files = folder->files();
  }
  outcome.model = input.model;
  outcome.voxels = input.signals.voxels.size();
  outcome.parameters = std::move(run.parameters);
  outcome.results = std::move(run.results);
  outcome.warnings = std::move(run.warnings);
  return outcome;
}

}  // namespace cingulum
