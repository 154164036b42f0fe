#include "report/oct_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/read_file.hpp"
#include "formats/sidecar.hpp"
#include "numerics/elementary64.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/volume/volume_file.hpp"
#include "report/html_text.hpp"
#include "report/page_parts.hpp"
#include "report/svg_chart.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using OctReportJson = nlohmann::ordered_json;

// Means along each axis, and of each plane.
struct Projections {
  oct::HostImage along_z, along_y, along_x;
  std::vector<double> plane_means;  // of voxels that hold something
};

Result<Projections> project_volume(const fs::path& path, const oct::VolumeDescription& volume,
                                   const oct::VolumeReadOptions& reading) {
  const auto [planes, rows, columns] = volume.shape;
  Projections made{oct::HostImage(rows, columns), oct::HostImage(planes, columns), oct::HostImage(planes, rows), {}};
  for (std::size_t first = 0; first < planes; first += oct::planes_at_a_time) {
    const std::size_t count = std::min<std::size_t>(oct::planes_at_a_time, planes - first);
    CGL_TRY_ASSIGN(const oct::HostVolume part, oct::read_planes(path, first, count, reading));
    for (std::size_t z = 0; z < count; ++z) {
      double sum = 0, held = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
          const auto value = static_cast<double>(part.at(z, r, c));
          made.along_z.at(r, c) += value / static_cast<double>(planes);
          made.along_y.at(first + z, c) += value / static_cast<double>(rows);
          made.along_x.at(first + z, r) += value / static_cast<double>(columns);
          sum += value;
          held += value > 0 ? 1 : 0;
        }
      }
      made.plane_means.push_back(held > 0 ? sum / held : 0);
    }
  }
  return made;
}

Picture shown(const GreyPicture& grey) {
  Picture picture(grey.width, grey.height);
  for (std::size_t i = 0; i < grey.grey.size(); ++i) {
    const auto value = static_cast<std::uint8_t>(grey.grey[i] >> 8U);
    picture.rgb[3 * i] = picture.rgb[3 * i + 1] = picture.rgb[3 * i + 2] = value;
  }
  return picture;
}

Picture image_picture(const oct::HostImage& image) {
  return shown(grey_picture(image.values, image.columns, image.rows));
}

oct::HostImage image_of(const OctReportJson& json) {
  oct::HostImage image(json.at("rows").get<std::size_t>(), json.at("columns").get<std::size_t>());
  json.at("values").get_to(image.values);
  return image;
}

// A number as tables show it; a text as it is; nothing for null.
std::string cell(const OctReportJson& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return {};
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump();
}

std::string csv_cell(const OctReportJson& value) {
  if (!value.is_string()) return value.is_null() ? std::string() : value.dump();
  std::string text = "\"";
  for (const char letter : value.get<std::string>())
    text += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return text + "\"";
}

// Rows of equal keys as CSV; the keys are its head.
std::string csv_of(const OctReportJson& rows) {
  std::string text;
  for (const OctReportJson& row : rows) {
    if (text.empty()) {
      for (const auto& [key, value] : row.items()) text += (text.empty() ? "" : ",") + key;
      text += "\n";
    }
    std::string line;
    for (const auto& [key, value] : row.items()) line += (line.empty() ? "" : ",") + csv_cell(value);
    text += line + "\n";
  }
  return text;
}

std::vector<std::vector<std::string>> columns_of(const OctReportJson& rows) {
  std::vector<std::vector<std::string>> table;
  for (const OctReportJson& row : rows) {
    if (table.empty()) {
      table.emplace_back();
      for (const auto& [key, value] : row.items()) {
        std::string name = key;
        std::replace(name.begin(), name.end(), '_', ' ');
        table.back().push_back(std::move(name));
      }
    }
    table.emplace_back();
    for (const auto& [key, value] : row.items()) table.back().push_back(cell(value));
  }
  return table;
}

// A slice's place on the canvas of the volume.
struct SlicePlace {
  double cosine = 1, sine = 0;
  std::array<double, 2> middle = {0, 0}, move = {0, 0};

  [[nodiscard]] std::array<double, 2> on_canvas(double row, double column) const {
    const double y = row - middle[0], x = column - middle[1];
    return {cosine * y - sine * x + middle[0] + move[0], sine * y + cosine * x + middle[1] + move[1]};
  }
};

