// The grids on which the tests of resident actors run: emulated, and CUDA where it is compiled in.
#pragma once

#include <memory>
#include <string_view>

#include "ring/resident/resident_backend.hpp"

namespace cingulum::ring::testing {

// `kind` is "emulated", "emulated-display" or "cuda". ErrorKind::unavailable where there is no such device.
[[nodiscard]] Result<std::unique_ptr<ResidentBackend>> make_test_backend(std::string_view kind);
// The bodies of ring/ability_bodies.hpp; "lanes" as well, a grid of threads whose blocks have several lanes.
[[nodiscard]] Result<std::unique_ptr<ResidentBackend>> make_ability_backend(std::string_view kind);
// CUDA only: the same bodies, and one that ends the device's context. In a process of its own.
[[nodiscard]] Result<std::unique_ptr<ResidentBackend>> make_trapping_backend();

}  // namespace cingulum::ring::testing
