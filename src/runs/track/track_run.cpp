#include "runs/track/track_run.hpp"

#include <future>
#include <utility>

#include "base/elapsed.hpp"
#include "base/json_fields.hpp"
#include "base/log.hpp"
#include "base/quantity.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "runs/track/track_defaults.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_options.hpp"
#include "runs/track/track_part.hpp"
#include "runs/track/track_seeds.hpp"
#include "tract/field/float16_field.hpp"
#include "tract/run/run_part.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// What of the plan is known once the data are read: whether the map is a mask, and the least signal of the bootstrap,
// unless it was given in units of the data.
void settle_plan(TrackRun& run) {
  const TrackingData& data = run.prepared.data;
  run.options.stop_rule = stop_rule(run.request, data);
  run.plan.stop_nearest = run.options.stop_rule == StopRule::nearest ? 1 : 0;
  if (run.getter == Getter::boot) run.plan.boot_min_signal = static_cast<float>(data.prepared.min_signal);
}

}  // namespace

Status settle_track(TrackRequest given, RunMachine& machine, TrackRun& run) {
  CGL_TRY(fill_in_defaults(track_fields(), given));
  TrackRequest& request = run.request;
  request = std::move(given);
  if (request.from.given()) {
    CGL_TRY_ASSIGN(request, request_of_sidecar(request.from.value(), request));
  }
  if (request.prepared.given()) {
    for (const auto& [other, name] : {std::pair{request.from.given(), "from"},
                                      {request.data.given(), ""},
                                      {request.sh.given(), "sh"},
                                      {request.sf.given(), "sf"},
                                      {request.peaks.given(), "peaks"},
                                      {request.tensor.given(), "tensor"}}) {
      if (!other) continue;
      return fail(ErrorKind::invalid_argument, "{} and {} both name what is tracked; give one",
                  argument_name("prepared"),
                  *name == 0 ? std::string("a series") : fmt::format("{}", argument_name(name)));
    }
    CGL_TRY_ASSIGN(run.prepared_run, read_prepared_run(request.prepared.value()));
    CGL_TRY_ASSIGN(request, request_of_run(run.prepared_run->arguments, request.prepared.value(), request));
  }
  if (!run.wanted) {
    CGL_TRY_ASSIGN(run.wanted, wanted_devices(request, machine));
  }
  CGL_TRY_ASSIGN(run.getter, getter_from_name(request.dg.value()));
  return complete_request(request);
}

Result<TrackOutput> check_track_output(const TrackRequest& request, RunMachine& machine) {
  TrackOutput output;
  CGL_TRY_ASSIGN(output.path, tracking_output(request));
  const fs::path& out = output.path;
  CGL_TRY_ASSIGN(output.format, format_of_name(out));
  const TractogramFormat format = output.format;
  const bool trx = format == TractogramFormat::trx || format == TractogramFormat::trx_folder;
  if (request.save_seeds.value() && !trx) {
    return fail(ErrorKind::invalid_argument, "{}: {} has no place for it; write .trx", argument_name("save_seeds"),
                out.string());
  }
  CGL_TRY(check_layout_options(request, format, out));
  output.options = machine.write_options();
  CGL_TRY(check_tractogram_output(out.has_filename() ? out : out.parent_path(), format, output.options));
  CGL_TRY_ASSIGN(output.options.pool, machine.pool());
  return output;
}