SlicePlace place_of(const OctReportJson& slice, const OctReportJson& decision, const std::array<double, 2>& tile) {
  std::array<double, 2> extent = {0, 0};
  for (const OctReportJson& place : slice.at("places_px")) {
    for (std::size_t d = 0; d < 2; ++d)
      extent[d] = std::max(extent[d], std::floor(place.at(d).get<double>() + 1e-9) + tile[d]);
  }
  const auto turn = numerics::sine_cosine(decision.at("rotation_deg").get<double>() * oct::radians_per_degree);
  SlicePlace place{turn.cosine, turn.sine, {(extent[0] - 1) / 2, (extent[1] - 1) / 2}, {0, 0}};
  for (std::size_t d = 0; d < 2; ++d) {
    place.move[d] = decision.at("place_px").at(d).get<double>() + decision.at("shift_px").at(d).get<double>();
  }
  return place;
}

// The step of the image's logarithm across the middle of two tiles' overlap: behind it less before it.
double seam_step(const oct::HostImage& image, const SlicePlace& place, const std::array<double, 2>& from,
                 const std::array<double, 2>& to, const std::array<double, 2>& tile) {
  const std::size_t axis = std::abs(to[0] - from[0]) > std::abs(to[1] - from[1]) ? 0 : 1;
  const double middle = (to[axis] + from[axis] + tile[axis] - 1) / 2;
  const std::size_t along = 1 - axis;
  const double begin = std::max(from[along], to[along]), end = std::min(from[along], to[along]) + tile[along] - 1;
  double sum = 0, count = 0;
  for (double at = std::ceil(begin); at <= end; at += 1) {
    for (const double away : {1.0, 2.0, 3.0, 4.0}) {
      std::array<double, 2> behind{}, before{};
      behind[axis] = middle + away, before[axis] = middle - away;
      behind[along] = before[along] = at;
      const auto a = place.on_canvas(behind[0], behind[1]), b = place.on_canvas(before[0], before[1]);
      double high = 0, low = 0;
      if (!oct::sample_image(image, a[0], a[1], high) || !oct::sample_image(image, b[0], b[1], low)) continue;
      if (!(high > 0 && low > 0)) continue;
      sum += numerics::logarithm(high / low);
      count += 1;
    }
  }
  return count > 0 ? sum / count : 0;
}

// The mean of the planes that a slice brings, as the volume shows them.
Result<oct::HostImage> slice_image(const fs::path& path, const oct::VolumeDescription& volume, double start, double end,
                                   const oct::VolumeReadOptions& reading) {
  const auto last = static_cast<double>(volume.shape[0]);
  const auto first = static_cast<std::size_t>(std::clamp(start, 0.0, last - 1));
  const auto count = static_cast<std::size_t>(std::max(1.0, std::min(end, last) - static_cast<double>(first)));
  CGL_TRY_ASSIGN(const oct::HostVolume planes,
                 oct::read_planes(path, first, std::min(count, oct::planes_at_a_time), reading));
  return oct::mean_projection(planes);
}

// Links over the slice: green where they are used, the brighter the better they correlate, red where not.
Picture link_picture(const oct::HostImage& image, const SlicePlace& place, const OctReportJson& slice,
                     const std::array<double, 2>& tile) {
  Picture picture = image_picture(image);
  const OctReportJson& places = slice.at("places_px");
  const auto middle_of = [&](std::size_t t) {
    return place.on_canvas(places.at(t).at(0).get<double>() + tile[0] / 2,
                           places.at(t).at(1).get<double>() + tile[1] / 2);
  };
  for (const OctReportJson& link : slice.at("links")) {
    const auto a = middle_of(link.at("from")), b = middle_of(link.at("to"));
    const Stroke stroke{a[1] + 0.5, a[0] + 0.5, b[1] + 0.5, b[0] + 0.5};
    const bool used = link.at("state") == "used";
    const double quality = std::clamp(link.at("ncc").get<double>(), 0.0, 1.0);
    const Colour colour = used ? Colour{40, static_cast<std::uint8_t>(90 + 160 * quality), 70} : Colour{230, 70, 50};
    draw_strokes(picture, {&stroke, 1}, 2.0, colour, 0.9);
  }
  return picture;
}

