#include "report/page_parts.hpp"

#include <fmt/format.h>

#include "report/html_text.hpp"
#include "report/png.hpp"

namespace cingulum {
namespace {

constexpr std::string_view style = R"css(
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
svg .line { fill: none; stroke: var(--accent); stroke-width: 1.4; opacity: .8; }
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

}  // namespace

std::string_view page_style() {
  return style;
}

std::string page_begin(std::string_view title, std::string_view kind, std::string_view subtitle) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"Cingulum\">\n<title>{} - {}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n<main>\n<header>\n<h1>{}</h1>\n<p>{}</p>\n</header>\n",
      html_text(title), html_text(kind), style, html_text(title), html_text(subtitle));
}

std::string page_end(std::string_view footer) {
  return fmt::format("<footer>{}</footer>\n</main>\n</body>\n</html>\n", html_text(footer));
}

std::string warnings_part(const std::vector<std::string>& warnings) {
  std::string html;
  for (const std::string& warning : warnings) {
    html += fmt::format("<p class=\"warning\">{}</p>\n", html_text(warning));
  }
  return html;
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

std::string table_part(std::string_view title, const std::vector<TableRow>& rows) {
  if (rows.empty()) return {};
  std::string html =
      fmt::format("<section>\n<h2>{}</h2>\n<div class=\"sheet scroll\"><table><tbody>\n", html_text(title));
  for (const TableRow& row : rows) {
    html += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", html_text(row.key), html_text(row.value));
  }
  return html + "</tbody></table></div>\n</section>\n";
}

std::string pairs_part(std::string_view title, const std::vector<TableRow>& rows) {
  if (rows.empty()) return {};
  std::string html = fmt::format("<section>\n<h2>{}</h2>\n<dl class=\"pairs sheet\">\n", html_text(title));
  for (const TableRow& row : rows) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_text(row.key), html_text(row.value));
  }
  return html + "</dl>\n</section>\n";
}

std::string columns_part(std::string_view title, const std::vector<std::vector<std::string>>& rows) {
  if (rows.size() < 2) return {};
  std::string html = fmt::format("<section>\n<h2>{}</h2>\n<div class=\"sheet scroll\"><table>\n", html_text(title));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    html += i == 0 ? "<thead><tr>" : "<tr>";
    for (const std::string& cell : rows[i])
      html += fmt::format("<{0}>{1}</{0}>", i == 0 ? "th" : "td", html_text(cell));
    html += i == 0 ? "</tr></thead><tbody>\n" : "</tr>\n";
  }
  return html + "</tbody></table></div>\n</section>\n";
}

}  // namespace cingulum
