#include "report/html_text.hpp"

#include <gtest/gtest.h>

#include "report/svg_chart.hpp"

namespace cingulum {
namespace {

TEST(HtmlText, markup_is_escaped) {
  EXPECT_EQ(html_text("<script>alert(\"a\" & 'b')</script>"),
            "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;");
}

TEST(HtmlText, text_that_is_utf8_stays) {
  EXPECT_EQ(html_text("Köpfe 脳 🧠"), "Köpfe 脳 🧠");
}

TEST(HtmlText, bytes_that_are_no_utf8_and_controls_are_replaced) {
  EXPECT_EQ(html_text("a\xff"), "a\xef\xbf\xbd");
  EXPECT_EQ(html_text("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");          // overlong '/'
  EXPECT_EQ(html_text("\xed\xa0\x80").find('\xed'), std::string::npos);  // a surrogate
  EXPECT_EQ(html_text("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");          // cut off
  EXPECT_EQ(html_text(std::string_view("a\0b\x1b", 4)),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
  EXPECT_EQ(html_text("\xc2\x9b"), "\xef\xbf\xbd");
  EXPECT_EQ(html_text("a\nb\tc"), "a b c");
}

TEST(HtmlText, counts_are_grouped) {
  EXPECT_EQ(html_count(7), "7");
  EXPECT_EQ(html_count(1234567),
            "1\xe2\x80\xaf"
            "234\xe2\x80\xaf"
            "567");
  EXPECT_EQ(percent(0.1234), "12.3 %");
}

TEST(SvgChart, a_histogram_has_a_bar_for_each_bin_that_is_not_empty) {
  HistogramChart chart;
  chart.counts = {3, 0, 5};
  chart.bin_width = 10;
  chart.x_label = "<x>";
  const std::string svg = histogram_svg(chart);
  std::size_t bars = 0;
  for (std::size_t at = svg.find("class=\"bar\""); at != std::string::npos; at = svg.find("class=\"bar\"", at + 1))
    ++bars;
  EXPECT_EQ(bars, 2U);
  EXPECT_NE(svg.find("&lt;x&gt;"), std::string::npos);
  EXPECT_NE(svg.find("20 to 30 : 5"), std::string::npos);
}

TEST(SvgChart, charts_of_nothing_are_drawn) {
  EXPECT_NE(histogram_svg({}).find("</svg>"), std::string::npos);
  EXPECT_NE(bar_svg({}).find("</svg>"), std::string::npos);
}

TEST(SvgChart, bars_longer_than_full_are_cut) {
  BarChart chart;
  chart.style_class = "bar";
  chart.bars = {{.label = "a", .value = 5, .value_text = "500 %", .low = 4, .high = 9}};
  const std::string svg = bar_svg(chart);
  EXPECT_NE(svg.find("width=\"380.00\""), std::string::npos) << svg;
}

}  // namespace
}  // namespace cingulum