Status prepare_field(const fs::path& out, RunMachine& machine, TrackRun& run) {
  const TrackRequest& request = run.request;
  if (request.explain.value()) {
    return fail(ErrorKind::invalid_argument, "{} is for the program: it says what a run takes and runs nothing",
                argument_name("explain"));
  }
  // What is tracked, and the plan, which needs the grid and is needed for the field.
  const PreparedRun* const prepared_run = run.prepared_run ? &*run.prepared_run : nullptr;
  CGL_TRY_ASSIGN(run.source, open_source(request, run.getter, out, prepared_run, *run.wanted, machine));
  TrackSource& source = run.source;
  CGL_TRY_ASSIGN(run.options, tracking_options(request, run.getter, source.geometry.smallest_edge_mm()));
  CGL_TRY_ASSIGN(run.plan, make_tracking_plan(run.options, source.geometry));
  fs::path made_mask = run.made_mask;
  if (made_mask.empty() && !out.empty()) made_mask = beside_series(out, ".mask.nii.gz");
  CGL_TRY_ASSIGN(run.prepared,
                 prepare_source(source, request, run.options, run.plan, made_mask, prepared_run, *run.wanted, machine));
  TrackingData& data = run.prepared.data;
  settle_plan(run);
  if (run.options.stop_rule == StopRule::nearest && request.stop_rule.value() == "auto") {
    log_info("the stopping map holds two values: a mask, taken voxel by voxel ({} trilinear interpolates it)",
             argument_name("stop_rule"));
  }
  if (request.seed_mask.given()) run.seed_mask = request.seed_mask.value();
  if (source.series) {
    run.seed_mask = source.series->seed_mask;
    run.found = source.series->found;
    run.limits = {.lowest_threshold = run.options.stop_threshold, .reach_voxels = run.plan.reach_voxels};
    if (prepared_run != nullptr) {
      run.phantom_hash = prepared_run->phantom_hash;
    } else if (source.series->phantom) {
      const fs::path& dwi = source.series->files.dwi;
      CGL_TRY_ASSIGN(run.phantom_hash, hash_of_file(dwi));
      CGL_TRY(check_repeated_phantom(request, dwi, run.phantom_hash));
    }
  }
  if (data.prepared.field.replaced > 0) {
    log_warning("{} numbers of the field were not finite or too small and count as 0",
                format_count(data.prepared.field.replaced));
  }
  // A prepared file holds numbers from which either precision is made.
  if (request.field_precision.value() == "half" && !request.prepare.given())
    CGL_TRY(store_as_float16(data.prepared.field));
  return {};
}

Status change_request(TrackRequest request, TrackRun& run) {
  // Two members say what is interpolated, and one of them has a default by getter: what they amount to counts.
  CGL_TRY_ASSIGN(const bool amplitudes, interpolates_amplitudes(request));
  CGL_TRY_ASSIGN(const bool field_of_amplitudes, interpolates_amplitudes(run.request));
  const auto says_the_same = [&](const TrackField& field) {
    using Member = decltype(field.member);
    return amplitudes == field_of_amplitudes &&
           (field.member == Member(&TrackRequest::interpolate) || field.member == Member(&TrackRequest::amplitudes));
  };
  for (const TrackField& field : track_fields()) {
    const bool makes = (field.phase == Phase::input || field.phase == Phase::field ||
                        (field.traits.decides_peaks && run.request.peaks.given())) &&
                       !says_the_same(field);
    if (!makes || field.values(request) == field.values(run.request)) continue;
    const std::string& name = field.argument.name;
    return fail_argument(name, "{} belongs to the field, which is made once; make another", argument_name(name));
  }
  CGL_TRY_ASSIGN(const Getter getter, getter_from_name(request.dg.value()));
  if ((getter == Getter::boot) != (run.getter == Getter::boot) ||
      (getter == Getter::tensor) != (run.getter == Getter::tensor)) {
    return fail_argument("dg", "{} {} tracks another field than {}; make another", argument_name("dg"),
                         getter_name(getter), getter_name(run.getter));
  }
  CGL_TRY_ASSIGN(const TrackingOptions options,
                 tracking_options(request, getter, run.source.geometry.smallest_edge_mm()));
  CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, run.source.geometry));
  CGL_TRY(run.limits.check(plan));
  if (request.seed_mask.given() && !request.arrays.seed_mask) run.seed_mask = request.seed_mask.value();
  run.request = std::move(request);
  run.getter = getter;
  run.options = options;
  run.plan = plan;
  settle_plan(run);
  return {};
}

