// A small table of text: columns as wide as their widest cell, two blanks between them, numbers to the right. Verbs
// print their results with it. It does not wrap cells; a cell is one line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cingulum {

enum class Align { left, right };

struct Column {
  std::string header;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // Missing cells are empty; more cells than columns are a mistake of the caller and are left out.
  void add_row(std::vector<std::string> cells);
  [[nodiscard]] std::size_t rows() const noexcept { return rows_.size(); }

  // Lines that end with a newline and without trailing blanks. Without headers when all of them are empty.
  [[nodiscard]] std::string text(std::size_t indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cingulum
