#include "tract/field/field_fit.hpp"

#include <algorithm>
#include <optional>

namespace cingulum {

Status fit_field(const Device& device, const Field& field, const FieldFit& fit,
                 const std::function<Status(FieldBricks)>& attempt, const std::function<void()>& give_up) {
  // What was attempted decides, unless it was short of memory.
  const auto decided = [&](FieldBricks bricks) -> std::optional<Status> {
    Status outcome = attempt(std::move(bricks));
    if (!outcome) give_up();
    if (!outcome && outcome.error().kind() == ErrorKind::out_of_memory) return std::nullopt;
    return outcome;
  };
  const std::uint64_t bytes = field.stored_bytes().size();
  const std::uint64_t have = free_memory_of(device);
  // Memory left free beside the field, so that streamlines need not be tracked in small pieces.
  const std::uint64_t margin = std::min(std::uint64_t{64} << 20, bytes / 4);
  const bool reached = fit.whole.field_bytes <= fit.most_reached;
  if (reached && fit.whole.total_bytes() + margin <= have) {
    if (auto outcome = decided({})) return *outcome;
  }
  // Bricks as large as fits; smaller ones where the device has less than it says.
  std::uint64_t most_bytes = have > fit.besides_bricks ? std::min(have - fit.besides_bricks, fit.most_reached) : 0;
  if (reached) most_bytes = std::min(most_bytes, bytes - bytes / 4);
  if (most_bytes > 2 * margin && have != ~std::uint64_t{0}) most_bytes -= margin;
  constexpr int most_tries = 4;
  for (int i = 0; i < most_tries; ++i, most_bytes /= 2) {
    FieldBricks bricks = FieldBricks::cut(field, fit.planes_in_reach, most_bytes);
    if (bricks.size() < 2) break;
    if (auto outcome = decided(std::move(bricks))) return *outcome;
  }
  // The whole field after all, without the margin.
  if (reached && fit.whole.total_bytes() <= have) {
    if (auto outcome = decided({})) return *outcome;
  }
  return tl::make_unexpected(out_of_device_memory(device, fit.whole, field));
}

}  // namespace cingulum
