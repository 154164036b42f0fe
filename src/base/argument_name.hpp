// The name of an argument in a text for people. Below cli/ nobody knows whether the user typed `--max-angle` or wrote
// `max_angle=`: a text is made with argument_name("max_angle"), which leaves a mark around the neutral name, and the
// edge that shows the text (the command line, Python) puts its own spelling there. Errors and the log carry such texts;
// a std::string that a function hands out for a log line (warnings) may hold marks, too.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace cingulum {

// fail(ErrorKind::io, "writing {}: it exists; use {} to replace it", path, argument_name("force"));
struct ArgumentName {
  std::string_view name;  // neutral, snake_case; a member of the request or option that the caller fills
};

[[nodiscard]] constexpr ArgumentName argument_name(std::string_view name) {
  return {name};
}

// How an edge spells a neutral name.
using ArgumentNaming = std::string (*)(std::string_view name);
// As it is: `max_angle`.
[[nodiscard]] std::string plain_argument_name(std::string_view name);

// A mark is one of these control characters on either side of the name. What is not a complete mark stays as it is.
constexpr char argument_mark_begin = '\x0e';
constexpr char argument_mark_end = '\x0f';

// The first mark at or behind `from`: where it begins and the name inside. `begin` is npos where there is none.
struct ArgumentMark {
  std::size_t begin = std::string_view::npos;
  std::string_view name = {};
};
[[nodiscard]] ArgumentMark find_argument_mark(std::string_view text, std::size_t from = 0) noexcept;

// The text with every mark replaced by what `naming` makes of its name.
[[nodiscard]] std::string spell_argument_names(std::string_view text, ArgumentNaming naming = plain_argument_name);

}  // namespace cingulum

template <>
struct fmt::formatter<cingulum::ArgumentName> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(cingulum::ArgumentName argument, Context& context) const {
    return fmt::format_to(context.out(), "{}{}{}", cingulum::argument_mark_begin, argument.name,
                          cingulum::argument_mark_end);
  }
};
