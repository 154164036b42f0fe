#include "ring/workloads/ring_bench.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/elapsed.hpp"
#include "base/interrupt.hpp"
#include "ring/edge/wire.hpp"
#include "ring/queue/bulk_ring.hpp"
#include "ring/workloads/echo_and_sum.hpp"
#include "ring/workloads/extended.hpp"

namespace cingulum::ring {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t hops_per_request = 2000;
constexpr WaitStrategy spinning = {WaitMode::spin, 2000};

BenchRow latency_row(std::string scenario, std::string place, std::vector<double> microseconds) {
  const LatencyResult latency = summarise_latency(std::move(microseconds));
  BenchRow row;
  row.scenario = std::move(scenario);
  row.place = std::move(place);
  row.unit = "us";
  row.value = latency.p50_us;
  row.p99 = latency.p99_us;
  row.p999 = latency.p999_us;
  row.best = latency.min_us;
  return row;
}

BenchRow rate_row(std::string scenario, std::string place, std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  BenchRow row;
  row.scenario = std::move(scenario);
  row.place = std::move(place);
  row.unit = "messages/s";
  row.value = rates[rates.size() / 2];
  row.best = rates.back();
  return row;
}

Status check_ping(const Message& answer, double value) {
  if (holds<Ping>(answer) && payload<Ping>(answer).value == value) return {};
  return fail(ErrorKind::corrupt, "the echo of {} came back changed", value);
}

Status stop(WorkloadPlace& place, const std::string& name) {
  return place.runtime().terminate(name).map([](const TerminationReport&) {});
}

// Slots of 64 bytes through a bare ring from one thread to another.
BenchRow bench_bare_ring(std::uint32_t messages) {
  constexpr std::uint32_t capacity = 4096;
  constexpr std::uint32_t batch = 64;
  std::vector<double> rates;
  for (int repetition = 0; repetition < 5; ++repetition) {
    std::vector<Message> slots(capacity);
    RingLine writer_line, reader_line;
    const BulkRingView<Message> view = {slots.data(), &writer_line, &reader_line, capacity};
    const auto start = Clock::now();
    std::thread reader([&] {
      BulkReader<Message> ring(view, 0, capacity / 4);
      std::vector<Message> taken(batch);
      for (std::uint32_t got = 0; got < messages && !interrupt_requested();) {
        const std::uint32_t count = ring.get_batch(taken.data(), batch);
        got += count;
        if (count == 0) std::this_thread::yield();
      }
    });
    BulkWriter<Message> ring(view);
    const std::vector<Message> sent(batch, make_message(Ping{1}));
    for (std::uint32_t put = 0; put < messages && !interrupt_requested();) {
      const std::uint32_t count = ring.put_batch(sent.data(), std::min(batch, messages - put));
      put += count;
      if (count == 0) std::this_thread::yield();
    }
    reader.join();
    rates.push_back(messages / seconds_since(start));
  }
  return rate_row("a bare ring between two threads, 64-byte slots", "cpu", std::move(rates));
}

BenchRow bench_thread_per_message(std::uint32_t rounds) {
  std::vector<double> microseconds;
  for (std::uint32_t i = 0; i < rounds && !interrupt_requested(); ++i) {
    const auto start = Clock::now();
    std::thread([] {}).join();
    microseconds.push_back(1e6 * seconds_since(start));
  }
  return latency_row("the alternative: a thread made and joined", "cpu", std::move(microseconds));
}

Result<BenchRow> bench_actor_to_actor(WorkloadPlace& place, std::uint32_t hops) {
  Runtime& runtime = place.runtime();
  ActorOptions options;
  options.waiting = spinning;
  for (const char* name : {"hop-a", "hop-b"}) {
    CGL_TRY(place.launch(name, WorkloadBody::hop, Traffic::answers, options).map([](const ActorHandle&) {}));
  }
  CGL_TRY(runtime.fan_out("hop-a", 1, {"hop-b"}));
  CGL_TRY(runtime.fan_out("hop-b", 1, {"hop-a"}));
  CGL_TRY(runtime.activate("hop-a"));
  CGL_TRY(runtime.activate("hop-b"));
  std::vector<double> microseconds;
  for (int repetition = 0; repetition < 5; ++repetition) {
    const auto start = Clock::now();
    // In pieces, so that Ctrl-C is seen in between.
    for (std::uint32_t done = 0; done < hops; done += hops_per_request) {
      CGL_TRY(check_interrupt());
      const Ping ping{static_cast<double>(std::min(hops - done, hops_per_request))};
      CGL_TRY(runtime.request("hop-a", make_message(ping), answer_limit).map([](const Message&) {}));
    }
    // Two hops are there and back.
    microseconds.push_back(2e6 * seconds_since(start) / hops);
  }
  CGL_TRY(stop(place, "hop-a"));
  CGL_TRY(stop(place, "hop-b"));
  BenchRow row = latency_row("actor to actor and back", place.name(), std::move(microseconds));
  row.p99 = row.p999 = 0;  // each sample is a mean over many hops
  return row;
}

struct WirePing {
  static constexpr const char* message_name = "WirePing";
  double value = 0;
};
CGL_RING_FIELDS(WirePing, value);

Result<std::vector<BenchRow>> bench_wire(std::uint32_t rounds) {
  const WireEnvelope envelope = {.message_id = Uuid::random(), .correlation_id = std::nullopt};
  std::vector<std::byte> bytes;
  BenchRow encode_row;
  encode_row.scenario = "wire format: encode a message of one number";
  BenchRow decode_row;
  decode_row.scenario = "wire format: decode it";
  for (BenchRow* row : {&encode_row, &decode_row}) {
    row->place = "cpu";
    row->unit = "ns";
    std::vector<double> nanoseconds;
    for (int repetition = 0; repetition < 5; ++repetition) {
      CGL_TRY(check_interrupt());
      const auto start = Clock::now();
      for (std::uint32_t i = 0; i < rounds; ++i) {
        if (row == &encode_row) {
          bytes.clear();
          const WirePing ping{static_cast<double>(i)};
          CGL_TRY(encode_message(wire_type<WirePing>, &ping, envelope, nullptr, bytes));
        } else {
          CGL_TRY(decode<WirePing>(bytes).map([](const auto&) {}));
        }
      }
      nanoseconds.push_back(1e9 * seconds_since(start) / rounds);
    }
    std::sort(nanoseconds.begin(), nanoseconds.end());
    row->value = nanoseconds[nanoseconds.size() / 2];
    row->best = nanoseconds.front();
  }
  return std::vector<BenchRow>{encode_row, decode_row};
}

}  // namespace

