#include "report/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/html_text.hpp"
#include "report/png.hpp"
#include "report/svg_chart.hpp"

namespace cingulum {
namespace {

std::string css_colour(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

std::string direction_legend() {
  std::string html = "<p class=\"note\">Colour is direction:";
  constexpr std::array<std::string_view, 3> names = {"left and right", "front and back", "up and down"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    html += fmt::format("<span class=\"swatch\" style=\"background:{}\"></span>{}", css_colour(axis_colours[axis]),
                        names[axis]);
  }
  return html + "</p>\n";
}

Result<std::string> views_part(const ReportContent& content) {
  std::string html = "<section id=\"views\">\n<h2>Streamlines</h2>\n";
  if (content.views.empty()) {
    return html + fmt::format("<p class=\"note\">{}</p>\n</section>\n", html_text(content.views_note));
  }
  CGL_TRY_ASSIGN(const std::string pictures, pictures_part(content.views));
  html += pictures + direction_legend();
  if (!content.views_note.empty()) html += fmt::format("<p class=\"note\">{}</p>\n", html_text(content.views_note));
  return html + "</section>\n";
}

std::string end_reasons_chart(const std::vector<CountedReason>& reasons) {
  std::uint64_t total = 0;
  for (const CountedReason& reason : reasons) total += reason.count;
  BarChart chart;
  chart.style_class = "bar";
  chart.description = "why streamlines ended: number of ends for each reason";
  std::uint64_t most = 1;
  for (const CountedReason& reason : reasons) most = std::max(most, reason.count);
  chart.full = static_cast<double>(most);
  for (const CountedReason& reason : reasons) {
    const double share = total > 0 ? static_cast<double>(reason.count) / static_cast<double>(total) : 0;
    chart.bars.push_back({.label = reason.name,
                          .value = static_cast<double>(reason.count),
                          .value_text = fmt::format("{}, {}", html_count(reason.count), percent(share)),
                          .tooltip = reason.detail});
  }
  return bar_svg(chart);
}

std::string charts_part(const ReportContent& content) {
  std::string html = "<section id=\"lengths\">\n<h2>Lengths and ends</h2>\n<div class=\"charts\">\n";
  HistogramChart histogram;
  histogram.counts = content.lengths.counts;
  histogram.bin_width = content.lengths.bin_mm;
  histogram.x_label = "length (mm)";
  histogram.y_label = "streamlines";
  histogram.unit = "mm";
  histogram.marker = content.median_length_mm;
  histogram.marker_label = fmt::format("median {:.1f} mm", content.median_length_mm);
  histogram.description = "histogram of streamline lengths in millimetres";
  html += "<div class=\"sheet\"><h3>Length</h3>\n" + histogram_svg(histogram) + "</div>\n";
  html += "<div class=\"sheet\"><h3>Why streamlines ended</h3>\n";
  if (content.end_reasons.empty()) {
    html += fmt::format(
        "<p class=\"note\">Neither the file nor its sidecar tells. Tracking with {} writes it for each "
        "streamline.</p>\n",
        content.naming("save_seeds"));
  } else {
    html += end_reasons_chart(content.end_reasons);
    html += "<p class=\"note\">Both ends of every streamline are counted.</p>\n";
  }
  return html + "</div>\n</div>\n</section>\n";
}

Result<std::string> density_part(const ReportContent& content) {
  std::string html = "<section id=\"density\">\n<h2>Density</h2>\n";
  if (content.density_slices.empty()) return std::string();
  CGL_TRY_ASSIGN(const std::string slices, pictures_part(content.density_slices));
  CGL_TRY_ASSIGN(const std::string projections, pictures_part(content.density_projections));
  html += slices;
  std::string ramp;
  for (int i = 0; i <= 10; ++i) ramp += (i > 0 ? "," : "") + css_colour(density_colour(i / 10.0));
  html += fmt::format(
      "<p class=\"scale\"><span>1</span><span class=\"ramp\" style=\"background:linear-gradient(90deg,{})\"></span>"
      "<span>{} streamlines per voxel and more, logarithmic</span></p>\n",
      ramp, html_count(content.density_scale.full));
  html += "<h3>Largest density along the line of sight</h3>\n" + projections;
  html += fmt::format("<p class=\"note\">{}</p>\n", html_text(content.density_note));
  return html + "</section>\n";
}

std::string score_part(const ScorePart& score) {
  std::string html =
      fmt::format("<section id=\"score\">\n<h2>Score</h2>\n<p class=\"note\">{}</p>\n<div class=\"charts\">\n",
                  html_text(score.truth));
  // Two tables beside each other where there is room.
  const std::size_t half = (score.rows.size() + 1) / 2;
  for (std::size_t begin = 0; begin < score.rows.size(); begin += half) {
    html +=
        "<div class=\"sheet scroll\"><table>\n<thead><tr><th>measure</th><th class=\"number\">value</th>"
        "<th class=\"number\">95 % interval</th></tr></thead>\n<tbody>\n";
    for (std::size_t i = begin; i < std::min(begin + half, score.rows.size()); ++i) {
      const ScoreRow& row = score.rows[i];
      html += fmt::format("<tr><th title=\"{}\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n",
                          html_text(row.meaning), html_text(row.name), html_text(row.value), html_text(row.interval));
    }
    html += "</tbody></table></div>\n";
  }
  html += "</div>\n";
  if (!score.bundles.empty()) {
    html +=
        "<h3>Bundles: the share of each one's voxels that was found (green), and voxels outside it as a share of its "
        "size (orange)</h3>\n<ul class=\"bundles sheet\">\n";
    for (const BundleRow& bundle : score.bundles) {
      html += fmt::format(
          "<li title=\"{0}: {1} valid streamlines, overlap {2}, overreach {3}, F1 {4:.3f}\"><span "
          "class=\"name\">{0}</span>"
          "<span class=\"pair\"><i class=\"found\" style=\"width:{5:.1f}%\"></i><i class=\"beyond\" "
          "style=\"width:{6:.1f}%\"></i></span><span class=\"value\">{2}</span></li>\n",
          html_text(bundle.name), html_count(bundle.streamlines), percent(bundle.overlap), percent(bundle.overreach),
          bundle.f1, 100 * std::clamp(bundle.overlap, 0.0, 1.0), 100 * std::clamp(bundle.overreach, 0.0, 1.0));
    }
    html += "</ul>\n";
  }
  if (!score.false_connections.empty()) {
    html += "<h3>The most frequent false connections</h3>\n<div class=\"sheet scroll\"><table><tbody>\n";
    for (const TableRow& row : score.false_connections) {
      html +=
          fmt::format("<tr><th>{}</th><td class=\"number\">{}</td></tr>\n", html_text(row.key), html_text(row.value));
    }
    html += "</tbody></table></div>\n";
  }
  return html + "</section>\n";
}

std::string commands_part(const ReportContent& content) {
  if (content.commands.empty()) return {};
  std::string html = "<section id=\"commands\">\n<h2>Commands</h2>\n";
  for (const auto& [meaning, command] : content.commands) {
    html += fmt::format("<h3>{}</h3>\n<pre>{}</pre>\n", html_text(meaning), html_text(command));
  }
  return html + "</section>\n";
}

}  // namespace

Result<std::string> report_page(const ReportContent& content) {
  CGL_TRY_ASSIGN(const std::string views, views_part(content));
  CGL_TRY_ASSIGN(const std::string density, density_part(content));
  std::string html = page_begin(content.title, "tractogram report", content.subtitle);
  html += warnings_part(content.warnings);
  html += figures_part(content.figures);
  html += views;
  html += charts_part(content);
  html += density;
  if (content.score) html += score_part(*content.score);
  for (const auto& [title, rows] : content.tables) html += pairs_part(title, rows);
  html += table_part("Inputs", content.inputs);
  html += table_part("File", content.file);
  html += commands_part(content);
  return html + page_end("Made by Cingulum. The same tractogram gives the same page.");
}

}  // namespace cingulum
