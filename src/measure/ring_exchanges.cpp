#include "measure/ring_exchanges.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "measure/numbered_message.hpp"
#include "ring/workloads/echo_and_sum.hpp"

namespace cingulum::measure {
namespace {

using ring::Message;
// Few enough that Ctrl-C is seen in between.
constexpr std::uint32_t hops_per_request = 2000;

// `exchange` sends a message and answers with what came.
template <class Exchange>
Result<std::vector<double>> time_answers(const Series& series, Exchange&& exchange) {
  Message message = numbered(0), answer;
  return time_exchanges(
      series,
      [&](std::uint64_t) -> Status {
        CGL_TRY_ASSIGN(answer, exchange(message));
        return {};
      },
      [&](std::uint64_t i) -> Status {
        CGL_TRY(check_number(answer, i));
        message = numbered(i + 1);
        return {};
      });
}

}  // namespace

Result<std::vector<double>> round_trip_seconds(ring::Actor& echo, const Series& series) {
  return time_answers(series, [&](const Message& message) -> Result<Message> {
    CGL_TRY(echo.send(message));
    return echo.receive(ring::answer_limit);
  });
}

Result<std::vector<double>> send_seconds(ring::Actor& echo, const Series& series) {
  Message message = numbered(0);
  return time_exchanges(
      series, [&](std::uint64_t) { return echo.send(message); },
      [&](std::uint64_t i) -> Status {
        CGL_TRY_ASSIGN(const Message answer, echo.receive(ring::answer_limit));
        message = numbered(i + 1);
        return check_number(answer, i);
      });
}

Result<std::vector<double>> request_seconds(ring::Runtime& runtime, const std::string& echo, const Series& series) {
  return time_answers(series,
                      [&](const Message& message) { return runtime.request(echo, message, ring::answer_limit); });
}

Result<std::vector<double>> request_seconds(ring::Runtime& runtime, ring::Actor& echo, const Series& series) {
  return time_answers(series,
                      [&](const Message& message) { return runtime.request(echo, message, ring::answer_limit); });
}

ring::ActorOptions restarting_at_once(ring::ActorOptions options) {
  options.restart.kind = ring::RestartKind::limited;
  options.restart.max_restarts = ~0U;
  options.restart.back_off = options.restart.max_back_off = ring::Nanoseconds(1);
  return options;
}

Result<std::vector<double>> restart_seconds(ring::Runtime& runtime, ring::Actor& hop, std::uint32_t failures) {
  const Message wrong = ring::make_message(ring::SumReply{});
  const Message right = numbered(1);  // which a hop counts down to 0 and answers
  Message answer;
  CGL_TRY_ASSIGN(std::vector<double> seconds, time_exchanges(
                                                  {.count = failures},
                                                  [&](std::uint64_t) -> Status {
                                                    CGL_TRY(hop.send(wrong));
                                                    CGL_TRY_ASSIGN(answer,
                                                                   runtime.request(hop, right, ring::answer_limit));
                                                    return {};
                                                  },
                                                  [&](std::uint64_t) { return check_number(answer, 0); }));
  const ring::ActorTelemetry telemetry = hop.telemetry();
  if (telemetry.failures != failures || telemetry.restarts != failures) {
    return fail(ErrorKind::corrupt, "{} failures and {} restarts were counted of {}", telemetry.failures,
                telemetry.restarts, failures);
  }
  return seconds;
}

Result<std::vector<double>> hop_seconds(ring::WorkloadPlace& place, std::uint32_t hops, int repetitions,
                                        const ring::ActorOptions& options) {
  ring::Runtime& runtime = place.runtime();
  for (const char* name : {"hop-a", "hop-b"}) {
    CGL_TRY(
        place.launch(name, ring::WorkloadBody::hop, ring::Traffic::answers, options).map([](const ring::ActorHandle&) {
        }));
  }
  CGL_TRY(runtime.fan_out("hop-a", 1, {"hop-b"}));
  CGL_TRY(runtime.fan_out("hop-b", 1, {"hop-a"}));
  CGL_TRY(runtime.activate("hop-a"));
  CGL_TRY(runtime.activate("hop-b"));
  std::vector<double> seconds;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t done = 0; done < hops; done += hops_per_request) {
      CGL_TRY(check_interrupt());
      const Message message = numbered(std::min(hops - done, hops_per_request));
      CGL_TRY(runtime.request("hop-a", message, ring::answer_limit).map([](const Message&) {}));
    }
    // Two hops are there and back.
    seconds.push_back(2 * seconds_since(start) / hops);
  }
  CGL_TRY(stop_actor(place, "hop-a"));
  CGL_TRY(stop_actor(place, "hop-b"));
  return seconds;
}

Result<std::vector<ring::ActorHandle>> start_idle(ring::WorkloadPlace& place, std::uint32_t actors) {
  std::vector<ring::ActorHandle> idle;
  for (std::uint32_t i = 0; i < actors; ++i) {
    CGL_TRY_ASSIGN(ring::ActorHandle actor,
                   place.start(fmt::format("idle-{}", i), ring::WorkloadBody::echo, ring::Traffic::answers, {}));
    idle.push_back(std::move(actor));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until they wait
  return idle;
}

Result<double> terminate_seconds(ring::WorkloadPlace& place, const std::vector<ring::ActorHandle>& actors) {
  const auto start = std::chrono::steady_clock::now();
  for (const ring::ActorHandle& actor : actors) CGL_TRY(stop_actor(place, actor->name()));
  return seconds_since(start);
}

Result<std::vector<double>> word_seconds(const Series& series, const std::function<void()>& begin) {
  constexpr std::uint64_t over = ~std::uint64_t{0};
  struct alignas(ring::line_bytes) Line {
    std::atomic<std::uint64_t> word{0};
  };
  Line there, back;
  // A yield now and then: on fewer processors than threads the other side must get its turn. What is waited for is
  // `value` or `over`.
  const auto wait_for = [](const std::atomic<std::uint64_t>& word, std::uint64_t value) {
    std::uint64_t seen = 0;
    for (std::uint32_t looks = 1; (seen = word.load(std::memory_order_acquire)) < value; ++looks) {
      if (looks % 2000 != 0) {
        ring::HostAtomics::pause();
      } else {
        std::this_thread::yield();
      }
    }
    return seen;
  };
  std::thread other([&] {
    if (begin) begin();
    for (std::uint64_t i = 1; wait_for(there.word, i) != over; ++i) back.word.store(i, std::memory_order_release);
  });
  Result<std::vector<double>> seconds = time_exchanges(
      series,
      [&](std::uint64_t i) -> Status {
        there.word.store(i + 1, std::memory_order_release);
        wait_for(back.word, i + 1);
        return {};
      },
      [](std::uint64_t) -> Status { return {}; });
  there.word.store(over, std::memory_order_release);
  other.join();
  return seconds;
}

Result<std::vector<double>> thread_seconds(const Series& series) {
  return time_exchanges(
      series,
      [](std::uint64_t) -> Status {
        std::thread([] {}).join();
        return {};
      },
      [](std::uint64_t) -> Status { return {}; });
}

Status stop_actor(ring::WorkloadPlace& place, const std::string& name) {
  return place.runtime().terminate(name).map([](const ring::TerminationReport&) {});
}

}  // namespace cingulum::measure
