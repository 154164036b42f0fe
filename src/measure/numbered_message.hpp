// The messages that benches of the ring send and check when they come back: a number each. Both ends of ring_exchanges
// and ring_streams use them.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "ring/queue/message.hpp"
#include "ring/workloads/echo_and_sum.hpp"

namespace cingulum::measure {

[[nodiscard]] inline ring::Message numbered(std::uint64_t number) {
  return ring::make_message(ring::Ping{static_cast<double>(number)});
}

[[nodiscard]] inline Status check_number(const ring::Message& message, std::uint64_t number) {
  if (ring::holds<ring::Ping>(message) && ring::payload<ring::Ping>(message).value == static_cast<double>(number)) {
    return {};
  }
  return fail(ErrorKind::corrupt, "message {} came back changed", number);
}

}  // namespace cingulum::measure
