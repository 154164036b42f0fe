// The call "reconstruct this": reconstruct(request, machine) does all of `cingulum oct run`, from tiles to one volume
// with its sidecar, and explain_reconstruction() says what that takes. Used by the command line, Python and C++
// programs. The stages themselves are in src/oct/run.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oct/run/reconstruction.hpp"
#include "runs/machine.hpp"
#include "runs/oct/oct_request.hpp"

namespace cingulum {

struct OctOutcome {
  std::filesystem::path volume;
  std::array<std::size_t, 3> shape = {0, 0, 0};  // planes, rows, columns
  std::size_t slices = 0;
  std::size_t tiles = 0;
  std::vector<std::string> devices;
  nlohmann::ordered_json found;  // every place, fit and decision, as in the sidecar
};

// What the program prints and Python answers: what was found, `output`, `shape`, `devices`.
[[nodiscard]] nlohmann::ordered_json outcome_json(OctOutcome outcome);

[[nodiscard]] Result<OctOutcome> reconstruct(OctRequest request, RunMachine& machine);

struct OctExplanation {
  std::size_t tiles = 0;
  std::size_t slices = 0;
  oct::RunNeeds needs;
};
// Opens the tiles, and computes nothing.
[[nodiscard]] Result<OctExplanation> explain_reconstruction(OctRequest request, RunMachine& machine);

}  // namespace cingulum