std::string charts(std::initializer_list<std::pair<std::string_view, std::string>> list) {
  std::string html = "<div class=\"charts\">\n";
  for (const auto& [title, chart] : list) {
    html += fmt::format("<div class=\"sheet\"><h3>{}</h3>\n{}</div>\n", html_text(title), chart);
  }
  return html + "</div>\n";
}

HistogramChart histogram_of(const std::vector<double>& values, double width, std::string x_label, std::string y_label) {
  HistogramChart chart;
  chart.bin_width = width;
  double largest = 0;
  for (const double value : values) largest = std::max(largest, value);
  chart.counts.assign(static_cast<std::size_t>(largest / width) + 1, 0);
  for (const double value : values) ++chart.counts[static_cast<std::size_t>(std::max(0.0, value) / width)];
  chart.x_label = std::move(x_label);
  chart.y_label = std::move(y_label);
  chart.description = chart.x_label;
  return chart;
}

BarChart bars_of(const OctReportJson& rows, const char* key, std::string description) {
  BarChart chart;
  chart.style_class = "bar";
  chart.description = std::move(description);
  chart.full = 1e-12;
  for (const OctReportJson& row : rows) {
    const double value = row.at(key).is_null() ? 0 : row.at(key).get<double>();
    chart.full = std::max(chart.full, value);
    chart.bars.push_back({fmt::format("slice {}", cell(row.at("slice"))), value, fmt::format("{:.3f}", value)});
  }
  return chart;
}

// The numbers of a run as rows of tables.
struct RunTables {
  OctReportJson slices = OctReportJson::array();
  OctReportJson tiles = OctReportJson::array();
  OctReportJson links = OctReportJson::array();
  OctReportJson decisions = OctReportJson::array();
};

void add_decision(RunTables& tables, std::string about, const OctReportJson& decision) {
  tables.decisions.push_back({{"about", std::move(about)},
                              {"subject", decision.at("subject")},
                              {"choice", decision.at("choice")},
                              {"reason", decision.at("reason")}});
}

