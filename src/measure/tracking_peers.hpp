// Other programs beside ours in the benches of tracking: DIPY, MRtrix3, Trekker and cuslines, those that are there, on
// the same data, seeds, step and angle, through the script of bench/peers, which is part of the library. Called by
// `cingulum bench track --peers` and bench_track.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "measure/bench_data.hpp"

namespace cingulum::measure {

// CSD and tensors of a series as `PROGRAM fit` writes them, in FOLDER/csd and FOLDER/dti, unless they are there.
[[nodiscard]] Status fit_for_peers(const std::filesystem::path& program, const std::filesystem::path& folder,
                                   const std::filesystem::path& series, const std::filesystem::path& mask);

// The script as a file of the folder, which is where it says so.
[[nodiscard]] Result<std::filesystem::path> write_peer_script(const std::filesystem::path& folder);

// "x y z" per line, with all digits that count.
[[nodiscard]] Status write_vectors(const std::filesystem::path& path, std::span<const numerics::Vec3> vectors);
[[nodiscard]] Status write_seeds(const std::filesystem::path& path, const Seeds& seeds);

// The folder as the script wants it: the series under the name of a phantom, CSD and tensors by this program, the
// seeds. Nothing is copied.
[[nodiscard]] Status fill_peer_folder(const std::filesystem::path& folder, const BenchData& data);

struct PeerOptions {
  std::string python;
  std::uint64_t seeds = 0;  // of those on processors; those on a GPU take all; 0: all of both
  int few_steps = 0;        // of the two runs whose difference is the price of steps; equal: it is not measured
  int many_steps = 0;
  std::string only;          // peers whose name contains this
  double limit_seconds = 0;  // of each; who takes longer is left out with a warning; 0: none
  // Called with every row as it comes.
  std::function<void(const std::string& name, const nlohmann::ordered_json& row)> on_row = nullptr;
};

// A row per peer, scored where the data are a phantom, with the file that it left; empty, with a warning, where none
// ran.
[[nodiscard]] Result<nlohmann::ordered_json> run_tracking_peers(const std::filesystem::path& folder,
                                                                const BenchData& data, const PeerOptions& options,
                                                                ThreadPool& pool);

}  // namespace cingulum::measure
