// `cingulum track`: from a diffusion series, a fit or a phantom to streamlines in a file. The parts are track_defaults
// (options that were not given), track_series (which files), track_data (what is tracked), track_devices,
// track_options, track_seeds, track_sidecar and track_result; track_run.hpp has the steps of a run, which Python takes.
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
#include "cli/track_explain.hpp"
#include "cli/track_options.hpp"
#include "cli/track_part.hpp"
#include "cli/track_prepared.hpp"
#include "cli/track_result.hpp"
#include "cli/track_run.hpp"
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

Status run_prepare(const ParsedArguments& command_line, TrackRun& run, VerbContext& context) {
  for (const char* other : {"out", "output-prefix", "seed-range", "part", "prepared"}) {
    if (!command_line.given(other)) continue;
    return fail(ErrorKind::invalid_argument, "--prepare and --{} exclude each other: it makes the fit alone", other);
  }
  const fs::path path = run.arguments.text("prepare");
  CGL_TRY(check_output(path, context.write_options()));
  CGL_TRY(prepare_field(command_line, {}, context, run));
  CGL_TRY(write_prepared(run, path, context));
  if (context.common().json) {
    context.print(json_text({{"file", path.string()}, {"model", run.prepared.data.prepared.facts}}));
  } else {
    context.print_format("{}: track it by --prepared\n", path.string());
  }
  context.leave_process();
  return {};
}

Status run_track(const ParsedArguments& command_line, VerbContext& context) {
  const auto begin = Clock::now();
  TrackRun run;
  CGL_TRY(settle_track(command_line, context, run));
  if (run.arguments.flag("explain")) {
    CGL_TRY_ASSIGN(const RunExplanation explanation, explain_run(run, context));
    print_explanation(explanation, context);
    return {};
  }
  if (run.arguments.given("prepare")) return run_prepare(command_line, run, context);
  CGL_TRY_ASSIGN(const TrackOutput output, check_track_output(run.arguments, context));
  CGL_TRY(prepare_field(command_line, output.path, context, run));
  CGL_TRY(prepare_seeds(context, run));
  CGL_TRY_ASSIGN(TrackedFile tracked, track_to_file(run, output, begin, context));
  const TrackingStatistics& statistics = tracked.statistics;
  if (context.common().json) {
    tracked.sidecar["file"] = output.path.string();
    context.print(json_text(tracked.sidecar));
  } else {
    const TrackTiming timing = {.device = run.devices.names,
                                .fitted_on = run.prepared.fitted_on,
                                .prepare_seconds = tracked.prepare_seconds,
                                .track_seconds = tracked.track_seconds};
    print_result(statistics, output.path, timing, context);
  }
  if (statistics.interrupted) {
    return fail(ErrorKind::interrupted, "stopped: {} holds the {} finished seeds of {}", output.path.string(),
                format_count(statistics.seeds),
                format_count(run.run_options.range ? run.run_options.range->count : run.seeds->count()));
  }
  context.leave_process();
  return {};
}

}  // namespace

Status settle_track(const ParsedArguments& command_line, VerbContext& context, TrackRun& run) {
  const Verb verb = track_verb();
  ParsedArguments& arguments = run.arguments;
  arguments = command_line;
  if (command_line.given("from")) {
    CGL_TRY_ASSIGN(arguments, arguments_from_sidecar(verb, command_line.text("from"), command_line));
  }
  if (command_line.given("prepared")) {
    for (const char* other : {"from", "data", "sh", "sf", "peaks", "tensor"}) {
      if (!command_line.given(other)) continue;
      return fail(ErrorKind::invalid_argument, "--prepared and {}{} both name what is tracked; give one",
                  std::string_view(other) == "data" ? "" : "--",
                  std::string_view(other) == "data" ? "a series" : other);
    }
    CGL_TRY_ASSIGN(run.prepared_run, read_prepared_run(command_line.text("prepared")));
    CGL_TRY_ASSIGN(arguments,
                   arguments_of_run(verb, run.prepared_run->arguments, command_line.text("prepared"), command_line));
  }
  if (!run.wanted) {
    CGL_TRY_ASSIGN(run.wanted, wanted_devices(arguments, context));
  }
  CGL_TRY_ASSIGN(run.getter, getter_from_name(arguments.text("dg")));
  return complete_arguments(verb, run.getter, arguments);
}

