#include "ring/edge/wire_gate.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "ring/actor/runtime.hpp"

namespace cingulum::ring {
namespace {

struct Question {
  static constexpr const char* message_name = "Question";
  std::int32_t number = 0;
};
CGL_RING_FIELDS(Question, number);

struct Doubling {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      context.send(make_reply(message, Question{2 * payload<Question>(message).number}));
    }
    return 0;
  }
};

std::vector<std::byte> left(WireGate& gate, const Message& message) {
  std::vector<std::byte> bytes;
  EXPECT_TRUE(gate.leave(message, bytes).has_value());
  return bytes;
}

TEST(wire_gate, an_actors_answer_names_the_message_from_outside) {
  WireRegistry registry;
  ASSERT_TRUE(registry.add<Question>().has_value());
  WireGate gate(registry);
  const auto runtime = Runtime::create().value();
  const auto actor = runtime->launch("doubling", Doubling{}).value();
  ASSERT_TRUE(actor->activate().has_value());
  std::vector<Uuid> asked;
  for (int i = 0; i < 20; ++i) {
    asked.push_back(Uuid::random());
    const auto bytes = encode(Question{i}, {asked.back(), static_cast<std::uint8_t>(100 + i), std::nullopt}).value();
    const auto message = gate.enter(bytes);
    ASSERT_TRUE(message.has_value()) << message.error().message();
    ASSERT_TRUE(actor->send(*message).has_value());
  }
  for (int i = 0; i < 20; ++i) {
    const auto answer = actor->receive(std::chrono::seconds(20));
    ASSERT_TRUE(answer.has_value()) << answer.error().message();
    const auto outside = decode<Question>(left(gate, *answer));
    ASSERT_TRUE(outside.has_value());
    EXPECT_EQ(outside->first.number, 2 * i);
    EXPECT_EQ(outside->second.correlation_id, asked[static_cast<std::size_t>(i)]);
    EXPECT_EQ(outside->second.priority, 100 + i);
  }
  EXPECT_EQ(gate.unmatched(), 0U);
}

TEST(wire_gate, an_answer_from_outside_finds_the_request_that_left) {
  WireRegistry registry;
  ASSERT_TRUE(registry.add<Question>().has_value());
  WireGate gate(registry);
  WireGate other(registry);  // of the other process
  Message request = make_message(Question{21}, 77);
  request.header.flags |= mark_request;
  const auto there = other.enter(left(gate, request));
  ASSERT_TRUE(there.has_value());
  EXPECT_NE(there->header.correlation, 77U);
  const auto back = gate.enter(left(other, make_reply(*there, Question{42})));
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(back->header.correlation, 77U);
  EXPECT_TRUE(back->has(mark_request));
  EXPECT_EQ(payload<Question>(*back).number, 42);
}

TEST(wire_gate, what_was_forgotten_is_counted_and_never_mistaken) {
  WireRegistry registry;
  ASSERT_TRUE(registry.add<Question>().has_value());
  WireGate gate(registry, 2);
  std::vector<Message> entered;
  for (int i = 0; i < 3; ++i) {
    entered.push_back(gate.enter(encode(Question{i}, {Uuid::random(), 128, std::nullopt}).value()).value());
  }
  EXPECT_FALSE(decode<Question>(left(gate, entered[0]))->second.correlation_id.has_value());
  EXPECT_EQ(gate.unmatched(), 1U);
  EXPECT_TRUE(decode<Question>(left(gate, entered[2]))->second.correlation_id.has_value());
  // An answer to something that this gate never sent.
  const auto stranger = gate.enter(encode(Question{5}, {Uuid::random(), 128, Uuid::random()}).value());
  ASSERT_TRUE(stranger.has_value());
  EXPECT_FALSE(stranger->has(mark_request));
  EXPECT_EQ(gate.unmatched(), 2U);
}

}  // namespace
}  // namespace cingulum::ring