void add_slice(const OctReportJson& result, std::size_t s, const oct::HostImage& image, const SlicePlace& place,
               const std::array<double, 2>& tile, RunTables& tables) {
  const OctReportJson& slice = result.at("slices").at(s);
  const OctReportJson& stack = result.at("stack").at(s);
  const OctReportJson& places = slice.at("places_px");
  const auto columns = slice.at("grid").at(1).get<std::size_t>();
  std::vector<double> residuals(places.size(), 0), counts(places.size(), 0);
  double steps = 0, seams = 0;
  for (const OctReportJson& link : slice.at("links")) {
    const auto from = link.at("from").get<std::size_t>(), to = link.at("to").get<std::size_t>();
    const bool used = link.at("state") == "used";
    const double step = seam_step(image, place, places.at(from).get<std::array<double, 2>>(),
                                  places.at(to).get<std::array<double, 2>>(), tile);
    tables.links.push_back({{"slice", slice.at("slice")},
                            {"from_row", from / columns},
                            {"from_column", from % columns},
                            {"to_row", to / columns},
                            {"to_column", to % columns},
                            {"state", link.at("state")},
                            {"correlation", link.at("ncc")},
                            {"residual_px", used ? link.at("residual_px") : OctReportJson()},
                            {"seam_step", step}});
    if (!used) continue;
    steps += step * step;
    seams += 1;
    for (const std::size_t t : {from, to}) {
      residuals[t] += link.at("residual_px").get<double>() * link.at("residual_px").get<double>();
      counts[t] += 1;
    }
  }
  for (std::size_t t = 0; t < places.size(); ++t) {
    const OctReportJson& depths = slice.at("depths_planes");
    tables.tiles.push_back(
        {{"slice", slice.at("slice")},
         {"row", t / columns},
         {"column", t % columns},
         {"row_px", places.at(t).at(0)},
         {"column_px", places.at(t).at(1)},
         {"links", counts[t]},
         {"residual_px", counts[t] > 0 ? OctReportJson(std::sqrt(residuals[t] / counts[t])) : OctReportJson()},
         {"depth_planes", depths.empty() ? OctReportJson() : depths.at(t)}});
  }
  const OctReportJson registration = s > 0 ? result.at("registrations").at(s - 1) : OctReportJson();
  const auto found = [&](const char* key) { return registration.is_null() ? OctReportJson() : registration.at(key); };
  const double start = stack.at("start_plane").get<double>();
  const double before = s > 0 ? result.at("stack").at(s - 1).at("start_plane").get<double>() : 0;
  const auto planes = result.at("tile_in_slice").at(0).get<double>();
  tables.slices.push_back({{"slice", slice.at("slice")},
                           {"links", slice.at("links").size()},
                           {"links_rejected", slice.at("links_rejected")},
                           {"residual_rms_px", slice.at("residual_rms_px")},
                           {"seam_step_rms", seams > 0 ? std::sqrt(steps / seams) : 0},
                           {"islands", slice.at("islands").size()},
                           {"missing_tiles", slice.at("missing_tiles").size()},
                           {"surface_plane", slice.at("surface_plane")},
                           {"noise_floor", slice.at("noise_floor")},
                           {"attenuation_per_plane", slice.at("mean_attenuation_per_plane")},
                           {"start_plane", start},
                           {"overlap_planes", s > 0 ? OctReportJson(before + planes - start) : OctReportJson()},
                           {"rotation_deg", stack.at("rotation_deg")},
                           {"depth_correlation", found("z_correlation")},
                           {"confidence", found("registration_confidence")},
                           {"gain", stack.at("gain")}});
  const std::string about = fmt::format("slice {}", cell(slice.at("slice")));
  for (const OctReportJson& decision : slice.at("decisions")) add_decision(tables, about, decision);
  add_decision(tables, about,
               {{"subject", "registration"}, {"choice", stack.at("transform")}, {"reason", stack.at("reason")}});
  if (slice.at("links_rejected") != 0) {
    add_decision(tables, about,
                 {{"subject", "links between tiles"},
                  {"choice", fmt::format("{} left out", cell(slice.at("links_rejected")))},
                  {"reason", fmt::format("correlation below {:.2f}, or against the others",
                                         slice.at("threshold").get<double>())}});
  }
}

std::vector<double> numbers_of(const OctReportJson& rows, const char* key) {
  std::vector<double> values;
  for (const OctReportJson& row : rows) {
    if (!row.at(key).is_null()) values.push_back(row.at(key).get<double>());
  }
  return values;
}

// What the page shows of a run, slice by slice.
struct FoundInRun {
  RunTables tables;
  std::vector<CaptionedPicture> slices;
  std::vector<std::string> warnings;
};

Result<FoundInRun> look_at_slices(const fs::path& path, const oct::VolumeDescription& volume,
                                  const OctReportJson& result, const oct::VolumeReadOptions& reading) {
  FoundInRun found;
  const std::array<double, 2> tile = {result.at("tile_in_slice").at(1), result.at("tile_in_slice").at(2)};
  // Places are in pixels of the tiles as they were read.
  const std::array<double, 2> tile_read = {result.at("tile").at(1), result.at("tile").at(2)};
  for (const OctReportJson& decision : result.at("decisions")) add_decision(found.tables, "run", decision);
  for (std::size_t s = 0; s < result.at("slices").size(); ++s) {
    CGL_TRY(reading.cancel.check());
    OctReportJson slice = result.at("slices").at(s);
    for (OctReportJson& place : slice.at("places_px")) {
      for (std::size_t d = 0; d < 2; ++d) place.at(d) = place.at(d).get<double>() * tile[d] / tile_read[d];
    }
    const OctReportJson& stack = result.at("stack").at(s);
    const double start = stack.at("start_plane").get<double>() + result.at("first_kept_plane").get<double>();
    const double end = stack.at("start_plane").get<double>() + result.at("tile_in_slice").at(0).get<double>();
    CGL_TRY_ASSIGN(const oct::HostImage image, slice_image(path, volume, start, end, reading));
    const SlicePlace place = place_of(slice, stack, tile);
    OctReportJson scaled = result;
    scaled.at("slices").at(s) = slice;
    add_slice(scaled, s, image, place, tile, found.tables);
    found.slices.push_back({link_picture(image, place, slice, tile),
                            fmt::format("slice {}: links between tiles", cell(slice.at("slice")))});
    for (const OctReportJson& island : slice.at("islands")) {
      found.warnings.push_back(
          fmt::format("slice {}: tiles {} have no link to the others and stand where the motors put them",
                      cell(slice.at("slice")), island.dump()));
    }
  }
  for (const OctReportJson& missing : result.at("missing")) found.warnings.push_back(cell(missing) + " is missing");
  return found;
}

