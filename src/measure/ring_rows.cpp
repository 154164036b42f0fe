#include "measure/ring_rows.hpp"

#include <algorithm>
#include <utility>

#include "base/interrupt.hpp"
#include "measure/repetitions.hpp"
#include "measure/ring_exchanges.hpp"
#include "measure/ring_streams.hpp"
#include "ring/edge/wire.hpp"

namespace cingulum::measure {
namespace {

using ring::Traffic;
using ring::WorkloadBody;
using ring::WorkloadPlace;

ring::ActorOptions spinning() {
  ring::ActorOptions options;
  options.waiting = {ring::WaitMode::spin, 2000};
  return options;
}

RingRow latency_row(std::string scenario, std::string place, std::vector<double> seconds) {
  const Percentiles percentiles = percentiles_of(std::move(seconds));
  RingRow row;
  row.scenario = std::move(scenario);
  row.place = std::move(place);
  row.unit = "us";
  row.value = 1e6 * percentiles.p50;
  row.p99 = 1e6 * percentiles.p99;
  row.p999 = 1e6 * percentiles.p999;
  row.best = 1e6 * percentiles.min;
  return row;
}

// Each sample is a mean over many exchanges, which has no percentiles.
RingRow mean_latency_row(std::string scenario, std::string place, std::vector<double> seconds) {
  RingRow row = latency_row(std::move(scenario), std::move(place), std::move(seconds));
  row.p99 = row.p999 = 0;
  return row;
}

RingRow rate_row(std::string scenario, std::string place, std::vector<double> rates) {
  const Percentiles percentiles = percentiles_of(std::move(rates));
  RingRow row;
  row.scenario = std::move(scenario);
  row.place = std::move(place);
  row.unit = "messages/s";
  row.value = percentiles.p50;
  row.best = percentiles.max;
  return row;
}

Result<RingRow> word_row(std::uint32_t round_trips) {
  CGL_TRY_ASSIGN(std::vector<double> seconds, word_seconds({.count = round_trips}));
  return latency_row("a word passed between two threads and back", "cpu", std::move(seconds));
}

Result<RingRow> thread_row(std::uint32_t rounds) {
  CGL_TRY_ASSIGN(std::vector<double> seconds, thread_seconds({.count = rounds}));
  return latency_row("the alternative: a thread made and joined", "cpu", std::move(seconds));
}

Result<RingRow> bare_ring_row(std::uint32_t messages) {
  CGL_TRY_ASSIGN(std::vector<double> rates,
                 bare_ring_rates({.messages = messages, .repetitions = 5, .capacity = 4096, .batch = 64}));
  return rate_row("a bare ring between two threads, 64-byte slots", "cpu", std::move(rates));
}

Result<RingRow> round_trip_row(WorkloadPlace& place, std::uint32_t round_trips) {
  CGL_TRY_ASSIGN(const ring::ActorHandle echo, place.start("echo", WorkloadBody::echo, Traffic::answers, spinning()));
  CGL_TRY_ASSIGN(std::vector<double> seconds,
                 round_trip_seconds(*echo, {.count = round_trips, .warm_up = round_trips / 50}));
  CGL_TRY(stop_actor(place, "echo"));
  return latency_row("round trip: send, echo actor, receive", place.name(), std::move(seconds));
}

Result<RingRow> request_row(WorkloadPlace& place, std::uint32_t round_trips) {
  CGL_TRY_ASSIGN(const ring::ActorHandle echo, place.start("echo", WorkloadBody::echo, Traffic::answers, spinning()));
  CGL_TRY_ASSIGN(std::vector<double> seconds,
                 request_seconds(place.runtime(), "echo", {.count = round_trips, .warm_up = round_trips / 50}));
  CGL_TRY(stop_actor(place, "echo"));
  return latency_row("request matched by correlation", place.name(), std::move(seconds));
}

Result<RingRow> hop_row(WorkloadPlace& place, std::uint32_t hops) {
  CGL_TRY_ASSIGN(std::vector<double> seconds, hop_seconds(place, hops, 5, spinning()));
  return mean_latency_row("actor to actor and back", place.name(), std::move(seconds));
}

Result<RingRow> restart_row(WorkloadPlace& place, std::uint32_t failures) {
  CGL_TRY_ASSIGN(const ring::ActorHandle actor,
                 place.start("fails", WorkloadBody::hop, Traffic::answers, restarting_at_once(spinning())));
  CGL_TRY_ASSIGN(std::vector<double> seconds, restart_seconds(place.runtime(), *actor, failures));
  CGL_TRY(stop_actor(place, "fails"));
  return latency_row("a body fails, restarts and answers what waits", place.name(), std::move(seconds));
}

// One host thread and so many actors.
using Rates = Result<std::vector<double>> (*)(std::span<const ring::ActorHandle>, const Stream&);
Result<RingRow> stream_row(WorkloadPlace& place, std::string_view how, Rates rates_of, WorkloadBody body,
                           std::uint32_t actor_count, std::uint32_t messages) {
  std::vector<ring::ActorHandle> actors;
  for (std::uint32_t i = 0; i < actor_count; ++i) {
    CGL_TRY_ASSIGN(ring::ActorHandle actor, place.start(fmt::format("stream-{}", i), body, Traffic::stream, {}));
    actors.push_back(std::move(actor));
  }
  CGL_TRY_ASSIGN(std::vector<double> rates, rates_of(actors, {.messages_each = messages / actor_count}));
  for (const ring::ActorHandle& actor : actors) CGL_TRY(stop_actor(place, actor->name()));
  return rate_row(actor_count == 1 ? fmt::format("streaming echo{}, one actor", how)
                                   : fmt::format("streaming echo{}, {} actors", how, actor_count),
                  place.name(), std::move(rates));
}

Result<RingRow> batch_row(WorkloadPlace& place, std::uint32_t actors, std::uint32_t messages) {
  return stream_row(place, " in batches", &batch_rates, WorkloadBody::batch_echo, actors, messages);
}

Result<RingRow> call_row(WorkloadPlace& place, std::uint32_t actors, std::uint32_t messages) {
  return stream_row(place, ", a call each", &call_rates, WorkloadBody::echo, actors, messages);
}

Result<RingRow> stop_row(WorkloadPlace& place, std::uint32_t actor_count) {
  CGL_TRY_ASSIGN(const std::vector<ring::ActorHandle> actors, start_idle(place, actor_count));
  CGL_TRY_ASSIGN(const double seconds, terminate_seconds(place, actors));
  RingRow row;
  row.scenario = fmt::format("stop of {} idle actors", actor_count);
  row.place = place.name();
  row.unit = "ms";
  row.value = row.best = 1e3 * seconds;
  return row;
}

struct WirePing {
  static constexpr const char* message_name = "WirePing";
  double value = 0;
};
CGL_RING_FIELDS(WirePing, value);

Result<std::vector<RingRow>> wire_rows(std::uint32_t rounds) {
  const ring::WireEnvelope envelope = {.message_id = ring::Uuid::random(), .correlation_id = std::nullopt};
  std::vector<std::byte> bytes;
  RingRow encode_row;
  encode_row.scenario = "wire format: encode a message of one number";
  RingRow decode_row;
  decode_row.scenario = "wire format: decode it";
  for (RingRow* row : {&encode_row, &decode_row}) {
    row->place = "cpu";
    row->unit = "ns";
    CGL_TRY_ASSIGN(const Seconds seconds, measure_repetitions(0, 5, [&]() -> Status {
                     CGL_TRY(check_interrupt());
                     for (std::uint32_t i = 0; i < rounds; ++i) {
                       if (row == &encode_row) {
                         bytes.clear();
                         const WirePing ping{static_cast<double>(i)};
                         CGL_TRY(ring::encode_message(ring::wire_type<WirePing>, &ping, envelope, nullptr, bytes));
                       } else {
                         CGL_TRY(ring::decode<WirePing>(bytes).map([](const auto&) {}));
                       }
                     }
                     return {};
                   }));
    const Percentiles percentiles = percentiles_of(seconds.elapsed);
    row->value = 1e9 * percentiles.p50 / rounds;
    row->best = 1e9 * percentiles.min / rounds;
  }
  return std::vector<RingRow>{encode_row, decode_row};
}

// Rows of one place, each beside its limit.
class Rows {
 public:
  Status add(Result<RingRow> row, const RingRow* limit = nullptr) {
    CGL_TRY(check_interrupt());
    if (!row) return tl::make_unexpected(std::move(row.error()));
    if (limit != nullptr) {
      row->limit_name = limit->scenario;
      row->limit = limit->value;
    }
    rows_.push_back(std::move(*row));
    return {};
  }
  [[nodiscard]] std::vector<RingRow> take() { return std::move(rows_); }

