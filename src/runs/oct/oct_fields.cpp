#include "runs/oct/oct_fields.hpp"

#include <utility>

namespace cingulum {
namespace {

constexpr Range from_zero{.minimum = 0.0};
constexpr Range above_zero{.minimum = 0.0, .above = true};
constexpr Range share{.minimum = 0.0, .maximum = 1.0};

// The actions that read or write a volume.
const std::vector<std::string> volume_actions = {"resample", "interface", "curvature",   "flatfield", "stitch",
                                                 "aip",      "profile",   "attenuation", "normalise", "register",
                                                 "stack",    "overlap",   "grid",        "run"};
const std::vector<std::string> volume_writers = {"resample", "interface",   "curvature", "flatfield", "stitch", "aip",
                                                 "profile",  "attenuation", "normalise", "stack",     "run"};

Argument number(std::string name, std::vector<std::string> actions, std::string help, Range range,
                std::string default_text = {}, std::string unit = {}) {
  return {.name = std::move(name),
          .type = ArgumentType::real,
          .help = std::move(help),
          .unit = std::move(unit),
          .range = range,
          .default_text = std::move(default_text),
          .actions = std::move(actions)};
}

Argument whole_number(std::string name, std::vector<std::string> actions, std::string help, double minimum,
                      std::string default_text = {}) {
  return {.name = std::move(name),
          .type = ArgumentType::integer,
          .help = std::move(help),
          .metavar = "N",
          .range = {.minimum = minimum},
          .default_text = std::move(default_text),
          .actions = std::move(actions)};
}

Argument flag(std::string name, std::vector<std::string> actions, std::string help) {
  return {.name = std::move(name), .type = ArgumentType::flag, .help = std::move(help), .actions = std::move(actions)};
}

void add_tiles(std::vector<RequestField<OctRequest>>& table) {
  table.push_back({&OctRequest::tiles,
                   Phase::input,
                   {.name = "tiles",
                    .type = ArgumentType::text,
                    .help = "a folder of raw tiles, or a table of tiles",
                    .metavar = "TILES",
                    .positional = true,
                    .required = true}});
  table.push_back(
      {&OctRequest::out,
       Phase::destination,
       {.name = "out", .type = ArgumentType::text, .help = "what is written", .metavar = "PATH", .letter = 'o'}});
  table.push_back({&OctRequest::from,
                   Phase::recipe,
                   {.name = "from",
                    .type = ArgumentType::file_in,
                    .help = "repeat the run of a sidecar (VOLUME.json); options given beside it take precedence",
                    .metavar = "FILE",
                    .actions = {"run"}}});
  table.push_back({&OctRequest::axial_step, Phase::input,
                   number("axial-step", {"simulate", "grid", "run"},
                          "distance of planes; raw tiles do not state it (simulate: 3.5)", above_zero, {}, "um")});
  table.push_back({&OctRequest::unit,
                   Phase::input,
                   {.name = "unit",
                    .help = "unit of length of images that state none, such as micrometer",
                    .metavar = "WORD",
                    .actions = volume_actions}});
  table.push_back({&OctRequest::allow_missing, Phase::input,
                   flag("allow-missing", {"grid", "register", "stack", "run"},
                        "go on without tiles, slices and chunks that are missing: they weigh nothing")});
  table.push_back(
      {&OctRequest::average_repeats, Phase::input,
       flag("average-repeats", {"grid", "run"}, "take the mean of B-scans that raw tiles hold n_repeat times")});
  table.push_back({&OctRequest::galvo_line, Phase::input,
                   whole_number("galvo-line", {"grid", "run"},
                                "the last good A-line before the galvo's band, instead of finding it", 0)});
}

void add_stitching(std::vector<RequestField<OctRequest>>& table) {
  table.push_back({&OctRequest::search, Phase::field,
                   whole_number("search", {"stitch", "run"},
                                "pixels around the motor's step in which neighbours are looked for", 1, "12")});
  table.push_back(
      {&OctRequest::smoothing, Phase::field,
       number("smoothing", {"stitch", "run"}, "of the projections that are compared, in pixels", from_zero, "1.5")});
  table.push_back({&OctRequest::max_rejected, Phase::field,
                   number("max-rejected", {"stitch", "run"},
                          "share of links between tiles that may be weak or contradict the others", share, "0.5")});
  table.push_back({&OctRequest::blending,
                   Phase::field,
                   {.name = "blending",
                    .type = ArgumentType::choice,
                    .help = "weights where tiles overlap; none takes the nearest tile alone",
                    .default_text = "cosine",
                    .choices = {"cosine", "average", "none"},
                    .actions = {"stitch", "run"}}});
  table.push_back({&OctRequest::pyramid,
                   Phase::output,
                   {.name = "pyramid",
                    .help = "levels of a volume that is written, or auto: until a level is one chunk",
                    .metavar = "N|auto",
                    .default_text = "1",
                    .actions = volume_writers}});
}

void add_attenuation(std::vector<RequestField<OctRequest>>& table) {
  table.push_back({&OctRequest::method,
                   Phase::field,
                   {.name = "method",
                    .type = ArgumentType::choice,
                    .help = "what is taken for the light below a line; li also takes the noise floor away",
                    .default_text = "li",
                    .choices = {"vermeer", "smith", "liu", "li"},
                    .actions = {"attenuation", "run"}}});
  table.push_back({&OctRequest::strength, Phase::field,
                   number("strength", {"attenuation", "run"}, "of the compensation; 1 is theory", from_zero, "0.3")});
  table.push_back(
      {&OctRequest::floor, Phase::field,
       number("floor", {"attenuation", "run"}, "noise floor of li, instead of the median outside tissue", from_zero)});
  table.push_back({&OctRequest::median, Phase::field,
                   whole_number("median", {"attenuation", "run"},
                                "lateral window in pixels before it is measured; 1: none", 1, "10")});
}

void add_surface(std::vector<RequestField<OctRequest>>& table) {
  const std::vector<std::string> actions = {"interface", "curvature", "run"};
  table.push_back(
      {&OctRequest::s_xy, Phase::field,
       whole_number("s-xy", actions, "lateral box in pixels before the tissue's surface is looked for", 0, "15")});
  table.push_back({&OctRequest::s_z, Phase::field,
                   number("s-z", actions, "width of the derivative along depth, in planes", above_zero, "2")});
  table.push_back(
      {&OctRequest::no_log, Phase::field, flag("no-log", actions, "values as they are, not their logarithm")});
  table.push_back({&OctRequest::detect_cutting_errors, Phase::field,
                   flag("detect-cutting-errors", actions, "a brighter plane above wins")});
  Argument resolution = number("resolution", {"resample", "run"}, "edge of the new voxels", above_zero, {}, "um");
  resolution.default_note = "10 for resample; run leaves voxels as they are";
  table.push_back({&OctRequest::resolution, Phase::field, std::move(resolution)});
}

void add_whole_run(std::vector<RequestField<OctRequest>>& table) {
  table.push_back(
      {&OctRequest::no_flat_field, Phase::field, flag("no-flat-field", {"run"}, "leave uneven light as it is")});
  table.push_back({&OctRequest::no_curvature, Phase::field,
                   flag("no-curvature", {"run"}, "leave focal curvature and the depths of tiles as they are")});
  table.push_back(
      {&OctRequest::no_crop, Phase::field, flag("no-crop", {"run"}, "keep the planes above the tissue's surface")});
  table.push_back({&OctRequest::crop_depth, Phase::field,
                   number("crop-depth", {"run"}, "of a slice below its surface; without it, what all A-lines have",
                          above_zero, {}, "um")});
  table.push_back({&OctRequest::no_profile, Phase::field,
                   flag("no-profile", {"run"}, "leave the axial profile; without agarose it is left anyway")});
  table.push_back({&OctRequest::no_attenuation, Phase::field,
                   flag("no-attenuation", {"run"},
                        "leave attenuation; --method, --strength, --floor and --median say how it is made up")});
  table.push_back({&OctRequest::normalise_planes, Phase::field,
                   flag("normalise-planes", {"run"}, "take the background of each plane away and divide by one span")});
  table.push_back({&OctRequest::keep, Phase::machine, flag("keep", {"run"}, "leave the stitched slices in OUT.work")});
  table.push_back({&OctRequest::compat,
                   Phase::field,
                   {.name = "compat",
                    .type = ArgumentType::choice,
                    .help = "methods of these scripts where ours differ (docs/oct.md)",
                    .choices = {"linumpy"},
                    .actions = {"run", "flatfield", "curvature", "resample", "stack"}}});
  table.push_back({&OctRequest::memory,
                   Phase::machine,
                   {.name = "memory",
                    .type = ArgumentType::bytes,
                    .help = "what it may take; where a slice is too large for that, it is made through temporary files "
                            "in OUT.work, a few planes at a time, with the same bytes (default: what the machine has "
                            "free)",
                    .actions = {"run"}}});
  table.push_back({&OctRequest::tile_memory,
                   Phase::machine,
                   {.name = "tile-memory",
                    .type = ArgumentType::bytes,
                    .help = "of tiles that stay in memory from one reading, besides those of one slice that is made "
                            "there",
                    .default_text = "0",
                    .actions = {"run"}}});
}

void add_series(std::vector<RequestField<OctRequest>>& table) {
  table.push_back({&OctRequest::slicing_interval, Phase::field,
                   number("slicing-interval", {"register", "stack", "overlap", "run"},
                          "between slices, instead of the stage's positions", above_zero, {}, "mm")});
  table.push_back({&OctRequest::search_range, Phase::field,
                   number("search-range", {"register", "overlap", "run"}, "to either side of the slicing interval",
                          from_zero, "0.1", "mm")});
  table.push_back(
      {&OctRequest::moving_plane, Phase::field,
       whole_number("moving-plane", {"register", "stack", "run"},
                    "first plane of a slice that is compared; planes above are left out of the volume", 0, "4")});
  table.push_back({&OctRequest::planes, Phase::field,
                   whole_number("planes", {"register", "run"}, "planes of two slices that are compared", 1, "5")});
  table.push_back(
      {&OctRequest::max_rotation, Phase::field,
       number("max-rotation", {"register", "stack", "run"}, "of neighbouring slices", from_zero, "5", "deg")});
  table.push_back({&OctRequest::max_shift, Phase::field,
                   number("max-shift", {"register", "stack", "run"},
                          "of neighbouring slices, besides the motors', in pixels", from_zero, "20")});
  const std::vector<std::string> actions = {"stack", "run"};
  table.push_back(
      {&OctRequest::confidence_high, Phase::field,
       number("confidence-high", actions, "from there on a registration's turn and shift are used", share, "0.6")});
  table.push_back({&OctRequest::confidence_low, Phase::field,
                   number("confidence-low", actions, "from there on its turn alone", share, "0.3")});
  table.push_back({&OctRequest::smooth_window, Phase::field,
                   whole_number("smooth-window", actions, "slices over which turns are averaged; 0: none", 0, "0")});
  table.push_back(
      {&OctRequest::translation_smooth_sigma, Phase::field,
       number("translation-smooth-sigma", actions, "slices over which shifts are smoothed; 0: none", from_zero, "0")});
  table.push_back({&OctRequest::max_cumulative_drift, Phase::field,
                   number("max-cumulative-drift", actions, "of slices from the motors' place, in pixels; 0: any",
                          from_zero, "50")});
  table.push_back({&OctRequest::decisions,
                   Phase::destination,
                   {.name = "decisions",
                    .help = "write what was decided about slices as a table, too",
                    .metavar = "FILE",
                    .actions = actions}});
}

}  // namespace

RequestTable<OctRequest> oct_fields() {
  static const std::vector<RequestField<OctRequest>> rows = [] {
    std::vector<RequestField<OctRequest>> table;
    add_tiles(table);
    add_stitching(table);
    add_attenuation(table);
    add_surface(table);
    add_whole_run(table);
    add_series(table);
    table.push_back({&OctRequest::device, Phase::machine, device_argument()});
    return table;
  }();
  return rows;
}

}  // namespace cingulum
