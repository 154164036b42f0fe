// The refusal of a damaged file, as the parsers of this folder write it.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "base/result.hpp"

namespace cingulum {

template <class... Args>
tl::unexpected<Error> corrupt(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorKind::corrupt, text, std::forward<Args>(args)...);
}

}  // namespace cingulum
