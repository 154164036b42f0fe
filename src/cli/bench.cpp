// `cingulum bench track`: measure/track_bench.hpp's report as tables. The table of the README comes from here.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "formats/output_sidecar.hpp"
#include "measure/track_bench.hpp"

namespace cingulum {

Verb bench_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Cells of a table; empty where the row has no such number.
std::string bench_real(const Json& of, const char* name, int digits, double scale = 1) {
  return of.contains(name) ? fmt::format("{:.{}f}", scale * of[name].get<double>(), digits) : std::string();
}

std::string bench_count(const Json& of, const char* name) {
  return of.contains(name) ? format_count(of[name].get<std::uint64_t>()) : std::string();
}

std::string table_of_typed(const Json& rows) {
  Table table({{"track --dg"},
               {"device"},
               {"file to file s", Align::right},
               {"prepared in s", Align::right},
               {"tracked, written in s", Align::right},
               {"processor s", Align::right},
               {"streamlines", Align::right},
               {"mean mm", Align::right},
               {"valid", Align::right},
               {"F1", Align::right}});
  for (const Json& row : rows) {
    const Json score = row.value("score", Json::object());
    table.add_row({row["scenario"].get<std::string>().substr(sizeof("typed")), row["device"].get<std::string>(),
                   bench_real(row, "seconds", 3), bench_real(row, "prepare_seconds", 3),
                   bench_real(row, "tracking_seconds", 3), bench_real(row, "processor_seconds", 2),
                   format_count(static_cast<std::uint64_t>(row["kept"].get<double>())),
                   bench_real(row, "mean_length_mm", 1), bench_real(score, "valid", 3), bench_real(score, "f1", 3)});
  }
  return table.text(2);
}

std::string table_of_rows(const Json& rows) {
  Table table({{"getter"},
               {"device"},
               {"tracking s", Align::right},
               {"M points/s", Align::right},
               {"M steps/s", Align::right},
               {"kernel M points/s", Align::right},
               {"unsorted", Align::right},
               {"to TRX s", Align::right},
               {"to disk s", Align::right},
               {"copy s", Align::right},
               {"streamlines", Align::right},
               {"mean mm", Align::right},
               {"median mm", Align::right},
               {"commissural", Align::right},
               {"F1", Align::right},
               {"field MB", Align::right},
               {"equal"}});
  for (const Json& row : rows) {
    if (row.contains("refused")) continue;
    const Json score = row.value("score", Json::object());
    table.add_row(
        {row["scenario"].get<std::string>(), row["device"].get<std::string>(), bench_real(row, "tracking_seconds", 4),
         bench_real(row, "M_points_per_s", 1), bench_real(row, "M_steps_per_s", 1),
         bench_real(row, "kernel_M_points_per_s", 1), bench_real(row, "kernel_M_points_per_s_unsorted", 1),
         bench_real(row, "file_seconds", 3), bench_real(row, "disk_seconds", 3),
         bench_real(row, "disk_copy_seconds", 3), bench_count(row, "streamlines"), bench_real(row, "mean_length_mm", 2),
         bench_real(row, "median_length_mm", 1), bench_count(score, "commissural"), bench_real(score, "f1", 3),
         bench_real(row, "field_bytes", 0, 1e-6), measure::is_equal_row(row) ? "yes" : "NO"});
  }
  return table.text(2);
}

std::string table_of_peers(const Json& peers) {
  Table table({{"peer"},
               {"threads", Align::right},
               {"seeds", Align::right},
               {"tracking s", Align::right},
               {"M points/s", Align::right},
               {"streamlines", Align::right},
               {"mean mm", Align::right},
               {"median mm", Align::right},
               {"commissural", Align::right},
               {"F1", Align::right}});
  for (const auto& [name, row] : peers.items()) {
    const Json score = row.value("score", Json::object());
    const double wall = row.value("wall_s", 0.0);
    table.add_row(
        {name, std::to_string(row.value("threads", 0)), format_count(row.value("seeds", std::uint64_t{0})),
         fmt::format("{:.3f}", wall), fmt::format("{:.4f}", wall > 0 ? 1e-6 * row.value("points", 0.0) / wall : 0),
         format_count(row.value("kept", std::uint64_t{0})), fmt::format("{:.2f}", row.value("mean_length_mm", 0.0)),
         fmt::format("{:.1f}", row.value("median_length_mm", 0.0)), bench_count(score, "commissural"),
         bench_real(score, "f1", 3)});
  }
  return table.text(2);
}

Result<measure::BenchSource> bench_source(const ParsedArguments& arguments) {
  const auto path = [&](const char* name) {
    return arguments.given(name) ? fs::path(arguments.text(name)) : fs::path();
  };
  CGL_TRY_ASSIGN(const WantedFrame frame,
                 parse_wanted_frame(arguments.given("bvec-frame") ? arguments.text("bvec-frame") : ""));
  measure::BenchSource source = {.dwi = path("dwi"),
                                 .sh = path("sh"),
                                 .mask = path("mask"),
                                 .frame = frame,
                                 .voxel_mm = arguments.real("voxel-size"),
                                 .sphere = arguments.text("sphere")};
  if (!source.dwi.empty() && !source.sh.empty()) {
    return fail(ErrorKind::invalid_argument, "--dwi and --sh are both given: one of them is tracked");
  }
  if (!source.dwi.empty() && source.mask.empty()) return fail(ErrorKind::invalid_argument, "--dwi needs --mask");
  if (!source.sh.empty()) source.stop_map = path("stop-map");
  if (source.dwi.empty() && source.sh.empty()) {
    CGL_TRY_ASSIGN(source.phantom, measure::brain_phantom_folder(arguments.text("cache-dir"), source.voxel_mm));
  }
  return source;
}

Status run_bench(const ParsedArguments& arguments, VerbContext& context) {
  if (arguments.text("what") != "track") {
    return fail(ErrorKind::invalid_argument, "bench '{}': accepted is track", arguments.text("what"));
  }
  const auto whole_number = [&](const char* name) { return static_cast<std::uint64_t>(arguments.integer(name)); };
  const auto text_if_given = [&](const char* name) {
    return arguments.given(name) ? arguments.text(name) : std::string();
  };
  measure::TrackBenchOptions options;
  CGL_TRY_ASSIGN(options.source, bench_source(arguments));
  options.measures = {.repetitions = arguments.integer("repetitions"),
                      .chunk_seeds = whole_number("chunk-size"),
                      .folder = arguments.text("folder"),
                      .disk = text_if_given("disk")};
  options.seeds = whole_number("nseeds");
  options.check_seeds = whole_number("check-seeds");
  options.devices = arguments.text("devices");
  options.only = text_if_given("only");
  options.without = text_if_given("without");
  options.bvec_frame = text_if_given("bvec-frame");
  options.kernels_only = arguments.flag("kernels-only");
  if (arguments.flag("peers")) {
    options.peers = measure::PeerOptions{.python = arguments.text("python"),
                                         .seeds = whole_number("peer-seeds"),
                                         .only = arguments.given("peer") ? arguments.text("peer") : options.only,
                                         .limit_seconds = arguments.real("peer-limit")};
  }
  if (!context.common().json) options.on_line = [&](std::string_view line) { context.print(line); };
  CGL_TRY_ASSIGN(const Json report, measure::bench_tracking(options, context));

  if (context.common().json) {
    context.print(json_text(report));
  } else {
    if (!report["typed"].empty()) context.print_format("\n{}", table_of_typed(report["typed"]));
    if (!report["rows"].empty()) context.print_format("\n{}", table_of_rows(report["rows"]));
    if (report.contains("peers")) context.print_format("\n{}", table_of_peers(report["peers"]));
  }
  if (arguments.given("out")) {
    const std::string out = arguments.text("out");
    CGL_TRY(write_file_atomically(out, json_text(report), without_sidecar(out, context.write_options())));
  }
  if (!std::all_of(report["rows"].begin(), report["rows"].end(), measure::is_equal_row)) {
    return fail(ErrorKind::device, "results of devices differ: see the table");
  }
  return {};
}

Argument whole(std::string name, std::string help, double minimum, double maximum, std::string otherwise) {
  Argument argument{.name = std::move(name), .type = ArgumentType::integer, .help = std::move(help)};
  argument.range = {.minimum = minimum, .maximum = maximum};
  argument.default_text = std::move(otherwise);
  return argument;
}

Argument voxel_size() {
  Argument argument{.name = "voxel-size", .type = ArgumentType::real, .help = "edge of the phantom's voxels"};
  argument.range = {.minimum = 0.5, .maximum = 5};
  argument.unit = "mm";
  argument.default_text = "2";
  return argument;
}

}  // namespace

