#include "runs/fit/fit_input.hpp"

#include <utility>

#include "base/json_fields.hpp"
#include "base/quantity.hpp"
#include "dmri/series/signal_floor.hpp"
#include "formats/sidecar.hpp"
#include "runs/fit/fit_fields.hpp"
#include "runs/stored_request.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Result<SeriesFiles> series_files(const FitRequest& request) {
  const auto path = [](const Parameter<std::string>& file) {
    return file.given() ? fs::path(file.value()) : fs::path();
  };
  SeriesFiles files = {.dwi = request.dwi.value(),
                       .bvals = path(request.bvals),
                       .bvecs = path(request.bvecs),
                       .grad = path(request.grad),
                       .mask = path(request.mask)};
  const bool pair = !files.bvals.empty() || !files.bvecs.empty();
  if (!files.grad.empty() && pair) {
    return fail(ErrorKind::invalid_argument, "{} already holds b-values and vectors; leave {} and {} out",
                argument_name("grad"), argument_name("bvals"), argument_name("bvecs"));
  }
  if (files.grad.empty() && (files.bvals.empty() || files.bvecs.empty())) {
    return fail(ErrorKind::invalid_argument, "gradients are missing: give {} and {}, or {}", argument_name("bvals"),
                argument_name("bvecs"), argument_name("grad"));
  }
  return files;
}

// Waits until the device is open, and fails where it cannot fit; `auto` takes CUDA where it is there.
Status find_device(FitRun& run) {
  if (!run.wanted) return {};
  if (run.wanted->is_auto()) {
    CGL_TRY_ASSIGN(run.device, run.wanted->fitting_device("the CPU fits"));
    if (run.device) log_info("{} auto: fitting on {}", argument_name("device"), run.device->name());
    return {};
  }
  CGL_TRY_ASSIGN(const DeviceRegistry* const registry, run.wanted->registry());
  auto made = registry->select_one(run.wanted->names()).and_then([](Device* one) { return make_fit_device(*one); });
  CGL_TRY_ASSIGN(run.device, add_context(std::move(made), "{} {}", argument_name("device"), run.wanted->names()));
  return {};
}

Result<SettledSeries> settled_series(FitRun& run, const SeriesFiles& files, const SeriesHead& head,
                                     const SeriesRequest& wanted) {
  const GivenArrays& arrays = run.request.arrays;
  const auto find_machine = [&]() -> Result<FitMachine> {
    CGL_TRY(find_device(run));
    return run.fitting();
  };
  if (!arrays.head) return read_series(files, head, wanted, run.pool, run.machine.cancel(), find_machine);
  std::vector<std::uint8_t> mask = arrays.mask.value_or(std::vector<std::uint8_t>());
  if (mask.empty() && !files.mask.empty()) {
    CGL_TRY_ASSIGN(mask, read_mask_on(files.mask, "the mask", {head.geometry, "the series", head.oriented}));
  }
  CGL_TRY_ASSIGN(const FitMachine machine, find_machine());
  return series_of_arrays(head, arrays.series, mask, wanted, machine);
}

void say_of_frame(FitRun& run, const SettledFrame& settled, GradientFrame of_format) {
  if (!settled.not_checked.empty()) log_debug("no gradient check: {}", settled.not_checked);
  if (!settled.check) return;
  const GradientCheck& check = *settled.check;
  run.parameters["gradient_check"] = {{"verdict", gradient_verdict_name(check.verdict)},
                                      {"voxels", check.voxels},
                                      {"message", with_option_names(check.message)}};
  if (check.verdict != GradientVerdict::another_is_better) {
    log_debug("gradient check: {}", check.message);
  } else if (!settled.warning.empty()) {
    run.warn(settled.warning);
  } else {
    log_info("{} auto: {} rather than {}", argument_name("bvec_frame"), gradient_frame_name(settled.frame),
             gradient_frame_name(of_format));
  }
}

// The files and arrays that the fit depends on.
Result<std::vector<RunInput>> input_facts(const FitRun& run) {
  std::vector<RunInput> inputs;
  for (const RequestField<FitRequest>& field : fit_fields()) {
    if (!decides_result(field.phase)) continue;
    for (const ArgumentValue& value : field.values(run.request)) {
      const auto* const path = std::get_if<std::string>(&value);
      if (path == nullptr || *path == in_memory || !names_file(field.argument, *path)) continue;
      CGL_TRY_ASSIGN(std::string hash, hash_of_file(*path));
      inputs.push_back({field.argument.name, *path, std::move(hash)});
    }
  }
  for (const GivenInput& given : run.request.arrays.inputs) {
    CGL_TRY_ASSIGN(std::string hash, given.hash->hex(run.machine.cancel()));
    inputs.push_back({given.option, in_memory, std::move(hash)});
  }
  return inputs;
}

}  // namespace