BenchRow bench_word_ping_pong(std::uint32_t round_trips) {
  struct alignas(line_bytes) Line {
    std::atomic<std::uint32_t> word{0};
  };
  Line there, back;
  // A yield now and then: on fewer processors than threads the other side must get its turn.
  // False: the user has asked to stop.
  const auto wait_for = [](const std::atomic<std::uint32_t>& word, std::uint32_t value) {
    for (std::uint32_t looks = 1; word.load(std::memory_order_acquire) != value; ++looks) {
      if (looks % 2000 != 0) {
        HostAtomics::pause();
      } else if (interrupt_requested()) {
        return false;
      } else {
        std::this_thread::yield();
      }
    }
    return true;
  };
  std::thread other([&] {
    for (std::uint32_t i = 1; i <= round_trips && wait_for(there.word, i); ++i) {
      back.word.store(i, std::memory_order_release);
    }
  });
  std::vector<double> microseconds;
  for (std::uint32_t i = 1; i <= round_trips && !interrupt_requested(); ++i) {
    const auto start = Clock::now();
    there.word.store(i, std::memory_order_release);
    if (!wait_for(back.word, i)) break;
    microseconds.push_back(1e6 * seconds_since(start));
  }
  other.join();
  return latency_row("a word passed between two threads and back", "cpu", std::move(microseconds));
}

