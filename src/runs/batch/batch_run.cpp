#include "runs/batch/batch_run.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/elapsed.hpp"
#include "base/json_fields.hpp"
#include "base/log_subject.hpp"
#include "base/option_name.hpp"
#include "base/progress.hpp"
#include "base/quantity.hpp"
#include "base/shell_word.hpp"
#include "formats/sidecar.hpp"
#include "runs/batch/batch_dataset.hpp"
#include "runs/track/track_explain.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_options.hpp"
#include "runs/track/track_run.hpp"
#include "runs/track/track_sidecar.hpp"
#include "tract/field/memory_need.hpp"

namespace cingulum {

Status SharedMemoryBudget::reserve(std::uint64_t bytes, const CancelToken& cancel) {
  std::unique_lock lock(mutex_);
  const auto fits = [&] { return holders_ == 0 || (reserved_ <= bytes_ && bytes <= bytes_ - reserved_); };
  while (!changed_.wait_for(lock, std::chrono::milliseconds(200), fits)) CGL_TRY(cancel.check());
  reserved_ += bytes;
  ++holders_;
  return {};
}

void SharedMemoryBudget::release(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    reserved_ -= bytes;
    --holders_;
  }
  changed_.notify_all();
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// How many runs have the machine at a time, from the moment when a series is read to that when its last streamline is
// tracked.
class MachineLeases {
 public:
  void allow(std::size_t count) { free_ = count; }  // before the first run

  [[nodiscard]] Status take(const CancelToken& cancel) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return free_ > 0; })) {
      CGL_TRY(cancel.check());
    }
    --free_;
    return {};
  }
  void give_back() {
    {
      const std::lock_guard lock(mutex_);
      ++free_;
    }
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t free_ = 1;  // guarded by mutex_
};

class MachineLease {
 public:
  explicit MachineLease(MachineLeases& leases) : leases_(leases) {}
  ~MachineLease() { end(); }
  MachineLease(const MachineLease&) = delete;
  MachineLease& operator=(const MachineLease&) = delete;

  [[nodiscard]] Status wait(const CancelToken& cancel) {
    if (has_) return {};
    CGL_TRY(leases_.take(cancel));
    has_ = true;
    return {};
  }
  void end() {
    if (std::exchange(has_, false)) leases_.give_back();
  }

 private:
  MachineLeases& leases_;
  bool has_ = false;
};

class ReservedMemory {
 public:
  ReservedMemory(SharedMemoryBudget& budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}
  ~ReservedMemory() { budget_.release(bytes_); }
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

 private:
  SharedMemoryBudget& budget_;
  std::uint64_t bytes_;
};

TrackRequest request_of_series(const BatchOptions& options, const BidsSeries& series, const TrackRequest& request) {
  TrackRequest own = request;
  for (const TrackField& field : track_fields()) {
    if (field.traits.of_one_series) field.set(own, {}, false);
  }
  const auto path = [&](const fs::path& file) { return (options.dataset / file).string(); };
  own.data = std::vector<std::string>{path(series.dwi)};
  own.bvals = path(series.bval);
  own.bvecs = path(series.bvec);
  if (!series.mask.empty()) own.mask = path(series.mask);
  own.out = (options.out / output_of_series(series, request.dg.value())).string();
  return own;
}

// What a batch shares among its runs.
struct SharedDevices {
  explicit SharedDevices(WantedDevices devices) : wanted(std::move(devices)) {}

  WantedDevices wanted;
  ThreadPool* pool = nullptr;
  MachineLeases leases;
};

// What may be replaced is looked at before (finished_before): what is there then is of a run that was stopped.
std::unique_ptr<RunMachine> machine_of_run(RunMachine& whole, ThreadPool& pool) {
  auto own = std::make_unique<RunMachine>(whole.settings(), MachineOptions{.threads = whole.threads(), .force = true},
                                          whole.log());
  own->set_run(whole.cancel(), nullptr);
  own->share_pool(pool);
  return own;
}

