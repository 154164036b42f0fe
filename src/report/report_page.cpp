#include "report/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/html_text.hpp"
#include "report/png.hpp"
#include "report/svg_chart.hpp"

namespace cingulum {
namespace {

constexpr std::string_view page_style = R"css(
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --sheet: #ffffff; --ink: #1b2230; --soft: #5b6577; --line: #dde2ea;
  --accent: #2f6fdb; --good: #2a9a5c; --bad: #d2603a; --track: #eaedf2; --warn: #fff4dc; --warn-line: #e5b85c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0e1118; --sheet: #161b25; --ink: #e4e8ef; --soft: #98a3b5; --line: #2a3140;
    --accent: #6ea2ff; --good: #4cc283; --bad: #f0875f; --track: #222938; --warn: #2d2616; --warn-line: #9a7a34;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif;
}
main { max-width: 1280px; margin: 0 auto; padding: 2.2rem 1.4rem 4rem; }
header h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; letter-spacing: -.01em; }
header p { margin: 0; color: var(--soft); }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .9rem; }
h3 { font-size: .95rem; margin: 1.4rem 0 .5rem; color: var(--soft); font-weight: 600; }
.note { color: var(--soft); font-size: .9rem; margin: .5rem 0 0; max-width: 75ch; }
.warning { background: var(--warn); border-left: 4px solid var(--warn-line); padding: .6rem .9rem; margin: 1rem 0 0;
  border-radius: 4px; overflow-wrap: anywhere; }
