// What kernels read, built once per run on the host from plan and field: the sphere in slots with its neighbours, the
// matrices of series and bootstrap in rows of lanes, the disc of ptt. The CPU tracker points its TrackingInput here;
// the trackers of devices upload the same arrays.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/result.hpp"
#include "tract/field/field.hpp"
#include "tract/kernel/views.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {

struct KernelTables {
  std::uint32_t rows = 0;  // of slots
  std::uint32_t degree = 0;
  std::vector<std::uint32_t> slot_of_vertex;
  std::vector<std::uint32_t> occupied;
  std::vector<float> x, y, z;
  std::vector<std::uint32_t> neighbours;
  std::vector<float> harmonics;
  std::vector<std::uint32_t> record_index;
  std::vector<float> recurrence;
  std::uint32_t boot_rows = 0;
  std::vector<float> boot_basis, boot_fit, residual_scale;
  std::vector<std::uint32_t> level;
  float inverse_scale_sum = 0;
  std::vector<float> disc_k1, disc_k2;
  std::uint32_t nearest_capacity = 0;
  std::vector<std::uint32_t> nearest;
};

// Fails where plan and field do not fit each other.
[[nodiscard]] Status check_plan_and_field(const TrackingPlan& plan, const Field& field);
[[nodiscard]] Result<KernelTables> make_kernel_tables(const TrackingPlan& plan, const Field& field);

// Views of tables and field, which must outlive them.
[[nodiscard]] TrackingInput make_tracking_input(const TrackingPlan& plan, const Field& field,
                                                const KernelTables& tables);

// Copies of the tables that the CPU reads in whole registers, on cache lines; points the input's views at them.
class AlignedTables {
 public:
  AlignedTables() = default;
  AlignedTables(const KernelTables& tables, TrackingInput& input);

 private:
  BulkVector<float> floats_;
};

// Memory for one Slab.
class SlabMemory {
 public:
  explicit SlabMemory(const TrackingInput& input);
  [[nodiscard]] const Slab& slab() const { return slab_; }

 private:
  BulkVector<float> floats_;
  BulkVector<std::uint32_t> words_;
  Slab slab_{};
};

}  // namespace cingulum