Result<TrackOutput> check_track_output(const ParsedArguments& arguments, VerbContext& context) {
  TrackOutput output;
  CGL_TRY_ASSIGN(output.path, tracking_output(arguments));
  const fs::path& out = output.path;
  CGL_TRY_ASSIGN(output.format, format_of_name(out));
  const TractogramFormat format = output.format;
  const bool trx = format == TractogramFormat::trx || format == TractogramFormat::trx_folder;
  if (arguments.flag("save-seeds") && !trx) {
    return fail(ErrorKind::invalid_argument, "--save-seeds: {} has no place for it; write .trx", out.string());
  }
  CGL_TRY(check_layout_options(arguments, format, out));
  output.options = context.write_options();
  CGL_TRY(check_tractogram_output(out.has_filename() ? out : out.parent_path(), format, output.options));
  CGL_TRY_ASSIGN(output.options.pool, context.pool());
  return output;
}

Status prepare_field(const ParsedArguments& command_line, const fs::path& out, VerbContext& context, TrackRun& run) {
  const ParsedArguments& arguments = run.arguments;
  if (arguments.flag("explain")) {
    return fail(ErrorKind::invalid_argument, "--explain is for the program: it says what a run takes and runs nothing");
  }
  // What is tracked, and the plan, which needs the grid and is needed for the field.
  const PreparedRun* const prepared_run = run.prepared_run ? &*run.prepared_run : nullptr;
  CGL_TRY_ASSIGN(run.source, open_source(arguments, run.arrays, run.getter, out, prepared_run, *run.wanted, context));
  TrackSource& source = run.source;
  CGL_TRY_ASSIGN(run.options, tracking_options(arguments, run.getter, source.geometry.smallest_edge_mm()));
  CGL_TRY_ASSIGN(run.plan, make_tracking_plan(run.options, source.geometry));
  fs::path made_mask = run.made_mask;
  if (made_mask.empty() && !out.empty()) made_mask = beside_series(out, ".mask.nii.gz");
  CGL_TRY_ASSIGN(run.prepared, prepare_source(source, arguments, run.arrays, run.options, run.plan, made_mask,
                                              prepared_run, *run.wanted, context));
  TrackingData& data = run.prepared.data;
  if (stop_rule(arguments, data) == StopRule::nearest && arguments.text("stop-rule") == "auto") {
    log_info("the stopping map holds two values: a mask, taken voxel by voxel (--stop-rule trilinear interpolates it)");
  }
  if (arguments.given("seed-mask")) run.seed_mask = arguments.text("seed-mask");
  if (source.series) {
    run.seed_mask = source.series->seed_mask;
    run.found = source.series->found;
    if (prepared_run != nullptr) {
      run.phantom_hash = prepared_run->phantom_hash;
    } else if (source.series->phantom) {
      const fs::path& dwi = source.series->files.dwi;
      CGL_TRY_ASSIGN(run.phantom_hash, hash_of_file(dwi));
      CGL_TRY(check_repeated_phantom(command_line, dwi, run.phantom_hash));
    }
  }
  if (data.prepared.field.replaced > 0) {
    log_warning("{} numbers of the field were not finite or too small and count as 0",
                format_count(data.prepared.field.replaced));
  }
  // A prepared file holds numbers from which either precision is made.
  if (arguments.text("field-precision") == "half" && !arguments.given("prepare"))
    CGL_TRY(store_as_float16(data.prepared.field));
  return {};
}

