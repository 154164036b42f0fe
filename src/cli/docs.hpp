// The pages of docs/commands, made from the verbs' data: one per verb that is not hidden, and README.md as the index.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace cingulum {

struct Page {
  std::string name;  // "settings.md"
  std::string text;
};

[[nodiscard]] std::vector<Page> command_pages(const std::vector<Verb>& verbs);

}  // namespace cingulum
