// A check, before work begins, that there is room for an output, and the words for a disk that is full. Called by the
// writers of files and folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_layer.hpp"
#include "base/result.hpp"

namespace cingulum {

[[nodiscard]] bool disk_is_full(int error);

// Free space is a help for people; a file system that does not say is no obstacle.
[[nodiscard]] std::optional<std::uint64_t> free_bytes(FileLayer& layer, const std::string& folder);

// `shown` is the output as it was named; `at_least` goes before the number.
[[nodiscard]] tl::unexpected<Error> full_disk(const std::string& shown, const std::string& folder,
                                              std::string_view cause, std::string_view at_least, std::uint64_t needed,
                                              std::optional<std::uint64_t> available);

// Zero bytes are not known beforehand: anything fits.
[[nodiscard]] Status check_space(FileLayer& layer, const std::string& shown, const std::string& folder,
                                 std::uint64_t expected_bytes);

}  // namespace cingulum
