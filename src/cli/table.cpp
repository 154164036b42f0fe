#include "cli/table.hpp"

#include <algorithm>
#include <utility>

#include "base/terminal.hpp"

namespace cingulum {
namespace {

constexpr std::size_t gap = 2;

std::string line_of(const std::vector<std::string>& cells, const std::vector<Column>& columns,
                    const std::vector<std::size_t>& widths, std::size_t indent) {
  std::string line(indent, ' ');
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string padding(widths[i] - display_width(cells[i]), ' ');
    if (i > 0) line.append(gap, ' ');
    line += columns[i].align == Align::left ? cells[i] + padding : padding + cells[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  line.push_back('\n');
  return line;
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  // A newline inside a cell would break the columns.
  for (std::string& cell : cells) {
    cell = escape_control_characters(cell);
    std::replace_if(
        cell.begin(), cell.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::size_t indent) const {
  std::vector<std::string> headers;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) {
    headers.push_back(column.header);
    widths.push_back(display_width(column.header));
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  const auto filled = [](const std::string& header) { return !header.empty(); };
  if (std::any_of(headers.begin(), headers.end(), filled)) text += line_of(headers, columns_, widths, indent);
  for (const auto& row : rows_) text += line_of(row, columns_, widths, indent);
  return text;
}

}  // namespace cingulum