// The pictures of what was fitted over all tiles, and profiles of planes.
Result<std::string> fits_part(const OctReportJson& result, const Projections& projections) {
  std::string html;
  std::vector<CaptionedPicture> fields;
  for (const auto& [key, caption] :
       {std::pair("curvature_planes", "focal curvature of a tile, {:.2f} to {:.2f} planes"),
        std::pair("light", "light over a tile, {:.3f} to {:.3f}")}) {
    if (result.at(key).is_null()) continue;
    const oct::HostImage image = image_of(result.at(key));
    const auto [low, high] = std::minmax_element(image.values.begin(), image.values.end());
    fields.push_back({image_picture(image), fmt::format(fmt::runtime(caption), *low, *high)});
  }
  if (!fields.empty()) {
    CGL_TRY_ASSIGN(const std::string pictures, pictures_part(fields));
    html += pictures;
  }
  LineChart profiles{{}, "plane of a slice", "agarose", "axial profile of each slice"};
  for (const OctReportJson& slice : result.at("slices")) {
    if (!slice.at("profile").empty()) {
      profiles.series.push_back(
          {fmt::format("slice {}", cell(slice.at("slice"))), slice.at("profile").get<std::vector<double>>()});
    }
  }
  const LineChart means{
      {{"mean", projections.plane_means}}, "plane of the volume", "mean", "mean of each plane of the volume"};
  html += charts({{"Mean of planes", line_svg(means)},
                  {"Axial profiles",
                   profiles.series.empty() ? "<p class=\"note\">none was divided out</p>\n" : line_svg(profiles)}});
  return html;
}

std::string links_part(const RunTables& tables) {
  const std::vector<double> residuals = numbers_of(tables.links, "residual_px");
  std::vector<double> steps = numbers_of(tables.links, "seam_step");
  for (double& step : steps) step = std::abs(step);
  return charts({{"Correlation of links",
                  histogram_svg(histogram_of(numbers_of(tables.links, "correlation"), 0.05, "correlation", "links"))},
                 {"Residuals of links", histogram_svg(histogram_of(residuals, 0.05, "pixels", "links"))},
                 {"Steps at seams", histogram_svg(histogram_of(steps, 0.01, "step of the logarithm", "seams"))}});
}

Result<std::string> page_of(const fs::path& path, const oct::VolumeDescription& volume, const OctReportJson& result,
                            const Projections& projections, const FoundInRun& found) {
  const RunTables& tables = found.tables;
  std::size_t rejected = 0;
  for (const OctReportJson& link : tables.links) rejected += link.at("state") != "used" ? 1U : 0U;
  const std::vector<double> residuals = numbers_of(tables.links, "residual_px");
  const auto figure = [](const char* name, const std::string& value, const char* label) {
    return Figure{name, value, value, label};
  };
  std::string html = page_begin(
      path.filename().native(), "OCT report",
      fmt::format("{} x {} x {} voxels of {:.4g} x {:.4g} x {:.4g} um (z, y, x)", volume.shape[0], volume.shape[1],
                  volume.shape[2], volume.voxel_um[0], volume.voxel_um[1], volume.voxel_um[2]));
  html += warnings_part(found.warnings);
  html += figures_part({figure("slices", std::to_string(tables.slices.size()), "slices"),
                        figure("tiles", std::to_string(tables.tiles.size()), "tiles"),
                        figure("links", std::to_string(tables.links.size()), "links between tiles"),
                        figure("links_rejected", std::to_string(rejected), "of these left out"),
                        figure("residual_px", fmt::format("{:.3f}", oct::median(residuals)), "median residual, pixels"),
                        figure("missing", std::to_string(result.at("missing").size()), "missing")});
  CGL_TRY_ASSIGN(const std::string views,
                 pictures_part({{image_picture(projections.along_z), "mean along z"},
                                {image_picture(projections.along_y), "mean along y: depth down"},
                                {image_picture(projections.along_x), "mean along x: depth down"}}));
  html += "<section id=\"projections\">\n<h2>Projections</h2>\n" + views + "</section>\n";
  CGL_TRY_ASSIGN(const std::string seams, pictures_part(found.slices));
  html += "<section id=\"seams\">\n<h2>Seams and links</h2>\n" + seams;
  html += links_part(tables);
  html += "</section>\n<section id=\"fits\">\n<h2>Curvature, light, profiles</h2>\n";
  CGL_TRY_ASSIGN(const std::string fits, fits_part(result, projections));
  html += fits;
  html += "</section>\n<section id=\"stack\">\n<h2>Overlaps and gains</h2>\n";
  html += charts(
      {{"Planes shared with the slice before", bar_svg(bars_of(tables.slices, "overlap_planes", "overlap of slices"))},
       {"Gains", bar_svg(bars_of(tables.slices, "gain", "gain of each slice"))}});
  html += "</section>\n" + columns_part("Slices", columns_of(tables.slices));
  html += columns_part("Decisions", columns_of(tables.decisions));
  html += page_end("Made by Cingulum. The same volume gives the same page.");
  return html;
}

