#include "tract/field/brick_schedule.hpp"

#include <algorithm>

namespace cingulum {

void sort_by_brick(const FieldBricks& bricks, std::span<const numerics::Vec3> positions,
                   std::vector<std::uint32_t>& order) {
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return bricks.brick_at(positions[a].z) < bricks.brick_at(positions[b].z);
  });
}

std::uint32_t BrickWaits::add(float z, std::uint32_t who) {
  const std::uint32_t brick = bricks_->brick_at(z);
  waiting_[brick].push_back(who);
  return brick;
}

std::optional<std::uint32_t> BrickWaits::most_wanted() const {
  const auto most = std::max_element(waiting_.begin(), waiting_.end(),
                                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (most == waiting_.end() || most->empty()) return std::nullopt;
  return static_cast<std::uint32_t>(most - waiting_.begin());
}

std::vector<std::uint32_t> BrickWaits::take(std::uint32_t brick) {
  std::vector<std::uint32_t> taken;
  taken.swap(waiting_[brick]);
  return taken;
}

Error stuck_in_brick(std::string_view device_id) {
  return Error(ErrorKind::device,
               fmt::format("device {}: streamlines do not leave their brick of the field; use {} cpu", device_id,
                           argument_name("device")));
}

std::array<BrickRecords, 2> ResidentBrick::records_of(const FieldBrick& brick) {
  return {{{0, 0, 1}, {1, brick.first_record, brick.end_record - brick.first_record}}};
}

}  // namespace cingulum
