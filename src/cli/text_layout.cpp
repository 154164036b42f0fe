#include "cli/text_layout.hpp"

#include <algorithm>

#include "base/terminal.hpp"

namespace cingulum {
namespace {

class Lines {
 public:
  Lines(std::size_t width, std::size_t indent) : width_(width > indent + 20 ? width : indent + 20), indent_(indent) {}

  void add_word(std::string_view word) {
    const std::size_t columns = display_width(word);
    if (column_ > 0 && column_ + 1 + columns > width_) end_line();
    if (column_ == 0) {
      text_.append(indent_, ' ');
      column_ = indent_;
    } else {
      text_.push_back(' ');
      ++column_;
    }
    text_ += word;
    column_ += columns;
  }

  void end_line() {
    if (column_ == 0) return;
    text_.push_back('\n');
    column_ = 0;
  }

  void add_whole_line(std::string_view line) {
    end_line();
    text_.append(line.empty() ? 0 : indent_, ' ').append(line).push_back('\n');
  }

  [[nodiscard]] std::string take() {
    end_line();
    return std::move(text_);
  }

 private:
  std::size_t width_;
  std::size_t indent_;
  std::size_t column_ = 0;
  std::string text_;
};

void add_words(Lines& lines, std::string_view text) {
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    lines.add_word(word);
    text.remove_prefix(word.size());
  }
}

}  // namespace

std::string wrap_text(std::string_view text, std::size_t width, std::size_t indent) {
  Lines lines(width, indent);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.empty() || line.front() == ' ') {
      lines.add_whole_line(line);
    } else {
      add_words(lines, line);
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return lines.take();
}

std::string definition_list(const std::vector<std::pair<std::string, std::string>>& items, std::size_t width) {
  constexpr std::size_t indent = 2;
  constexpr std::size_t gap = 2;
  constexpr std::size_t widest_label = 26;
  std::size_t label_width = 0;
  for (const auto& [label, text] : items) {
    if (display_width(label) <= widest_label) label_width = std::max(label_width, display_width(label));
  }
  const std::size_t column = indent + label_width + gap;
  std::string result;
  for (const auto& [label, text] : items) {
    const std::string body = wrap_text(text, width, column);
    std::string head = std::string(indent, ' ') + label;
    if (display_width(label) <= label_width && !body.empty()) {
      head.append(column - indent - display_width(label), ' ');
      result += head + body.substr(column);
    } else {
      result += head + "\n" + body;
    }
  }
  return result;
}

}  // namespace cingulum
