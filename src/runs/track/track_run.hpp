// The call "track this": track(request, machine) does all of a run of `cingulum track`, into the file that the request
// names or into a writer of the caller. The command line, Python, batches, the viewer and C++ programs use it, or its
// steps where something stays between them (a field that is tracked often, a session):
//   settle_track    the request completed: sidecar or prepared file, preset, defaults; devices begin to open
//   prepare_field   the data read and the field made, and the plan
//   prepare_seeds   seeds, rules and trackers
//   track_into      the streamlines, and the sidecar
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
#include "formats/tractogram.hpp"
#include "runs/machine.hpp"
#include "runs/track/field_limits.hpp"
#include "runs/track/track_devices.hpp"
#include "runs/track/track_request.hpp"
#include "runs/track/track_result.hpp"
#include "runs/track/track_sidecar.hpp"
#include "runs/track/track_source.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum {

// Stays where it is: trackers refer to plan, field and seeds.
struct TrackRun {
  TrackRequest request;  // completed: with a value for every member that has a default
  Getter getter = Getter::ptt;
  std::optional<WantedDevices> wanted;  // being opened, from settle_track on; or given before, where runs share them
  TrackSource source;
  TrackingOptions options;
  TrackingPlan plan;
  PreparedSource prepared;
  FieldLimits limits;
  std::filesystem::path seed_mask;
  std::filesystem::path made_mask;  // where a mask that is made goes; empty: beside the output
  std::vector<FoundInput> found;
  std::string phantom_hash;
  std::optional<PreparedRun> prepared_run;
  std::unique_ptr<Seeds> seeds;
  std::optional<GivenDirections> directions;
  TrackingRunOptions run_options;
  TrackingDevices devices;

  TrackRun() = default;
  TrackRun(const TrackRun&) = delete;
  TrackRun& operator=(const TrackRun&) = delete;
};

// The values of the sidecar of `from`, then of preset and getter, where they were not given; begins to open the
// devices.
[[nodiscard]] Status settle_track(TrackRequest given, RunMachine& machine, TrackRun& run);

// What is tracked, and the plan. A mask that is made is written to run.made_mask, or beside `out` unless that is empty.
[[nodiscard]] Status prepare_field(const std::filesystem::path& out, RunMachine& machine, TrackRun& run);

// Takes another request for the field that is there, completed: plan, seeds, rules, how the result is stored. What
// would need another field is refused.
[[nodiscard]] Status change_request(TrackRequest request, TrackRun& run);

// Seeds and rules of the request, without trackers: for a session, which has one. May be called again.
[[nodiscard]] Status plan_seeds(RunMachine& machine, TrackRun& run);

// The same, and trackers.
[[nodiscard]] Status prepare_seeds(RunMachine& machine, TrackRun& run);

// Layout of a file of the run's streamlines.
[[nodiscard]] TractogramLayout track_layout(const TrackRun& run, TractogramFormat format);

// What whoever started the run does at certain moments; each may be empty.
struct TrackHooks {
  // The last streamline is tracked: devices and cores are free for another run while the file is finished.
  std::function<void()> tracked = {};
  // The run was stopped and what is finished is about to be written in full: another Ctrl-C asks anew.
  std::function<void()> stopped = {};
  // The sidecar, as it is to be written.
  std::function<nlohmann::ordered_json(nlohmann::ordered_json)> sidecar = {};
};

// Where the result is to be written: checked before the work.
struct TrackOutput {
  std::filesystem::path path;
  TractogramFormat format = TractogramFormat::trx;
  WriteOptions options;
};
[[nodiscard]] Result<TrackOutput> check_track_output(const TrackRequest& request, RunMachine& machine);

struct TrackOutcome {
  TrackingStatistics statistics;   // says whether the run was interrupted
  nlohmann::ordered_json sidecar;  // as it was written, or would be
  std::filesystem::path path;      // empty: no file
  ImageGeometry geometry;
  TrackTiming timing;
  std::uint64_t asked_seeds = 0;
};

using Moment = std::chrono::steady_clock::time_point;

// Tracks into a writer, which is committed. `begin` is when the run began.
[[nodiscard]] Result<TrackOutcome> track_into(TrackRun& run, TractogramWriter& writer, Moment begin,
                                              RunMachine& machine, const TrackHooks& hooks = {});

// Tracks into the file and writes its sidecar.
[[nodiscard]] Result<TrackOutcome> track_to_file(TrackRun& run, const TrackOutput& output, Moment begin,
                                                 RunMachine& machine, const TrackHooks& hooks = {});

// The whole run, into the file that the request names (tracks.trx where it names none).
[[nodiscard]] Result<TrackOutcome> track(TrackRequest request, RunMachine& machine, const TrackHooks& hooks = {});

// The whole run, into a writer that the caller makes for the layout of its streamlines. It outlives the call.
using MakeWriter = std::function<Result<TractogramWriter*>(const TractogramLayout&)>;
[[nodiscard]] Result<TrackOutcome> track(TrackRequest request, RunMachine& machine, const MakeWriter& make_writer);

}  // namespace cingulum
