// The hash of a file's bytes in order. A hash is taken by one thread, byte after byte; bringing the bytes takes longer,
// so that of large files several threads do it, a few blocks ahead. Called for digests of sidecars.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/cancel.hpp"
#include "base/hash.hpp"
#include "base/result.hpp"

namespace cingulum {

// Adds the bytes of `path` to `hash`; the value is how many. Polls `cancel`.
[[nodiscard]] Result<std::uint64_t> add_file_content(Hash128& hash, const std::filesystem::path& path,
                                                     const CancelToken& cancel);

}  // namespace cingulum