// Whether the output of this plan and these inputs is there. Another output under the name is a failure, which --force
// overcomes.
Result<bool> finished_before(const TrackRun& run, const fs::path& out, const fs::path& dataset) {
  std::error_code ignored;
  const bool there = fs::exists(out, ignored);
  const auto sidecar = read_sidecar(out);
  if (!there) return false;  // a pending sidecar is of a run that was killed
  if (!sidecar && sidecar.error().kind() == ErrorKind::not_found) {
    return fail_file(out.native(), ErrorKind::already_exists, "{} is there without a sidecar; {} replaces it",
                     out.string(), argument_name("force"));
  }
  if (!sidecar) return tl::make_unexpected(sidecar.error());
  const auto another = [&](std::string_view what) {
    return fail_file(out.native(), ErrorKind::already_exists,
                     "{} was made {}; {} makes it anew, or take another folder", out.string(), what,
                     argument_name("force"));
  };
  const JsonView old(*sidecar);
  const JsonView version = old["run"]["version"];
  const Json present = run_facts(0, 0)["version"];
  if (version.json() != present) {
    return another(fmt::format("by version {}, and this is {}: builds that differ do not share a dataset",
                               version.text_or("unknown"), present.get<std::string>()));
  }
  CGL_TRY_ASSIGN(const std::vector<RunInput> inputs, input_facts(run.request, {}, {}));
  const SharedFacts facts = shared_facts(arguments_for_sidecar(run.request), write_json(inputs), dataset);
  if (old["inputs"].json() != facts.inputs) return another("of other inputs");
  if (old["arguments"].json() != facts.arguments) {
    for (const auto& [name, value] : facts.arguments["options"].items()) {
      const Json& was = old["arguments"]["options"][name].json();
      if (was != value)
        return another(fmt::format("with another {} ({}, now {})", argument_name(name), was.dump(), value.dump()));
    }
    return another("with other options");
  }
  if (old["bytes"].json() != fs::file_size(out, ignored))
    return another("and has changed since: `cingulum verify` says more");
  return true;
}

// A run up to where it is known what it is: its request, its output.
struct SettledUnit {
  TrackRun run;
  fs::path out;
};

Status settle_unit(const BatchOptions& options, const BidsSeries& series, const TrackRequest& request,
                   SharedDevices& shared, RunMachine& machine, SettledUnit& unit) {
  unit.run.wanted = shared.wanted;
  CGL_TRY(settle_track(request_of_series(options, series, request), machine, unit.run));
  CGL_TRY_ASSIGN(unit.out, tracking_output(unit.run.request));
  return {};
}

enum class UnitOutcome { done, finished_before };

Result<UnitOutcome> track_unit(const BatchOptions& options, const BidsSeries& series, const TrackRequest& request,
                               SharedDevices& shared, SharedMemoryBudget& budget, RunMachine& machine) {
  const auto begin = Clock::now();
  SettledUnit unit;
  const std::unique_ptr<RunMachine> own = machine_of_run(machine, *shared.pool);
  CGL_TRY(settle_unit(options, series, request, shared, *own, unit));
  TrackRun& run = unit.run;
  if (!machine.force()) {
    CGL_TRY_ASSIGN(const bool finished, finished_before(run, unit.out, options.dataset));
    if (finished) return UnitOutcome::finished_before;
  }
  CGL_TRY_ASSIGN(const RunExplanation explanation, explain_run(run, *own));
  CGL_TRY(budget.reserve(explanation.estimate.host_bytes, own->cancel()));
  const ReservedMemory reserved(budget, explanation.estimate.host_bytes);
  MachineLease lease(shared.leases);
  run.wanted = shared.wanted.leased([&] { return lease.wait(own->cancel()); });
  run.made_mask = options.out / made_mask_of_series(series);

  std::error_code error;
  fs::create_directories(unit.out.parent_path(), error);
  if (error) {
    return fail_file(unit.out.parent_path().native(), ErrorKind::io, "making {}: {}", unit.out.parent_path().string(),
                     error.message());
  }
  CGL_TRY_ASSIGN(const TrackOutput output, check_track_output(run.request, *own));
  const TrackHooks hooks = {
      .tracked =
          [&] {
            run.devices = {};
            lease.end();
          },
      .sidecar = [&](Json sidecar) { return shared_sidecar(std::move(sidecar), options.dataset); }};
  CGL_TRY(prepare_field(output.path, *own, run));
  CGL_TRY(prepare_seeds(*own, run));
  CGL_TRY_ASSIGN(const TrackOutcome tracked, track_to_file(run, output, begin, *own, hooks));
  log_info("{} streamlines", format_count(tracked.statistics.kept));
  return UnitOutcome::done;
}

