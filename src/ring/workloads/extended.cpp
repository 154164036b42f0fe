#include "ring/workloads/extended.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <string>

#include "base/elapsed.hpp"
#include "base/interrupt.hpp"
#include "ring/workloads/echo_and_sum.hpp"

namespace cingulum::ring {
namespace {

using Clock = std::chrono::steady_clock;

// Numbers 0, 1, ... that every message of a stream names.
Result<SharedBuffer> counting_numbers(WorkloadPlace& place, std::uint32_t count) {
  CGL_TRY_ASSIGN(const SharedBuffer buffer, place.share(count * sizeof(double)));
  auto* const numbers = reinterpret_cast<double*>(buffer.bytes.data());
  for (std::uint32_t i = 0; i < count; ++i) numbers[i] = i;
  return buffer;
}

Status check_sum(const Message& answer, double expected) {
  if (holds<SumReply>(answer) && payload<SumReply>(answer).sum == expected) return {};
  return fail(ErrorKind::corrupt, "an answer is {} instead of {}",
              holds<SumReply>(answer) ? payload<SumReply>(answer).sum : 0.0, expected);
}

Status echo_once(Actor& actor, double value) {
  CGL_TRY(actor.send(make_message(Ping{value})));
  CGL_TRY_ASSIGN(const Message answer, actor.receive(answer_limit));
  if (holds<Ping>(answer) && payload<Ping>(answer).value == value) return {};
  return fail(ErrorKind::corrupt, "the echo of {} came back changed", value);
}

Result<LatencyResult> measure_latency(WorkloadPlace& place, const ExtendedOptions& options) {
  CGL_TRY_ASSIGN(const ActorHandle actor, place.start("echo", WorkloadBody::echo, Traffic::answers, {}));
  for (std::uint32_t i = 0; i < options.warm_up; ++i) CGL_TRY(echo_once(*actor, i));
  std::vector<double> microseconds;
  for (std::uint32_t i = 0; i < options.latency_samples; ++i) {
    const auto start = Clock::now();
    CGL_TRY(echo_once(*actor, i));
    microseconds.push_back(1e6 * seconds_since(start));
  }
  CGL_TRY(place.runtime().terminate("echo").map([](const TerminationReport&) {}));
  return summarise_latency(std::move(microseconds));
}

// How fast one thread sums without any messages.
double direct_rate(std::uint32_t numbers) {
  std::vector<double> values(numbers);
  for (std::uint32_t i = 0; i < numbers; ++i) values[i] = i;
  const std::uint32_t rounds = 1000000 / numbers + 1000;
  const volatile double* const opaque = values.data();  // each number is read anew, as from a message
  volatile double kept = 0;
  const auto start = Clock::now();
  for (std::uint32_t round = 0; round < rounds; ++round) {
    double sum = 0;
    for (std::uint32_t i = 0; i < numbers; ++i) sum += opaque[i];
    kept = sum;
  }
  static_cast<void>(kept);
  return rounds / seconds_since(start);
}

Result<StreamingResult> measure_stream(WorkloadPlace& place, std::uint32_t messages, std::uint32_t numbers) {
  ActorOptions options;
  options.inbox_capacity = std::bit_ceil(std::max(1024U, messages));
  options.outbox_capacity = options.inbox_capacity;
  CGL_TRY_ASSIGN(const ActorHandle actor, place.start("stream", WorkloadBody::sum, Traffic::stream, options));
  CGL_TRY_ASSIGN(const SharedBuffer values, counting_numbers(place, numbers));
  const Message request = make_buffer_message(SumRequest{values.handle});
  const double expected = 0.5 * numbers * (numbers - 1.0);
  StreamingResult result;
  result.messages = messages;
  result.numbers = numbers;
  const auto start = Clock::now();
  for (std::uint32_t i = 0; i < messages; ++i) CGL_TRY(actor->send(request));
  for (std::uint32_t i = 0; i < messages; ++i) {
    CGL_TRY(check_interrupt());
    CGL_TRY_ASSIGN(const Message answer, actor->receive(answer_limit));
    CGL_TRY(check_sum(answer, expected));
  }
  result.seconds = seconds_since(start);
  result.messages_per_s = messages / result.seconds;
  result.direct_per_s = direct_rate(numbers);
  CGL_TRY(place.runtime().terminate("stream").map([](const TerminationReport&) {}));
  CGL_TRY(place.release(values.handle));
  return result;
}

Result<ConcurrencyResult> measure_concurrency(WorkloadPlace& place, std::uint32_t actor_count,
                                              std::uint32_t messages_per_actor) {
  constexpr std::uint32_t numbers = 100;
  CGL_TRY_ASSIGN(const SharedBuffer values, counting_numbers(place, numbers));
  const Message request = make_buffer_message(SumRequest{values.handle});
  constexpr double expected = (numbers - 1.0) * numbers * (2.0 * numbers - 1.0) / 6.0;
  std::vector<ActorHandle> actors;
  for (std::uint32_t i = 0; i < actor_count; ++i) {
    CGL_TRY_ASSIGN(ActorHandle actor,
                   place.start(fmt::format("squares-{}", i), WorkloadBody::sum_of_squares, Traffic::stream, {}));
    actors.push_back(std::move(actor));
  }
  ConcurrencyResult result;
  result.actors = actor_count;
  result.messages = actor_count * messages_per_actor;
  const auto start = Clock::now();
  for (std::uint32_t i = 0; i < messages_per_actor; ++i) {
    for (const ActorHandle& actor : actors) CGL_TRY(actor->send(request));
  }
  for (const ActorHandle& actor : actors) {
    for (std::uint32_t i = 0; i < messages_per_actor; ++i) {
      CGL_TRY(check_interrupt());
      CGL_TRY_ASSIGN(const Message answer, actor->receive(answer_limit));
      CGL_TRY(check_sum(answer, expected));
    }
  }
  result.seconds = seconds_since(start);
  result.messages_per_s = result.messages / result.seconds;
  for (const ActorHandle& actor : actors) {
    CGL_TRY(place.runtime().terminate(actor->name()).map([](const TerminationReport&) {}));
  }
  CGL_TRY(place.release(values.handle));
  return result;
}

}  // namespace

LatencyResult summarise_latency(std::vector<double> microseconds) {
  LatencyResult result;
  if (microseconds.empty()) return result;
  std::sort(microseconds.begin(), microseconds.end());
  const auto at = [&](double share) {
    return microseconds[static_cast<std::size_t>(static_cast<double>(microseconds.size()) * share)];
  };
  result.samples = static_cast<std::uint32_t>(microseconds.size());
  result.p50_us = at(0.5);
  result.p95_us = at(0.95);
  result.p99_us = at(0.99);
  result.p999_us = at(0.999);
  result.min_us = microseconds.front();
  result.max_us = microseconds.back();
  return result;
}

Result<ExtendedResult> run_extended(WorkloadPlace& place, const ExtendedOptions& options) {
  ExtendedResult result;
  CGL_TRY_ASSIGN(result.latency, measure_latency(place, options));
  for (const std::uint32_t numbers : options.number_counts) {
    for (const std::uint32_t messages : options.message_counts) {
      CGL_TRY(check_interrupt());
      CGL_TRY_ASSIGN(StreamingResult stream, measure_stream(place, messages, numbers));
      result.streaming.push_back(stream);
    }
  }
  for (const std::uint32_t actors : options.actor_counts) {
    CGL_TRY(check_interrupt());
    CGL_TRY_ASSIGN(ConcurrencyResult concurrency, measure_concurrency(place, actors, options.messages_per_actor));
    result.concurrency.push_back(concurrency);
  }
  return result;
}

}  // namespace cingulum::ring
