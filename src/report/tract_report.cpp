#include "report/tract_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json_view.hpp"
#include "base/quantity.hpp"
#include "dmri/score/score.hpp"
#include "formats/nifti.hpp"
#include "formats/sidecar.hpp"
#include "numerics/elementary64.hpp"
#include "report/density_picture.hpp"
#include "report/html_text.hpp"
#include "report/report_page.hpp"
#include "report/streamline_view.hpp"
#include "report/survey.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

constexpr int density_pixels = 480;
constexpr std::size_t most_table_rows = 400;
constexpr std::size_t most_value_bytes = 600;

std::string shortened(std::string text) {
  if (text.size() <= most_value_bytes) return text;
  text.resize(most_value_bytes);
  return text + " ...";
}

std::string scalar_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One row for each leaf, named by the way to it: "ptt.probe_length_mm". Arrays of plain values are one leaf.
void append_rows(const Json& value, const std::string& name, std::vector<TableRow>& rows) {
  if (rows.size() >= most_table_rows) return;
  const bool plain_array = value.is_array() && std::none_of(value.begin(), value.end(),
                                                            [](const Json& entry) { return entry.is_structured(); });
  if (value.is_structured() && !plain_array && !value.empty()) {
    std::size_t index = 0;
    for (const auto& [key, entry] : value.items()) {
      const std::string step = value.is_object() ? key : std::to_string(++index);
      append_rows(entry, name.empty() ? step : name + "." + step, rows);
    }
    return;
  }
  if (!plain_array) {
    rows.push_back({name, shortened(value.is_structured() ? "none" : scalar_text(value))});
    return;
  }
  std::string text;
  for (const Json& entry : value) {
    text += (text.empty() ? "" : ", ") + scalar_text(entry);
    if (text.size() > most_value_bytes) break;
  }
  rows.push_back({name, shortened(text)});
}

// The first member of this name, at any depth, that `accepted` likes.
template <class Accepted>
const Json* find_member(const Json& value, std::string_view name, Accepted&& accepted) {
  if (!value.is_structured()) return nullptr;
  if (value.is_object()) {
    const auto found = value.find(std::string(name));
    if (found != value.end() && accepted(*found)) return &*found;
  }
  for (const auto& entry : value) {
    if (const Json* found = find_member(entry, name, accepted)) return found;
  }
  return nullptr;
}

std::string spaces_for_underscores(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

// The end reason as the sidecar names its code, else as we do.
std::string end_reason_text(std::size_t code, const Json& sidecar) {
  if (const Json* codes =
          find_member(sidecar, "end_reason_codes", [](const Json& value) { return value.is_object(); })) {
    if (const std::string* const named = JsonView(*codes)[std::to_string(code)].text()) return shortened(*named);
  }
  if (code < end_reason_count) return std::string(end_reason_name(static_cast<EndReason>(code)));
  return fmt::format("code {}", code);
}

std::vector<CountedReason> end_reasons_of(const TractogramSurvey& survey, const Json& sidecar) {
  std::vector<CountedReason> reasons;
  if (survey.end_reasons) {
    for (std::size_t code = 0; code < survey.end_reasons->start.size(); ++code) {
      const std::uint64_t start = survey.end_reasons->start[code];
      const std::uint64_t end = survey.end_reasons->end[code];
      if (start + end == 0) continue;
      const std::string name = end_reason_text(code, sidecar);
      reasons.push_back(
          {spaces_for_underscores(name), start + end, fmt::format("{} at the start, {} at the end", start, end)});
    }
  } else if (const Json* counts = find_member(sidecar, "end_reasons", [](const Json& value) {
               return value.is_object() && !value.empty() &&
                      std::all_of(value.begin(), value.end(), [](const Json& n) { return n.is_number_unsigned(); });
             })) {
    for (const auto& [name, count] : counts->items()) {
      if (count.get<std::uint64_t>() > 0) {
        reasons.push_back({spaces_for_underscores(name), count.get<std::uint64_t>(), ""});
      }
    }
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const CountedReason& a, const CountedReason& b) { return a.count > b.count; });
  return reasons;
}