std::string command_of(const BatchOptions& options, const std::string& subject, const std::string& session) {
  std::string command = options.command;
  if (!subject.empty()) command += " --participant-label " + shell_word(subject);
  if (!session.empty()) command += " --session-label " + shell_word(session);
  return command;
}

// "sub-01_ses-a_run-1" -> "01".
std::string subject_of_unit(const std::string& unit) {
  if (!unit.starts_with("sub-")) return {};
  return unit.substr(4, unit.find('_') - 4);
}

// Reading ahead and writing behind take threads of their own: a batch of one thread has none to spare. A GPU is done
// sooner than a series is inflated.
std::size_t units_at_once(const BatchOptions& options, const RunMachine& machine, bool on_gpu) {
  if (options.at_once) return static_cast<std::size_t>(*options.at_once);
  const int threads = machine.threads();
  if (threads == 1) return 1;
  return on_gpu ? static_cast<std::size_t>(2 + std::clamp(threads / 2, 1, 6)) : 3;
}

std::uint64_t free_host_memory(const DeviceRegistry& registry) {
  for (const Device* device : registry.devices()) {
    if (device->description().backend == Backend::cpu) return free_memory_of(*device);
  }
  return ~std::uint64_t{0};
}

Result<std::unique_ptr<SharedDevices>> share_devices(const TrackRequest& request, RunMachine& machine) {
  CGL_TRY_ASSIGN(WantedDevices wanted, wanted_devices(request, machine));
  auto shared = std::make_unique<SharedDevices>(std::move(wanted));
  CGL_TRY_ASSIGN(shared->pool, machine.pool());
  return shared;
}

class BatchWork {
 public:
  BatchWork(const BatchOptions& options, const BatchUnits& units, const TrackRequest& request, FailureTable& failures,
            SharedDevices& shared, std::uint64_t memory_bytes, RunMachine& machine)
      : options_(options),
        units_(units),
        request_(request),
        failures_(failures),
        shared_(shared),
        budget_(memory_bytes),
        machine_(machine),
        progress_("series", units.series.size(), "series", machine.progress_options()) {}

  [[nodiscard]] Result<BatchSummary> run(std::size_t at_once) {
    for (const BatchFailure& failure : units_.failures) record(failure, subject_of_unit(failure.unit), "");
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < std::min(at_once, units_.series.size()); ++i) {
      try {
        threads.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;  // fewer at once
      }
    }
    work();
    for (std::thread& thread : threads) thread.join();
    if (stopped_) return tl::make_unexpected(*stopped_);
    progress_.finish();
    return summary_;
  }

 private:
  void work() {
    for (;;) {
      const std::size_t i = next_.fetch_add(1);
      if (i >= units_.series.size() || is_stopped()) return;
      const BidsSeries& series = units_.series[i];
      const LogSubject subject(series.unit());
      auto outcome =
          catch_out_of_memory([&] { return track_unit(options_, series, request_, shared_, budget_, machine_); });
      if (!outcome && outcome.error().kind() == ErrorKind::interrupted) return stop(std::move(outcome.error()));
      if (!outcome) {
        const Error& error = outcome.error();
        const std::string file =
            error.file().empty() ? (options_.dataset / series.dwi).string() : std::string(error.file());
        record({series.unit(), file, with_option_names(error)}, series.subject, series.session);
      } else {
        const std::lock_guard lock(mutex_);
        ++(*outcome == UnitOutcome::done ? summary_.done : summary_.finished_before);
      }
      progress_.advance();
    }
  }

  void record(const BatchFailure& failure, const std::string& subject, const std::string& session) {
    log_error("{}: {}", failure.unit, failure.error);
    const std::lock_guard lock(mutex_);
    ++summary_.failed;
    Status written = failures_.add(failure, command_of(options_, subject, session));
    if (!written && !stopped_) stopped_ = std::move(written.error());
  }

  void stop(Error error) {
    const std::lock_guard lock(mutex_);
    if (!stopped_) stopped_ = std::move(error);
  }

  bool is_stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_.has_value();
  }

  const BatchOptions& options_;
  const BatchUnits& units_;
  const TrackRequest& request_;
  FailureTable& failures_;
  SharedDevices& shared_;
  SharedMemoryBudget budget_;
  RunMachine& machine_;
  Progress progress_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  // guards what follows, and failures_
  BatchSummary summary_;
  std::optional<Error> stopped_;
};

}  // namespace

