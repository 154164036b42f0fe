// Brings a field into the memory of a device: whole, or in bricks. A field that fits neither way is refused before any
// work, with what it needs, what is free and the ways out. Used by the trackers of devices while they prepare.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "device/device.hpp"
#include "tract/field/field_bricks.hpp"
#include "tract/field/memory_need.hpp"

namespace cingulum {

struct FieldFit {
  MemoryNeed whole;                                // with the whole field
  std::uint64_t besides_bricks = 0;                // what is taken besides the records of a brick
  std::uint64_t most_reached = ~std::uint64_t{0};  // bytes of records that kernels can address
  std::uint32_t planes_in_reach = 0;
};

// Calls attempt(bricks), with none for the whole field, until one succeeds or fails for another reason than memory;
// after every failure calls give_up(). Bricks are tried where the whole field would leave little memory free, or does
// not fit.
[[nodiscard]] Status fit_field(const Device& device, const Field& field, const FieldFit& fit,
                               const std::function<Status(FieldBricks)>& attempt, const std::function<void()>& give_up);

}  // namespace cingulum