// The sidecar where there is one that can be read; a damaged one is a warning, not the end of the report.
Json read_sidecar_of(const std::filesystem::path& tracks, std::vector<std::string>& warnings) {
  auto sidecar = read_sidecar(tracks);
  if (sidecar) return *sidecar;
  if (sidecar.error().kind() != ErrorKind::not_found) warnings.push_back(sidecar.error().message());
  return Json::object();
}

// One row per input: its path, and its hash behind the name of the option that gave it.
void append_inputs(const Json& inputs, std::vector<TableRow>& rows) {
  if (!inputs.is_array()) return append_rows(inputs, "", rows);
  for (const Json& entry : inputs) {
    const JsonView input(entry);
    const std::string path = input["path"].text_or("");
    if (path.empty()) {
      append_rows(entry, "", rows);
    } else if (rows.size() < most_table_rows) {
      rows.push_back({shortened(path),
                      shortened(fmt::format("{} {}", input["option"].text_or(""), input["xxh3_128"].text_or("")))});
    }
  }
}

// Options as they were given come first, without the path to them; what follows from them keeps the sidecar's order.
void fill_from_sidecar(const Json& sidecar, const std::string& hash, ReportContent& content) {
  if (!sidecar.is_object()) return;
  std::vector<TableRow> others;
  for (const auto& [key, value] : sidecar.items()) {
    if (key == "inputs") {
      append_inputs(value, content.inputs);
    } else if (key == "xxh3_128") {
      if (value != hash) {
        content.warnings.push_back(
            fmt::format("the sidecar was written for a file with the hash {}; this one has {}: the tractogram changed "
                        "since, or the sidecar belongs to another",
                        shortened(scalar_text(value)), hash));
      }
    } else if (key == "arguments" && value.is_object() && value.contains("options")) {
      std::vector<TableRow> rows;
      append_rows(value["options"], "", rows);
      content.tables.emplace_back("Options", std::move(rows));
    } else if (value.is_object() && key != "end_reason_codes") {
      std::vector<TableRow> rows;
      append_rows(value, "", rows);
      std::string title = spaces_for_underscores(key);
      if (!title.empty() && title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 'a' + 'A');
      content.tables.emplace_back(std::move(title), std::move(rows));
    } else if (key != "file" && key != "bytes" && key != "end_reason_codes") {
      append_rows(value, key, others);
    }
  }
  if (!others.empty()) content.tables.emplace_back("Further", std::move(others));
}

std::string geometry_text(const ImageGeometry& geometry) {
  const auto edges = geometry.voxel_mm();
  return fmt::format("{} x {} x {} voxels of {:.4g} x {:.4g} x {:.4g} mm, {}", geometry.size[0], geometry.size[1],
                     geometry.size[2], edges[0], edges[1], edges[2], geometry.axis_codes());
}

std::string field_names(const std::vector<DataField>& fields) {
  std::string text;
  for (const DataField& field : fields) {
    text += fmt::format("{}{} ({} x {})", text.empty() ? "" : ", ", field.name, field.columns, field.type.name());
  }
  return shortened(text.empty() ? "none" : text);
}