Result<BenchRow> bench_round_trip(WorkloadPlace& place, std::uint32_t round_trips) {
  ActorOptions options;
  options.waiting = spinning;
  CGL_TRY_ASSIGN(const ActorHandle actor, place.start("echo", WorkloadBody::echo, Traffic::answers, options));
  std::vector<double> microseconds;
  const std::uint32_t warm_up = round_trips / 50;
  for (std::uint32_t i = 0; i < warm_up + round_trips; ++i) {
    CGL_TRY(check_interrupt());
    const Message message = make_message(Ping{static_cast<double>(i)});
    const auto start = Clock::now();
    CGL_TRY(actor->send(message));
    CGL_TRY_ASSIGN(const Message answer, actor->receive(answer_limit));
    if (i >= warm_up) microseconds.push_back(1e6 * seconds_since(start));
    CGL_TRY(check_ping(answer, i));
  }
  CGL_TRY(stop(place, "echo"));
  return latency_row("round trip: send, echo actor, receive", place.name(), std::move(microseconds));
}

Result<BenchRow> bench_request(WorkloadPlace& place, std::uint32_t round_trips) {
  ActorOptions options;
  options.waiting = spinning;
  CGL_TRY(place.start("echo", WorkloadBody::echo, Traffic::answers, options).map([](const ActorHandle&) {}));
  std::vector<double> microseconds;
  const std::uint32_t warm_up = round_trips / 50;
  for (std::uint32_t i = 0; i < warm_up + round_trips; ++i) {
    CGL_TRY(check_interrupt());
    const Message message = make_message(Ping{static_cast<double>(i)});
    const auto start = Clock::now();
    CGL_TRY_ASSIGN(const Message answer, place.runtime().request("echo", message, answer_limit));
    if (i >= warm_up) microseconds.push_back(1e6 * seconds_since(start));
    CGL_TRY(check_ping(answer, i));
  }
  CGL_TRY(stop(place, "echo"));
  return latency_row("request matched by correlation", place.name(), std::move(microseconds));
}

Result<BenchRow> bench_stream(WorkloadPlace& place, std::uint32_t actor_count, std::uint32_t messages) {
  std::vector<ActorHandle> actors;
  for (std::uint32_t i = 0; i < actor_count; ++i) {
    CGL_TRY_ASSIGN(ActorHandle actor,
                   place.start(fmt::format("stream-{}", i), WorkloadBody::echo, Traffic::stream, {}));
    actors.push_back(std::move(actor));
  }
  const std::uint32_t each = messages / actor_count;
  std::vector<double> rates;
  for (int repetition = 0; repetition < 3; ++repetition) {
    CGL_TRY(check_interrupt());
    std::vector<std::uint32_t> sent(actor_count), received(actor_count);
    std::uint64_t left = std::uint64_t{each} * actor_count;
    const auto start = Clock::now();
    // One host thread keeps every actor supplied: up to `window` messages ahead, then half of their answers.
    constexpr std::uint32_t window = 2048;
    while (left > 0) {
      CGL_TRY(check_interrupt());
      for (std::uint32_t a = 0; a < actor_count; ++a) {
        while (sent[a] < each && sent[a] - received[a] < window) {
          const PutStatus put = actors[a]->try_send(make_message(Ping{static_cast<double>(sent[a])}));
          if (put == PutStatus::full) break;
          if (put != PutStatus::stored) return fail(ErrorKind::invalid_state, "the stream was closed");
          ++sent[a];
        }
        const std::uint32_t wanted = sent[a] == each ? sent[a] - received[a] : (sent[a] - received[a] + 1) / 2;
        for (std::uint32_t i = 0; i < wanted; ++i) {
          CGL_TRY_ASSIGN(const Message answer, actors[a]->receive(answer_limit));
          CGL_TRY(check_ping(answer, received[a]));
          ++received[a];
          --left;
        }
      }
    }
    rates.push_back(static_cast<double>(each) * actor_count / seconds_since(start));
  }
  for (const ActorHandle& actor : actors) CGL_TRY(stop(place, actor->name()));
  return rate_row(actor_count == 1 ? "streaming echo, a call each, one actor"
                                   : fmt::format("streaming echo, a call each, {} actors", actor_count),
                  place.name(), std::move(rates));
}

