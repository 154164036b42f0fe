// Message types with every kind of field that has a form on the wire: for the fuzz target and for the program that is
// compared with Python.
#pragma once

#include <array>
#include <cstdint>

#include "ring/edge/wire.hpp"

namespace cingulum::ring::wire_test {

enum class Phase : std::uint8_t { idle, busy };

struct Numbers {
  static constexpr const char* message_name = "Numbers";
  std::int8_t i8 = 0;
  std::uint8_t u8 = 0;
  std::int16_t i16 = 0;
  std::uint16_t u16 = 0;
  std::int32_t i32 = 0;
  std::uint32_t u32 = 0;
  std::int64_t i64 = 0;
  std::uint64_t u64 = 0;
  float f32 = 0;
  bool flag = false;
  Phase phase = Phase::idle;
};
CGL_RING_FIELDS(Numbers, i8, u8, i16, u16, i32, u32, i64, u64, f32, flag, phase);

struct Reals {
  static constexpr const char* message_name = "Reals";
  double f64 = 0.5;
  std::array<float, 4> row = {};
  std::array<std::array<std::int16_t, 2>, 3> grid = {};
};
CGL_RING_FIELDS(Reals, f64, row, grid);

struct Texts {
  static constexpr const char* message_name = "Texts";
  Uuid origin;
  FixedText<20> label;
};
CGL_RING_FIELDS(Texts, origin, label);

struct Lists {
  static constexpr const char* message_name = "Lists";
  NumberBuffer<double> samples;
  FixedList<std::uint32_t, 6> picks;
};
CGL_RING_FIELDS(Lists, samples, picks);

[[nodiscard]] inline Status add_all(WireRegistry& registry) {
  CGL_TRY(registry.add<RingKernelMessage>());
  CGL_TRY(registry.add<Numbers>());
  CGL_TRY(registry.add<Reals>());
  CGL_TRY(registry.add<Texts>());
  return registry.add<Lists>();
}

// The buffers that a decoded message came with are the receiver's.
inline void release_buffers(const Message& message, BufferTable& table) {
  if (holds<Lists>(message) && payload<Lists>(message).samples.handle.generation != 0) {
    static_cast<void>(table.release(payload<Lists>(message).samples.handle));
  }
}

}  // namespace cingulum::ring::wire_test
