// The options of `cingulum track` and `convert` that say how a tractogram is stored (--float16, --float64, --deflate),
// and whether it may be written.
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

// Before the work: whether the file and its sidecar may be written.
[[nodiscard]] Status check_tractogram_output(const std::filesystem::path& path, TractogramFormat format,
                                             const WriteOptions& options);

// As asked for; none where it was not.
[[nodiscard]] std::optional<ElementType> asked_position_type(const ParsedArguments& arguments);

}  // namespace cingulum
