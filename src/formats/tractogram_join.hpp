// Tractograms joined as they are: the file that one writer would have made of the streamlines of several files that
// were written alike. Positions go through unchanged, those of TRK in the space of the file. Called by `cingulum
// merge`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "base/atomic_file.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"

namespace cingulum {

struct TractogramPart {
  std::filesystem::path path;
  std::uint64_t streamlines = 0;  // that are taken, from its beginning
};

struct JoinedTractogram {
  std::uint64_t streamlines = 0;
  std::uint64_t points = 0;
};

// Writes `out`, which has the format of all parts. They have one layout: types, fields, grid; a part that differs, or
// has fewer streamlines than are taken, is named. `joined` is right when options.companion is asked for what it says.
// Memory is that of a batch. `progress`, of streamlines, may be null. `before_commit` is asked once everything is
// written: where it fails, nothing is left.
[[nodiscard]] Status join_tractograms(std::span<const TractogramPart> parts, const std::filesystem::path& out,
                                      const WriteOptions& options, JoinedTractogram& joined, Progress* progress,
                                      const std::function<Status()>& before_commit);

}  // namespace cingulum