Verb bench_verb() {
  return {
      .name = "bench",
      .summary = "measure tracking on every device of this machine",
      .description =
          "bench track runs every direction getter on every device: `cingulum track` as it is typed, from the series "
          "to "
          "the finished file, in a process of its own; then its parts: tracking alone (seeds to points in memory), the "
          "tracking kernel by itself where the device measures it (with seeds in the order of space, as runs have "
          "them, "
          "and unsorted), a whole run to a TRX file in --folder, and one to --disk, synced, beside a plain copy of the "
          "same bytes. Each row says whether the streamlines have the bits of the CPU's and whether the file is the "
          "same as the first device's, and what memory it took. Without --dwi or --sh the phantom `brain` is tracked "
          "and scored. --peers runs DIPY, MRtrix3 and cuslines, those that are installed, on the same data and seeds.",
      .arguments =
          {{.name = "what",
            .type = ArgumentType::text,
            .help = "what to measure: track",
            .positional = true,
            .required = true},
           {.name = "devices",
            .type = ArgumentType::text,
            .help = "all, or a list: a line of the table for each; devices joined by + share one run",
            .metavar = "LIST",
            .default_text = "all"},
           {.name = "only", .type = ArgumentType::text, .help = "only rows whose name contains this"},
           {.name = "without", .type = ArgumentType::text, .help = "no rows whose name contains this"},
           whole("nseeds", "seeds", 1, 4e9, "100000"),
           whole("check-seeds", "of these, compared with the CPU bit for bit", 1, 1e9, "2000"),
           whole("repetitions", "of each measurement, after one that does not count", 1, 1000, "3"),
           whole("chunk-size", "seeds tracked at a time, at most", 1, 1e9, "25000"),
           voxel_size(),
           {.name = "sphere",
            .type = ArgumentType::text,
            .help = "of the rows on SF: repulsion724, mirror321, ...; with -full directions and opposites apart",
            .metavar = "NAME",
            .default_text = "repulsion724"},
           {.name = "kernels-only", .type = ArgumentType::flag, .help = "nothing but the kernels: for profilers"},
           {.name = "dwi",
            .type = ArgumentType::text,
            .help = "a series instead of the phantom, its gradients beside it; needs --mask",
            .metavar = "FILE"},
           {.name = "bvec-frame",
            .type = ArgumentType::choice,
            .help = "axes of its b-vectors",
            .default_text = "fsl",
            .choices = {"fsl", "voxel", "world"}},
           {.name = "sh",
            .type = ArgumentType::text,
            .help = "a file of spherical harmonics instead, for the getters that track such",
            .metavar = "FILE"},
           {.name = "mask", .type = ArgumentType::text, .help = "mask of either", .metavar = "FILE"},
           {.name = "stop-map",
            .type = ArgumentType::text,
            .help = "of --sh; without it all voxels pass that hold a number",
            .metavar = "FILE"},
           {.name = "peers", .type = ArgumentType::flag, .help = "run other programs on the same data"},
           {.name = "peer",
            .type = ArgumentType::text,
            .help = "only peers whose name contains this, whatever --only says",
            .metavar = "NAME"},
           whole("peer-seeds", "seeds of the peers on processors, which are slow; some take fewer still", 1, 4e9,
                 "2000"),
           {.name = "peer-limit",
            .type = ArgumentType::real,
            .help = "each of them is left out, with a warning, when it takes longer",
            .metavar = "S",
            .range = {.minimum = 0, .above = true},
            .default_text = "300"},
           {.name = "python",
            .type = ArgumentType::text,
            .help = "the Python that has DIPY, nibabel or cuslines",
            .metavar = "PROGRAM",
            .default_text = "python3"},
           {.name = "folder",
            .type = ArgumentType::text,
            .help = "where files are written and removed again; a memory file system shows the program alone",
            .metavar = "FOLDER",
            .default_text = "."},
           {.name = "disk",
            .type = ArgumentType::text,
            .help = "a folder on a disk, in which files are written once more and synced",
            .metavar = "FOLDER"},
           {.name = "cache-dir",
            .type = ArgumentType::text,
            .help = "folder in which the phantom is kept",
            .metavar = "FOLDER",
            .default_text = "."},
           {.name = "out", .type = ArgumentType::text, .help = "write all figures as JSON", .metavar = "FILE"}},
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress},
      .examples = {{"cingulum bench track", "all devices on the phantom"},
                   {"cingulum bench track --devices cuda:0,cuda:0+cpu,cpu --only prob --out bench.json",
                    "a GPU, the GPU and the CPU together, the CPU"}},
      .run = run_bench,
  };
}

}  // namespace cingulum
