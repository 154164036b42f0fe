// The parts of a run of `cingulum track` (`seed_range`, `part`), joined into the file that the undivided run would have
// written, with its sidecar. Used by the command line and C++ programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/result.hpp"
#include "runs/machine.hpp"

namespace cingulum {

struct MergeOutcome {
  std::filesystem::path path;
  std::size_t parts = 0;
  std::uint64_t seeds = 0;
  std::uint64_t streamlines = 0;
  std::uint64_t points = 0;
  nlohmann::ordered_json sidecar = {};  // as it was written, without the facts of the file
};

// The parts come in any order. Nothing is written unless all of them belong to one run, without gaps.
[[nodiscard]] Result<MergeOutcome> merge_parts(const std::vector<std::filesystem::path>& parts,
                                               std::filesystem::path out, RunMachine& machine);

}  // namespace cingulum