dl.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(138px, 1fr)); gap: .7rem; margin: 1.6rem 0 0; }
dl.figures div { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; padding: .75rem .9rem; }
dl.figures dt { color: var(--soft); font-size: .82rem; }
dl.figures dd { margin: .1rem 0 0; font-size: 1.2rem; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.pictures { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .8rem; }
figure { margin: 0; }
figure img { width: 100%; height: auto; display: block; border-radius: 10px; background: #0b0e14; }
figcaption { color: var(--soft); font-size: .86rem; padding: .35rem .1rem 0; }
.note + .charts { margin-top: .9rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(480px, 100%), 1fr)); gap: .8rem; align-items: start; }
.sheet { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.1rem; min-width: 0; }
.sheet h3 { margin-top: 0; }
svg.chart { width: 100%; height: auto; display: block; font-size: 13px; }
svg text { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg .tick, svg .label { fill: var(--soft); }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .bar { fill: var(--accent); }
svg .bar-good { fill: var(--good); }
svg .bar-bad { fill: var(--bad); }
svg .track { fill: var(--track); }
svg .whisker { stroke: var(--ink); stroke-width: 1.4; fill: none; }
svg .marker { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 4; }
svg .marker-label { fill: var(--bad); font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .38rem .8rem .38rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 600; font-size: .82rem; }
tbody th { font-weight: 500; white-space: nowrap; }
td { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
td.number, th.number { text-align: right; white-space: nowrap; }
tbody tr:last-child th, tbody tr:last-child td { border-bottom: 0; }
.scroll { overflow-x: auto; }
code, pre { font: .87rem/1.5 ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; padding: .8rem 1rem; overflow-x: auto;
  margin: .3rem 0 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.scale { display: flex; align-items: center; gap: .6rem; color: var(--soft); font-size: .86rem; margin-top: .7rem; }
.scale span.ramp { height: 10px; width: 220px; border-radius: 5px; }
.swatch { display: inline-block; width: .75em; height: .75em; border-radius: 50%; margin: 0 .3em 0 .9em; }
ul.bundles { list-style: none; margin: 0; columns: 3 300px; column-gap: 2rem; font-size: .84rem; }
ul.bundles li { display: grid; grid-template-columns: minmax(0, 1.3fr) minmax(0, 1fr) 3.6rem; gap: .6rem; align-items: center;
  break-inside: avoid; padding: .1rem 0; }
ul.bundles .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
ul.bundles .pair { background: var(--track); border-radius: 3px; overflow: hidden; display: block; height: 11px; }
ul.bundles i { display: block; }
ul.bundles .found { background: var(--good); height: 7px; }
ul.bundles .beyond { background: var(--bad); height: 4px; }
ul.bundles .value { text-align: right; font-variant-numeric: tabular-nums; }
dl.pairs { margin: 0; columns: 3 300px; column-gap: 2rem; font-size: .84rem; }
dl.pairs div { display: grid; grid-template-columns: minmax(0, 1.1fr) minmax(0, 1fr); gap: .6rem; break-inside: avoid;
  padding: .12rem 0; border-bottom: 1px solid var(--line); }
dl.pairs dt { color: var(--soft); overflow-wrap: anywhere; }
dl.pairs dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
footer { color: var(--soft); font-size: .85rem; margin-top: 3rem; }
@media (max-width: 760px) {
  .pictures { grid-template-columns: 1fr; }
  main { padding: 1.3rem .9rem 3rem; }
}
@media print {
  :root { --ground: #fff; --sheet: #fff; --ink: #000; --soft: #444; --line: #bbb; --track: #eee; }
  main { max-width: none; padding: 0; }
  figure, .sheet, tr, pre { break-inside: avoid; }
  h2 { break-after: avoid; }
  body { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
)css";

std::string css_colour(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

std::string figures_part(const std::vector<Figure>& figures) {
  std::string html = "<dl class=\"figures\">\n";
  for (const Figure& figure : figures) {
    html +=
        fmt::format("<div><dt>{}</dt><dd data-name=\"{}\" data-value=\"{}\">{}</dd></div>\n", html_text(figure.label),
                    html_text(figure.name), html_text(figure.value), html_text(figure.shown));
  }
  return html + "</dl>\n";
}

Result<std::string> pictures_part(const std::vector<CaptionedPicture>& pictures) {
  std::string html = "<div class=\"pictures\">\n";
  for (const CaptionedPicture& captioned : pictures) {
    CGL_TRY_ASSIGN(const std::string uri, png_data_uri(captioned.picture));
    html += fmt::format(
        "<figure><img src=\"{}\" width=\"{}\" height=\"{}\" alt=\"{}\"><figcaption>{}</figcaption></figure>\n", uri,
        captioned.picture.width, captioned.picture.height, html_text(captioned.caption), html_text(captioned.caption));
  }
  return html + "</div>\n";
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

std::string table_part(std::string_view title, const std::vector<TableRow>& rows) {
  if (rows.empty()) return {};
  std::string html =
      fmt::format("<section>\n<h2>{}</h2>\n<div class=\"sheet scroll\"><table><tbody>\n", html_text(title));
  for (const TableRow& row : rows) {
    html += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", html_text(row.key), html_text(row.value));
  }
  return html + "</tbody></table></div>\n</section>\n";
}

// Many short rows, in columns.
std::string pairs_part(std::string_view title, const std::vector<TableRow>& rows) {
  if (rows.empty()) return {};
  std::string html = fmt::format("<section>\n<h2>{}</h2>\n<dl class=\"pairs sheet\">\n", html_text(title));
  for (const TableRow& row : rows) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_text(row.key), html_text(row.value));
  }
  return html + "</dl>\n</section>\n";
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

std::string_view report_style() {
  return page_style;
}

Result<std::string> report_page(const ReportContent& content) {
  CGL_TRY_ASSIGN(const std::string views, views_part(content));
  CGL_TRY_ASSIGN(const std::string density, density_part(content));
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"Cingulum\">\n<title>{} - tractogram report</title>\n<style>{}</style>\n"
      "</head>\n<body>\n<main>\n<header>\n<h1>{}</h1>\n<p>{}</p>\n</header>\n",
      html_text(content.title), page_style, html_text(content.title), html_text(content.subtitle));
  for (const std::string& warning : content.warnings) {
    html += fmt::format("<p class=\"warning\">{}</p>\n", html_text(warning));
  }
  html += figures_part(content.figures);
  html += views;
  html += charts_part(content);
  html += density;
  if (content.score) html += score_part(*content.score);
  for (const auto& [title, rows] : content.tables) html += pairs_part(title, rows);
  html += table_part("Inputs", content.inputs);
  html += table_part("File", content.file);
  html += commands_part(content);
  html += "<footer>Made by Cingulum. The same tractogram gives the same page.</footer>\n</main>\n</body>\n</html>\n";
  return html;
}

}  // namespace cingulum
