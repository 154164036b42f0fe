// `cingulum merge`: the parts of a run of `cingulum track`, joined. The work is runs/track/merge_parts.hpp's.
#include "runs/track/merge_parts.hpp"

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/verb.hpp"

namespace cingulum {

Verb merge_verb();

namespace {

Status run_merge(const ParsedArguments& arguments, VerbContext& context) {
  const std::vector<std::string> names = arguments.texts("parts");
  CGL_TRY_ASSIGN(MergeOutcome merged, merge_parts({names.begin(), names.end()}, arguments.text("out"), context));
  if (context.common().json) {
    merged.sidecar["file"] = merged.path.string();
    context.print(json_text(merged.sidecar));
    return {};
  }
  context.print_format("{}: {} parts, {} seeds, {} streamlines, {} points\n", merged.path.string(), merged.parts,
                       format_count(merged.seeds), format_count(merged.streamlines), format_count(merged.points));
  return {};
}

}  // namespace

Verb merge_verb() {
  return {
      .name = "merge",
      .summary = "join the parts of a tracking run into the file of the whole run",
      .description =
          "Takes the parts that `cingulum track --seed-range` or `--part` wrote, in any order, from any machines and "
          "devices, and writes the file that the undivided run would have written: the same bytes, and a sidecar that "
          "differs in `run` alone. With --select the first streamlines in the order of the seeds are taken, as many as "
          "were asked for.\n\n"
          "Parts of other data, options, keys or versions, missing seeds, seeds that come twice, and parts that are "
          "partial or damaged are named, and nothing is written. Memory does not grow with the files.",
      .arguments = {{.name = "parts",
                     .type = ArgumentType::text,
                     .help = "tractograms with their sidecars, in any order",
                     .metavar = "PART",
                     .positional = true,
                     .required = true,
                     .repeatable = true},
                    {.name = "out",
                     .type = ArgumentType::text,
                     .help = "the whole: of the format of the parts",
                     .metavar = "FILE",
                     .required = true}},
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress},
      .examples = {{"cingulum merge part*.trx --out tracks.trx", "parts of eight nodes"},
                   {"cingulum merge a.tck b.tck --out all.tck --json", "with what the sidecar says, for a script"}},
      .run = run_merge,
  };
}

}  // namespace cingulum
