// What the rings have in common: answers of put and get, what happens when a ring is full, the lines that writer and
// reader own, and sequence numbers. Plain data, the same bytes for host and device.
//
// Positions count messages from the start and never wrap (64 bits). A slot's sequence is 32 bits and made from the lap,
// lap = position / capacity:  2 lap = free for this lap,  2 lap + 1 = full with this lap's message.
// It wraps after 2^31 laps and is compared by difference only. Zeroed memory is free for lap 0 and never full.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::ring {

// What a put does when there is no room. `block` waits (the ring itself answers `full`; the queue above it waits).
enum class FullPolicy : std::uint8_t { block, reject, drop_oldest, drop_new };

enum class PutStatus : std::uint8_t {
  stored,
  full,         // no room now (reject, or block before its wait)
  dropped_new,  // drop_new: not stored, counted
  closed,       // nobody will read it
  timed_out,    // block: no room came within the time
  expired       // its time to live ended before there was room; counted as a dead letter
};

enum class GetStatus : std::uint8_t {
  taken,
  empty,
  closed,    // empty, and nothing will come any more
  timed_out  // of calls that wait
};

CGL_HD constexpr bool is_power_of_two(std::uint64_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}
CGL_HD constexpr std::uint32_t log2_of(std::uint32_t power) {
  std::uint32_t log = 0;
  while ((1u << log) < power) ++log;
  return log;
}
CGL_HD constexpr std::uint32_t free_sequence(std::uint64_t lap) {
  return static_cast<std::uint32_t>(2 * lap);
}
CGL_HD constexpr std::uint32_t full_sequence(std::uint64_t lap) {
  return static_cast<std::uint32_t>(2 * lap + 1);
}
// How far `seen` is ahead of `expected`, across the wrap.
CGL_HD constexpr std::int32_t sequence_ahead(std::uint32_t seen, std::uint32_t expected) {
  return static_cast<std::int32_t>(seen - expected);
}

// 128 bytes, so that neighbouring-line prefetch and PCIe never make two writers share one.
constexpr std::size_t line_bytes = 128;

// The words that one side of a single-writer ring publishes to the other. Exactly one side writes a line.
//   writer's line: position = messages published, closed = 1 + no more will come (written after position)
//   reader's line: position = messages consumed (the writer's credit), closed = 1: the reader has left
struct alignas(line_bytes) RingLine {
  std::uint64_t position = 0;
  std::uint64_t closed = 0;
};
static_assert(sizeof(RingLine) == line_bytes);

}  // namespace cingulum::ring