void fill_file_table(const ReportRequest& request, const TractogramSurvey& survey, const std::string& hash,
                     ReportContent& content) {
  const TractogramLayout& layout = survey.layout;
  content.file.push_back({"name", request.tracks.filename().string()});
  content.file.push_back({"format", std::string(tractogram_format_name(layout.format))});
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(request.tracks, error);
  if (!error) content.file.push_back({"size", fmt::format("{} ({} bytes)", format_bytes(bytes), bytes)});
  content.file.push_back({"XXH3-128", hash});
  content.file.push_back({"positions", layout.position_type.name()});
  content.file.push_back({"reference grid", layout.reference ? geometry_text(*layout.reference) : "none"});
  content.file.push_back({"data per point", field_names(layout.point_fields)});
  content.file.push_back({"data per streamline", field_names(layout.streamline_fields)});
  content.file.push_back({"midline", fmt::format("x = {:.1f} mm", survey.midline_mm)});
  content.file.push_back({"bounding box", fmt::format("x {:.1f} to {:.1f}, y {:.1f} to {:.1f}, z {:.1f} to {:.1f} mm",
                                                      survey.box.low.x, survey.box.high.x, survey.box.low.y,
                                                      survey.box.high.y, survey.box.low.z, survey.box.high.z)});
  for (const auto& [key, value] : layout.notes) {
    if (content.file.size() < most_table_rows) content.file.push_back({key, shortened(value)});
  }
}

Figure millimetres(std::string name, double value, std::string label) {
  return {std::move(name), fmt::format("{:.17g}", value), fmt::format("{:.1f} mm", value), std::move(label)};
}

Figure counted(std::string name, std::uint64_t value, std::string label) {
  return {std::move(name), std::to_string(value), html_count(value), std::move(label)};
}

void fill_figures(const TractogramSurvey& survey, const Json& sidecar, ReportContent& content) {
  auto& figures = content.figures;
  figures.push_back(counted("streamlines", survey.streamlines, "streamlines"));
  figures.push_back(counted("points", survey.points, "points"));
  if (const Json* seeds = find_member(sidecar, "seeds", [](const Json& value) { return value.is_number_unsigned(); })) {
    figures.push_back(counted("seeds", seeds->get<std::uint64_t>(), "seeds"));
  }
  figures.push_back(millimetres("mean_length_mm", survey.lengths.mean_mm, "mean length"));
  figures.push_back(millimetres("median_length_mm", survey.lengths.median_mm, "median length"));
  figures.push_back(
      {"length_quartiles_mm",
       fmt::format("{:.17g} {:.17g}", survey.lengths.lower_quartile_mm, survey.lengths.upper_quartile_mm),
       fmt::format("{:.0f}, {:.0f} mm", survey.lengths.lower_quartile_mm, survey.lengths.upper_quartile_mm),
       "length quartiles"});
  figures.push_back({"total_length_mm", fmt::format("{:.17g}", survey.lengths.total_mm),
                     fmt::format("{:.1f} m", survey.lengths.total_mm / 1000), "total length"});
  figures.push_back(counted("commissural", survey.commissural, "ends on opposite sides of the midline"));
  figures.push_back(counted("crossing_midline", survey.crossing_midline, "cross the midline anywhere"));
  figures.push_back(counted("visited_voxels", survey.density->visited_voxels(), "voxels visited"));
}

std::string interval_text(const Estimate& estimate, double factor, std::string_view format) {
  if (!numerics::is_finite(estimate.low) || !numerics::is_finite(estimate.high)) return "";
  return fmt::format("{} to {}", fmt::format(fmt::runtime(format), factor * estimate.low),
                     fmt::format(fmt::runtime(format), factor * estimate.high));
}

void add_estimate(ScorePart& part, std::string name, const Estimate& estimate, double factor, std::string_view format,
                  std::string_view unit, std::string meaning, bool intervals) {
  std::string value = numerics::is_finite(estimate.value)
                          ? fmt::format(fmt::runtime(format), factor * estimate.value) + std::string(unit)
                          : std::string("not defined");
  part.rows.push_back({std::move(name), std::move(value), intervals ? interval_text(estimate, factor, format) : "",
                       std::move(meaning)});
}

