// `cingulum compare`: tractograms side by side.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "formats/nifti.hpp"
#include "formats/tractogram.hpp"
#include "streamlines/comparison.hpp"

namespace cingulum {

Verb compare_verb();

namespace {

using Json = nlohmann::ordered_json;

// The grid on which voxels are counted: of --reference, else of the first tractogram that has one.
Result<ImageGeometry> choose_grid(const ParsedArguments& arguments, const std::vector<std::string>& files) {
  if (arguments.given("reference")) {
    CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(arguments.text("reference")));
    return reader.header().geometry;
  }
  for (const std::string& file : files) {
    CGL_TRY_ASSIGN(const std::unique_ptr<TractogramReader> reader, TractogramReader::open(file));
    if (reader->layout().reference) return *reader->layout().reference;
  }
  return fail(ErrorKind::invalid_argument,
              "comparing {}: none of the files has a grid (TCK has none); name an image with --reference",
              fmt::join(files, ", "));
}

struct Compared {
  TractogramSummary summary;
  VoxelOverlap overlap;                         // with the first file
  std::map<std::string, VoxelOverlap> bundles;  // groups that both have
  std::optional<std::string> difference;        // from the first file
};

Json overlap_json(const VoxelOverlap& overlap) {
  return {{"dice", overlap.dice},
          {"weighted_dice", overlap.weighted_dice},
          {"shared_voxels", overlap.shared},
          {"voxels", overlap.voxels_b},
          {"voxels_of_first", overlap.voxels_a}};
}

Json json_of(const std::vector<Compared>& all, double midline) {
  Json files = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TractogramSummary& summary = all[i].summary;
    Json file = {{"file", summary.path.string()},
                 {"streamlines", summary.streamlines},
                 {"points", summary.points},
                 {"mean_length_mm", summary.mean_length_mm},
                 {"median_length_mm", summary.median_length_mm},
                 {"smallest_length_mm", summary.smallest_length_mm},
                 {"largest_length_mm", summary.largest_length_mm},
                 {"commissural", summary.commissural},
                 {"crossing_midline", summary.crossing_midline},
                 {"outside_grid", summary.outside_grid}};
    if (i > 0) {
      file["overlap"] = overlap_json(all[i].overlap);
      Json bundles = Json::object();
      for (const auto& [name, overlap] : all[i].bundles) bundles[name] = overlap_json(overlap);
      file["bundles"] = std::move(bundles);
      file["equal"] = !all[i].difference.has_value();
      if (all[i].difference) file["first_difference"] = *all[i].difference;
    }
    files.push_back(std::move(file));
  }
  return {{"midline_mm", midline}, {"files", std::move(files)}};
}

void print_tables(const std::vector<Compared>& all, VerbContext& context) {
  Table table({{"file"},
               {"streamlines", Align::right},
               {"points", Align::right},
               {"mean mm", Align::right},
               {"median mm", Align::right},
               {"commissural", Align::right},
               {"crossing", Align::right},
               {"dice", Align::right},
               {"weighted", Align::right},
               {"equal", Align::right}});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TractogramSummary& summary = all[i].summary;
    std::vector<std::string> row = {summary.path.filename().string(),
                                    format_count(summary.streamlines),
                                    format_count(summary.points),
                                    fmt::format("{:.2f}", summary.mean_length_mm),
                                    fmt::format("{:.1f}", summary.median_length_mm),
                                    format_count(summary.commissural),
                                    format_count(summary.crossing_midline)};
    if (i > 0) {
      row.push_back(fmt::format("{:.4f}", all[i].overlap.dice));
      row.push_back(fmt::format("{:.4f}", all[i].overlap.weighted_dice));
      row.push_back(all[i].difference ? "no" : "yes");
    }
    table.add_row(std::move(row));
  }
  context.print(table.text());
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (!all[i].bundles.empty()) {
      Table bundles({{"bundle"}, {"voxels", Align::right}, {"dice", Align::right}, {"weighted", Align::right}});
      for (const auto& [name, overlap] : all[i].bundles) {
        bundles.add_row({name, format_count(overlap.voxels_b), fmt::format("{:.4f}", overlap.dice),
                         fmt::format("{:.4f}", overlap.weighted_dice)});
      }
      context.print_format("\nbundles of {}\n{}", all[i].summary.path.filename().string(), bundles.text());
    }
    if (all[i].difference) {
      context.print_format("\n{} against {}: {}\n", all[0].summary.path.string(), all[i].summary.path.string(),
                           *all[i].difference);
    }
  }
}