Status plan_seeds(RunMachine& machine, TrackRun& run) {
  const TrackRequest& request = run.request;
  if (request.prepare.given()) {
    return fail(ErrorKind::invalid_argument, "{} is for the program: it writes a fit and tracks nothing",
                argument_name("prepare"));
  }
  const TrackSource& source = run.source;
  const TrackingData& data = run.prepared.data;
  const double smallest_edge = source.geometry.smallest_edge_mm();
  CGL_TRY_ASSIGN(ThreadPool* const pool, machine.pool());
  run.devices = {};  // they refer to what is made anew
  CGL_TRY_ASSIGN(run.seeds, make_seeds(request, data, run.seed_mask, source.grid()));
  CGL_TRY_ASSIGN(run.directions, given_directions(request, *run.seeds, data.geometry));

  TrackingRunOptions& run_options = run.run_options;
  run_options = {};
  CGL_TRY_ASSIGN(run_options.selection, selection_rules(request, run.options, run.plan, data.geometry));
  if (request.max_seeds.given() && !request.select.given()) {
    return fail(ErrorKind::invalid_argument, "{} limits {}; without it use {}", argument_name("max_seeds"),
                argument_name("select"), argument_name("nseeds"));
  }
  run_options.select = request.select.has() ? static_cast<std::uint64_t>(request.select.value()) : 0;
  run_options.max_seeds = request.max_seeds.has() ? static_cast<std::uint64_t>(request.max_seeds.value()) : 0;
  CGL_TRY_ASSIGN(run_options.range, seed_range_of_part(request, *run.seeds, run_options));
  run_options.keep_trail = run_options.range && run_options.select > 0;
  run_options.chunk_seeds = static_cast<std::uint64_t>(request.chunk_size.value());
  run_options.fixed_chunks = request.chunk_size.given();
  run_options.save_seeds = request.save_seeds.value();
  run_options.double_positions = request.float16.value() || request.float64.value();
  run_options.linearise_mm = request.linearise.has() ? request.linearise.value().in_mm(smallest_edge) : 0;
  run_options.max_segment_mm = request.max_segment_length.value().in_mm(smallest_edge);
  run_options.keep_partial = request.keep_partial.value();
  run_options.overlap = pool->threads() > 1;
  run_options.pool = pool;
  run_options.cancel = machine.cancel();
  return {};
}

Status prepare_seeds(RunMachine& machine, TrackRun& run) {
  CGL_TRY(plan_seeds(machine, run));
  CGL_TRY_ASSIGN(ThreadPool* const pool, machine.pool());
  CGL_TRY_ASSIGN(run.devices, tracking_devices(*run.wanted, *pool, run.plan, run.prepared.data.prepared.field,
                                               *run.seeds, run.directions ? &*run.directions : nullptr));
  return {};
}

TractogramLayout track_layout(const TrackRun& run, TractogramFormat format) {
  TractogramLayout layout;
  layout.format = format;
  layout.reference = run.prepared.data.geometry;
  layout.position_type = asked_position_type(run.request).value_or(element_type_of<float>());
  layout.deflated = run.request.deflate.value();
  layout.deflating_pool = run.run_options.pool;
  if (run.run_options.save_seeds) layout.streamline_fields = seed_fields(run.seeds->count());
  return layout;
}

