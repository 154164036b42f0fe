// A field cut into bricks for a device that cannot hold it: whole planes along z, of which as many lie side by side as
// fit. Records follow the voxels, so a brick is a run of records. Each brick brings as many planes beyond its own as a
// streamline that stands in it can read. Used by the paged tracker.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tract/field/field.hpp"
#include "tract/kernel/plan.hpp"

namespace cingulum {

struct FieldBrick {
  std::uint32_t first_plane = 0;  // streamlines whose nearest plane is one of [first, end) are tracked in it
  std::uint32_t end_plane = 0;
  std::uint32_t first_loaded = 0;  // planes that are there
  std::uint32_t end_loaded = 0;
  std::uint32_t first_record = 0;  // records that are there, and the first of the field, which is all zero
  std::uint32_t end_record = 0;
};

// How many planes beyond the one in which a streamline stands its next move can read.
[[nodiscard]] std::uint32_t planes_in_reach(const TrackingPlan& plan);

class FieldBricks {
 public:
  // Cuts the field into as few bricks as have records of at most `most_bytes` each; none where a single plane with
  // those in reach has more.
  [[nodiscard]] static FieldBricks cut(const Field& field, std::uint32_t reach, std::uint64_t most_bytes);

  [[nodiscard]] bool empty() const { return bricks_.empty(); }
  [[nodiscard]] std::size_t size() const { return bricks_.size(); }
  [[nodiscard]] const FieldBrick& operator[](std::size_t i) const { return bricks_[i]; }
  // Bytes of the records of the largest, the zero record and the padding included.
  [[nodiscard]] std::uint64_t largest_bytes() const { return largest_bytes_; }

  // The brick in which a streamline at z is tracked.
  [[nodiscard]] std::uint32_t brick_at(float z) const;
  // The bounds of z in a brick: low included, high not. Beyond the image they are infinite.
  [[nodiscard]] float low(std::size_t i) const;
  [[nodiscard]] float high(std::size_t i) const;
  // The number of each voxel's record in a brick, 0 for voxels that are not there.
  [[nodiscard]] std::vector<std::uint32_t> record_of_voxel(const Field& field, std::size_t i) const;

 private:
  std::vector<FieldBrick> bricks_;
  std::uint64_t largest_bytes_ = 0;
};

}  // namespace cingulum
