// Other programs in `cingulum bench track --peers`: DIPY, MRtrix3 and cuslines, those that are there, on the same data,
// seeds, step and angle, through the script of bench/peers, which is part of the library.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "cli/bench_data.hpp"

namespace cingulum {

struct PeerOptions {
  std::string python;
  std::uint64_t seeds = 2000;  // of those on processors; those on a GPU take all
  std::string only;            // peers whose name contains this
};

// A row per peer; empty, with a warning, where none ran.
[[nodiscard]] Result<nlohmann::ordered_json> run_bench_peers(const BenchData& data, const PeerOptions& options,
                                                             ThreadPool& pool);

[[nodiscard]] std::string table_of_peers(const nlohmann::ordered_json& peers);

}  // namespace cingulum
