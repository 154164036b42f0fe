// `cingulum batch`: tractography of a BIDS dataset, subject after subject in one process, as a BIDS App. The parts are
// batch_units (which series), batch_run (the work), batch_dataset (what is written besides), batch_failures and, for
// the level `group`, report/cohort_page.
#include <algorithm>
#include <string>
#include <system_error>

#include "base/json_text.hpp"
#include "base/progress.hpp"
#include "base/quantity.hpp"
#include "base/shell_word.hpp"
#include "cli/request_arguments.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "formats/output_sidecar.hpp"
#include "report/cohort_page.hpp"
#include "runs/batch/batch_dataset.hpp"
#include "runs/batch/batch_failures.hpp"
#include "runs/batch/batch_run.hpp"
#include "runs/batch/batch_units.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_sidecar.hpp"

namespace cingulum {

Verb batch_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<Argument> batch_arguments() {
  std::vector<Argument> list = {
      {.name = "bids",
       .type = ArgumentType::file_in,
       .help = "the dataset: raw, or derivatives such as QSIPrep's, whose masks are found",
       .metavar = "BIDS",
       .positional = true,
       .required = true},
      {.name = "to",
       .type = ArgumentType::text,
       .help = "the folder of the results, a dataset of derivatives; BIDS/derivatives/cingulum is a good one",
       .metavar = "OUT",
       .positional = true,
       .required = true},
      {.name = "level",
       .type = ArgumentType::choice,
       .help = "participant tracks; group makes the page of the cohort, OUT/cohort.html, of the tractograms in OUT",
       .metavar = "LEVEL",
       .choices = {"participant", "group"},
       .positional = true,
       .required = true},
      {.name = "participant-label",
       .type = ArgumentType::text,
       .help = "these subjects alone; several may follow, or be separated by commas",
       .metavar = "LABEL",
       .repeatable = true,
       .takes_several = true},
      {.name = "session-label",
       .type = ArgumentType::text,
       .help = "these sessions alone, given likewise",
       .metavar = "LABEL",
       .repeatable = true,
       .takes_several = true},
      {.name = "list",
       .type = ArgumentType::file_in,
       .help = "the subjects of a table: its column participant_id and, where it has one, session_id",
       .metavar = "FILE.tsv"},
      {.name = "shard",
       .type = ArgumentType::text,
       .help = "part I of N of the series, from 1 on: for arrays of jobs",
       .metavar = "I/N"},
      {.name = "failures",
       .type = ArgumentType::text,
       .help = "the list of what failed; OUT/failures.tsv unless given, OUT/failures-IofN.tsv with --shard",
       .metavar = "FILE.tsv"},
      {.name = "at-once",
       .type = ArgumentType::integer,
       .help =
           "series under way at the same time, at most; by threads and device unless given, and no more than memory "
           "allows",
       .range = {.minimum = 1, .maximum = 64}},
      {.name = "truth",
       .type = ArgumentType::file_in,
       .help = "group: score each tractogram by the truth of this phantom",
       .metavar = "FOLDER"},
      {.name = "picture-size",
       .type = ArgumentType::integer,
       .help = "group: pixels of the edge of a view; 0 for no pictures, which reads sidecars alone",
       .range = {.minimum = 0, .maximum = 600},
       .default_text = "150"},
  };
  // --seed is among the options of many verbs.
  const auto left_out = [](const TrackField& field) {
    return field.traits.of_one_series || field.argument.name == "seed";
  };
  for (Argument& argument : arguments_of_table(track_fields(), left_out)) list.push_back(std::move(argument));
  return list;
}

fs::path failures_path(const ParsedArguments& arguments, const fs::path& out) {
  if (arguments.given("failures")) return arguments.text("failures");
  if (!arguments.given("shard")) return out / "failures.tsv";
  std::string shard = arguments.text("shard");
  shard.replace(shard.find('/'), 1, "of");
  return out / fmt::format("failures-{}.tsv", shard);
}

// The command with the options that decide the result, for one unit to be added.
std::string command_without_labels(const ParsedArguments& arguments, const TrackRequest& request) {
  std::string command = fmt::format("cingulum batch {} {} participant", shell_word(arguments.text("bids")),
                                    shell_word(arguments.text("to")));
  const auto wanted = [](const TrackField& field) {
    return decides_result(field.phase) || field.member == decltype(field.member)(&TrackRequest::preset);
  };
  for (const ArgumentText& given : given_texts(track_fields(), request, wanted)) {
    if (given.is_flag) command += fmt::format(" --{}", given.name);
    for (const std::string& text : given.texts) command += fmt::format(" --{} {}", given.name, shell_word(text));
  }
  return command;
}

Status check_folders(const fs::path& dataset, const fs::path& out) {
  std::error_code error;
  if (!fs::is_directory(dataset, error)) {
    return fail(ErrorKind::invalid_argument, "BIDS '{}': it is not a folder", dataset.string());
  }
  if (fs::exists(out, error) && !fs::is_directory(out, error)) {
    return fail(ErrorKind::invalid_argument, "OUT '{}': it is not a folder", out.string());
  }
  if (fs::equivalent(dataset, out, error)) {
    return fail(ErrorKind::invalid_argument, "OUT '{}' is the dataset itself; give a folder of its own", out.string());
  }
  return {};
}

void print_batch(const BatchSummary& summary, const FailureTable& failures, VerbContext& context) {
  if (context.common().json) {
    context.print(json_text({{"done", summary.done},
                             {"finished_before", summary.finished_before},
                             {"failed", summary.failed},
                             {"seconds", summary.seconds},
                             {"failures", failures.path().string()}}));
    return;
  }
  Table table({{""}, {"", Align::right}});
  table.add_row({"series tracked", format_count(summary.done)});
  table.add_row({"finished before", format_count(summary.finished_before)});
  table.add_row({"failed", format_count(summary.failed)});
  context.print(table.text(2));
}

Status run_group(const ParsedArguments& arguments, VerbContext& context) {
  CohortRequest request;
  request.folder = arguments.text("to");
  if (arguments.given("truth")) request.truth = arguments.text("truth");
  request.picture_pixels = static_cast<int>(arguments.integer("picture-size"));
  request.cancel = context.cancel();
  std::error_code ignored;
  if (!fs::is_directory(request.folder, ignored)) {
    return fail(ErrorKind::invalid_argument, "OUT '{}': it is not a folder", request.folder.string());
  }
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  Cohort cohort;
  {
    Progress progress("reading", 0, "tractograms", context.progress_options());
    CGL_TRY_ASSIGN(cohort, survey_cohort(request, *pool, [&] { progress.advance(); }));
    progress.finish();
  }
  // What is there is of an earlier state of the same folder.
  WriteOptions write = context.write_options();
  write.force = true;
  const fs::path page = request.folder / "cohort.html";
  Progress progress("drawing", cohort.subjects.size(), "tractograms", context.progress_options());
  CGL_TRY(write_cohort_page(page, cohort, request, without_sidecar(page, write), *pool, [&] { progress.advance(); }));
  progress.finish();
  if (context.common().json) {
    context.print(json_text(cohort_json(cohort)));
  } else {
    const auto far = std::count_if(cohort.subjects.begin(), cohort.subjects.end(),
                                   [](const CohortSubject& subject) { return !subject.outlying.empty(); });
    context.print_format("{}: {} tractograms, {} far from the others\n", page.string(), cohort.subjects.size(), far);
  }
  return {};
}

Status run_batch_verb(const ParsedArguments& arguments, VerbContext& context) {
  if (arguments.text("level") == "group") return run_group(arguments, context);
  BatchOptions options;
  options.dataset = arguments.text("bids");
  options.out = arguments.text("to");
  CGL_TRY(check_folders(options.dataset, options.out));
  if (arguments.given("at-once")) options.at_once = static_cast<int>(arguments.integer("at-once"));
  const TrackRequest request = request_of_arguments(track_fields(), arguments);
  const BatchChoice choice = {.participants = arguments.texts("participant-label"),
                              .sessions = arguments.texts("session-label"),
                              .list = arguments.given("list") ? arguments.text("list") : "",
                              .shard = arguments.given("shard") ? arguments.text("shard") : ""};
  CGL_TRY_ASSIGN(const BatchUnits units, find_batch_units(options.dataset, choice));
  if (request.explain.value()) {
    CGL_TRY_ASSIGN(const Json json, explain_batch(options, units, request, context));
    context.print(json_text(json));
    return {};
  }
  options.command = command_without_labels(arguments, request);
  const WriteOptions write = context.write_options();
  CGL_TRY(write_dataset_files(options.out, options.dataset, write));
  std::vector<std::string> names;
  for (const BidsSeries& series : units.series) names.push_back(series.unit());
  for (const BatchFailure& failure : units.failures) names.push_back(failure.unit);
  CGL_TRY_ASSIGN(FailureTable failures, FailureTable::open(failures_path(arguments, options.out), names, write));
  CGL_TRY(failures.write());
  CGL_TRY_ASSIGN(const BatchSummary summary, run_batch(options, units, request, failures, context));
  print_batch(summary, failures, context);
  if (summary.failed > 0) {
    return fail(ErrorKind::io, "{} of {} failed: {} says why and how to repeat them", format_count(summary.failed),
                format_count(summary.failed + summary.done + summary.finished_before), failures.path().string());
  }
  context.leave_process();
  return {};
}

}  // namespace

