#include "base/option_name.hpp"

#include <algorithm>

namespace cingulum {

std::string option_name(std::string_view argument) {
  std::string name = "--" + std::string(argument);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace cingulum
