// `cingulum report`: one page about a tractogram, with pictures, charts, density maps, score and parameters.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/json_text.hpp"
#include "base/log.hpp"
#include "base/option_name.hpp"
#include "base/quantity.hpp"
#include "base/shell_word.hpp"
#include "cli/verb.hpp"
#include "formats/nifti.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "report/png.hpp"
#include "report/tract_report.hpp"

namespace cingulum {

Verb report_verb();

namespace {

std::string command_line(const ParsedArguments& arguments) {
  std::string command = "cingulum report " + shell_word(arguments.text("tracks"));
  for (const char* option : {"anatomy", "truth"}) {
    if (arguments.given(option)) command += fmt::format(" --{} {}", option, shell_word(arguments.text(option)));
  }
  for (const char* option : {"max-streamlines", "picture-size"}) {
    if (arguments.given(option)) command += fmt::format(" --{} {}", option, arguments.integer(option));
  }
  return command + " --out " + shell_word(arguments.text("out"));
}

Status make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (!error && std::filesystem::is_directory(folder, error)) return {};
  return fail(ErrorKind::io, "making the folder {}: {}", folder.string(),
              error ? error.message() : "something else has that name");
}

Status write_pictures(const Report& report, const std::filesystem::path& folder, const WriteOptions& options) {
  for (const NamedPicture& named : report.pictures) {
    CGL_TRY_ASSIGN(const std::vector<std::byte> file, encode_png(named.picture));
    CGL_TRY(write_file_atomically(folder / named.name, file, options));
  }
  return {};
}

Status write_density(const DensityMap& density, const std::filesystem::path& path, const WriteOptions& options,
                     ThreadPool& pool) {
  NiftiWriteOptions image;
  image.file = options;
  image.type = element_type_of<std::int32_t>();
  image.description = "streamlines per voxel";
  image.pool = &pool;
  CGL_TRY_ASSIGN(NiftiWriter writer, NiftiWriter::create(path, density.geometry(), {}, image));
  // Counts are exact in float64.
  std::vector<double> values(density.counts().begin(), density.counts().end());
  CGL_TRY(writer.append(std::span<const double>(values)));
  return writer.commit();
}

void print_summary(const nlohmann::ordered_json& summary, const std::string& out, VerbContext& context) {
  context.print_format("{}: {} streamlines, {} points\n", summary["tracks"].get<std::string>(),
                       format_count(summary["streamlines"].get<std::uint64_t>()),
                       format_count(summary["points"].get<std::uint64_t>()));
  context.print_format("length: mean {:.1f} mm, median {:.1f} mm, total {:.1f} m\n",
                       summary["mean_length_mm"].get<double>(), summary["median_length_mm"].get<double>(),
                       summary["total_length_mm"].get<double>() / 1000);
  context.print_format("midline x = {:.1f} mm: {} have their ends on opposite sides, {} cross it anywhere\n",
                       summary["midline_mm"].get<double>(), format_count(summary["commissural"].get<std::uint64_t>()),
                       format_count(summary["crossing_midline"].get<std::uint64_t>()));
  context.print_format("wrote {}\n", out);
}

Status run_report(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(ThreadPool * pool, context.pool());
  const WriteOptions write = context.write_options();
  ReportRequest request;
  request.tracks = arguments.text("tracks");
  if (arguments.given("anatomy")) request.anatomy = arguments.text("anatomy");
  if (arguments.given("truth")) request.truth = arguments.text("truth");
  if (arguments.given("midline")) request.midline_mm = arguments.real("midline");
  request.max_streamlines = static_cast<std::uint64_t>(arguments.integer("max-streamlines"));
  request.picture_pixels = static_cast<int>(arguments.integer("picture-size"));
  request.command = command_line(arguments);
  request.track_command = "cingulum track --from " + shell_word(sidecar_path(request.tracks).string()) +
                          " --out again" + request.tracks.extension().string();
  request.naming = option_name;
  // Before the work, so that it is not done in vain.
  if (arguments.given("pictures")) CGL_TRY(make_folder(arguments.text("pictures")));

  Progress progress("reporting", 0, "streamlines read", context.progress_options());
  CGL_TRY_ASSIGN(const Report report,
                 make_report(request, *pool, [&](std::uint64_t streamlines) { progress.advance(streamlines); }));
  progress.finish();
  for (const std::string& warning : report.warnings) log_warning("{}", warning);
  if (arguments.given("pictures")) CGL_TRY(write_pictures(report, arguments.text("pictures"), write));
  if (arguments.given("density")) CGL_TRY(write_density(report.density, arguments.text("density"), write, *pool));
  const std::string out = arguments.text("out");
  CGL_TRY(write_file_atomically(out, std::string_view(report.page), without_sidecar(out, write)));
  if (context.common().json) {
    context.print(json_text(report.summary));
  } else {
    print_summary(report.summary, out, context);
  }
  return {};
}

}  // namespace

