// `cingulum score`: how a tractogram of a phantom stands against the truth.
#include "dmri/score/score.hpp"
#include "base/json_text.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/quantity.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"

namespace cingulum {

Verb score_verb();

namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isnan(value) ? Json(nullptr) : Json(value);
}

Json voxel_json(const VoxelScore& score) {
  return {{"overlap", score.overlap},
          {"overreach", score.overreach},
          {"overreach_share", score.overreach_share},
          {"f1", score.f1},
          {"true_voxel_count", score.true_voxels},
          {"found_voxel_count", score.found_voxels},
          {"extra_voxel_count", score.extra_voxels}};
}

Json score_json(const Score& score, const std::string& tractogram, const std::string& truth, std::uint64_t seed) {
  Json json = {
      {"tractogram", tractogram}, {"truth", truth}, {"preset", score.preset}, {"streamline_count", score.streamlines}};
  Json intervals = Json::object();
  const auto put = [&](Json& into, const std::string& name, const std::string& path, const Estimate& estimate) {
    into[name] = number(estimate.value);
    if (score.replicates > 0 && !std::isnan(estimate.low)) intervals[path] = Json::array({estimate.low, estimate.high});
  };
  put(json, "valid", "valid", score.valid);
  put(json, "wrong_path", "wrong_path", score.wrong_path);
  put(json, "invalid", "invalid", score.invalid);
  put(json, "no_connection", "no_connection", score.no_connection);
  json["valid_count"] = score.valid_count;
  json["wrong_path_count"] = score.wrong_path_count;
  json["invalid_count"] = score.invalid_count;
  json["no_connection_count"] = score.no_connection_count;
  json["not_finite_count"] = score.not_finite_count;
  put(json, "valid_of_connections", "valid_of_connections", score.valid_of_connections);
  json["bundle_count"] = score.bundles.size();
  json["bundles_found_count"] = score.bundles_found;
  put(json, "bundles_found", "bundles_found", score.bundles_found_share);
  json["invalid_bundle_count"] = score.invalid_bundles;
  put(json, "overlap", "overlap", score.any.overlap);
  put(json, "overreach", "overreach", score.any.overreach);
  put(json, "overreach_share", "overreach_share", score.any.overreach_share);
  put(json, "f1", "f1", score.any.f1);
  Json half = Json::object();
  put(half, "overlap", "half_voxel.overlap", score.half_filled.overlap);
  put(half, "overreach", "half_voxel.overreach", score.half_filled.overreach);
  put(half, "overreach_share", "half_voxel.overreach_share", score.half_filled.overreach_share);
  put(half, "f1", "half_voxel.f1", score.half_filled.f1);
  json["half_voxel"] = half;
  json["endpoint_overlap"] = score.endpoint_overlap;
  put(json, "angular_error_mean_deg", "angular_error_mean_deg", score.angular_error_deg);
  json["angular_error_median_deg"] = number(score.angular_error_median_deg);
  json["share_in_tubes"] = number(score.share_in_tubes);
  put(json, "distance_mean_mm", "distance_mean_mm", score.distance_mm);
  json["distance_p95_mm"] = number(score.distance_p95_mm);
  put(json, "connectivity_correlation", "connectivity_correlation", score.connectivity_correlation);
  json["topography_correlation"] = number(score.topography);
  put(json, "length_mean_mm", "length_mean_mm", score.length_mm);
  json["length_median_mm"] = number(score.length_median_mm);
  json["commissural_count"] = score.commissural_count;
  put(json, "commissural", "commissural", score.commissural);
  json["crossing_midline_count"] = score.crossing_midline_count;
  put(json, "crossing_midline", "crossing_midline", score.crossing_midline);
  json["intervals"] = intervals;
  json["bootstrap"] = {{"replicate_count", score.replicates}, {"level", 0.95}, {"seed", seed}};
  json["end_tolerance_mm"] = score.end_tolerance_mm;
  Json bundles = Json::object();
  for (const BundleScore& bundle : score.bundles) {
    Json entry = {{"valid_count", bundle.valid_count}, {"wrong_path_count", bundle.wrong_path_count}};
    const Json any = voxel_json(bundle.any);
    for (const auto& [key, value] : any.items()) entry[key] = value;
    entry["half_voxel"] = voxel_json(bundle.half_filled);
    entry["endpoint_overlap"] = bundle.endpoint_overlap;
    entry["length_mean_mm"] = number(bundle.length_mean_mm);
    entry["topography_correlation"] = number(bundle.topography);
    bundles[bundle.name] = std::move(entry);
  }
  json["bundles"] = std::move(bundles);
  Json connections = Json::array();
  for (const FalseConnection& connection : score.false_connections) {
    connections.push_back({{"from", connection.from}, {"to", connection.to}, {"count", connection.count}});
  }
  json["false_connections"] = std::move(connections);
  return json;
}

