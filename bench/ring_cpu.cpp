// Rings and CPU actors: put and get of a 64-byte message in one thread, round trips between two threads (bare rings,
// then through the whole runtime), streaming; beside moodycamel's queues and CAF in the same run. The limit of a round
// trip is the one of a single word bounced between the same two threads.
//   bench_ring_cpu [--out FILE.json] [--messages N] [--repetitions N]
// Whoever asks or writes runs on processor 0, whoever answers or reads on processor 1, the peers' threads as well.
#include <cstdio>
#include <thread>

#include "bench/pin.hpp"
#include "bench/program.hpp"
#include "bench/ring_peers.hpp"
#include "measure/repetitions.hpp"
#include "measure/ring_exchanges.hpp"
#include "measure/ring_streams.hpp"
#include "ring/actor/runtime.hpp"
#include "ring/queue/bulk_ring.hpp"
#include "ring/queue/fast_ring.hpp"
#include "ring/queue/mpsc_ring.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::bench {
namespace {

using namespace cingulum::ring;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string out;
  std::uint64_t messages = 2'000'000;
  int repetitions = 7;
};

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

constexpr std::uint32_t capacity = 1024;
constexpr std::uint64_t warm_up = 1000;
constexpr auto longest_series = std::chrono::seconds(5);

struct BulkRing {
  RingLine lines[2];
  std::vector<Message> slots = std::vector<Message>(capacity);
  BulkRingView<Message> view{slots.data(), &lines[0], &lines[1], capacity};
  BulkWriter<Message> writer{view};
  alignas(line_bytes) BulkReader<Message> reader{view};
};
struct FastRing {
  RingLine lines[2];
  std::vector<FastSlot<Message>> slots = std::vector<FastSlot<Message>>(capacity);
  FastRingView<Message> view{slots.data(), &lines[0], &lines[1], capacity};
  FastWriter<Message> writer{view};
  alignas(line_bytes) FastReader<Message> reader{view};
};
struct ManyWriters {
  MpscTail tail;
  RingLine position;
  std::vector<MpscSlot<Message>> slots = std::vector<MpscSlot<Message>>(capacity);
  MpscRing<Message> ring{{slots.data(), &tail, &position, capacity}};
};

class RingBench {
 public:
  explicit RingBench(const Options& options) : options_(options) {}

  Json run() {
    pin(asking_processor);
    put_and_get();
    round_trips();
    streaming();
    restarts();
    return {{"message_bytes", sizeof(Message)}, {"rows", rows_}};
  }

 private:
  // Percentiles are of single events; otherwise the spread is that over repetitions.
  void row(const std::string& scenario, const std::string& unit, std::optional<std::vector<double>> values,
           bool single_events = false) {
    if (!values || values->empty()) {
      fmt::print("  {:<58} not there when this was built\n", scenario);
      rows_.push_back({{"scenario", scenario}, {"absent", true}});
      return;
    }
    const measure::Percentiles got = measure::percentiles_of(*values);
    require(got.min > 0, scenario + ": the way of every message");
    Json json = {{"scenario", scenario}, {"unit", unit}, {"count", got.samples}};
    if (single_events) {
      fmt::print("  {:<58} p50 {:>9.1f}  p99 {:>9.1f}  p99.9 {:>9.1f} {}\n", scenario, got.p50, got.p99, got.p999,
                 unit);
      json.update({{"p50", got.p50}, {"p99", got.p99}, {"p99.9", got.p999}, {"min", got.min}});
    } else {
      fmt::print("  {:<58} {:>13.2f} {} ({:.2f} to {:.2f})\n", scenario, got.p50, unit, got.min, got.max);
      json.update({{"median", got.p50}, {"min", got.min}, {"max", got.max}});
    }
    rows_.push_back(std::move(json));
  }

  template <class Put, class Get>
  std::vector<double> put_get_ns(Put&& put, Get&& get) {
    return put_get_nanoseconds(options_.repetitions, options_.messages, put, get);
  }

  void put_and_get() {
    fmt::print("put and get of 64 bytes in one thread\n");
    // On the stack, as the peers' queues are.
    BulkRing bulk;
    row("bulk ring", "ns",
        put_get_ns([&](const Message& m) { bulk.writer.try_put(m); }, [&](Message& m) { bulk.reader.try_get(m); }));
    FastRing fast;
    row("fast ring (sequence in every word)", "ns",
        put_get_ns([&](const Message& m) { fast.writer.try_put(m); }, [&](Message& m) { fast.reader.try_get(m); }));
    ManyWriters many;
    row("ring of many writers", "ns",
        put_get_ns([&](const Message& m) { many.ring.try_put(m); }, [&](Message& m) { many.ring.try_get(m); }));
    MailboxOptions options;
    options.capacity = capacity;
    options.waiting.mode = WaitMode::spin;
    Mailbox box(options);
    Envelope envelope;
    row("mailbox (bands, policies, waiting)", "ns",
        put_get_ns([&](const Message& m) { box.put(m); },
                   [&](Message& m) {
                     box.try_take(envelope);
                     m = envelope.message;
                   }));
    row("moodycamel ReaderWriterQueue", "ns", readerwriterqueue_put_get(options_.repetitions, options_.messages));
    row("moodycamel ConcurrentQueue", "ns", concurrentqueue_put_get(options_.repetitions, options_.messages));
  }

  [[nodiscard]] measure::Series series() const {
    return {.count = options_.messages / 20, .warm_up = warm_up, .longest = longest_series};
  }
  static std::vector<double> scaled(std::vector<double> values, double factor) {
    for (double& value : values) value *= factor;
    return values;
  }

