#ifdef CINGULUM_BENCH_HAS_CAF
#include <caf/all.hpp>
#endif

#include <chrono>
#include <optional>

#include "bench/pin.hpp"
#include "bench/ring_peers.hpp"

namespace cingulum::bench {

#ifdef CINGULUM_BENCH_HAS_CAF
namespace {

using Clock = std::chrono::steady_clock;

caf::behavior echo() {
  return {[](std::uint64_t value) { return value; }};
}

// One thread for the actors, as ours have, where theirs run.
struct System {
  caf::actor_system_config config;
  std::optional<caf::actor_system> system;
  System() {
    config.set("scheduler.max-threads", 1u);
    pin(answering_processor);
    system.emplace(config);
    pin(asking_processor);
  }
};

// Counts, and answers how many when asked by another type.
caf::behavior counter(caf::event_based_actor* self) {
  (void)self;
  auto count = std::make_shared<std::uint64_t>(0);
  return {[count](std::uint64_t) { ++*count; }, [count](bool) { return *count; }};
}

}  // namespace

std::optional<std::vector<double>> caf_round_trips(std::uint64_t count) {
  System actors;
  caf::actor_system& system = *actors.system;
  const caf::actor actor = system.spawn(echo);
  caf::scoped_actor self(system);
  std::vector<double> ns;
  const auto end = Clock::now() + std::chrono::seconds(5);
  for (std::uint64_t i = 0; i < count && Clock::now() < end; ++i) {
    const auto start = Clock::now();
    self->request(actor, caf::infinite, i).receive([](std::uint64_t) {}, [](const caf::error&) {});
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  return ns;
}

std::optional<std::vector<double>> caf_stream(int repetitions, std::uint64_t count) {
  System actors;
  caf::actor_system& system = *actors.system;
  std::vector<double> rates;
  for (int i = 0; i < repetitions; ++i) {
    const caf::actor actor = system.spawn(counter);
    caf::scoped_actor self(system);
    const auto start = Clock::now();
    for (std::uint64_t n = 0; n < count; ++n) self->send(actor, n);
    self->request(actor, caf::infinite, true).receive([](std::uint64_t) {}, [](const caf::error&) {});
    rates.push_back(static_cast<double>(count) / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return rates;
}
#else
std::optional<std::vector<double>> caf_round_trips(std::uint64_t) {
  return std::nullopt;
}
std::optional<std::vector<double>> caf_stream(int, std::uint64_t) {
  return std::nullopt;
}
#endif

}  // namespace cingulum::bench
