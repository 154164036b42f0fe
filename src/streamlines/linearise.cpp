#include "streamlines/linearise.hpp"

#include <cmath>
#include <cstring>

#include "formats/tractogram_batch.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

// Bounds the work per point where many points lie on one spot.
constexpr std::size_t longest_run = 1024;

Vec3d position(const TractogramBatch& batch, std::size_t point) {
  if (!batch.positions64.empty()) {
    return {batch.positions64[point * 3], batch.positions64[point * 3 + 1], batch.positions64[point * 3 + 2]};
  }
  return {static_cast<double>(batch.positions[point * 3]), static_cast<double>(batch.positions[point * 3 + 1]),
          static_cast<double>(batch.positions[point * 3 + 2])};
}

// Squared, of a point from the segment a b.
double distance_squared(Vec3d point, Vec3d a, Vec3d b) {
  const Vec3d along = b - a;
  const Vec3d from_a = point - a;
  const double length_squared = dot(along, along);
  double share = length_squared > 0 ? dot(from_a, along) / length_squared : 0.0;
  if (share < 0) share = 0;
  if (share > 1) share = 1;
  const Vec3d apart = from_a - along * share;
  return dot(apart, apart);
}

// Comparisons are written so that NaN fails them.
bool may_replace(const TractogramBatch& batch, std::size_t first, std::size_t last, const LinearisePlan& plan) {
  const Vec3d a = position(batch, first);
  const Vec3d b = position(batch, last);
  const Vec3d along = b - a;
  if (!(dot(along, along) <= plan.max_segment_mm * plan.max_segment_mm)) return false;
  const double limit = plan.tolerance_mm * plan.tolerance_mm;
  for (std::size_t i = first + 1; i < last; ++i) {
    if (!(distance_squared(position(batch, i), a, b) <= limit)) return false;
  }
  return true;
}

}  // namespace

Result<TractogramBatch> linearise(const TractogramBatch& batch, const TractogramLayout& layout,
                                  const LinearisePlan& plan) {
  if (!(plan.tolerance_mm >= 0) || !(plan.max_segment_mm > 0)) {
    return fail_argument("linearise", "a tolerance of {} mm or segments of {} mm are not possible", plan.tolerance_mm,
                         plan.max_segment_mm);
  }
  CGL_TRY(check_batch(layout, batch));
  TractogramBatch result;
  result.streamline_data = batch.streamline_data;
  result.point_data.resize(batch.point_data.size());
  const auto keep = [&](std::size_t point) {
    for (std::size_t i = point * 3; i < point * 3 + 3; ++i) {
      if (batch.positions64.empty()) {
        result.positions.push_back(batch.positions[i]);
      } else {
        result.positions64.push_back(batch.positions64[i]);
      }
    }
    for (std::size_t f = 0; f < layout.point_fields.size(); ++f) {
      const std::size_t bytes =
          layout.point_fields[f].type.bytes() * static_cast<std::size_t>(layout.point_fields[f].columns);
      const std::byte* const row = batch.point_data[f].data() + point * bytes;
      result.point_data[f].insert(result.point_data[f].end(), row, row + bytes);
    }
  };
  for (std::size_t i = 0; i < batch.streamline_count(); ++i) {
    const auto begin = static_cast<std::size_t>(batch.offsets[i]);
    const auto end = static_cast<std::size_t>(batch.offsets[i + 1]);
    std::size_t kept = 0;
    for (std::size_t anchor = begin; anchor < end;) {
      keep(anchor);
      ++kept;
      if (anchor + 1 == end) break;
      std::size_t last = anchor + 1;
      while (last + 1 < end && last - anchor < longest_run && may_replace(batch, anchor, last + 1, plan)) ++last;
      anchor = last;
    }
    result.offsets.push_back(result.offsets.back() + kept);
  }
  return result;
}

}  // namespace cingulum