Json track_facts(const TrackRun& run, const std::vector<RunInput>& inputs, const TrackingStatistics& statistics) {
  Json sidecar = {{"made_by", "cingulum track"}, {"rules", present_rules}};
  sidecar["arguments"] = arguments_for_sidecar(run.request);
  sidecar["inputs"] = write_json(inputs);
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

namespace {

// `output_sidecar` is null where there is no file.
Result<TrackOutcome> track_and_describe(TrackRun& run, TractogramWriter& writer, OutputSidecar* output_sidecar,
                                        Moment begin, RunMachine& machine, const TrackHooks& hooks) {
  const TrackRequest& request = run.request;
  const TrackingRunOptions& run_options = run.run_options;
  TrackOutcome outcome;
  outcome.geometry = run.prepared.data.geometry;
  outcome.timing = {
      .device = run.devices.names, .fitted_on = run.prepared.fitted_on, .prepare_seconds = seconds_since(begin)};
  outcome.asked_seeds = run_options.range ? run_options.range->count : run.seeds->count();
  const auto track_begin = Clock::now();
  // Inputs are hashed meanwhile, by a thread where one can be had.
  std::future<Result<std::vector<RunInput>>> inputs = std::async(std::launch::async | std::launch::deferred, [&] {
    return input_facts(request, run.found, run.prepared_run ? run.prepared_run->inputs : std::vector<RunInput>());
  });
  Progress progress("tracking", run_options.select > 0 ? 0 : outcome.asked_seeds, "seeds", machine.progress_options());
  CGL_TRY_ASSIGN(outcome.statistics, run_tracking(run.devices.pointers(), *run.seeds, run.prepared.data.geometry,
                                                  run_options, writer, &progress));
  if (hooks.tracked) hooks.tracked();
  const TrackingStatistics& statistics = outcome.statistics;
  if (statistics.kept == 0 && request.sh.given() && !request.pmf_threshold_absolute.given() &&
      run.plan.absolute_threshold > 0) {
    log_warning(
        "amplitudes below {} ({}, in units of CSD) count as zero: where {} is in other units, give a threshold in "
        "them, or 0",
        run.plan.absolute_threshold, argument_name("pmf_threshold_absolute"), request.sh.value());
  }
  if (statistics.interrupted && hooks.stopped) hooks.stopped();

  CGL_TRY_ASSIGN(const std::vector<RunInput> input_list, inputs.get());
  outcome.sidecar = track_facts(run, input_list, statistics);
  const auto describe = [&] {
    outcome.timing.track_seconds = seconds_since(track_begin);
    outcome.sidecar["run"] = run_json(statistics, request, machine, outcome.timing, seconds_since(begin));
    return hooks.sidecar ? hooks.sidecar(outcome.sidecar) : outcome.sidecar;
  };
  if (output_sidecar != nullptr) output_sidecar->describe(describe);
  CGL_TRY(writer.commit());
  if (output_sidecar == nullptr) describe();
  progress.finish();

  // A part does not know whether the others have enough.
  if (!statistics.select_reached && !run_options.range) {
    log_warning("{} {}: {} streamlines kept after {} seeds; raise {} or loosen the rules", argument_name("select"),
                format_count(run_options.select), format_count(statistics.kept), format_count(statistics.seeds),
                argument_name("max_seeds"));
  }
  return outcome;
}

}  // namespace

Result<TrackOutcome> track_into(TrackRun& run, TractogramWriter& writer, Moment begin, RunMachine& machine,
                                const TrackHooks& hooks) {
  return track_and_describe(run, writer, nullptr, begin, machine, hooks);
}

Result<TrackOutcome> track_to_file(TrackRun& run, const TrackOutput& output, Moment begin, RunMachine& machine,
                                   const TrackHooks& hooks) {
  const auto sidecar = std::make_shared<OutputSidecar>(output.path, output.options);
  CGL_TRY_ASSIGN(
      const std::unique_ptr<TractogramWriter> writer,
      TractogramWriter::create(output.path, track_layout(run, output.format), with_sidecar(output.options, sidecar)));
  CGL_TRY_ASSIGN(TrackOutcome outcome, track_and_describe(run, *writer, sidecar.get(), begin, machine, hooks));
  outcome.path = output.path;
  return outcome;
}

Result<TrackOutcome> track(TrackRequest request, RunMachine& machine, const TrackHooks& hooks) {
  const Moment begin = Clock::now();
  TrackRun run;
  CGL_TRY(settle_track(std::move(request), machine, run));
  CGL_TRY_ASSIGN(const TrackOutput output, check_track_output(run.request, machine));
  CGL_TRY(prepare_field(output.path, machine, run));
  CGL_TRY(prepare_seeds(machine, run));
  return track_to_file(run, output, begin, machine, hooks);
}

Result<TrackOutcome> track(TrackRequest request, RunMachine& machine, const MakeWriter& make_writer) {
  const Moment begin = Clock::now();
  TrackRun run;
  CGL_TRY(settle_track(std::move(request), machine, run));
  CGL_TRY(prepare_field({}, machine, run));
  CGL_TRY(prepare_seeds(machine, run));
  CGL_TRY_ASSIGN(TractogramWriter* const writer, make_writer(track_layout(run, TractogramFormat::trx)));
  return track_into(run, *writer, begin, machine);
}

}  // namespace cingulum