 private:
  std::vector<RingRow> rows_;
};

}  // namespace

Result<std::vector<RingRow>> ring_answer_rows(WorkloadPlace& place, const RingCounts& counts) {
  const ring::DeviceLimits* const device = place.limits();
  Rows rows;
  CGL_TRY_ASSIGN(const RingRow exchange, device != nullptr ? latency_row("64 bytes to a bare kernel and back",
                                                                         place.name(), device->round_trips)
                                                           : word_row(counts.round_trips));
  CGL_TRY(rows.add(exchange));
  CGL_TRY(rows.add(round_trip_row(place, counts.round_trips), &exchange));
  CGL_TRY(rows.add(request_row(place, counts.round_trips), &exchange));
  if (device == nullptr) {
    CGL_TRY(rows.add(hop_row(place, counts.hops), &exchange));
    CGL_TRY(rows.add(thread_row(std::min(counts.round_trips / 50 + 10, 1000U))));
    CGL_TRY(rows.add(restart_row(place, counts.failures)));
    return rows.take();
  }
  const RingRow between =
      mean_latency_row("between two bare blocks and back", place.name(), {device->kernel_to_kernel});
  CGL_TRY(rows.add(between));
  CGL_TRY(rows.add(hop_row(place, counts.hops), &between));
  CGL_TRY(rows.add(latency_row("the alternative: a kernel launched and waited for", place.name(), device->launches)));
  CGL_TRY(rows.add(restart_row(place, counts.failures)));
  return rows.take();
}

Result<std::vector<RingRow>> ring_stream_rows(WorkloadPlace& place, const RingCounts& counts) {
  const ring::DeviceLimits* const device = place.limits();
  Rows rows;
  CGL_TRY_ASSIGN(const RingRow bare, device != nullptr ? rate_row("64-byte messages through a bare block and back",
                                                                  place.name(), {device->messages_per_s})
                                                       : bare_ring_row(counts.stream_messages));
  CGL_TRY(rows.add(bare));
  CGL_TRY(rows.add(batch_row(place, 1, counts.stream_messages), &bare));
  CGL_TRY(rows.add(batch_row(place, counts.many_actors, counts.stream_messages), &bare));
  CGL_TRY(rows.add(call_row(place, 1, counts.stream_messages), &bare));
  CGL_TRY(rows.add(call_row(place, counts.many_actors, counts.stream_messages), &bare));
  CGL_TRY(rows.add(
      stop_row(place, device == nullptr ? counts.idle_actors : std::min(counts.idle_actors, place.useful_workers()))));
  CGL_TRY_ASSIGN(std::vector<RingRow> wire, wire_rows(counts.round_trips));
  for (RingRow& row : wire) CGL_TRY(rows.add(std::move(row)));
  return rows.take();
}

}  // namespace cingulum::measure
