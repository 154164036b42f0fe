// `cingulum track` as people type it: a series and its mask in, a tractogram out, everything else by default, in a
// process of its own. Called by `cingulum bench track`.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "measure/bench_data.hpp"
#include "measure/tracking_rows.hpp"

namespace cingulum::measure {

// "typed ptt": the name of the row.
[[nodiscard]] std::string typed_run_name(Getter getter);

// The command, its time from start to exit (the shortest of the repetitions, and each), its processor time and memory,
// what it kept, and its score where the data are a phantom. `frame` is --bvec-frame, empty: not given. The series'
// files are in the system's cache after the first repetition, as they are after whatever wrote them.
[[nodiscard]] Result<nlohmann::ordered_json> measure_typed_run(const BenchData& data, Getter getter,
                                                               const std::string& device, const std::string& frame,
                                                               const BenchMeasures& measures, ThreadPool& pool);

}  // namespace cingulum::measure
