// `cingulum track`: from a diffusion series, a fit or a phantom to streamlines in a file. The parts are track_defaults
// (options that were not given), track_series (which files), track_data (what is tracked), track_devices,
// track_options, track_seeds, track_sidecar and track_result.
#include <chrono>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/elapsed.hpp"
#include "base/interrupt.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/layout_arguments.hpp"
#include "cli/track_arguments.hpp"
#include "cli/track_data.hpp"
#include "cli/track_defaults.hpp"
#include "cli/track_devices.hpp"
#include "cli/track_options.hpp"
#include "cli/track_result.hpp"
#include "cli/track_seeds.hpp"
#include "cli/track_series.hpp"
#include "cli/track_sidecar.hpp"
#include "cli/verb.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram.hpp"
#include "tract/field/float16_field.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/run/tracker.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum {

Verb track_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

Status run_track(const ParsedArguments& command_line, VerbContext& context) {
  const auto begin = Clock::now();
  const Verb verb = track_verb();
  ParsedArguments arguments = command_line;
  if (command_line.given("from")) {
    CGL_TRY_ASSIGN(arguments, arguments_from_sidecar(verb, command_line.text("from"), command_line));
  }
  CGL_TRY_ASSIGN(WantedDevices wanted, wanted_devices(arguments, context));
  CGL_TRY_ASSIGN(const Getter getter, getter_from_name(arguments.text("dg")));
  CGL_TRY(complete_arguments(verb, getter, arguments));
  CGL_TRY_ASSIGN(const fs::path out, tracking_output(arguments));
  CGL_TRY_ASSIGN(const TractogramFormat format, format_of_name(out));
  const bool trx = format == TractogramFormat::trx || format == TractogramFormat::trx_folder;
  if (arguments.flag("save-seeds") && !trx) {
    return fail(ErrorKind::invalid_argument, "--save-seeds: {} has no place for it; write .trx", out.string());
  }
  CGL_TRY(check_layout_options(arguments, format, out));
  WriteOptions write_options = context.write_options();
  if (format != TractogramFormat::trx_folder) CGL_TRY(check_output(out, write_options));
  CGL_TRY(check_sidecar_output(out, write_options));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  write_options.pool = pool;

  // What is tracked, and the plan, which needs the grid and is needed for the field.
  CGL_TRY_ASSIGN(TrackSource source, open_source(arguments, getter, out, wanted, context));
  const double smallest_edge = source.geometry.smallest_edge_mm();
  CGL_TRY_ASSIGN(TrackingOptions options, tracking_options(arguments, getter, smallest_edge));
  CGL_TRY_ASSIGN(TrackingPlan plan, make_tracking_plan(options, source.geometry));
  CGL_TRY_ASSIGN(PreparedSource prepared, prepare_source(source, arguments, options, plan, out, wanted, context));
  TrackingData& data = prepared.data;
  options.stop_rule = stop_rule(arguments, data);
  if (options.stop_rule == StopRule::nearest) {
    CGL_TRY_ASSIGN(plan, make_tracking_plan(options, source.geometry));
    if (arguments.text("stop-rule") == "auto") {
      log_info(
          "the stopping map holds two values: a mask, taken voxel by voxel (--stop-rule trilinear interpolates it)");
    }
  }
  // Known once the signals are read, unless it was given in their units.
  if (getter == Getter::boot) plan.boot_min_signal = static_cast<float>(data.prepared.min_signal);
  fs::path seed_mask = arguments.given("seed-mask") ? fs::path(arguments.text("seed-mask")) : fs::path();
  std::vector<FoundInput> found;
  std::string phantom_hash;
  if (source.series) {
    seed_mask = source.series->seed_mask;
    found = source.series->found;
    if (source.series->phantom) {
      const fs::path& dwi = source.series->files.dwi;
      CGL_TRY_ASSIGN(phantom_hash, hash_of_file(dwi));
      CGL_TRY(check_repeated_phantom(command_line, dwi, phantom_hash));
    }
  }
  if (data.prepared.field.replaced > 0) {
    log_warning("{} numbers of the field were not finite or too small and count as 0",
                format_count(data.prepared.field.replaced));
  }
  if (arguments.text("field-precision") == "half") CGL_TRY(store_as_float16(data.prepared.field));
  CGL_TRY_ASSIGN(const std::unique_ptr<Seeds> seeds, make_seeds(arguments, data, seed_mask, source.grid()));
  CGL_TRY_ASSIGN(const std::optional<GivenDirections> directions, given_directions(arguments, *seeds, data.geometry));

  TrackingRunOptions run_options;
  run_options.selection.min_length_mm = options.min_length_mm;
  run_options.selection.max_length_mm = options.max_length_mm;
  run_options.selection.tolerance_mm = 1e-3 * static_cast<double>(plan.step_mm);
  CGL_TRY(limit_points(arguments, run_options.selection));
  CGL_TRY_ASSIGN(run_options.selection.regions, read_rules(arguments, data.geometry));
  if (arguments.given("max-seeds") && !arguments.given("select")) {
    return fail(ErrorKind::invalid_argument, "--max-seeds limits --select; without it use --nseeds");
  }
  run_options.select = arguments.has("select") ? static_cast<std::uint64_t>(arguments.integer("select")) : 0;
  run_options.max_seeds = arguments.has("max-seeds") ? static_cast<std::uint64_t>(arguments.integer("max-seeds")) : 0;
  run_options.chunk_seeds = static_cast<std::uint64_t>(arguments.integer("chunk-size"));
  run_options.fixed_chunks = arguments.given("chunk-size");
  run_options.save_seeds = arguments.flag("save-seeds");
  run_options.double_positions = arguments.flag("float16") || arguments.flag("float64");
  run_options.linearise_mm = arguments.has("linearise") ? arguments.length("linearise").in_mm(smallest_edge) : 0;
  run_options.max_segment_mm = arguments.length("max-segment-length").in_mm(smallest_edge);
  run_options.keep_partial = arguments.flag("keep-partial");
  run_options.overlap = pool->threads() > 1;
  run_options.pool = pool;

  CGL_TRY_ASSIGN(const TrackingDevices devices, tracking_devices(wanted, *pool, plan, data.prepared.field, *seeds,
                                                                 directions ? &*directions : nullptr));

  TractogramLayout layout;
  layout.format = format;
  layout.reference = data.geometry;
  layout.position_type = asked_position_type(arguments).value_or(element_type_of<float>());
  layout.deflated = arguments.flag("deflate");
  layout.deflating_pool = pool;
  if (run_options.save_seeds) layout.streamline_fields = seed_fields(seeds->count());
  const auto output_sidecar = std::make_shared<OutputSidecar>(out, write_options);
  CGL_TRY_ASSIGN(const std::unique_ptr<TractogramWriter> writer,
                 TractogramWriter::create(out, layout, with_sidecar(write_options, output_sidecar)));

  TrackTiming timing;
  timing.device = devices.names;
  timing.fitted_on = prepared.fitted_on;
  timing.prepare_seconds = seconds_since(begin);
  const auto track_begin = Clock::now();
  // Inputs are hashed meanwhile, by a thread where one can be had.
  std::future<Result<Json>> inputs =
      std::async(std::launch::async | std::launch::deferred, [&] { return input_facts(verb, arguments, found); });
  Progress progress("tracking", run_options.select > 0 ? 0 : seeds->count(), "seeds", context.progress_options());
  CGL_TRY_ASSIGN(const TrackingStatistics statistics,
                 run_tracking(devices.pointers(), *seeds, data.geometry, run_options, *writer, &progress));
  if (statistics.kept == 0 && arguments.given("sh") && !arguments.given("pmf-threshold-absolute") &&
      plan.absolute_threshold > 0) {
    log_warning(
        "amplitudes below {} (--pmf-threshold-absolute, in units of CSD) count as zero: where {} is in other units, "
        "give a threshold in them, or 0",
        plan.absolute_threshold, arguments.text("sh"));
  }
  // What is finished is written in full; another Ctrl-C asks anew.
  if (statistics.interrupted) clear_interrupt();

  Json sidecar = {{"made_by", "cingulum track"}, {"rules", present_rules}};
  sidecar["arguments"] = options_for_sidecar(verb, arguments);
  CGL_TRY_ASSIGN(sidecar["inputs"], inputs.get());
  if (!phantom_hash.empty()) sidecar["phantom"] = {{"preset", "brain"}, {"dwi_xxh3_128", phantom_hash}};
  sidecar["model"] = data.prepared.facts;
  sidecar["field"] = field_json(data.prepared.field);
  sidecar["plan"] = plan_json(plan, options);
  sidecar["end_reason_codes"] = end_reason_codes_json();
  sidecar["result"] = result_json(statistics, run_options.select > 0);
  output_sidecar->describe([&] {
    timing.track_seconds = seconds_since(track_begin);
    sidecar["run"] = run_json(statistics, arguments, context, timing, seconds_since(begin));
    return sidecar;
  });
  CGL_TRY(writer->commit());
  progress.finish();

  if (!statistics.select_reached) {
    log_warning("--select {}: {} streamlines kept after {} seeds; raise --max-seeds or loosen the rules",
                format_count(run_options.select), format_count(statistics.kept), format_count(statistics.seeds));
  }
  if (context.common().json) {
    sidecar["file"] = out.string();
    context.print(json_text(sidecar));
  } else {
    print_result(statistics, out, timing, context);
  }
  if (statistics.interrupted) {
    return fail(ErrorKind::interrupted, "stopped: {} holds the {} finished seeds of {}", out.string(),
                format_count(statistics.seeds), format_count(seeds->count()));
  }
  return {};
}

}  // namespace