Status run_compare(const ParsedArguments& arguments, VerbContext& context) {
  const std::vector<std::string> files = arguments.texts("tractograms");
  if (files.size() < 2) {
    return fail(ErrorKind::invalid_argument, "comparing takes at least two tractograms, {} given", files.size());
  }
  CGL_TRY_ASSIGN(const ImageGeometry grid, choose_grid(arguments, files));
  const double midline = arguments.has("midline") ? arguments.real("midline") : middle_world_x(grid);
  std::vector<Compared> all;
  for (const std::string& file : files) {
    Compared one;
    CGL_TRY_ASSIGN(one.summary, summarise_tractogram(file, grid, midline));
    if (!all.empty()) {
      const TractogramSummary& first = all.front().summary;
      one.overlap = voxel_overlap(first.density, one.summary.density);
      for (const auto& [name, density] : one.summary.group_density) {
        if (const auto other = first.group_density.find(name); other != first.group_density.end()) {
          one.bundles.emplace(name, voxel_overlap(other->second, density));
        }
      }
      CGL_TRY_ASSIGN(one.difference, first_difference(files.front(), file));
      // Only the first file's maps are needed again.
      one.summary.density = {};
      one.summary.group_density = {};
    }
    all.push_back(std::move(one));
  }
  if (context.common().json) {
    context.print(json_text(json_of(all, midline)));
  } else {
    print_tables(all, context);
  }
  if (!arguments.flag("exact")) return {};
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].difference) {
      return fail(ErrorKind::invalid_state, "{} and {} differ: {}", files.front(), files[i], *all[i].difference);
    }
  }
  return {};
}

}  // namespace

Verb compare_verb() {
  return {
      .name = "compare",
      .summary = "set tractograms side by side, or show that they are equal",
      .description =
          "Prints for each tractogram the number of streamlines and points, mean and median length, and how many "
          "streamlines are commissural (their ends lie on opposite sides of the plane world x = --midline) and how "
          "many "
          "cross that plane anywhere. Every file after the first is set beside the first: the Dice coefficient of the "
          "voxels that streamlines pass through "
          "(exact traversal), its weighted form, in which a voxel counts as often as it is visited, and the same for "
          "each bundle (TRX group) that both have.\n\n"
          "With --exact files must hold the same streamlines to the bit (positions as float32, data, groups), whatever "
          "their format; the first difference is named and the exit code is 1.",
      .arguments =
          {
              {.name = "tractograms",
               .type = ArgumentType::file_in,
               .help = "two or more TRX, TRK or TCK files",
               .metavar = "TRACTOGRAM",
               .positional = true,
               .required = true,
               .repeatable = true},
              {.name = "exact", .type = ArgumentType::flag, .help = "exit with 1 unless all equal the first"},
              {.name = "reference",
               .type = ArgumentType::file_in,
               .help = "image whose grid is used to count voxels; unless given that of the first file that has one",
               .metavar = "IMAGE"},
              {.name = "midline",
               .type = ArgumentType::real,
               .help = "world x of the plane between left and right; unless given the middle of the grid",
               .metavar = "X",
               .unit = "mm"},
          },
      .common = {CommonOption::json},
      .examples = {{"cingulum compare boot.trx prob.trx ptt.trx", "three runs beside each other"},
                   {"cingulum compare --exact cpu.trx cuda.trx", "exit 0 when both hold the same streamlines"}},
      .references = {"M. Cousineau et al., A test-retest study on Parkinson's PPMI dataset yields statistically "
                     "significant white matter fascicles, NeuroImage: Clinical 16, 222-233, 2017"},
      .run = run_compare,
  };
}

}  // namespace cingulum
