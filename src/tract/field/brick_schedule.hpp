// The order in which a tracker brings the bricks of a field (field_bricks.hpp) to its device: which brick is there, who
// waits for which, and which is next. Used by the paged tracker, whose halves wait, and by the WebGPU tracker, whose
// workgroups wait; each uploads records in its own way.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "numerics/vec3.hpp"
#include "tract/field/field_bricks.hpp"

namespace cingulum {

// Seeds of a brick follow each other, those of one in the order that they had.
void sort_by_brick(const FieldBricks& bricks, std::span<const numerics::Vec3> positions,
                   std::vector<std::uint32_t>& order);

// Who waits for which brick, in the order in which they came.
class BrickWaits {
 public:
  explicit BrickWaits(const FieldBricks& bricks) : bricks_(&bricks), waiting_(bricks.size()) {}

  // `who` stands at z; returns the brick that it waits for.
  std::uint32_t add(float z, std::uint32_t who);
  // The brick for which most wait, the first among equals; none when nobody waits.
  [[nodiscard]] std::optional<std::uint32_t> most_wanted() const;
  // Returns those who wait for a brick, and forgets them.
  [[nodiscard]] std::vector<std::uint32_t> take(std::uint32_t brick);

 private:
  const FieldBricks* bricks_;
  std::vector<std::vector<std::uint32_t>> waiting_;  // by brick
};

// A brick was tracked and nobody in it went on: a defect of kernel or driver.
[[nodiscard]] Error stuck_in_brick(std::string_view device_id);

// Records [first, first + count) of the field, to the place `at` of a brick, both counted in records.
struct BrickRecords {
  std::uint64_t at;
  std::uint64_t first;
  std::uint64_t count;
};

// The brick that is on a device.
class ResidentBrick {
 public:
  static constexpr std::uint32_t none = ~0u;

  [[nodiscard]] std::uint32_t which() const { return which_; }
  void forget() { which_ = none; }

  // Brings a brick unless it is there. `send_voxels(span of record numbers)` and `send_records(BrickRecords)` queue
  // copies; both return a Status.
  template <class SendVoxels, class SendRecords>
  [[nodiscard]] Status bring(const Field& field, const FieldBricks& bricks, std::uint32_t which, Queue& queue,
                             SendVoxels&& send_voxels, SendRecords&& send_records) {
    if (which_ == which) return {};
    which_ = none;
    const std::vector<std::uint32_t> record_of_voxel = bricks.record_of_voxel(field, which);
    CGL_TRY(send_voxels(std::span<const std::uint32_t>(record_of_voxel)));
    for (const BrickRecords& records : records_of(bricks[which])) CGL_TRY(send_records(records));
    // The queue may read `record_of_voxel` until then.
    CGL_TRY(queue.synchronise());
    which_ = which;
    return {};
  }

 private:
  // The field's first record, which is all zero, and then the brick's own.
  static std::array<BrickRecords, 2> records_of(const FieldBrick& brick);

  std::uint32_t which_ = none;
};

}  // namespace cingulum