Verb report_verb() {
  return {
      .name = "report",
      .summary = "one page about a tractogram: pictures, lengths, ends, density, score",
      .description =
          "Writes one HTML file that needs nothing else: three views of the streamlines coloured by direction, the "
          "histogram of lengths, why streamlines ended, density maps over the anatomy, the score where the truth is "
          "known, the parameters of the run that made the tractogram, and the commands to repeat it. The parameters "
          "come from the sidecar beside the tractogram (TRACKS.json).\n\n"
          "The tractogram is read twice in bounded memory. Pictures show every k-th streamline where there are more "
          "than --max-streamlines; all numbers and maps are of all of them. The same input gives the same page.",
      .arguments = {{.name = "tracks",
                     .type = ArgumentType::file_in,
                     .help = "the tractogram: .trx, .trk or .tck",
                     .metavar = "TRACKS",
                     .positional = true,
                     .required = true},
                    {.name = "out",
                     .type = ArgumentType::file_out,
                     .help = "the page",
                     .metavar = "HTML",
                     .letter = 'o',
                     .required = true},
                    {.name = "anatomy",
                     .type = ArgumentType::file_in,
                     .help = "an image to lay under the density maps, FA or any other (.nii, .nii.gz); the density is "
                             "counted on its grid",
                     .metavar = "IMAGE"},
                    {.name = "truth",
                     .type = ArgumentType::file_in,
                     .help = "the folder of a phantom: adds the score against its truth",
                     .metavar = "DIR"},
                    {.name = "midline",
                     .type = ArgumentType::real,
                     .help = "world x of the plane between left and right; unless given the middle of the grid",
                     .metavar = "X",
                     .unit = "mm"},
                    {.name = "max-streamlines",
                     .type = ArgumentType::integer,
                     .help = "how many streamlines the pictures show at most",
                     .metavar = "N",
                     .range = {.minimum = 1, .maximum = 1e9},
                     .default_text = "20000"},
                    {.name = "picture-size",
                     .type = ArgumentType::integer,
                     .help = "the edge of each view in pixels",
                     .metavar = "N",
                     .range = {.minimum = 64, .maximum = 4096},
                     .default_text = "900"},
                    {.name = "pictures",
                     .type = ArgumentType::text,
                     .help = "a folder for all pictures as PNG files, made where it is missing",
                     .metavar = "DIR"},
                    {.name = "density",
                     .type = ArgumentType::file_out,
                     .help = "the density map as an image (.nii, .nii.gz)",
                     .metavar = "IMAGE"}},
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress},
      .examples = {{"cingulum report tracks.trx --out report.html", "the page"},
                   {"cingulum report tracks.trx --anatomy fa.nii.gz --out report.html", "with density over FA"},
                   {"cingulum report tracks.trx --truth phantom --pictures pictures --out report.html",
                    "with the score, and the pictures as files, too"}},
      .references = {"Eichelbaum, Hlawitschka, Scheuermann: LineAO - improved three-dimensional line rendering. IEEE "
                     "Transactions on Visualization and Computer Graphics 19(3), 2013"},
      .run = run_report,
  };
}

}  // namespace cingulum