Status plan_seeds(VerbContext& context, TrackRun& run) {
  const ParsedArguments& arguments = run.arguments;
  if (arguments.given("prepare")) {
    return fail(ErrorKind::invalid_argument, "--prepare is for the program: it writes a fit and tracks nothing");
  }
  const TrackSource& source = run.source;
  const TrackingData& data = run.prepared.data;
  const double smallest_edge = source.geometry.smallest_edge_mm();
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  run.devices = {};  // they refer to what is made anew
  TrackingOptions& options = run.options;
  CGL_TRY_ASSIGN(options, tracking_options(arguments, run.getter, smallest_edge));
  options.stop_rule = stop_rule(arguments, data);
  CGL_TRY_ASSIGN(run.plan, make_tracking_plan(options, source.geometry));
  // Known once the signals are read, unless it was given in their units.
  if (run.getter == Getter::boot) run.plan.boot_min_signal = static_cast<float>(data.prepared.min_signal);
  CGL_TRY_ASSIGN(run.seeds, make_seeds(arguments, data, run.seed_mask, source.grid(), run.arrays));
  CGL_TRY_ASSIGN(run.directions, given_directions(arguments, *run.seeds, data.geometry, run.arrays));

  TrackingRunOptions& run_options = run.run_options;
  run_options = {};
  CGL_TRY_ASSIGN(run_options.selection, selection_rules(arguments, options, run.plan, data.geometry));
  if (arguments.given("max-seeds") && !arguments.given("select")) {
    return fail(ErrorKind::invalid_argument, "--max-seeds limits --select; without it use --nseeds");
  }
  run_options.select = arguments.has("select") ? static_cast<std::uint64_t>(arguments.integer("select")) : 0;
  run_options.max_seeds = arguments.has("max-seeds") ? static_cast<std::uint64_t>(arguments.integer("max-seeds")) : 0;
  CGL_TRY_ASSIGN(run_options.range, seed_range_of_part(arguments, *run.seeds, run_options));
  run_options.keep_trail = run_options.range && run_options.select > 0;
  run_options.chunk_seeds = static_cast<std::uint64_t>(arguments.integer("chunk-size"));
  run_options.fixed_chunks = arguments.given("chunk-size");
  run_options.save_seeds = arguments.flag("save-seeds");
  run_options.double_positions = arguments.flag("float16") || arguments.flag("float64");
  run_options.linearise_mm = arguments.has("linearise") ? arguments.length("linearise").in_mm(smallest_edge) : 0;
  run_options.max_segment_mm = arguments.length("max-segment-length").in_mm(smallest_edge);
  run_options.keep_partial = arguments.flag("keep-partial");
  run_options.overlap = pool->threads() > 1;
  run_options.pool = pool;
  run_options.cancel = context.cancel();
  return {};
}

Status prepare_seeds(VerbContext& context, TrackRun& run) {
  CGL_TRY(plan_seeds(context, run));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(run.devices, tracking_devices(*run.wanted, *pool, run.plan, run.prepared.data.prepared.field,
                                               *run.seeds, run.directions ? &*run.directions : nullptr));
  return {};
}

TractogramLayout track_layout(const TrackRun& run, TractogramFormat format) {
  TractogramLayout layout;
  layout.format = format;
  layout.reference = run.prepared.data.geometry;
  layout.position_type = asked_position_type(run.arguments).value_or(element_type_of<float>());
  layout.deflated = run.arguments.flag("deflate");
  layout.deflating_pool = run.run_options.pool;
  if (run.run_options.save_seeds) layout.streamline_fields = seed_fields(run.seeds->count());
  return layout;
}

Json track_facts(const TrackRun& run, Json inputs, const TrackingStatistics& statistics) {
  Json sidecar = {{"made_by", "cingulum track"}, {"rules", present_rules}};
  sidecar["arguments"] = options_for_sidecar(track_verb(), run.arguments);
  sidecar["inputs"] = std::move(inputs);
  if (!run.phantom_hash.empty()) sidecar["phantom"] = {{"preset", "brain"}, {"dwi_xxh3_128", run.phantom_hash}};
  sidecar["model"] = run.prepared.data.prepared.facts;
  sidecar["field"] = field_json(run.prepared.data.prepared.field);
  sidecar["plan"] = plan_json(run.plan, run.options);
  sidecar["end_reason_codes"] = end_reason_codes_json();
  sidecar["result"] = result_json(statistics, run.run_options.select > 0);
  if (run.run_options.range) {
    sidecar["part"] = part_json({.seeds = *run.run_options.range,
                                 .run_seeds = seeds_of_run(*run.seeds, run.run_options),
                                 .statistics = statistics});
  }
  return sidecar;
}

