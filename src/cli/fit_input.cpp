#include "cli/fit_input.hpp"

#include <utility>

#include "base/quantity.hpp"
#include "dmri/series/signal_floor.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Result<SeriesFiles> series_files(const ParsedArguments& arguments) {
  const auto path = [&](const char* name) {
    return arguments.given(name) ? fs::path(arguments.text(name)) : fs::path();
  };
  SeriesFiles files = {.dwi = arguments.text("dwi"),
                       .bvals = path("bvals"),
                       .bvecs = path("bvecs"),
                       .grad = path("grad"),
                       .mask = path("mask")};
  const bool pair = !files.bvals.empty() || !files.bvecs.empty();
  if (!files.grad.empty() && pair) {
    return fail(ErrorKind::invalid_argument,
                "--grad already holds b-values and vectors; leave --bvals and --bvecs out");
  }
  if (files.grad.empty() && (files.bvals.empty() || files.bvecs.empty())) {
    return fail(ErrorKind::invalid_argument, "gradients are missing: give --bvals and --bvecs, or --grad");
  }
  return files;
}

Result<SettledSeries> settled_series(FitRun& run, const SeriesFiles& files, const SeriesHead& head,
                                     const SeriesRequest& request) {
  const GivenArrays& arrays = run.arrays;
  const auto find_machine = [&]() -> Result<FitMachine> {
    CGL_TRY_ASSIGN(run.device, run.place.find_device());
    return run.machine();
  };
  if (!arrays.head) return read_series(files, head, request, run.pool, run.context.cancel(), find_machine);
  std::vector<std::uint8_t> mask = arrays.mask.value_or(std::vector<std::uint8_t>());
  if (mask.empty() && !files.mask.empty()) {
    CGL_TRY_ASSIGN(mask, read_mask_on(files.mask, "the mask", {head.geometry, "the series", head.oriented}));
  }
  CGL_TRY_ASSIGN(const FitMachine machine, find_machine());
  return series_of_arrays(head, arrays.series, mask, request, machine);
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
    log_info("--bvec-frame auto: {} rather than {}", gradient_frame_name(settled.frame),
             gradient_frame_name(of_format));
  }
}

}  // namespace

Result<FitInput> read_fit_input(FitRun& run) {
  const ParsedArguments& arguments = run.arguments;
  // Before anything is read: not every model asks for it.
  CGL_TRY(parse_signal_floor(arguments.text("min-signal")));
  FitInput input;
  input.model = arguments.text("model");
  SeriesRequest request = {.b0_threshold = arguments.real("b0-threshold")};
  CGL_TRY_ASSIGN(request.frame, parse_wanted_frame(arguments.given("bvec-frame") ? arguments.text("bvec-frame") : ""));
  SeriesFiles files;
  SeriesHead head;
  if (run.arrays.head) {
    head = *run.arrays.head;
    if (arguments.given("mask") && !run.arrays.mask) files.mask = arguments.text("mask");
  } else {
    CGL_TRY_ASSIGN(files, series_files(arguments));
    CGL_TRY_ASSIGN(head, read_series_head(files));
  }
  for (const std::string& warning : head.warnings) run.warn(warning);
  const auto choice = input.model == "dti" ? ShellChoice::all_volumes : ShellChoice::one_shell;
  std::optional<double> shell;
  if (arguments.given("shell")) shell = arguments.real("shell");
  CGL_TRY_ASSIGN(input.selection, select_volumes(head.table, choice, shell, request.b0_threshold));

  CGL_TRY_ASSIGN(SettledSeries series, settled_series(run, files, head, request));
  if (series.mask_made) {
    run.warn(fmt::format("no --mask: a brain mask of {} voxels was made by median Otsu, to be written to {}",
                         format_count(series.mask.voxels), run.maps.place_of("mask")));
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
      input.model == "dti" ? arguments.text("tensor-order") == "mrtrix" : arguments.text("sh-basis") == "tournier07";
  input.world = arguments.given("frame") ? arguments.text("frame") == "world" : mrtrix_like;
  input.directions =
      input.world ? to_world(input.image_directions, head.geometry.voxel_to_world) : input.image_directions;

  run.parameters["b0_threshold"] = request.b0_threshold;
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
  Json inputs = Json::object();
  for (const char* name : {"dwi", "bvals", "bvecs", "grad", "mask", "response"}) {
    if (!run.arguments.given(name) || run.arguments.text(name) == in_memory) continue;
    const fs::path path = run.arguments.text(name);
    CGL_TRY_ASSIGN(const std::string hash, hash_of_file(path));
    inputs[name] = {{"file", path.filename().string()}, {"xxh3_128", hash}};
  }
  for (const GivenInput& given : run.arrays.inputs) {
    CGL_TRY_ASSIGN(const std::string hash, given.hash->hex(run.context.cancel()));
    inputs[given.option] = {{"file", in_memory}, {"xxh3_128", hash}};
  }
  Json facts = {{"made_by", "cingulum fit"},
                {"model", input.model},
                {"parameters", run.parameters},
                {"inputs", inputs},
                {"voxels", input.signals.voxels.size()},
                {"replaced_values", input.signals.replaced},
                {"warnings", run.warnings}};
  run.maps.describe(input.signals.geometry, input.signals.voxels, std::move(facts));
  if (!run.made_mask) return {};
  return run.maps.write_mask(run.made_mask->mask, {{"threshold", run.made_mask->threshold}}, run.pool);
}

}  // namespace cingulum