Result<BenchRow> bench_batches(WorkloadPlace& place, std::uint32_t actor_count, std::uint32_t messages) {
  constexpr std::uint32_t batch = 256;
  struct Stream {
    ActorHandle actor;
    std::vector<Message> out = std::vector<Message>(batch);
    std::uint32_t prepared = 0;  // of out
    std::uint32_t sent = 0;      // of those
    std::uint32_t made = 0;
    std::uint32_t received = 0;
  };
  std::vector<Stream> streams(actor_count);
  for (std::uint32_t i = 0; i < actor_count; ++i) {
    CGL_TRY_ASSIGN(streams[i].actor,
                   place.start(fmt::format("stream-{}", i), WorkloadBody::batch_echo, Traffic::stream, {}));
  }
  const std::uint32_t each = messages / actor_count;
  std::vector<Message> in(batch);
  std::vector<double> rates;
  for (int repetition = 0; repetition < 3; ++repetition) {
    for (Stream& stream : streams) stream.prepared = stream.sent = stream.made = stream.received = 0;
    std::uint64_t left = std::uint64_t{each} * actor_count;
    const auto start = Clock::now();
    for (auto last = start; left > 0;) {
      CGL_TRY(check_interrupt());
      const std::uint64_t before = left;
      for (Stream& stream : streams) {
        if (stream.sent == stream.prepared && stream.made < each) {
          stream.prepared = std::min(batch, each - stream.made);
          for (std::uint32_t i = 0; i < stream.prepared; ++i) {
            stream.out[i] = make_message(Ping{static_cast<double>(stream.made++)});
          }
          stream.sent = 0;
        }
        if (stream.sent != stream.prepared) {
          stream.sent +=
              stream.actor->send_batch(std::span(stream.out).subspan(stream.sent, stream.prepared - stream.sent));
        }
        const std::uint32_t got = stream.actor->receive_batch(in);
        for (std::uint32_t i = 0; i < got; ++i) CGL_TRY(check_ping(in[i], stream.received++));
        left -= got;
      }
      if (left != before) {
        last = Clock::now();
      } else if (seconds_since(last) > 30) {
        return fail(ErrorKind::timed_out, "a stream in batches stands still");
      }
    }
    rates.push_back(static_cast<double>(each) * actor_count / seconds_since(start));
  }
  for (const Stream& stream : streams) CGL_TRY(stop(place, stream.actor->name()));
  return rate_row(actor_count == 1 ? "streaming echo in batches, one actor"
                                   : fmt::format("streaming echo in batches, {} actors", actor_count),
                  place.name(), std::move(rates));
}

Result<BenchRow> bench_restart(WorkloadPlace& place, std::uint32_t failures) {
  ActorOptions options;
  options.waiting = spinning;
  options.restart.kind = RestartKind::limited;
  options.restart.max_restarts = ~0U;
  options.restart.back_off = options.restart.max_back_off = Nanoseconds(1);
  CGL_TRY_ASSIGN(const ActorHandle actor, place.start("fails", WorkloadBody::sum, Traffic::answers, options));
  CGL_TRY_ASSIGN(const SharedBuffer one, place.share(sizeof(double)));
  const double value = 42;
  std::memcpy(one.bytes.data(), &value, sizeof value);
  const Message wrong = make_message(Ping{});
  const Message right = make_buffer_message(SumRequest{one.handle});
  std::vector<double> microseconds;
  for (std::uint32_t i = 0; i < failures; ++i) {
    CGL_TRY(check_interrupt());
    const auto start = Clock::now();
    CGL_TRY(actor->send(wrong));
    CGL_TRY_ASSIGN(const Message answer, place.runtime().request(*actor, right, answer_limit));
    microseconds.push_back(1e6 * seconds_since(start));
    if (!holds<SumReply>(answer) || payload<SumReply>(answer).sum != value) {
      return fail(ErrorKind::corrupt, "an actor that was restarted does not answer as before");
    }
  }
  const ActorTelemetry told = actor->telemetry();
  if (told.failures != failures || told.restarts != failures) {
    return fail(ErrorKind::corrupt, "{} failures and {} restarts were counted of {}", told.failures, told.restarts,
                failures);
  }
  CGL_TRY(stop(place, "fails"));
  CGL_TRY(place.release(one.handle));
  return latency_row("a body fails, restarts and answers what waits", place.name(), std::move(microseconds));
}

