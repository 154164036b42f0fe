// `cingulum oct run`: its arguments become an OctRequest, a call runs it (runs/oct/oct_run.hpp), and the result is
// printed.
#include "runs/oct/oct_run.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/oct_actions.hpp"

namespace cingulum {
namespace {

using RunJson = nlohmann::ordered_json;

// Says what the run would take.
void print_explanation(const OctExplanation& run, VerbContext& context) {
  const oct::RunNeeds& needs = run.needs;
  const double in_tiles = static_cast<double>(needs.memory_bytes) / static_cast<double>(needs.tile_bytes);
  const std::uint64_t once = std::min<std::uint64_t>(run.tiles, needs.kept_bytes / needs.tile_bytes);
  if (context.common().json) {
    context.print(json_text(RunJson{{"tiles", run.tiles},
                                    {"slices", run.slices},
                                    {"tile_bytes", needs.tile_bytes},
                                    {"tiles_of_slice", needs.tiles_of_slice},
                                    {"tiles_in_flight", needs.tiles_in_flight},
                                    {"slices_in_files", needs.slices_in_files},
                                    {"slice_planes_in_memory", needs.slice_planes},
                                    {"memory_bytes", needs.memory_bytes},
                                    {"memory_tiles", in_tiles},
                                    {"tiles_read_once", once},
                                    {"device_bytes", needs.device_bytes},
                                    {"comparing_device_bytes", needs.comparing_device_bytes},
                                    {"work_bytes", needs.work_bytes},
                                    {"volume_bytes", needs.volume_bytes}}));
    return;
  }
  context.print_format("{} tiles of {} in {} slices of at most {} tiles, {} read or worked at a time\n", run.tiles,
                       format_bytes(needs.tile_bytes), run.slices, needs.tiles_of_slice, needs.tiles_in_flight);
  context.print_format("memory: {}, as much as {:.1f} tiles; {} of {} tiles are read once, the others twice\n",
                       format_bytes(needs.memory_bytes), in_tiles, once, run.tiles);
  if (needs.slices_in_files) {
    context.print_format("slices are made through temporary files, {} planes at a time\n", needs.slice_planes);
  } else {
    context.print("slices are made in memory\n");
  }
  context.print_format(
      "memory of each device: {} at least, and {} of the first GPU to compare tiles; tiles stay there while it has "
      "room "
      "for them\n",
      format_bytes(needs.device_bytes), format_bytes(needs.comparing_device_bytes));
  context.print_format("disk: {} for slices until the volume is written, {} for its finest level\n",
                       format_bytes(needs.work_bytes), format_bytes(needs.volume_bytes));
}

}  // namespace

Status run_oct_run(const ParsedArguments& arguments, VerbContext& context) {
  OctRequest request = oct_request(arguments);
  CGL_TRY(oct_output(arguments));
  // With --from the tiles are those of the run, unless others are named.
  if (!request.from.given() || !arguments.texts("paths").empty()) {
    CGL_TRY_ASSIGN(const std::filesystem::path input, oct_input(arguments));
    request.tiles = input.string();
  }
  if (arguments.flag("explain")) {
    CGL_TRY_ASSIGN(const OctExplanation explanation, explain_reconstruction(std::move(request), context));
    print_explanation(explanation, context);
    return {};
  }
  CGL_TRY_ASSIGN(const OctOutcome outcome, reconstruct(std::move(request), context));
  if (context.common().json) {
    context.print(json_text(outcome_json(outcome)));
    return {};
  }
  context.print_format("{}: {} slices of {} tiles, {} x {} x {} voxels\n", outcome.volume.native(), outcome.slices,
                       outcome.tiles, outcome.shape[0], outcome.shape[1], outcome.shape[2]);
  return {};
}

}  // namespace cingulum