ScorePart score_part(const Score& score) {
  ScorePart part;
  const bool intervals = score.replicates > 0;
  part.truth = fmt::format(
      "Against the truth of the phantom '{}': {} streamlines, {} true bundles, ends judged within {:.2g} mm.{}",
      score.preset, html_count(score.streamlines), score.bundles.size(), score.end_tolerance_mm,
      intervals ? fmt::format(" Intervals by bootstrap over streamlines, {} replicates.", score.replicates) : "");
  const auto share = [&](std::string name, const Estimate& estimate, std::string meaning) {
    add_estimate(part, std::move(name), estimate, 100, "{:.1f}", " %", std::move(meaning), intervals);
  };
  const auto number = [&](std::string name, const Estimate& estimate, std::string_view format, std::string_view unit,
                          std::string meaning) {
    add_estimate(part, std::move(name), estimate, 1, format, unit, std::move(meaning), intervals);
  };
  share("valid", score.valid, "both ends in the end regions of one bundle, inside it on the way");
  share("wrong path", score.wrong_path, "the ends of one bundle, but not inside it on the way");
  share("invalid", score.invalid, "the ends of two different bundles");
  share("no connection", score.no_connection, "an end outside every end region");
  share("valid of connections", score.valid_of_connections, "valid / (valid + invalid)");
  part.rows.push_back(
      {"bundles found", fmt::format("{} of {}", score.bundles_found, score.bundles.size()),
       intervals ? interval_text(score.bundles_found_share, static_cast<double>(score.bundles.size()), "{:.0f}") : "",
       "true bundles with at least one valid streamline"});
  part.rows.push_back(
      {"false pairs of regions", html_count(score.invalid_bundles), "", "distinct invalid connections"});
  share("overlap", score.any.overlap, "mean over all true bundles of the share of voxels found");
  share("overreach", score.any.overreach, "mean over all true bundles of voxels outside, as a share of the bundle");
  number("F1", score.any.f1, "{:.3f}", "", "harmonic mean of precision and overlap, over all true bundles");
  number("angular error", score.angular_error_deg, "{:.2f}", " degrees", "to the true direction, inside bundles");
  number("distance to the tube", score.distance_mm, "{:.2f}", " mm", "of valid streamlines, 0 inside");
  number("connectivity correlation", score.connectivity_correlation, "{:.3f}", "",
         "Pearson's r between found and true weights of connections");
  share("commissural", score.commissural, "ends on opposite sides of the midline");
  share("crossing the midline", score.crossing_midline, "points on both sides of it, wherever the ends are");
  for (const BundleScore& bundle : score.bundles) {
    part.bundles.push_back({bundle.name, bundle.valid_count, bundle.any.overlap, bundle.any.overreach, bundle.any.f1});
  }
  constexpr std::size_t most_false = 10;
  for (const FalseConnection& connection : score.false_connections) {
    if (part.false_connections.size() == most_false) break;
    part.false_connections.push_back({connection.from + " - " + connection.to, html_count(connection.count)});
  }
  return part;
}

Json estimate_json(const Estimate& estimate) {
  const auto or_null = [](double value) { return numerics::is_finite(value) ? Json(value) : Json(); };
  return {{"value", or_null(estimate.value)}, {"low", or_null(estimate.low)}, {"high", or_null(estimate.high)}};
}

// The three views at one scale, cut to their content and set side by side on a common middle line.
Picture views_side_by_side(const std::vector<NamedPicture>& plain_views, double mm_per_pixel) {
  std::vector<Picture> cropped;
  int width = 0, height = 0;
  for (const NamedPicture& view : plain_views) {
    cropped.push_back(crop_to_content(view.picture, std::max(14, view.picture.width / 26)));
    width += cropped.back().width;
    height = std::max(height, cropped.back().height);
  }
  Picture all(width, height);
  int x = 0;
  for (std::size_t i = 0; i < cropped.size(); ++i) {
    Picture column(cropped[i].width, height);
    paste(column, cropped[i], 0, (height - cropped[i].height) / 2);
    draw_orientation(column, all_view_sides[i]);
    paste(all, column, x, 0);
    x += column.width;
  }
  draw_scale_bar(all, mm_per_pixel, 0.08);
  return all;
}

