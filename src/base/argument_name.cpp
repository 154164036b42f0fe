#include "base/argument_name.hpp"

#include <algorithm>

namespace cingulum {
namespace {

constexpr bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::string plain_argument_name(std::string_view name) {
  return std::string(name);
}

ArgumentMark find_argument_mark(std::string_view text, std::size_t from) noexcept {
  for (std::size_t begin = text.find(argument_mark_begin, from); begin != std::string_view::npos;
       begin = text.find(argument_mark_begin, begin + 1)) {
    const std::size_t end = text.find(argument_mark_end, begin + 1);
    if (end == std::string_view::npos) break;
    const std::string_view name = text.substr(begin + 1, end - begin - 1);
    if (!name.empty() && std::all_of(name.begin(), name.end(), is_name_character)) return {begin, name};
  }
  return {};
}

std::string spell_argument_names(std::string_view text, ArgumentNaming naming) {
  std::string spelled;
  spelled.reserve(text.size());
  std::size_t done = 0;
  for (ArgumentMark mark = find_argument_mark(text); mark.begin != std::string_view::npos;
       mark = find_argument_mark(text, done)) {
    spelled.append(text.substr(done, mark.begin - done)).append(naming(mark.name));
    done = mark.begin + mark.name.size() + 2;
  }
  return spelled.append(text.substr(done));
}

}  // namespace cingulum
