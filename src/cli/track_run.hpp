// A run of `track` in its steps, for the verb and for Python, which has arrays where the verb has files and takes the
// streamlines in memory: arguments completed and devices being opened (settle_track), the data read and the field made
// (prepare_field), seeds and trackers (prepare_seeds). Then run_tracking or TrackingBatches, and track_facts, which is
// the sidecar. Implemented in track.cpp, beside the verb.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/given_arrays.hpp"
#include "cli/track_data.hpp"
#include "cli/track_devices.hpp"
#include "cli/track_sidecar.hpp"
#include "cli/verb.hpp"
#include "formats/tractogram.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum {

// Stays where it is: trackers refer to plan, field and seeds.
struct TrackRun {
  ParsedArguments arguments;  // with a value for every option
  Getter getter = Getter::ptt;
  std::optional<WantedDevices> wanted;  // being opened, from settle_track on; or given before, where runs share them
  GivenArrays arrays;
  TrackSource source;
  TrackingOptions options;
  TrackingPlan plan;
  PreparedSource prepared;
  std::filesystem::path seed_mask;
  std::filesystem::path made_mask;  // where a mask that is made goes; empty: beside the output
  std::vector<FoundInput> found;
  std::string phantom_hash;
  std::optional<PreparedRun> prepared_run;  // with --prepared
  std::unique_ptr<Seeds> seeds;
  std::optional<GivenDirections> directions;
  TrackingRunOptions run_options;
  TrackingDevices devices;

  TrackRun() = default;
  TrackRun(const TrackRun&) = delete;
  TrackRun& operator=(const TrackRun&) = delete;
};

// The arguments of the sidecar of `from`, then of preset and getter, where they were not given; begins to open the
// devices.
[[nodiscard]] Status settle_track(const ParsedArguments& command_line, VerbContext& context, TrackRun& run);

// What is tracked, with run.arrays in the place of files. A mask that is made is written to run.made_mask, or beside
// `out` unless that is empty.
[[nodiscard]] Status prepare_field(const ParsedArguments& command_line, const std::filesystem::path& out,
                                   VerbContext& context, TrackRun& run);

// Plan, seeds and rules of run.arguments for the field, without trackers: for a session, which has one. May be called
// again with other plans, seeds and rules in run.arguments.
[[nodiscard]] Status plan_seeds(VerbContext& context, TrackRun& run);

// The same, and trackers. May be called again with other seeds and rules in run.arguments.
[[nodiscard]] Status prepare_seeds(VerbContext& context, TrackRun& run);

// Of a file of the run's streamlines.
[[nodiscard]] TractogramLayout track_layout(const TrackRun& run, TractogramFormat format);

// What the sidecar says and equal runs share. `inputs` are those of input_facts().
[[nodiscard]] nlohmann::ordered_json track_facts(const TrackRun& run, nlohmann::ordered_json inputs,
                                                 const TrackingStatistics& statistics);

// Where the result is to be written: checked before the work.
struct TrackOutput {
  std::filesystem::path path;
  TractogramFormat format = TractogramFormat::trx;
  WriteOptions options;
  // Called once the last streamline is tracked: devices and cores are free for another run while the file is finished.
  std::function<void()> tracked = {};
  // What the sidecar says, as it is to be written; as it is where there is none.
  std::function<nlohmann::ordered_json(nlohmann::ordered_json)> told = {};
};
[[nodiscard]] Result<TrackOutput> check_track_output(const ParsedArguments& arguments, VerbContext& context);

// Tracks into the file and writes its sidecar, which is returned; `statistics` says whether it was interrupted.
// `begin` is when the run began.
struct TrackedFile {
  TrackingStatistics statistics;
  nlohmann::ordered_json sidecar;
  double prepare_seconds = 0;
  double track_seconds = 0;
};
[[nodiscard]] Result<TrackedFile> track_to_file(TrackRun& run, const TrackOutput& output,
                                                std::chrono::steady_clock::time_point begin, VerbContext& context);

}  // namespace cingulum
