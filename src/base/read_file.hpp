// Reading a whole file into memory, with a cap. For headers, tables, JSON, kernels: whatever is small. Large data are
// read by their formats. Pipes and /proc, whose size is not known beforehand, are read too, and Ctrl-C ends a wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace cingulum {

constexpr std::uint64_t default_read_limit_bytes = std::uint64_t{1} << 30U;

[[nodiscard]] Result<std::vector<std::byte>> read_file(const std::filesystem::path& path,
                                                       std::uint64_t limit_bytes = default_read_limit_bytes);
[[nodiscard]] Result<std::string> read_text_file(const std::filesystem::path& path,
                                                 std::uint64_t limit_bytes = default_read_limit_bytes);

}  // namespace cingulum