Result<FitRequest> repeated_fit(const FitRequest& given) {
  const fs::path path = given.from.value();
  CGL_TRY_ASSIGN(const Json json, read_sidecar_file(path));
  const StoredRun stored = {json, path, "fit"};
  if (JsonView(json)["made_by"].json() != "cingulum fit") return stored.damaged("another made it");
  CGL_TRY_ASSIGN(FitRequest request, request_of_stored_run(fit_fields(), stored, given, names_file));
  request.arrays = given.arrays;
  CGL_TRY(check_inputs_of_run(json, path, [&](std::string_view option) {
    const RequestField<FitRequest>* const field = find_field(fit_fields(), option);
    return field != nullptr && field->given(given);
  }));
  return request;
}

Result<FitInput> read_fit_input(FitRun& run) {
  const FitRequest& request = run.request;
  // Before anything is read: not every model asks for it.
  CGL_TRY(parse_signal_floor(request.min_signal.value()));
  FitInput input;
  input.model = request.model.value();
  SeriesRequest wanted = {.b0_threshold = request.b0_threshold.value()};
  CGL_TRY_ASSIGN(wanted.frame, parse_wanted_frame(request.bvec_frame.given() ? request.bvec_frame.value() : ""));
  SeriesFiles files;
  SeriesHead head;
  if (run.request.arrays.head) {
    head = *run.request.arrays.head;
    if (request.mask.given() && !run.request.arrays.mask) files.mask = request.mask.value();
  } else {
    CGL_TRY_ASSIGN(files, series_files(request));
    CGL_TRY_ASSIGN(head, read_series_head(files));
  }
  for (const std::string& warning : head.warnings) run.warn(warning);
  const auto choice = input.model == "dti" ? ShellChoice::all_volumes : ShellChoice::one_shell;
  std::optional<double> shell;
  if (request.shell.given()) shell = request.shell.value();
  CGL_TRY_ASSIGN(input.selection, select_volumes(head.table, choice, shell, wanted.b0_threshold));

  CGL_TRY_ASSIGN(SettledSeries series, settled_series(run, files, head, wanted));
  if (series.mask_made) {
    run.warn(fmt::format("no {}: a brain mask of {} voxels was made by median Otsu, to be written to {}",
                         argument_name("mask"), format_count(series.mask.voxels), run.maps.place_of("mask")));
    run.made_mask = std::move(series.mask);
  }
  for (const std::string& warning : input.selection.warnings) run.warn(warning);
  for (const std::string& note : input.selection.notes) log_info("{}", note);
  input.signals = std::move(series.dwi.signals);
  restrict_signals(input.signals, input.selection.volumes);
  if (input.signals.replaced > 0) {
    run.warn(fmt::format("{} values of {} were not finite and count as 0", format_count(input.signals.replaced),
                         files.dwi.empty() ? std::string("the series") : files.dwi.string()));
  }
  say_of_frame(run, series.frame, head.table.frame);
  for (const std::size_t volume : input.selection.volumes) {
    input.image_directions.push_back(series.dwi.directions[volume]);
  }
  for (const std::uint32_t position : input.selection.weighted) {
    if (length(input.image_directions[position]) == 0) {
      return fail(ErrorKind::corrupt, "volume {} has b = {} and no direction", input.selection.volumes[position],
                  input.selection.b_values[position]);
    }
  }
  const bool mrtrix_like =
      input.model == "dti" ? request.tensor_order.value() == "mrtrix" : request.sh_basis.value() == "tournier07";
  input.world = request.frame.given() ? request.frame.value() == "world" : mrtrix_like;
  input.directions =
      input.world ? to_world(input.image_directions, head.geometry.voxel_to_world) : input.image_directions;

  run.parameters["b0_threshold"] = wanted.b0_threshold;
  run.parameters["bvec_frame"] = gradient_frame_name(series.frame.frame);
  run.parameters["frame"] = input.world ? "world" : "image";
  run.parameters["volumes"] = input.selection.volumes.size();
  run.parameters["b0_volumes"] = input.selection.b0.size();
  if (input.selection.shell) {
    run.parameters["shell"] = {{"b_value", input.selection.shell->b_value},
                               {"smallest", input.selection.shell->smallest},
                               {"largest", input.selection.shell->largest},
                               {"volumes", input.selection.shell->volumes.size()}};
    run.parameters["unused_shells"] = shells_json(input.selection.unused);
  }
  return input;
}

Status describe_fit(FitRun& run, const FitInput& input) {
  CGL_TRY_ASSIGN(const std::vector<RunInput> inputs, input_facts(run));
  Json facts = {{"made_by", "cingulum fit"},
                {"model", input.model},
                {"arguments", arguments_for_sidecar(fit_fields(), run.request)},
                {"parameters", run.parameters},
                {"inputs", write_json(inputs)},
                {"voxels", input.signals.voxels.size()},
                {"replaced_values", input.signals.replaced},
                {"warnings", run.warnings}};
  run.maps.describe(input.signals.geometry, input.signals.voxels, std::move(facts));
  if (!run.made_mask) return {};
  return run.maps.write_mask(run.made_mask->mask, {{"threshold", run.made_mask->threshold}}, run.pool);
}

}  // namespace cingulum