Result<BatchSummary> run_batch(const BatchOptions& options, const BatchUnits& units, const TrackRequest& request,
                               FailureTable& failures, RunMachine& machine) {
  const auto begin = Clock::now();
  CGL_TRY_ASSIGN(const auto shared, share_devices(request, machine));
  CGL_TRY_ASSIGN(const DeviceRegistry* const registry, shared->wanted.registry());
  CGL_TRY_ASSIGN(const std::vector<Device*> devices, shared->wanted.devices());
  const bool on_gpu = std::any_of(devices.begin(), devices.end(),
                                  [](const Device* device) { return device->description().backend != Backend::cpu; });
  // The system, and the cache of files, need some of it.
  const std::uint64_t memory = free_host_memory(*registry) / 10 * 9;
  // Some parts of a run on processors have one thread; another run beside it fills the cores then. A GPU is one run's.
  shared->leases.allow(on_gpu || machine.threads() == 1 ? 1 : 2);
  BatchWork work(options, units, request, failures, *shared, memory, machine);
  CGL_TRY_ASSIGN(BatchSummary summary, work.run(units_at_once(options, machine, on_gpu)));
  summary.seconds = seconds_since(begin);
  return summary;
}

Result<Json> explain_batch(const BatchOptions& options, const BatchUnits& units, const TrackRequest& request,
                           RunMachine& machine) {
  CGL_TRY_ASSIGN(const auto shared, share_devices(request, machine));
  Json list = Json::array(), failures = Json::array();
  const auto add_failure = [&](const BatchFailure& failure) {
    failures.push_back({{"unit", failure.unit}, {"file", failure.file}, {"error", failure.error}});
  };
  for (const BatchFailure& failure : units.failures) add_failure(failure);
  for (const BidsSeries& series : units.series) {
    CGL_TRY(machine.cancel().check());
    SettledUnit unit;
    bool finished = false;
    const auto explain = [&]() -> Result<RunExplanation> {
      CGL_TRY(settle_unit(options, series, request, *shared, machine, unit));
      if (!machine.force()) {
        CGL_TRY_ASSIGN(finished, finished_before(unit.run, unit.out, options.dataset));
      }
      return explain_run(unit.run, machine);
    };
    const auto explanation = explain();
    if (!explanation) {
      add_failure({series.unit(), series.dwi.string(), with_option_names(explanation.error())});
      continue;
    }
    Json json = {{"unit", series.unit()},
                 {"subject", series.subject},
                 {"session", series.session.empty() ? Json() : Json(series.session)},
                 {"dwi", series.dwi.generic_string()},
                 {"bval", series.bval.generic_string()},
                 {"bvec", series.bvec.generic_string()},
                 {"mask", series.mask.empty() ? Json() : Json(series.mask.generic_string())},
                 {"output", output_of_series(series, request.dg.value()).generic_string()},
                 {"finished", finished},
                 {"explain", explanation_json(*explanation)}};
    list.push_back(std::move(json));
  }
  return Json{{"layout", 1}, {"units", std::move(list)}, {"failures", std::move(failures)}};
}

}  // namespace cingulum
