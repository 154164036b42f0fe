// The places where the routers of the composed test live: CPU threads, a grid of threads whose blocks have one lane
// ("emulated") or several ("lanes"), a CUDA grid, and a child process.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ring/child/child_host.hpp"
#include "ring/compose/router.hpp"
#include "ring/resident/resident_grid.hpp"

namespace cingulum::ring::testing {

constexpr std::uint32_t compose_reply_buffers = 2;  // of each seat of a grid

// Null for "cpu".
[[nodiscard]] Result<std::shared_ptr<ResidentGrid>> open_compose_grid(std::string_view device, std::uint32_t lanes);
// The same program again, serving routers on `device`.
[[nodiscard]] Result<std::shared_ptr<ChildHost>> start_compose_child(const std::string& program,
                                                                     std::string_view device);
// What the child does.
[[nodiscard]] int serve_compose_parent(std::string_view device);

}  // namespace cingulum::ring::testing
