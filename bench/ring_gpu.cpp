// Actors that stay on the GPU, beside what the machine gives without the runtime: round trip, streaming, many actors,
// kernel to kernel, restarting, stopping; and launching a kernel for every piece of work as the alternative.
//   bench_ring_gpu [--out FILE.json] [--scale SHARE] [--part answers|streams|between|ends]
// Percentiles are of single exchanges; rates are the best of three runs. Every message is checked.
#include <algorithm>
#include <cstring>
#include <span>
#include <thread>

#include "base/elapsed.hpp"
#include "bench/measure.hpp"
#include "bench/program.hpp"
#include "bench/ring_bodies.hpp"
#include "bench/ring_gpu_program.hpp"
#include "bench/ring_restarts.hpp"
#include "cli/version.hpp"
#include "device/registry.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "ring/resident/resident_actor.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/workloads/cuda/bare_exchanges.hpp"

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
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--out" && has_value) {
      options.out = words[++i];
    } else if (word == "--scale" && has_value) {
      options.scale = std::strtod(words[++i], nullptr);
    } else if (word == "--part" && has_value) {
      options.part = words[++i];
    } else {
      give_up(fmt::format("unknown argument {} (known: --out FILE, --scale SHARE, --part NAME)", word));
    }
  }
  return options;
}

