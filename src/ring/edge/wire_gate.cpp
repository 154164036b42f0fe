#include "ring/edge/wire_gate.hpp"

#include <algorithm>

namespace cingulum::ring {
namespace {

// Correlations that a gate gives have this bit, those of Runtime::request (slot and generation) do not.
constexpr std::uint64_t gate_bit = std::uint64_t{1} << 63U;
// What RFC 4122 fixes in the second half of an identity.
constexpr std::uint64_t variant_bits = std::uint64_t{3} << 62U;

}  // namespace

WireGate::WireGate(const WireRegistry& registry, std::uint32_t capacity)
    : registry_(registry), key_(Uuid::random().high), entered_(std::max(capacity, 1U)), left_(std::max(capacity, 1U)) {}

Result<Message> WireGate::enter(std::span<const std::byte> bytes) {
  CGL_TRY_ASSIGN(const WireRegistry::Decoded decoded, registry_.decode(bytes));
  Message message = decoded.message;
  const std::lock_guard lock(mutex_);
  if (const auto& answered = decoded.envelope.correlation_id) {
    const std::uint64_t number = answered->low & ~variant_bits;
    const Left& left = left_[number % left_.size()];
    if (answered->high == key_ && number != 0 && left.number == number) {
      message.header.correlation = left.correlation;
      message.header.flags |= left.marks;
      return message;
    }
    ++unmatched_;
  }
  ++last_entered_;
  entered_[last_entered_ % entered_.size()] = {last_entered_, decoded.envelope.message_id, decoded.envelope.priority};
  message.header.correlation = gate_bit | last_entered_;
  return message;
}

Status WireGate::leave(const Message& message, std::vector<std::byte>& bytes) {
  WireEnvelope envelope;
  envelope.priority = priority_of_band(message.band());
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t correlation = message.header.correlation;
    if ((correlation & gate_bit) != 0) {
      const std::uint64_t number = correlation & ~gate_bit;
      const Entered& entered = entered_[number % entered_.size()];
      if (entered.number == number) {
        envelope.correlation_id = entered.message_id;
        envelope.priority = entered.priority;
      } else {
        ++unmatched_;
      }
    }
    ++last_left_;
    left_[last_left_ % left_.size()] = {last_left_, correlation, message.header.flags & mark_request};
    envelope.message_id = {key_, (last_left_ & ~variant_bits) | std::uint64_t{2} << 62U};
  }
  return registry_.encode(message, envelope, bytes);
}

std::uint64_t WireGate::unmatched() const {
  const std::lock_guard lock(mutex_);
  return unmatched_;
}

}  // namespace cingulum::ring
