// What tests of actors begin with: messages that hold one number, an actor of small queues that is running,
// and waiting until something is true. It knows no device and no backend but the CPU's.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "ring/actor/runtime.hpp"
#include "ring/queue/waiting.hpp"
#include "ring/resident_bodies.hpp"

namespace cingulum::ring::testing {

struct Number {
  static constexpr const char* message_name = "Number";
  std::int64_t value = 0;
};
inline Message number(std::int64_t value) {
  return make_message(Number{value});
}
inline std::int64_t value_of(const Message& message) {
  return payload<Number>(message).value;
}

// The number of a message of ring/resident_bodies.hpp, which has to be whole.
inline std::uint64_t number_in(const Message& message) {
  EXPECT_TRUE(holds<Numbered>(message));
  const auto value = payload<Numbered>(message);
  EXPECT_TRUE(is_whole(value)) << "message " << value.number << " is torn";
  return value.number;
}
// The same, and that a message came.
inline std::uint64_t number_of(const Result<Message>& got) {
  if (!got) {
    ADD_FAILURE() << got.error().message();
    return ~std::uint64_t{0};
  }
  return number_in(*got);
}

inline ActorOptions small(std::uint32_t capacity = 64) {
  ActorOptions options;
  options.inbox_capacity = capacity;
  options.outbox_capacity = capacity;
  return options;
}

// The actor that was just launched, running. Where one of the two failed the test has failed; null without an actor.
inline ActorHandle activated(const Result<ActorHandle>& launched) {
  EXPECT_TRUE(launched) << (launched ? "" : launched.error().message());
  if (!launched) return nullptr;
  const Status active = (*launched)->activate();
  EXPECT_TRUE(active) << (active ? "" : active.error().message());
  return *launched;
}

// Within a time that only a fault takes.
template <class Condition>
bool comes_true(const Condition& condition, Nanoseconds patience = std::chrono::seconds(30)) {
  const std::uint64_t deadline = deadline_after(steady_now_ns(), patience);
  while (!condition()) {
    if (steady_now_ns() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace cingulum::ring::testing