Result<BenchRow> bench_stop(WorkloadPlace& place, std::uint32_t actor_count) {
  std::vector<ActorHandle> actors;
  for (std::uint32_t i = 0; i < actor_count; ++i) {
    CGL_TRY_ASSIGN(ActorHandle actor, place.start(fmt::format("idle-{}", i), WorkloadBody::echo, Traffic::answers, {}));
    actors.push_back(std::move(actor));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto start = Clock::now();
  for (const ActorHandle& actor : actors) CGL_TRY(stop(place, actor->name()));
  BenchRow row;
  row.scenario = fmt::format("stop of {} idle actors", actor_count);
  row.place = place.name();
  row.unit = "ms";
  row.value = row.best = 1e3 * seconds_since(start);
  return row;
}

namespace {

// Rows of one place, each beside its limit.
class Rows {
 public:
  Status add(Result<BenchRow> row, const BenchRow* limit = nullptr) {
    CGL_TRY(check_interrupt());
    if (!row) return tl::make_unexpected(std::move(row.error()));
    if (limit != nullptr) {
      row->limit_name = limit->scenario;
      row->limit = limit->value;
    }
    rows_.push_back(std::move(*row));
    return {};
  }
  [[nodiscard]] std::vector<BenchRow> take() { return std::move(rows_); }

 private:
  std::vector<BenchRow> rows_;
};

std::vector<double> in_microseconds(std::vector<double> seconds) {
  for (double& value : seconds) value *= 1e6;
  return seconds;
}

}  // namespace

Result<std::vector<BenchRow>> bench_answers(WorkloadPlace& place, const BenchOptions& options) {
  const DeviceLimits* const device = place.limits();
  Rows rows;
  const BenchRow exchange = device != nullptr ? latency_row("64 bytes to a bare kernel and back", place.name(),
                                                            in_microseconds(device->round_trips))
                                              : bench_word_ping_pong(options.round_trips);
  CGL_TRY(rows.add(exchange));
  CGL_TRY(rows.add(bench_round_trip(place, options.round_trips), &exchange));
  CGL_TRY(rows.add(bench_request(place, options.round_trips), &exchange));
  if (device == nullptr) {
    CGL_TRY(rows.add(bench_actor_to_actor(place, options.hops), &exchange));
    CGL_TRY(rows.add(bench_thread_per_message(std::min(options.round_trips / 50 + 10, 1000U))));
    CGL_TRY(rows.add(bench_restart(place, options.failures)));
    return rows.take();
  }
  BenchRow between = latency_row("between two bare blocks and back", place.name(), {1e6 * device->kernel_to_kernel});
  between.p99 = between.p999 = 0;  // a mean
  CGL_TRY(rows.add(between));
  CGL_TRY(rows.add(bench_actor_to_actor(place, options.hops), &between));
  CGL_TRY(rows.add(latency_row("the alternative: a kernel launched and waited for", place.name(),
                               in_microseconds(device->launches))));
  CGL_TRY(rows.add(bench_restart(place, options.failures)));
  return rows.take();
}

Result<std::vector<BenchRow>> bench_streams(WorkloadPlace& place, const BenchOptions& options) {
  const DeviceLimits* const device = place.limits();
  Rows rows;
  const BenchRow bare = device != nullptr ? rate_row("64-byte messages through a bare block and back", place.name(),
                                                     {device->messages_per_s})
                                          : bench_bare_ring(options.stream_messages);
  CGL_TRY(rows.add(bare));
  CGL_TRY(rows.add(bench_batches(place, 1, options.stream_messages), &bare));
  CGL_TRY(rows.add(bench_batches(place, options.many_actors, options.stream_messages), &bare));
  CGL_TRY(rows.add(bench_stream(place, 1, options.stream_messages), &bare));
  CGL_TRY(rows.add(bench_stream(place, options.many_actors, options.stream_messages), &bare));
  CGL_TRY(rows.add(bench_stop(
      place, device == nullptr ? options.idle_actors : std::min(options.idle_actors, place.useful_actors()))));
  CGL_TRY_ASSIGN(std::vector<BenchRow> wire, bench_wire(options.round_trips));
  for (BenchRow& row : wire) CGL_TRY(rows.add(std::move(row)));
  return rows.take();
}

}  // namespace cingulum::ring
