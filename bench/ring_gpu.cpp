// Actors that stay on the GPU, beside what the machine gives without the runtime: round trip, streaming, many actors,
// kernel to kernel, restarting, stopping; and launching a kernel for every piece of work as the alternative.
//   bench_ring_gpu [--out FILE.json] [--scale SHARE] [--part answers|streams|between|ends]
// Percentiles are of single exchanges; rates are the best of three runs. Every message is checked.
#include <algorithm>
#include <thread>

#include "base/elapsed.hpp"
#include "bench/program.hpp"
#include "bench/ring_gpu_program.hpp"
#include "device/registry.hpp"
#include "measure/repetitions.hpp"
#include "measure/ring_exchanges.hpp"
#include "measure/ring_streams.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/workloads/cuda/bare_exchanges.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::bench {
namespace {

using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string out;
  double scale = 1;  // of all counts
  std::string part;  // of the rows; empty: all
};

Options parse(int count, char** words) {
  Options options;
  ProgramOptions()
      .add("--out", "FILE.json", options.out)
      .add("--scale", "SHARE", options.scale)
      .add("--part", "NAME", options.part)
      .read(count, words);
  return options;
}

class RingBench {
 public:
  RingBench(Device& device, const Options& options) : device_(device), scale_(options.scale) {}

  Json run(const std::string& part) {
    if (part.empty() || part == "answers") answers();
    if (part.empty() || part == "streams") streams();
    if (part.empty() || part == "between") between_actors();
    if (part.empty() || part == "ends") ends();
    return std::move(rows_);
  }

 private:
  void answers() {
    percentiles("limit: 64 B to the GPU and back, bare kernel", bare(ring::bare_round_trips, scaled(98000)));
    open(2, 32);
    percentiles("actor: send and receive, fast slots", round_trips(scaled(98000)));
    percentiles("actor: Runtime::request, fast slots", requests_by_name(scaled(98000)));
    percentiles("actor: Runtime::request of a handle", requests_by_handle(scaled(98000)));
    percentiles("part: the call of send", sends(scaled(20000)));
    close();
    open(2, 32, 0);
    percentiles("variant: send and receive, no eager polls", round_trips(scaled(98000)));
    close();
    open(2, 128);
    percentiles("variant: send and receive, 128 lanes", round_trips(scaled(98000)));
    percentiles("variant: Runtime::request, 128 lanes", requests_by_name(scaled(98000)));
    close();
    percentiles("alternative: launch a kernel and synchronise", bare(ring::launch_and_synchronise, scaled(20000)));
  }

  void streams() {
    double raw = 0;
    for (int i = 0; i < 3; ++i) {
      double rate = 0;
      require(ring::bare_stream(scaled(4000000), rate) == 0, "a stream through a bare kernel");
      raw = std::max(raw, rate);
    }
    figure("limit: 64-B echo, one bare block, one host thread", "M/s", raw * 1e-6);
    open(1, 256);
    figure("actor: 64-B echo, bulk ring, one host thread", "M/s",
           best_rate(1, {.messages_each = scaled(4000000)}) * 1e-6);
    figure("actor: 64-B echo, bulk ring, sender and reader threads", "M/s",
           best_rate(1, {.messages_each = scaled(4000000), .host = {.writer_and_reader = true}}) * 1e-6);
    close();
    const std::uint32_t threads = std::clamp(std::thread::hardware_concurrency(), 2u, 16u);
    open(32, 256);
    figure(fmt::format("32 actors: 64-B echo, bulk rings, {} host threads", threads), "M/s",
           best_rate(32, {.messages_each = scaled(500000), .host = {.threads = threads}}) * 1e-6);
    close();
  }

  void between_actors() {
    double between = 0;
    require(ring::bare_kernel_to_kernel(scaled(200000), between) == 0, "messages between bare blocks");
    figure("limit: between two bare blocks and back", "us", 1e6 * between);
    open(2, 32);
    figure("actors: kernel to kernel and back", "us", 1e6 * best_hops(scaled(200000)));
    close();
    open(2, 32, 0);
    figure("variant: kernel to kernel, no eager polls", "us", 1e6 * best_hops(scaled(200000)));
    close();
    open(2, 128);
    figure("variant: kernel to kernel, 128 lanes", "us", 1e6 * best_hops(scaled(200000)));
    close();
  }

  void ends() {
    open(2, 128);
    percentiles("a body that fails: from its message to the next answer", restarts(scaled(1000)));
    close();
    std::vector<double> by_terminate;
    std::vector<double> by_close;
    for (int i = 0; i < 10; ++i) {
      open(32, 128);
      by_terminate.push_back(require(measure::terminate_seconds(*place_, require(measure::start_idle(*place_, 32)))));
      const auto idle = require(measure::start_idle(*place_, 32));
      const auto start = Clock::now();
      require(grid_->close());
      by_close.push_back(seconds_since(start));
      for (const ring::ActorHandle& actor : idle) static_cast<void>(place_->runtime().terminate(actor->name()));
      close();
    }
    percentiles("32 idle actors: stopped together (close)", by_close);
    percentiles("32 idle actors: drained one after another (terminate)", by_terminate);
  }