  void round_trips() {
    fmt::print("round trip between two threads, both spinning\n");
    row("limit: one word there and one back", "ns",
        scaled(require(measure::word_seconds(series(), [] { pin(answering_processor); })), 1e9), true);
    bare_round_trips<BulkRing>("bulk rings");
    bare_round_trips<FastRing>("fast rings");
    actor_round_trips("actor, request through the runtime, spin", WaitMode::spin);
    actor_round_trips("actor, request through the runtime, spin then park", WaitMode::spin_then_park);
    row("moodycamel ReaderWriterQueue", "ns", readerwriterqueue_round_trips(options_.messages / 20), true);
    row("CAF, request to an echo actor", "ns", caf_round_trips(options_.messages / 100), true);
  }

  template <class Ring>
  void bare_round_trips(const std::string& name) {
    const auto there = std::make_unique<Ring>();
    const auto back = std::make_unique<Ring>();
    std::thread echo([&] {
      pin(answering_processor);
      Message message;
      for (GetStatus status; (status = there->reader.try_get(message)) != GetStatus::closed;) {
        if (status == GetStatus::taken) {
          back->writer.try_put(message);
        } else {
          HostAtomics::pause();
        }
      }
    });
    Message message = make_message(Filling{});
    const auto trip = [&](std::uint64_t) -> Status {
      there->writer.try_put(message);
      while (back->reader.try_get(message) != GetStatus::taken) HostAtomics::pause();
      return {};
    };
    const auto unchecked = [](std::uint64_t) -> Status { return {}; };
    row(name, "ns", scaled(require(measure::time_exchanges(series(), trip, unchecked)), 1e9), true);
    there->writer.close();
    echo.join();
  }

  struct Filling {
    static constexpr const char* message_name = "Filling";
    std::uint64_t words[6] = {1, 2, 3, 4, 5, 6};
  };
  ActorOptions actor_options(WaitMode mode) const {
    ActorOptions options;
    options.waiting = {mode, mode == WaitMode::spin ? 100'000u : 2000u};
    options.processor = answering_processor;
    return options;
  }

  void actor_round_trips(const std::string& name, WaitMode mode) {
    const ActorOptions options = actor_options(mode);
    const auto place = require(make_cpu_place(1, options.waiting));
    const ActorHandle actor = require(place->start("echo", WorkloadBody::echo, Traffic::answers, options));
    row(name, "ns", scaled(require(measure::request_seconds(place->runtime(), *actor, series())), 1e9), true);
    const ActorTelemetry telemetry = actor->telemetry();
    fmt::print("    send to receive: p50 {} p99 {} ns of {} samples\n", telemetry.latency.p50_ns,
               telemetry.latency.p99_ns, telemetry.latency.count);
  }

  void streaming() {
    fmt::print("streaming, one thread to another\n");
    row("bulk ring", "M/s",
        scaled(require(measure::bare_ring_rates({.messages = options_.messages, .repetitions = options_.repetitions},
                                                [] { pin(answering_processor); })),
               1e-6));
    std::vector<double> actor_rates;
    for (int i = 0; i < options_.repetitions; ++i) {
      const auto runtime = require(Runtime::create());
      const ActorHandle actor = require(runtime->launch("count", Count{}, actor_options(WaitMode::spin)));
      require(actor->activate());
      const Message message = make_message(Filling{});
      const auto start = Clock::now();
      for (std::uint64_t n = 0; n < options_.messages; ++n) require(actor->send(message));
      const TerminationReport report = require(actor->terminate(Termination::drain(std::chrono::seconds(60))));
      require(report.dropped == 0 && actor->telemetry().received == options_.messages, "delivery of every message");
      actor_rates.push_back(static_cast<double>(options_.messages) * 1e3 / nanoseconds_since(start));
    }
    row("host to actor through the runtime", "M/s", actor_rates);
    const auto in_millions = [](std::optional<std::vector<double>> rates) {
      if (rates) rates = scaled(std::move(*rates), 1e-6);
      return rates;
    };
    row("moodycamel ReaderWriterQueue", "M/s",
        in_millions(readerwriterqueue_stream(options_.repetitions, options_.messages)));
    row("moodycamel ConcurrentQueue", "M/s",
        in_millions(concurrentqueue_stream(options_.repetitions, options_.messages)));
    row("CAF, host to actor", "M/s", in_millions(caf_stream(options_.repetitions, options_.messages / 10)));
  }

  void restarts() {
    fmt::print("a body that fails\n");
    const auto place = require(make_cpu_place(1));
    const ActorHandle actor = require(place->start("fails", WorkloadBody::hop, Traffic::answers,
                                                   measure::restarting_at_once(actor_options(WaitMode::spin))));
    row("from its message to the next answer", "us",
        scaled(require(measure::restart_seconds(place->runtime(), *actor, 1000)), 1e6), true);
  }

  struct Count {
    template <class Context>
    int operator()(Context& context) const {
      Message message;
      while (context.receive(message)) {
      }
      return 0;
    }
  };

  Options options_;
  Json rows_ = Json::array();
};

Options parse(int count, char** words) {
  Options options;
  ProgramOptions()
      .add("--out", "FILE.json", options.out)
      .add("--messages", "N", options.messages, std::uint64_t{10'000})
      .add("--repetitions", "N", options.repetitions, 1)
      .read(count, words);
  return options;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a run that is stopped has shown its rows
  const auto options = cingulum::bench::parse(count, words);
  cingulum::bench::write_report(options.out, "ring_cpu", cingulum::bench::RingBench(options).run());
  return 0;
}
