// The options of `cingulum track` and `convert` that say how a tractogram is stored: --float16, --float64, --deflate.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/element_type.hpp"
#include "base/result.hpp"
#include "cli/verb.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

[[nodiscard]] std::vector<Argument> layout_arguments();

// Refuses what the format has no place for, and what excludes each other.
[[nodiscard]] Status check_layout_options(const ParsedArguments& arguments, TractogramFormat format,
                                          const std::filesystem::path& out);

// As asked for; none where it was not.
[[nodiscard]] std::optional<ElementType> asked_position_type(const ParsedArguments& arguments);

}  // namespace cingulum
