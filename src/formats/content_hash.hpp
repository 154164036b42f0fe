// The hash of a file's bytes, that of base/hash.hpp. Of large files several threads read and add up blocks; whoever
// asks strings the sums together in order. Called for digests of sidecars.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/cancel.hpp"
#include "base/result.hpp"

namespace cingulum {

struct ContentHash {
  std::string hex;
  std::uint64_t bytes = 0;
};

// Polls `cancel`.
[[nodiscard]] Result<ContentHash> hash_content(const std::filesystem::path& path, const CancelToken& cancel);

}  // namespace cingulum