class RingBench {
 public:
  RingBench(Device& device, const Options& options) : device_(device), scale_(options.scale) {
    runtime_ = require(ring::Runtime::create());
  }

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
    percentiles("actor: Runtime::request, fast slots", requests(scaled(98000), true));
    percentiles("actor: Runtime::request of a handle", requests(scaled(98000), false));
    percentiles("part: the call of send", sends(scaled(20000)));
    close();
    open(2, 32, 0);
    percentiles("variant: send and receive, no eager polls", round_trips(scaled(98000)));
    close();
    open(2, 128);
    percentiles("variant: send and receive, 128 lanes", round_trips(scaled(98000)));
    percentiles("variant: Runtime::request, 128 lanes", requests(scaled(98000), true));
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
    figure("actor: 64-B echo, bulk ring, one host thread", "M/s", stream_one(false) * 1e-6);
    figure("actor: 64-B echo, bulk ring, sender and reader threads", "M/s", stream_one(true) * 1e-6);
    close();
    const std::uint32_t threads = std::clamp(std::thread::hardware_concurrency(), 2u, 16u);
    open(32, 256);
    figure(fmt::format("32 actors: 64-B echo, bulk rings, {} host threads", threads), "M/s",
           stream_many(32, threads) * 1e-6);
    close();
  }

  void between_actors() {
    double between = 0;
    require(ring::bare_kernel_to_kernel(scaled(200000), between) == 0, "messages between bare blocks");
    figure("limit: between two bare blocks and back", "us", 1e6 * between);
    open(2, 32);
    figure("actors: kernel to kernel and back", "us", 1e6 * bounce(scaled(200000)));
    close();
    open(2, 32, 0);
    figure("variant: kernel to kernel, no eager polls", "us", 1e6 * bounce(scaled(200000)));
    close();
    open(2, 128);
    figure("variant: kernel to kernel, 128 lanes", "us", 1e6 * bounce(scaled(200000)));
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
      launch_idle(32);
      auto start = Clock::now();
      for (int actor = 0; actor < 32; ++actor) {
        static_cast<void>(require(runtime_->terminate(fmt::format("idle {}", actor))));
      }
      by_terminate.push_back(seconds_since(start));
      launch_idle(32);
      start = Clock::now();
      require(grid_->close());
      by_close.push_back(seconds_since(start));
      for (int actor = 0; actor < 32; ++actor) static_cast<void>(runtime_->terminate(fmt::format("idle {}", actor)));
      close();
    }
    percentiles("32 idle actors: stopped together (close)", by_close);
    percentiles("32 idle actors: drained one after another (terminate)", by_terminate);
  }

  void percentiles(const std::string& scenario, std::vector<double> seconds) {
    std::sort(seconds.begin(), seconds.end());
    const auto at = [&](double share) {
      return 1e6 * seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))];
    };
    rows_.push_back({{"scenario", scenario},
                     {"unit", "us"},
                     {"samples", seconds.size()},
                     {"p50", at(0.5)},
                     {"p99", at(0.99)},
                     {"p99.9", at(0.999)},
                     {"min", at(0)},
                     {"max", at(1)}});
    fmt::print("  {:<58} p50 {:8.2f}  p99 {:8.2f}  p99.9 {:8.2f} us\n", scenario, at(0.5), at(0.99), at(0.999));
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
  }
  void close() {
    require(grid_->close());
    grid_.reset();
  }
  template <class Body>
  std::shared_ptr<ring::ResidentActor> launch(const std::string& name, const char* body_name, ring::RingKind kind) {
    const auto handle = require(grid_->launch(*runtime_, name, body_name, Body{}, kind));
    return std::dynamic_pointer_cast<ring::ResidentActor>(handle);
  }
  void launch_idle(int count) {
    for (int i = 0; i < count; ++i) {
      require(launch<EchoBody>(fmt::format("idle {}", i), "echo", ring::RingKind::fast)->activate());
    }
    std::this_thread::sleep_for(20ms);
  }

  static std::vector<double> bare(int (*exchange)(std::uint32_t, std::vector<double>&), std::uint32_t count) {
    std::vector<double> seconds;
    require(exchange(count, seconds) == 0, "an exchange with a bare kernel");
    return seconds;
  }
  std::vector<double> round_trips(std::uint32_t count) {
    const auto echo = launch<EchoBody>("echo", "echo", ring::RingKind::fast);
    require(echo->activate());
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < count + 2000; ++i) {
      const ring::Message message = packet(i);
      const auto start = Clock::now();
      require(echo->send(message));
      const ring::Message answer = require(echo->receive(1s));
      const double took = seconds_since(start);
      require(is_packet(answer, i), "the check of an answer");
      if (i >= 2000) seconds.push_back(took);
    }
    static_cast<void>(require(runtime_->terminate("echo")));
    return seconds;
  }
  std::vector<double> requests(std::uint32_t count, bool by_name) {
    const auto echo = launch<EchoBody>("echo", "echo", ring::RingKind::fast);
    require(echo->activate());
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < count + 2000; ++i) {
      const ring::Message message = packet(i);
      const auto start = Clock::now();
      const ring::Message answer =
          require(by_name ? runtime_->request("echo", message, 1s) : runtime_->request(*echo, message, 1s));
      const double took = seconds_since(start);
      require(is_packet(answer, i), "the check of an answer");
      if (i >= 2000) seconds.push_back(took);
    }
    static_cast<void>(require(runtime_->terminate("echo")));
    return seconds;
  }

  // How long send itself takes, of round trips as above.
  std::vector<double> sends(std::uint32_t count) {
    const auto echo = launch<EchoBody>("echo", "echo", ring::RingKind::fast);
    require(echo->activate());
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < count; ++i) {
      const ring::Message message = packet(i);
      const auto start = Clock::now();
      require(echo->send(message));
      seconds.push_back(seconds_since(start));
      static_cast<void>(require(echo->receive(1s)));
    }
    static_cast<void>(require(runtime_->terminate("echo")));
    return seconds;
  }

  std::vector<double> restarts(std::uint32_t count) {
    const auto actor = require(
        grid_->launch(*runtime_, "fails", "failing", FailingBody{}, ring::RingKind::fast, restarting_at_once({})));
    require(actor->activate());
    std::vector<double> seconds = restart_seconds(*runtime_, *actor, count);
    static_cast<void>(require(runtime_->terminate("fails")));
    return seconds;
  }

  // Both ends of one actor by the calling thread: writes what fits, reads what came.
  struct Stream {
    ring::ResidentActor* actor;
    std::uint64_t count;
    std::uint64_t written = 0;
    std::uint64_t taken = 0;
    std::vector<ring::Message> out = std::vector<ring::Message>(256);
    std::vector<ring::Message> in = std::vector<ring::Message>(256);
    std::uint32_t prepared = 0;
    std::uint32_t sent = 0;

    void write() {
      if (sent == prepared && written < count) {
        prepared = static_cast<std::uint32_t>(std::min<std::uint64_t>(out.size(), count - written));
        for (std::uint32_t i = 0; i < prepared; ++i) out[i] = packet(written + i);
        written += prepared;
        sent = 0;
      }
      if (sent != prepared) sent += actor->send_batch(std::span(out).subspan(sent, prepared - sent));
    }
    void read() {
      const std::uint32_t got = actor->receive_batch(in);
      for (std::uint32_t i = 0; i < got; ++i) require(is_packet(in[i], taken + i), "the check of a message");
      taken += got;
    }
    [[nodiscard]] bool is_done() const { return taken == count; }
  };

  double stream_one(bool two_threads) {
    const auto echo = launch<BatchEchoBody>("stream", "batch_echo", ring::RingKind::bulk);
    require(echo->activate());
    double best = 0;
    for (int round = 0; round < 3; ++round) {
      Stream stream{echo.get(), scaled(4000000)};
      const auto start = Clock::now();
      if (two_threads) {
        Stream reading{echo.get(), stream.count};
        std::thread sender([&] {
          while (stream.written < stream.count || stream.sent != stream.prepared) stream.write();
        });
        while (!reading.is_done()) reading.read();
        sender.join();
      } else {
        while (!stream.is_done()) {
          stream.write();
          stream.read();
        }
      }
      best = std::max(best, static_cast<double>(stream.count) / seconds_since(start));
    }
    static_cast<void>(require(runtime_->terminate("stream")));
    return best;
  }
  double stream_many(std::uint32_t actors, std::uint32_t threads) {
    std::vector<std::shared_ptr<ring::ResidentActor>> handles;
    for (std::uint32_t i = 0; i < actors; ++i) {
      handles.push_back(launch<BatchEchoBody>(fmt::format("stream {}", i), "batch_echo", ring::RingKind::bulk));
      require(handles.back()->activate());
    }
    double best = 0;
    for (int round = 0; round < 3; ++round) {
      std::vector<std::thread> workers;
      const std::uint64_t each = scaled(500000);
      const auto start = Clock::now();
      for (std::uint32_t t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
          std::vector<Stream> streams;
          for (std::uint32_t i = t; i < actors; i += threads) streams.push_back({handles[i].get(), each});
          for (bool done = false; !done;) {
            done = true;
            for (Stream& stream : streams) {
              stream.write();
              stream.read();
              done = done && stream.is_done();
            }
          }
        });
      }
      for (std::thread& worker : workers) worker.join();
      best = std::max(best, static_cast<double>(each) * actors / seconds_since(start));
    }
    for (std::uint32_t i = 0; i < actors; ++i)
      static_cast<void>(require(runtime_->terminate(fmt::format("stream {}", i))));
    return best;
  }
  double bounce(std::uint64_t round_trips) {
    const auto a = launch<BounceBody>("a", "bounce", ring::RingKind::fast);
    const auto b = launch<BounceBody>("b", "bounce", ring::RingKind::fast);
    require(runtime_->fan_out("a", 1, {"b"}));
    require(runtime_->fan_out("b", 1, {"a"}));
    require(a->activate());
    require(b->activate());
    double best = 1;
    for (int round = 0; round < 3; ++round) {
      const auto start = Clock::now();
      require(a->send(packet(2 * round_trips)));
      static_cast<void>(require(a->receive(20s)));
      best = std::min(best, seconds_since(start) / static_cast<double>(round_trips));
    }
    static_cast<void>(require(runtime_->terminate("a", ring::Termination::discard())));
    static_cast<void>(require(runtime_->terminate("b", ring::Termination::discard())));
    return best;
  }

  Device& device_;
  const double scale_;
  std::unique_ptr<ring::Runtime> runtime_;
  std::shared_ptr<ring::ResidentGrid> grid_;
  Json rows_ = Json::array();
};

int run(const Options& options) {
  const auto registry = require(DeviceRegistry::probe());
  Device* const device = require(registry.select_one("cuda"));
  fmt::print("{}: {}\n", device->id(), device->description().name);
  const Json rows = RingBench(*device, options).run(options.part);
  write_report(options.out, {{"bench", "ring_gpu"},
                             {"build", version_text()},
                             {"device", device->description().name},
                             {"driver", device->description().driver},
                             {"rows", rows}});
  return 0;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