void fill_views(const ReportRequest& request, const TractogramSurvey& survey, ThreadPool& pool, ReportContent& content,
                std::vector<NamedPicture>& pictures) {
  if (survey.drawn.positions.empty()) {
    content.views_note = "There is no streamline to draw.";
    return;
  }
  const WorldBox box = bounding_box(survey.drawn);
  constexpr std::array<std::string_view, 3> captions = {"sagittal, seen from the left", "coronal, seen from behind",
                                                        "axial, seen from above"};
  std::vector<NamedPicture> plain;
  double mm_per_pixel = 1;
  for (std::size_t i = 0; i < all_view_sides.size(); ++i) {
    const ViewSide side = all_view_sides[i];
    const ViewFrame frame = frame_around(box, side, request.picture_pixels);
    Picture picture = draw_streamlines(survey.drawn, side, frame, pool);
    plain.push_back({fmt::format("{}.png", view_side_name(side)), picture});
    mm_per_pixel = frame.mm_per_pixel;
    draw_orientation(picture, side);
    draw_scale_bar(picture, mm_per_pixel);
    pictures.push_back({plain.back().name, picture});
    content.views.push_back({std::move(picture), std::string(captions[i])});
  }
  pictures.push_back({"views.png", views_side_by_side(plain, mm_per_pixel)});
  if (survey.drawn_every > 1) {
    content.views_note = fmt::format("One streamline in {} is drawn: {} of {}.", survey.drawn_every,
                                     html_count(survey.drawn.streamline_count()), html_count(survey.streamlines));
  }
}

void fill_density(const TractogramSurvey& survey, const std::optional<Anatomy>& anatomy, ReportContent& content,
                  std::vector<NamedPicture>& pictures) {
  const DensityMap& density = *survey.density;
  content.density_scale = density_scale(density);
  for (const ViewSide side : all_view_sides) {
    const std::string name(view_side_name(side));
    DensityPicture slice =
        draw_density_slice(density, content.density_scale, anatomy ? &*anatomy : nullptr, side, density_pixels);
    constexpr std::string_view axis_letters = "xyz";
    const std::size_t world_axis = side == ViewSide::sagittal ? 0 : side == ViewSide::coronal ? 1 : 2;
    pictures.push_back({fmt::format("density-{}.png", name), slice.picture});
    content.density_slices.push_back(
        {std::move(slice.picture),
         fmt::format("{} slice {} of {}, {} = {:.1f} mm", name, slice.slice, density.geometry().size[slice.axis],
                     axis_letters[world_axis], slice.position_mm)});
    Picture projection = draw_density_projection(density, content.density_scale, side, density_pixels);
    pictures.push_back({fmt::format("density-projection-{}.png", name), projection});
    content.density_projections.push_back({std::move(projection), name});
  }
  content.density_note = fmt::format(
      "Streamlines per voxel by exact traversal, each counted once in a voxel; the largest is {}. The map is on {} "
      "({}).",
      html_count(density.largest()), survey.density_grid, geometry_text(density.geometry()));
}

Json summary_of(const ReportRequest& request, const TractogramSurvey& survey, const ReportContent& content) {
  const LengthSummary& lengths = survey.lengths;
  Json json = {{"tracks", request.tracks.string()},
               {"format", tractogram_format_name(survey.layout.format)},
               {"streamlines", survey.streamlines},
               {"points", survey.points},
               {"not_finite", survey.not_finite},
               {"mean_length_mm", lengths.mean_mm},
               {"median_length_mm", lengths.median_mm},
               {"length_quartiles_mm", {lengths.lower_quartile_mm, lengths.upper_quartile_mm}},
               {"smallest_length_mm", lengths.smallest_mm},
               {"largest_length_mm", lengths.largest_mm},
               {"total_length_mm", lengths.total_mm},
               {"length_histogram", {{"bin_mm", survey.histogram.bin_mm}, {"counts", survey.histogram.counts}}},
               {"midline_mm", survey.midline_mm},
               {"commissural", survey.commissural},
               {"crossing_midline", survey.crossing_midline},
               {"drawn", survey.drawn.streamline_count()},
               {"drawn_every", survey.drawn_every},
               {"density",
                {{"grid", survey.density->geometry().size},
                 {"visited_voxels", survey.density->visited_voxels()},
                 {"largest", survey.density->largest()}}}};
  Json reasons = Json::object();
  for (const CountedReason& reason : content.end_reasons) reasons[reason.name] = reason.count;
  json["end_reasons"] = reasons;
  return json;
}

}  // namespace

