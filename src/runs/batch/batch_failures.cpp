#include "runs/batch/batch_failures.hpp"

#include <algorithm>
#include <set>
#include <system_error>

#include "base/read_file.hpp"

namespace cingulum {
namespace {

constexpr std::string_view failure_columns = "unit\tfile\terror\tcommand\n";

// A cell is one line without tabs, whatever a file is called.
std::string cell_of(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace

Result<FailureTable> FailureTable::open(std::filesystem::path path, const std::vector<std::string>& units,
                                        WriteOptions options) {
  options.force = true;
  FailureTable table(std::move(path), std::move(options));
  std::error_code ignored;
  if (!std::filesystem::exists(table.path_, ignored)) return table;
  CGL_TRY_ASSIGN(const std::string text, read_text_file(table.path_));
  if (!text.starts_with(failure_columns)) {
    return fail(ErrorKind::already_exists, "{}: it is not a list of failures and would be replaced; move it away",
                table.path_.string());
  }
  const std::set<std::string> ours(units.begin(), units.end());
  std::size_t begin = failure_columns.size();
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1);
    const std::string line = text.substr(begin, end + 1 - begin);
    const std::string unit = line.substr(0, line.find('\t'));
    if (!ours.contains(unit)) table.lines_.emplace(unit, line);
    begin = end + 1;
  }
  return table;
}

Status FailureTable::add(const BatchFailure& failure, const std::string& command) {
  lines_.emplace(cell_of(failure.unit), fmt::format("{}\t{}\t{}\t{}\n", cell_of(failure.unit), cell_of(failure.file),
                                                    cell_of(failure.error), cell_of(command)));
  return write();
}

Status FailureTable::write() const {
  std::string text(failure_columns);
  for (const auto& [unit, line] : lines_) text += line;
  return write_file_atomically(path_, text, options_);
}

}  // namespace cingulum