std::string shown(double value, const char* unit, int digits, double factor = 1) {
  if (std::isnan(value)) return "n/a";
  return fmt::format("{:.{}f}{}", value * factor, digits, unit);
}

void print_score(const Score& score, VerbContext& context) {
  Table table({{"measure"}, {"value", Align::right}, {"95 % interval", Align::right}, {"count", Align::right}});
  const auto add = [&](const char* name, const Estimate& estimate, const char* unit, int digits, double factor,
                       const std::string& count = "") {
    const std::string interval = std::isnan(estimate.low) ? ""
                                                          : fmt::format("{:.{}f} to {:.{}f}", estimate.low * factor,
                                                                        digits, estimate.high * factor, digits);
    table.add_row({name, shown(estimate.value, unit, digits, factor), interval, count});
  };
  const auto plain = [&](const char* name, double value, const char* unit, int digits, double factor = 1) {
    table.add_row({name, shown(value, unit, digits, factor)});
  };
  add("valid", score.valid, " %", 2, 100, format_count(score.valid_count));
  add("wrong path", score.wrong_path, " %", 2, 100, format_count(score.wrong_path_count));
  add("invalid connection", score.invalid, " %", 2, 100, format_count(score.invalid_count));
  add("no connection", score.no_connection, " %", 2, 100, format_count(score.no_connection_count));
  add("bundles found", score.bundles_found_share, " %", 1, 100,
      fmt::format("{} of {}", score.bundles_found, score.bundles.size()));
  table.add_row({"invalid bundles", "", "", format_count(score.invalid_bundles)});
  add("overlap (f > 0)", score.any.overlap, " %", 2, 100);
  add("overreach (f > 0)", score.any.overreach, " %", 2, 100);
  add("F1 (f > 0)", score.any.f1, " %", 2, 100);
  add("overlap (f >= 0.5)", score.half_filled.overlap, " %", 2, 100);
  add("overreach (f >= 0.5)", score.half_filled.overreach, " %", 2, 100);
  add("F1 (f >= 0.5)", score.half_filled.f1, " %", 2, 100);
  plain("endpoint overlap", score.endpoint_overlap, " %", 2, 100);
  add("angular error, mean", score.angular_error_deg, " deg", 3, 1);
  plain("angular error, median", score.angular_error_median_deg, " deg", 3);
  add("distance to the tube, mean", score.distance_mm, " mm", 4, 1);
  plain("distance to the tube, 95th percentile", score.distance_p95_mm, " mm", 4);
  add("connectivity correlation", score.connectivity_correlation, "", 4, 1);
  plain("topography correlation", score.topography, "", 4);
  add("length, mean", score.length_mm, " mm", 2, 1);
  plain("length, median", score.length_median_mm, " mm", 2);
  add("commissural (ends apart)", score.commissural, " %", 2, 100, format_count(score.commissural_count));
  add("crossing the midline", score.crossing_midline, " %", 2, 100, format_count(score.crossing_midline_count));
  context.print_format("{} streamlines against {} ({} bundles)\n", format_count(score.streamlines), score.preset,
                       score.bundles.size());
  context.print(table.text());
  context.print("\n");
  Table bundles({{"bundle"},
                 {"valid", Align::right},
                 {"wrong path", Align::right},
                 {"overlap", Align::right},
                 {"overreach", Align::right},
                 {"F1", Align::right},
                 {"F1 (f >= 0.5)", Align::right},
                 {"ends", Align::right},
                 {"length", Align::right}});
  for (const BundleScore& bundle : score.bundles) {
    bundles.add_row({bundle.name, format_count(bundle.valid_count), format_count(bundle.wrong_path_count),
                     shown(bundle.any.overlap, " %", 1, 100), shown(bundle.any.overreach, " %", 1, 100),
                     shown(bundle.any.f1, " %", 1, 100), shown(bundle.half_filled.f1, " %", 1, 100),
                     shown(bundle.endpoint_overlap, " %", 1, 100), shown(bundle.length_mean_mm, " mm", 1)});
  }
  context.print(bundles.text());
  if (score.false_connections.empty()) return;
  constexpr std::size_t most_shown = 10;
  context.print("\n");
  Table connections({{"false connection"}, {""}, {"streamlines", Align::right}});
  for (std::size_t i = 0; i < std::min(most_shown, score.false_connections.size()); ++i) {
    const FalseConnection& connection = score.false_connections[i];
    connections.add_row({connection.from, connection.to, format_count(connection.count)});
  }
  context.print(connections.text());
}