Result<TrackedFile> track_to_file(TrackRun& run, const TrackOutput& output, Clock::time_point begin,
                                  VerbContext& context) {
  const ParsedArguments& arguments = run.arguments;
  const TrackingRunOptions& run_options = run.run_options;
  const auto output_sidecar = std::make_shared<OutputSidecar>(output.path, output.options);
  CGL_TRY_ASSIGN(const std::unique_ptr<TractogramWriter> writer,
                 TractogramWriter::create(output.path, track_layout(run, output.format),
                                          with_sidecar(output.options, output_sidecar)));

  TrackTiming timing;
  timing.device = run.devices.names;
  timing.fitted_on = run.prepared.fitted_on;
  timing.prepare_seconds = seconds_since(begin);
  const auto track_begin = Clock::now();
  // Inputs are hashed meanwhile, by a thread where one can be had.
  std::future<Result<Json>> inputs = std::async(std::launch::async | std::launch::deferred, [&] {
    return input_facts(track_verb(), arguments, run.arrays, run.found,
                       run.prepared_run ? run.prepared_run->inputs : Json::array());
  });
  const std::uint64_t seeds = run_options.range ? run_options.range->count : run.seeds->count();
  Progress progress("tracking", run_options.select > 0 ? 0 : seeds, "seeds", context.progress_options());
  TrackedFile tracked;
  CGL_TRY_ASSIGN(tracked.statistics, run_tracking(run.devices.pointers(), *run.seeds, run.prepared.data.geometry,
                                                  run_options, *writer, &progress));
  if (output.tracked) output.tracked();
  const TrackingStatistics& statistics = tracked.statistics;
  if (statistics.kept == 0 && arguments.given("sh") && !arguments.given("pmf-threshold-absolute") &&
      run.plan.absolute_threshold > 0) {
    log_warning(
        "amplitudes below {} (--pmf-threshold-absolute, in units of CSD) count as zero: where {} is in other units, "
        "give a threshold in them, or 0",
        run.plan.absolute_threshold, arguments.text("sh"));
  }
  // What is finished is written in full; another Ctrl-C asks anew.
  if (statistics.interrupted) clear_interrupt();

  CGL_TRY_ASSIGN(Json input_list, inputs.get());
  Json& sidecar = tracked.sidecar;
  sidecar = track_facts(run, std::move(input_list), statistics);
  output_sidecar->describe([&] {
    timing.track_seconds = seconds_since(track_begin);
    sidecar["run"] = run_json(statistics, arguments, context, timing, seconds_since(begin));
    return output.told ? output.told(sidecar) : sidecar;
  });
  CGL_TRY(writer->commit());
  progress.finish();

  // Of a part it is not known whether the others have enough.
  if (!statistics.select_reached && !run_options.range) {
    log_warning("--select {}: {} streamlines kept after {} seeds; raise --max-seeds or loosen the rules",
                format_count(run_options.select), format_count(statistics.kept), format_count(statistics.seeds));
  }
  tracked.prepare_seconds = timing.prepare_seconds;
  tracked.track_seconds = timing.track_seconds;
  return tracked;
}

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
          "--prepare FILE.fit makes the fit of a series once; --prepared FILE.fit tracks from it, also where the "
          "series "
          "is not, and writes what a run from the series writes.\n\n"
          "--seed-range or --part tracks some of the seeds of the same run, on any machine; `cingulum merge` makes of "
          "the "
          "parts the file that one run would have written, byte for byte.\n\n"
          "--explain says what a run would take and give, before any work and without it: memory is a bound, points "
          "and "
          "bytes are about right.\n\n"
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
                   {"cingulum track --from prob.trx.json --out again.trx", "the same run again, to the bit"},
                   {"cingulum track dwi.nii.gz --part 2/8 --out part2.trx", "the second eighth of its seeds"}},
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