Result<OctReport> report_of(const fs::path& path, const OctReportJson& sidecar, ThreadPool* pool,
                            const CancelToken& cancel) {
  const OctReportJson& result = sidecar.at("result");
  oct::VolumeReadOptions reading;
  reading.pool = pool;
  reading.cancel = cancel;
  CGL_TRY_ASSIGN(const oct::VolumeDescription volume, oct::describe_volume(path, reading));
  CGL_TRY_ASSIGN(const Projections projections, project_volume(path, volume, reading));
  CGL_TRY_ASSIGN(const FoundInRun found, look_at_slices(path, volume, result, reading));
  const RunTables& tables = found.tables;
  OctReport report;
  report.projection = grey_picture(projections.along_z.values, projections.along_z.columns, projections.along_z.rows);
  report.json = json_text(OctReportJson{{"volume", path.filename().native()},
                                        {"shape", volume.shape},
                                        {"voxel_um", volume.voxel_um},
                                        {"missing", result.at("missing")},
                                        {"plane_means", projections.plane_means},
                                        {"light", result.at("light")},
                                        {"curvature_planes", result.at("curvature_planes")},
                                        {"slices", tables.slices},
                                        {"tiles", tables.tiles},
                                        {"links", tables.links},
                                        {"decisions", tables.decisions}});
  report.tables = {{"slices", csv_of(tables.slices)},
                   {"tiles", csv_of(tables.tiles)},
                   {"links", csv_of(tables.links)},
                   {"decisions", csv_of(tables.decisions)}};
  CGL_TRY_ASSIGN(report.html, page_of(path, volume, result, projections, found));
  return report;
}

}  // namespace

GreyPicture grey_picture(const std::vector<double>& values, std::size_t width, std::size_t height) {
  GreyPicture picture{static_cast<int>(width), static_cast<int>(height), std::vector<std::uint16_t>(values.size(), 0)};
  const double low = oct::percentile(values, 0.001), high = oct::percentile(values, 0.999);
  if (!(high > low)) return picture;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double share = std::clamp((values[i] - low) / (high - low), 0.0, 1.0);
    picture.grey[i] = static_cast<std::uint16_t>(share * 65535.0);
  }
  return picture;
}

Result<OctReport> make_oct_report(const fs::path& volume, ThreadPool* pool, const CancelToken& cancel) {
  fs::path sidecar_path = volume;
  sidecar_path += ".json";
  CGL_TRY_ASSIGN(const std::string text, read_text_file(sidecar_path));
  CGL_TRY_ASSIGN(const OctReportJson sidecar, add_file_context(parse_json(text), "reading", sidecar_path.native()));
  try {
    return report_of(volume, sidecar, pool, cancel);
  } catch (const OctReportJson::exception& error) {
    return fail_file(sidecar_path.native(), ErrorKind::corrupt,
                     "{}: it is not what `cingulum oct run` says of a volume: {}", sidecar_path.native(), error.what());
  }
}

}  // namespace cingulum
