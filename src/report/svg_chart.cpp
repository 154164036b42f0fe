#include "report/svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/html_text.hpp"

namespace cingulum {
namespace {

// The distance between ticks: 1, 2 or 5 times a power of ten, such that at most `most` fit.
double tick_step(double range, int most) {
  double step = 1e-6;
  for (int i = 0; range / step > most && step < 1e30; ++i) step *= i % 3 == 1 ? 2.5 : 2.0;
  return step;
}

// Numbers on axes: no more digits than needed.
std::string tick_text(double value) {
  if (value >= 10000) return html_count(static_cast<std::uint64_t>(value + 0.5));
  return fmt::format("{:.6g}", value);
}

}  // namespace

std::string histogram_svg(const HistogramChart& chart) {
  constexpr double width = 720, height = 300, left = 64, right = 16, top = 18, bottom = 48;
  constexpr double plot_width = width - left - right;
  constexpr double plot_height = height - top - bottom;
  const double x_range = std::max(1e-9, chart.bin_width * static_cast<double>(chart.counts.size()));
  const std::uint64_t tallest = chart.counts.empty() ? 0 : *std::max_element(chart.counts.begin(), chart.counts.end());
  const double y_step = std::max(1.0, tick_step(static_cast<double>(std::max<std::uint64_t>(tallest, 1)), 5));
  const double y_range = y_step * std::ceil(static_cast<double>(std::max<std::uint64_t>(tallest, 1)) / y_step);
  const auto x_of = [&](double value) { return left + value / x_range * plot_width; };
  const auto y_of = [&](double value) { return top + plot_height - value / y_range * plot_height; };

  std::string svg = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width,
                                height, html_text(chart.description));
  for (double value = 0; value <= y_range * 1.0001; value += y_step) {
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>", left, y_of(value),
                       width - right, y_of(value));
    svg += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 8,
                       y_of(value) + 4, tick_text(value));
  }
  for (std::size_t i = 0; i < chart.counts.size(); ++i) {
    if (chart.counts[i] == 0) continue;
    const double from = chart.bin_width * static_cast<double>(i);
    const double x = x_of(from);
    const double bar_width = plot_width / static_cast<double>(chart.counts.size());
    const double y = y_of(static_cast<double>(chart.counts[i]));
    svg += fmt::format(
        "<rect class=\"bar\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"><title>{:g} to {:g} {}: "
        "{}</title></rect>\n",
        x + bar_width * 0.04, y, bar_width * 0.92, top + plot_height - y, from, from + chart.bin_width,
        html_text(chart.unit), html_count(chart.counts[i]));
  }
  const double x_step = tick_step(x_range, 10);
  for (double value = 0; value <= x_range * 1.0001; value += x_step) {
    svg += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>", x_of(value),
                       top + plot_height, top + plot_height + 5);
    svg += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x_of(value),
                       top + plot_height + 19, tick_text(value));
  }
  svg += fmt::format("<line class=\"axis\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", left, top + plot_height,
                     width - right, top + plot_height);
  if (chart.marker && *chart.marker <= x_range) {
    const double x = x_of(*chart.marker);
    const bool label_left = *chart.marker > 0.7 * x_range;
    svg += fmt::format("<line class=\"marker\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>", x, top,
                       top + plot_height);
    svg +=
        fmt::format("<text class=\"marker-label\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
                    label_left ? x - 6 : x + 6, top + 10, label_left ? "end" : "start", html_text(chart.marker_label));
  }
  svg += fmt::format("<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     left + plot_width / 2, height - 8, html_text(chart.x_label));
  svg += fmt::format(
      "<text class=\"label\" x=\"14\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {0})\">{1}</text>\n",
      top + plot_height / 2, html_text(chart.y_label));
  return svg + "</svg>\n";
}

std::string bar_svg(const BarChart& chart) {
  constexpr double width = 720, row = 30, left = 190, right = 150, bar_height = 15;
  constexpr double plot_width = width - left - right;
  const double height = row * static_cast<double>(chart.bars.size()) + 6;
  const double full = chart.full > 0 ? chart.full : 1;
  const auto x_of = [&](double value) { return left + std::clamp(value / full, 0.0, 1.0) * plot_width; };
  std::string svg = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width,
                                height, html_text(chart.description));
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const Bar& bar = chart.bars[i];
    const double middle = row * (static_cast<double>(i) + 0.5) + 3;
    svg += fmt::format("<g><text class=\"bar-label\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", left - 10,
                       middle + 4.5, html_text(bar.label));
    svg += fmt::format("<rect class=\"track\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"3\"/>", left,
                       middle - bar_height / 2, plot_width, bar_height);
    svg += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" rx=\"3\">{}</rect>",
                       html_text(chart.style_class), left, middle - bar_height / 2, x_of(bar.value) - left, bar_height,
                       bar.tooltip.empty() ? "" : "<title>" + html_text(bar.tooltip) + "</title>");
    if (bar.low && bar.high) {
      svg += fmt::format("<path class=\"whisker\" d=\"M{0:.2f} {2:.1f}H{1:.2f}M{0:.2f} {3:.1f}v8M{1:.2f} {3:.1f}v8\"/>",
                         x_of(*bar.low), x_of(*bar.high), middle, middle - 4);
    }
    svg += fmt::format("<text class=\"bar-value\" x=\"{}\" y=\"{:.1f}\">{}</text></g>\n", width - right + 10,
                       middle + 4.5, html_text(bar.value_text));
  }
  return svg + "</svg>\n";
}

std::string line_svg(const LineChart& chart) {
  constexpr double width = 720, height = 300, left = 64, right = 16, top = 18, bottom = 48;
  constexpr double plot_width = width - left - right;
  constexpr double plot_height = height - top - bottom;
  std::size_t longest = 2;
  double low = 0, high = 1e-12;  // zero is always in sight: heights are compared
  for (const LineSeries& series : chart.series) {
    longest = std::max(longest, series.values.size());
    for (const double value : series.values) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  const double x_range = static_cast<double>(longest - 1);
  const double y_step = tick_step(high - low, 5);
  const double y_low = y_step * std::floor(low / y_step), y_high = y_step * std::ceil(high / y_step);
  const auto x_of = [&](double value) { return left + value / x_range * plot_width; };
  const auto y_of = [&](double value) { return top + plot_height - (value - y_low) / (y_high - y_low) * plot_height; };
  std::string svg = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", width,
                                height, html_text(chart.description));
  for (double value = y_low; value <= y_high + 0.5 * y_step; value += y_step) {
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>", left, y_of(value),
                       width - right, y_of(value));
    svg += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>\n", left - 8,
                       y_of(value) + 4, value);
  }
  const double x_step = std::max(1.0, tick_step(x_range, 10));
  for (double value = 0; value <= x_range * 1.0001; value += x_step) {
    svg += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x_of(value),
                       top + plot_height + 19, tick_text(value));
  }
  for (const LineSeries& series : chart.series) {
    if (series.values.empty()) continue;
    std::string path;
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      path += fmt::format("{}{:.2f} {:.2f}", i == 0 ? "M" : "L", x_of(static_cast<double>(i)), y_of(series.values[i]));
    }
    svg += fmt::format("<path class=\"line\" d=\"{}\"><title>{}</title></path>\n", path, html_text(series.label));
  }
  svg += fmt::format("<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     left + plot_width / 2, height - 8, html_text(chart.x_label));
  svg += fmt::format(
      "<text class=\"label\" x=\"14\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {0})\">{1}</text>\n",
      top + plot_height / 2, html_text(chart.y_label));
  return svg + "</svg>\n";
}

}  // namespace cingulum
