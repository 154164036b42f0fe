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

template <class Number>
Vec3d position(const Number* points, std::size_t point) {
  return {static_cast<double>(points[point * 3]), static_cast<double>(points[point * 3 + 1]),
          static_cast<double>(points[point * 3 + 2])};
}

// The distance of a point from the segment that begins at a, squared.
double distance_squared(Vec3d from_a, Vec3d along, double length_squared) {
  double share = length_squared > 0 ? dot(from_a, along) / length_squared : 0.0;
  if (share < 0) share = 0;
  if (share > 1) share = 1;
  const Vec3d apart = from_a - along * share;
  return dot(apart, apart);
}

// At least one point lies between the two. Comparisons are written so that NaN fails them.
template <class Number>
bool may_replace(const Number* points, std::size_t first, std::size_t last, const LinearisePlan& plan) {
  const Vec3d a = position(points, first);
  const Vec3d along = position(points, last) - a;
  const double length_squared = dot(along, along);
  if (!(length_squared <= plan.max_segment_mm * plan.max_segment_mm)) return false;
  const double limit = plan.tolerance_mm * plan.tolerance_mm;
  // From the middle on, where a bend is seen first.
  const std::size_t middle = first + (last - first) / 2;
  for (std::size_t i = middle; i < last; ++i) {
    if (!(distance_squared(position(points, i) - a, along, length_squared) <= limit)) return false;
  }
  for (std::size_t i = middle; i-- > first + 1;) {
    if (!(distance_squared(position(points, i) - a, along, length_squared) <= limit)) return false;
  }
  return true;
}

// Which of the points of one streamline are kept; their number.
template <class Number>
std::size_t choose_points(const Number* points, std::size_t count, const LinearisePlan& plan, std::uint32_t* kept) {
  std::size_t chosen = 0;
  for (std::size_t anchor = 0; anchor < count;) {
    kept[chosen++] = static_cast<std::uint32_t>(anchor);
    if (anchor + 1 == count) break;
    std::size_t last = anchor + 1;
    while (last + 1 < count && last - anchor < longest_run && may_replace(points, anchor, last + 1, plan)) ++last;
    anchor = last;
  }
  return chosen;
}

}  // namespace

Status Lineariser::apply(const TractogramBatch& batch, const TractogramLayout& layout, TractogramBatch& result) {
  if (!(plan_.tolerance_mm >= 0) || !(plan_.max_segment_mm > 0)) {
    return fail_argument("linearise", "a tolerance of {} mm or segments of {} mm are not possible", plan_.tolerance_mm,
                         plan_.max_segment_mm);
  }
  CGL_TRY(check_batch(layout, batch));
  const std::size_t count = batch.streamline_count();
  const auto share = [&](const auto& body) {
    constexpr std::size_t streamlines_at_once = 64;
    const auto some = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const auto first = static_cast<std::size_t>(batch.offsets[i]);
        body(i, first, static_cast<std::size_t>(batch.offsets[i + 1]) - first);
      }
    };
    if (pool_ == nullptr) return some(0, count);
    pool_->parallel_for(count, streamlines_at_once, some);
  };
  const bool doubles = !batch.positions64.empty();

  kept_.resize(batch.point_count());
  result.offsets.assign(count + 1, 0);
  share([&](std::size_t i, std::size_t first, std::size_t points) {
    std::uint32_t* const kept = kept_.data() + first;
    result.offsets[i + 1] = doubles ? choose_points(batch.positions64.data() + 3 * first, points, plan_, kept)
                                    : choose_points(batch.positions.data() + 3 * first, points, plan_, kept);
  });
  for (std::size_t i = 0; i < count; ++i) result.offsets[i + 1] += result.offsets[i];

  const std::size_t left = result.point_count();
  result.positions.resize(doubles ? 0 : 3 * left);
  result.positions64.resize(doubles ? 3 * left : 0);
  result.streamline_data = batch.streamline_data;
  result.point_data.resize(batch.point_data.size());
  std::vector<std::size_t> row_bytes;
  for (std::size_t f = 0; f < batch.point_data.size(); ++f) {
    const DataField& field = layout.point_fields[f];
    row_bytes.push_back(field.type.bytes() * static_cast<std::size_t>(field.columns));
    result.point_data[f].resize(left * row_bytes[f]);
  }
  const auto copy_row = [](void* to, std::size_t to_row, const void* from, std::size_t from_row, std::size_t bytes) {
    std::memcpy(static_cast<std::byte*>(to) + to_row * bytes, static_cast<const std::byte*>(from) + from_row * bytes,
                bytes);
  };
  share([&](std::size_t i, std::size_t first, std::size_t) {
    const std::uint32_t* kept = kept_.data() + first;
    for (auto to = static_cast<std::size_t>(result.offsets[i]); to < result.offsets[i + 1]; ++to, ++kept) {
      const std::size_t from = first + *kept;
      if (doubles) {
        copy_row(result.positions64.data(), to, batch.positions64.data(), from, 3 * sizeof(double));
      } else {
        copy_row(result.positions.data(), to, batch.positions.data(), from, 3 * sizeof(float));
      }
      for (std::size_t f = 0; f < row_bytes.size(); ++f) {
        copy_row(result.point_data[f].data(), to, batch.point_data[f].data(), from, row_bytes[f]);
      }
    }
  });
  return {};
}

Result<TractogramBatch> linearise(const TractogramBatch& batch, const TractogramLayout& layout,
                                  const LinearisePlan& plan) {
  TractogramBatch result;
  CGL_TRY(Lineariser(plan, nullptr).apply(batch, layout, result));
  return result;
}

}  // namespace cingulum
