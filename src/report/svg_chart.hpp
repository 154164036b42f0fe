// Charts as SVG inside a page: a histogram with axes, and horizontal bars with values, intervals and a second series.
// Colours are classes of the page's style, so charts follow light and dark. Called by the report's page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cingulum {

struct HistogramChart {
  std::vector<std::uint64_t> counts;
  double bin_width = 1;  // the first bin begins at 0
  std::string x_label;
  std::string y_label;
  std::string unit;              // of the bins, for the tooltips
  std::optional<double> marker;  // a dashed line
  std::string marker_label;
  std::string description;  // for those who do not see it
};
[[nodiscard]] std::string histogram_svg(const HistogramChart& chart);

struct Bar {
  std::string label;
  double value = 0;
  std::string value_text;
  std::optional<double> low = {};  // an interval around the value
  std::optional<double> high = {};
  std::string tooltip = {};
};

struct BarChart {
  std::vector<Bar> bars;
  double full = 1;          // the value of a bar of full length; longer ones are cut
  std::string style_class;  // "bar", "bar-good", "bar-bad"
  std::string description;
};
[[nodiscard]] std::string bar_svg(const BarChart& chart);

// Values over their numbers 0, 1, ...: a line for each series.
struct LineSeries {
  std::string label;
  std::vector<double> values;
};
struct LineChart {
  std::vector<LineSeries> series;
  std::string x_label;
  std::string y_label;
  std::string description;
};
[[nodiscard]] std::string line_svg(const LineChart& chart);

}  // namespace cingulum