Status run_score(const ParsedArguments& arguments, VerbContext& context) {
  ScoreOptions options;
  options.bootstrap = static_cast<int>(arguments.integer("bootstrap"));
  options.seed = context.common().seed;
  const std::string& truth = arguments.text("truth");
  if (arguments.given("end-tolerance")) {
    const Length tolerance = arguments.length("end-tolerance");
    CGL_TRY_ASSIGN(const PhantomTruth phantom, read_phantom(truth));
    options.end_tolerance_mm = tolerance.in_mm(phantom.geometry.smallest_edge_mm());
  }
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  const std::string& tractogram = arguments.text("tracks");
  CGL_TRY_ASSIGN(const Score score, score_tractogram(tractogram, truth, options, *pool, context.progress_options()));
  if (score.not_finite_count > 0) {
    log_warning(
        "{} streamlines have coordinates that are not numbers or farther than 10 m; they count as no connection",
        format_count(score.not_finite_count));
  }
  if (context.common().json) {
    context.print(json_text(score_json(score, tractogram, truth, options.seed)));
    return {};
  }
  print_score(score, context);
  return {};
}

}  // namespace

Verb score_verb() {
  return {
      .name = "score",
      .summary = "score a tractogram of a phantom against the truth",
      .description =
          "A streamline is valid when its ends lie in the two end regions of one bundle and 95 % of its length within "
          "half "
          "a voxel of the tube; on a wrong path when only the ends are right; an invalid connection when its ends lie "
          "in "
          "end regions that belong to no bundle together; else it connects nothing. Overlap, overreach and F1 compare "
          "the "
          "voxels that valid streamlines pass through (every voxel that a segment enters) with the voxels of the "
          "bundle, "
          "once those that it touches (f > 0) and once those that it fills by half (f >= 0.5); means are over all "
          "bundles, a "
          "missing one counting 0.\n\n"
          "Angular errors and distances are taken against the formulas of the bundles and weighted by length. "
          "Intervals "
          "are percentiles of a Poisson bootstrap over streamlines (for voxels, bundles found and connectivity moved "
          "so that "
          "their mean is the value); medians, percentiles, topography, endpoint overlap "
          "and the "
          "rows of single bundles have none.",
      .arguments = {{.name = "tracks",
                     .type = ArgumentType::file_in,
                     .help = "the tractogram: TRX, TRK or TCK",
                     .metavar = "TRACKS",
                     .positional = true,
                     .required = true},
                    {.name = "truth",
                     .type = ArgumentType::file_in,
                     .help = "the folder that 'cingulum phantom' wrote",
                     .metavar = "DIR",
                     .required = true},
                    {.name = "end-tolerance",
                     .type = ArgumentType::length,
                     .help = "how far back from its end a streamline may have left an end region: one step of the "
                             "tracker; 0.5vox unless given",
                     .unit = "mm",
                     .range = {.minimum = 0, .above = true}},
                    {.name = "bootstrap",
                     .type = ArgumentType::integer,
                     .help = "replicates for the intervals",
                     .range = {.minimum = 0, .maximum = 10000},
                     .default_text = "1000"}},
      .common = {CommonOption::threads, CommonOption::json, CommonOption::progress, CommonOption::seed},
      .examples = {{"cingulum score tracks.trx --truth brain", "a table"},
                   {"cingulum score tracks.tck --truth brain --json --bootstrap 0", "for programs, without intervals"},
                   {"cingulum score brain/truth.trx --truth brain", "the truth against itself"}},
      .references =
          {"Cote MA et al. Tractometer: towards validation of tractography pipelines. Medical Image Analysis 17, 2013.",
           "Rafael-Patino J et al. The diffusion-simulated connectivity (DiSCo) dataset. Data in Brief 38, 2021.",
           "Hanley JA, MacGibbon B. Creating non-parametric bootstrap samples using Poisson frequencies. Computer "
           "Methods and Programs in Biomedicine 83, 2006."},
      .run = run_score,
  };
}

}  // namespace cingulum
