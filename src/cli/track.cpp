// `cingulum track`: its arguments become a TrackRequest, a call runs it (runs/track/track_run.hpp), and the result is
// printed.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/interrupt.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/request_arguments.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "runs/track/track_explain.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_prepared.hpp"
#include "runs/track/track_run.hpp"

namespace cingulum {

Verb track_verb();

namespace {

namespace fs = std::filesystem;

// --seed is an option of many verbs.
bool is_common(const TrackField& field) {
  return field.argument.name == "seed";
}

void print_explanation(const RunExplanation& explanation, VerbContext& context) {
  if (context.common().json) {
    context.print(json_text(explanation_json(explanation)));
    return;
  }
  const RunEstimate& estimate = explanation.estimate;
  Table table({{""}, {"", Align::right}});
  table.add_row({"device", explanation.device});
  table.add_row({"memory of the host, at most", format_bytes(estimate.host_bytes)});
  if (explanation.facts.on_gpu) table.add_row({"memory of the device, at most", format_bytes(estimate.device_bytes)});
  table.add_row({explanation.seeds_known ? "seeds" : "seeds, at most", format_count(explanation.facts.seeds)});
  table.add_row({"streamlines, about", format_count(estimate.streamlines)});
  table.add_row({"points, about", format_count(estimate.points)});
  table.add_row({"bytes of the file, about", format_bytes(estimate.bytes)});
  table.add_row({"seconds of a core, about",
                 fmt::format("{:.0f} to prepare, {:.0f} to track", estimate.prepare_seconds, estimate.track_seconds)});
  context.print(table.text(2));
}

void print_result(const TrackingStatistics& statistics, const fs::path& out, const TrackTiming& timing,
                  VerbContext& context) {
  Table table({{""}, {"", Align::right}});
  table.add_row({"seeds", format_count(statistics.seeds)});
  table.add_row({"streamlines", format_count(statistics.streamlines)});
  if (statistics.too_short > 0) table.add_row({"too short", format_count(statistics.too_short)});
  if (statistics.too_long > 0) table.add_row({"too long", format_count(statistics.too_long)});
  if (statistics.too_few_points > 0) table.add_row({"too few points", format_count(statistics.too_few_points)});
  if (statistics.too_many_points > 0) table.add_row({"too many points", format_count(statistics.too_many_points)});
  if (statistics.refused_by_regions > 0)
    table.add_row({"refused by regions", format_count(statistics.refused_by_regions)});
  table.add_row({"kept", format_count(statistics.kept)});
  table.add_row({"points", format_count(statistics.points)});
  table.add_row({"mean length", fmt::format("{:.2f} mm", statistics.lengths.mean_mm())});
  table.add_row({"median length", fmt::format("{:.1f} mm", statistics.lengths.quantile_mm(0.5))});
  for (std::size_t i = 1; i < end_reason_count; ++i) {
    if (statistics.end_reasons[i] == 0) continue;
    table.add_row(
        {fmt::format("ends: {}", end_reason_name(static_cast<EndReason>(i))), format_count(statistics.end_reasons[i])});
  }
  const double seconds = std::max(timing.track_seconds, 1e-9);
  context.print_format("{}\n{}", out.string(), table.text(2));
  context.print_format("  prepared in {}, tracked on {} and written in {} ({:.2f} M points/s)\n",
                       format_duration(std::chrono::duration<double>(timing.prepare_seconds)), timing.device,
                       format_duration(std::chrono::duration<double>(timing.track_seconds)),
                       static_cast<double>(statistics.points) / seconds / 1e6);
}

Status run_prepare(TrackRun& run, VerbContext& context) {
  const TrackRequest& request = run.request;
  for (const auto& [given, other] : {std::pair{request.out.given(), "out"},
                                     {request.output_prefix.given(), "output-prefix"},
                                     {request.seed_range.given(), "seed-range"},
                                     {request.part.given(), "part"},
                                     {request.prepared.given(), "prepared"}}) {
    if (!given) continue;
    return fail(ErrorKind::invalid_argument, "--prepare and --{} exclude each other: it makes the fit alone", other);
  }
  const fs::path path = request.prepare.value();
  CGL_TRY(check_output(path, context.write_options()));
  CGL_TRY(prepare_field({}, context, run));
  CGL_TRY(write_prepared(run, path, context));
  if (context.common().json) {
    context.print(json_text({{"file", path.string()}, {"model", run.prepared.data.prepared.facts}}));
  } else {
    context.print_format("{}: track it by --prepared\n", path.string());
  }
  context.leave_process();
  return {};
}

Status run_track(const ParsedArguments& arguments, VerbContext& context) {
  TrackRequest request = request_of_arguments(track_fields(), arguments);
  if (request.explain.value() || request.prepare.given()) {
    TrackRun run;
    CGL_TRY(settle_track(std::move(request), context, run));
    if (!run.request.explain.value()) return run_prepare(run, context);
    CGL_TRY_ASSIGN(const RunExplanation explanation, explain_run(run, context));
    print_explanation(explanation, context);
    return {};
  }
  CGL_TRY_ASSIGN(TrackOutcome outcome, track(std::move(request), context, {.stopped = clear_interrupt}));
  if (context.common().json) {
    outcome.sidecar["file"] = outcome.path.string();
    context.print(json_text(outcome.sidecar));
  } else {
    print_result(outcome.statistics, outcome.path, outcome.timing, context);
  }
  if (outcome.statistics.interrupted) {
    return fail(ErrorKind::interrupted, "stopped: {} holds the {} finished seeds of {}", outcome.path.string(),
                format_count(outcome.statistics.seeds), format_count(outcome.asked_seeds));
  }
  context.leave_process();
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
      .arguments = arguments_of_table(track_fields(), is_common),
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