Verb track_verb() {
  return {
      .name = "track",
      .summary = "track streamlines through a diffusion series, a fit or a phantom",
      .description =
          "Reads a diffusion series and fits what the direction getter asks for (--dg: boot on OPDT or CSA; prob, ptt, "
          "det and closest on CSD; tensor on DTI), or takes amplitudes, spherical harmonics, peaks or tensors from a "
          "file. Streamlines start at every seed along its peaks (--max-directions) and go both ways until the "
          "stopping map (FA unless given) falls to its threshold, the image ends, no direction lies within "
          "--max-angle, or the length is reached. With no data at all the phantom `brain` is made and tracked.\n\n"
          "Options that are not given have values that suit the getter: a study on phantoms chose them, and --preset "
          "gives those of other tools instead.\n\n"
          "The result depends on the data, the options and --seed alone: not on threads, chunks or devices. The "
          "sidecar FILE.json holds every parameter and the hashes of the inputs; --from repeats a run to the bit.\n\n"
          "--select N draws seeds until N streamlines are kept; the result is the first N in the order of the seeds. A "
          "region is met when a segment enters one of its voxels, judged on the whole streamline.",
      .arguments = track_arguments(),
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress,
                 CommonOption::seed},
      .examples = {{"cingulum track", "the phantom `brain`, into tracks.trx"},
                   {"cingulum track dwi.nii.gz --mask mask.nii.gz --out tracks.trx",
                    "100 000 seeds, parallel transport on CSD; b-values and b-vectors are found beside the series"},
                   {"cingulum track dwi.nii.gz --mask mask.nii.gz --dg prob --out prob.trx", "probabilistic"},
                   {"cingulum track dwi.nii.gz --select 10000 --include 0,0,20,8 --min-length 30 --out callosum.trx",
                    "ten thousand streamlines through a sphere"},
                   {"cingulum track --sh fod.nii.gz --dg det --stop-map fa.nii.gz --seeds-per-voxel 2 --out det.tck",
                    "deterministic, from MRtrix3's FOD"},
                   {"cingulum track --from prob.trx.json --out again.trx", "the same run again, to the bit"}},
      .references =
          {"J. I. Berman et al., Probabilistic streamline q-ball tractography using the residual bootstrap, NeuroImage "
           "39, 215-222, 2008",
           "D. B. Aydogan, Y. Shi, Parallel transport tractography, IEEE Trans. Med. Imaging 40, 635-647, 2021",
           "J.-D. Tournier, F. Calamante, A. Connelly, Robust determination of the fibre orientation distribution, "
           "NeuroImage 35, 1459-1472, 2007"},
      .run = run_track,
  };
}

}  // namespace cingulum
