// What a bench reports: a row beside its ceiling as text and as JSON, and the frame of the JSON, which says what was
// built. Called by whatever measures.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "measure/repetitions.hpp"

namespace cingulum::measure {

// One line of a report: what was measured, in which unit, and the ceiling of the same run.
struct Row {
  std::string scenario;
  std::string unit;
  Spread value;
  std::string ceiling_name;
  double ceiling = 0;  // 0: none
};

[[nodiscard]] nlohmann::ordered_json to_json(const Row& row);
[[nodiscard]] std::string to_text(const Row& row);

// Members with which every report begins: the bench's name; version, commit, compilers and build, as an object and, for
// those who read no JSON, as the text of --version.
[[nodiscard]] nlohmann::ordered_json report_frame(std::string_view bench);

}  // namespace cingulum::measure
