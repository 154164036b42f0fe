// Parts that pages of reports share: the frame with its style, numbers that stand out, pictures, tables. A page is one
// HTML file that needs nothing else, readable on a wide and a narrow screen, light and dark, and on paper. Called by
// report_page.hpp and oct_report.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "report/picture.hpp"

namespace cingulum {

struct CaptionedPicture {
  Picture picture;
  std::string caption;
};

// A number that stands out. `name` and `value` are kept as attributes for programs: data-name, data-value.
struct Figure {
  std::string name;
  std::string value;
  std::string shown;
  std::string label;
};

struct TableRow {
  std::string key;
  std::string value;
};

// The style of every part, for pages with a head of their own.
[[nodiscard]] std::string_view page_style();
// The page from its first line to the title; `kind` stands behind it in the window's title.
[[nodiscard]] std::string page_begin(std::string_view title, std::string_view kind, std::string_view subtitle);
[[nodiscard]] std::string page_end(std::string_view footer);

[[nodiscard]] std::string warnings_part(const std::vector<std::string>& warnings);
[[nodiscard]] std::string figures_part(const std::vector<Figure>& figures);
[[nodiscard]] Result<std::string> pictures_part(const std::vector<CaptionedPicture>& pictures);
[[nodiscard]] std::string table_part(std::string_view title, const std::vector<TableRow>& rows);
// Many short rows, in columns.
[[nodiscard]] std::string pairs_part(std::string_view title, const std::vector<TableRow>& rows);
// A table of several columns; the first row is its head.
[[nodiscard]] std::string columns_part(std::string_view title, const std::vector<std::vector<std::string>>& rows);

}  // namespace cingulum