Verb batch_verb() {
  return {
      .name = "batch",
      .summary = "track the subjects of a BIDS dataset",
      .description =
          "Works through the diffusion series of a BIDS dataset in one process: the next are read while one is fitted "
          "and tracked, the last is written behind; devices and threads are made once, and memory decides how many are "
          "under way. Each tractogram has the bytes that `cingulum track` writes with the same options.\n\n"
          "b-values and b-vectors are found by BIDS's rule of inheritance, a brain mask beside the series "
          "(desc-brain_mask); without one a mask is made and written. Outputs are named after the draft for "
          "tractography "
          "(BEP046), with a sidecar NAME_tractogram.json that names no machine, user or path.\n\n"
          "A series that fails is a line of failures.tsv, with the error and the command to repeat it; the others go "
          "on, "
          "and the exit code is 1 at the end. What is finished, by its options and the hashes of its inputs, is not "
          "tracked again: a batch that was stopped or killed is repeated as it was given. Workers need no locks: give "
          "each a --shard of its own.\n\n"
          "The level group writes OUT/cohort.html: a row for each tractogram with its numbers, a picture and, with "
          "--truth, "
          "its score; what lies far from the others is marked.",
      .arguments = batch_arguments(),
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress,
                 CommonOption::seed},
      .examples = {{"cingulum batch study study/derivatives/cingulum participant --dg prob", "all subjects"},
                   {"cingulum batch study out participant --participant-label 01 02", "two of them"},
                   {"cingulum batch study out participant --shard 3/16", "the third job of an array of 16"},
                   {"cingulum batch study out participant --explain --json", "what each would take"},
                   {"cingulum batch study out group", "the page of the cohort, out/cohort.html"}},
      .references =
          {"K. J. Gorgolewski et al., BIDS apps: improving ease of use, accessibility, and reproducibility of "
           "neuroimaging data analysis methods, PLoS Comput. Biol. 13, e1005209, 2017"},
      .run = run_batch_verb,
  };
}

}  // namespace cingulum