  void percentiles(const std::string& scenario, std::vector<double> seconds) {
    for (double& value : seconds) value *= 1e6;
    const measure::Percentiles us = measure::percentiles_of(std::move(seconds));
    rows_.push_back({{"scenario", scenario},
                     {"unit", "us"},
                     {"samples", us.samples},
                     {"p50", us.p50},
                     {"p99", us.p99},
                     {"p99.9", us.p999},
                     {"min", us.min},
                     {"max", us.max}});
    fmt::print("  {:<58} p50 {:8.2f}  p99 {:8.2f}  p99.9 {:8.2f} us\n", scenario, us.p50, us.p99, us.p999);
  }
  void figure(const std::string& scenario, const std::string& unit, double value) {
    fmt::print("  {:<58} {:.3f} {}\n", scenario, value, unit);
    rows_.push_back({{"scenario", scenario}, {"unit", unit}, {"value", value}});
  }

  [[nodiscard]] std::uint32_t scaled(double count) const {
    return static_cast<std::uint32_t>(std::max(100.0, count * scale_));
  }
  void open(std::uint32_t seats, std::uint32_t lanes, std::uint32_t eager_polls = ring::GridOptions{}.eager_polls) {
    ring::GridOptions options;
    options.eager_polls = eager_polls;
    options.seats = seats;
    options.lanes = lanes;
    options.time_limit = 60s;  // whatever happens
    grid_ = require(ring::ResidentGrid::open(require(ring::make_cuda_backend(device_, bench_program())), options));
    place_ = require(ring::make_resident_place(grid_, device_));
  }
  void close() {
    require(grid_->close());
    place_.reset();
    grid_.reset();
  }

  static std::vector<double> bare(int (*exchange)(std::uint32_t, std::vector<double>&), std::uint32_t count) {
    std::vector<double> seconds;
    require(exchange(count, seconds) == 0, "an exchange with a bare kernel");
    return seconds;
  }

  // What `measured` answers of an echo actor with fast slots.
  template <class Measured>
  std::vector<double> of_echo(Measured&& measured) {
    const ring::ActorHandle echo = require(place_->start("echo", ring::WorkloadBody::echo, ring::Traffic::answers, {}));
    std::vector<double> seconds = require(measured(*echo));
    require(measure::stop_actor(*place_, "echo"));
    return seconds;
  }
  std::vector<double> round_trips(std::uint32_t count) {
    return of_echo([&](ring::Actor& echo) { return measure::round_trip_seconds(echo, series(count)); });
  }
  std::vector<double> requests_by_name(std::uint32_t count) {
    return of_echo([&](ring::Actor&) { return measure::request_seconds(place_->runtime(), "echo", series(count)); });
  }
  std::vector<double> requests_by_handle(std::uint32_t count) {
    return of_echo([&](ring::Actor& echo) { return measure::request_seconds(place_->runtime(), echo, series(count)); });
  }
  // How long send itself takes, of round trips as above.
  std::vector<double> sends(std::uint32_t count) {
    return of_echo([&](ring::Actor& echo) { return measure::send_seconds(echo, {.count = count}); });
  }
  static measure::Series series(std::uint32_t count) { return {.count = count, .warm_up = 2000}; }

  std::vector<double> restarts(std::uint32_t count) {
    const ring::ActorHandle actor = require(
        place_->start("fails", ring::WorkloadBody::hop, ring::Traffic::answers, measure::restarting_at_once({})));
    std::vector<double> seconds = require(measure::restart_seconds(place_->runtime(), *actor, count));
    require(measure::stop_actor(*place_, "fails"));
    return seconds;
  }

  double best_rate(std::uint32_t actor_count, const measure::Stream& stream) {
    std::vector<ring::ActorHandle> actors;
    for (std::uint32_t i = 0; i < actor_count; ++i) {
      actors.push_back(require(
          place_->start(fmt::format("stream {}", i), ring::WorkloadBody::batch_echo, ring::Traffic::stream, {})));
    }
    const std::vector<double> rates = require(measure::batch_rates(actors, stream));
    for (const ring::ActorHandle& actor : actors) require(measure::stop_actor(*place_, actor->name()));
    return *std::max_element(rates.begin(), rates.end());
  }
  double best_hops(std::uint32_t round_trips) {
    const std::vector<double> seconds = require(measure::hop_seconds(*place_, 2 * round_trips, 3, {}));
    return *std::min_element(seconds.begin(), seconds.end());
  }

  Device& device_;
  const double scale_;
  std::shared_ptr<ring::ResidentGrid> grid_;
  std::unique_ptr<ring::WorkloadPlace> place_;  // whose end closes the grid
  Json rows_ = Json::array();
};

int run(const Options& options) {
  const auto registry = require(DeviceRegistry::probe());
  Device* const device = require(registry.select_one("cuda"));
  fmt::print("{}: {}\n", device->id(), device->description().name);
  const Json rows = RingBench(*device, options).run(options.part);
  write_report(options.out, "ring_gpu",
               {{"device", device->description().name}, {"driver", device->description().driver}, {"rows", rows}});
  return 0;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