Result<Report> make_report(const ReportRequest& request, ThreadPool& pool,
                           const std::function<void(std::uint64_t)>& advance) {
  ReportContent content;
  SurveyOptions options;
  options.max_drawn = request.max_streamlines;
  options.midline_mm = request.midline_mm;
  options.cancel = request.cancel;
  content.naming = request.naming;
  std::optional<Anatomy> anatomy;
  if (request.anatomy) {
    CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(*request.anatomy, request.cancel));
    options.density_grid = reader.header().geometry;
    // The grid is judged before memory is asked for.
    CGL_TRY(DensityMap::create(*options.density_grid).map([](DensityMap&&) {}));
    std::vector<float> values(static_cast<std::size_t>(options.density_grid->voxel_count()));
    CGL_TRY(reader.next_volume(std::span<float>(values)));
    if (reader.header().volume_count() > 1) {
      content.warnings.push_back(fmt::format("{} has {} volumes; the first is shown",
                                             request.anatomy->filename().string(), reader.header().volume_count()));
    }
    anatomy = make_anatomy(std::move(values));
  }
  CGL_TRY_ASSIGN(TractogramSurvey survey, survey_tractogram(request.tracks, options, pool, advance));
  CGL_TRY_ASSIGN(const std::string hash, hash_of_file(request.tracks, request.cancel));
  const Json sidecar = read_sidecar_of(request.tracks, content.warnings);
  content.title = request.tracks.filename().string();
  content.subtitle = fmt::format("{} tractogram{}", tractogram_format_name(survey.layout.format),
                                 survey.layout.reference ? ", " + geometry_text(*survey.layout.reference) : "");
  content.warnings.insert(content.warnings.end(), survey.warnings.begin(), survey.warnings.end());
  content.lengths = survey.histogram;
  content.median_length_mm = survey.lengths.median_mm;
  content.end_reasons = end_reasons_of(survey, sidecar);
  fill_from_sidecar(sidecar, hash, content);
  fill_file_table(request, survey, hash, content);
  fill_figures(survey, sidecar, content);
  std::vector<NamedPicture> pictures;
  fill_views(request, survey, pool, content, pictures);
  fill_density(survey, anatomy, content, pictures);
  std::optional<Score> score;
  if (request.truth) {
    RunContext silent;
    silent.cancel = request.cancel;
    silent.progress.style = ProgressStyle::silent;
    CGL_TRY_ASSIGN(score, score_tractogram(request.tracks, *request.truth, {}, pool, silent));
    content.score = score_part(*score);
  }
  if (!request.track_command.empty() && JsonView(sidecar)["run"].is_there()) {
    content.commands.emplace_back("Make the tractogram again, the same to the bit", request.track_command);
  }
  if (!request.command.empty()) content.commands.emplace_back("Make this report again", request.command);
  CGL_TRY_ASSIGN(std::string page, report_page(content));
  Json summary = summary_of(request, survey, content);
  if (score) {
    summary["score"] = {{"valid", estimate_json(score->valid)},
                        {"invalid", estimate_json(score->invalid)},
                        {"no_connection", estimate_json(score->no_connection)},
                        {"bundles_found", score->bundles_found},
                        {"overlap", estimate_json(score->any.overlap)},
                        {"overreach", estimate_json(score->any.overreach)},
                        {"f1", estimate_json(score->any.f1)}};
  }
  return Report{std::move(page), std::move(pictures), std::move(summary), std::move(*survey.density),
                std::move(content.warnings)};
}

}  // namespace cingulum
