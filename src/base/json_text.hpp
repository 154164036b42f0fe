// JSON as the text that Cingulum prints and writes: two spaces deep, a line feed at the end, and bytes that are not
// UTF-8 (file names may hold any) replaced instead of thrown about. Called by verbs, sidecars, folders of results and
// benches.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cingulum {

[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json);

}  // namespace cingulum
