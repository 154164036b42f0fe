// Paragraphs and option lists laid out in columns of a given width, for help.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cingulum {

// The words of `text` in lines of at most `width` columns, each behind `indent` blanks and ended by a newline. An empty
// line in the text begins a new paragraph; a line that begins with blanks is kept as it is. A word that is longer than
// a line has its own.
[[nodiscard]] std::string wrap_text(std::string_view text, std::size_t width, std::size_t indent = 0);

// Labels on the left, wrapped texts on the right; a label too wide for its column has a line of its own.
[[nodiscard]] std::string definition_list(const std::vector<std::pair<std::string, std::string>>& items,
                                          std::size_t width);

}  // namespace cingulum
