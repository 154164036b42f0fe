#include "tract/field/field_bricks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tract/plan/tracking_plan.hpp"

namespace cingulum {
namespace {

// The records of some planes, [first, end); an empty run where they have none.
struct RecordRun {
  std::uint32_t first = 0;
  std::uint32_t end = 0;

  [[nodiscard]] RecordRun with(RecordRun other) const {
    if (other.first == other.end) return *this;
    if (first == end) return other;
    return {std::min(first, other.first), std::max(end, other.end)};
  }
};

std::uint64_t bytes_of(const Field& field, RecordRun run) {
  const std::uint64_t numbers = std::uint64_t{1 + run.end - run.first} * field.stride + Field::record_padding;
  return numbers * field.number_bytes();
}

}  // namespace

std::uint32_t planes_in_reach(const TrackingPlan& plan) {
  double voxels = 0;
  const auto getter = static_cast<Getter>(plan.getter);
  if (getter == Getter::tensor && plan.rk4 != 0u) voxels = std::abs(static_cast<double>(plan.step_in_voxels[2]));
  if (getter == Getter::ptt) {
    voxels = (static_cast<double>(plan.ptt_probe_length_mm) + static_cast<double>(plan.ptt_probe_radius_mm)) *
             std::abs(static_cast<double>(plan.voxels_per_mm[2]));
  }
  // One for the plane on the other side, one for what rounding does.
  return 2u + static_cast<std::uint32_t>(std::ceil(voxels));
}

FieldBricks FieldBricks::cut(const Field& field, std::uint32_t reach, std::uint64_t most_bytes) {
  FieldBricks result;
  const auto planes = static_cast<std::uint32_t>(field.geometry.size[2]);
  const auto plane_voxels = static_cast<std::size_t>(field.geometry.size[0] * field.geometry.size[1]);
  std::vector<RecordRun> run_of_plane(planes);
  for (std::uint32_t plane = 0; plane < planes; ++plane) {
    for (std::size_t i = 0; i < plane_voxels; ++i) {
      const std::uint32_t record = field.record_of_voxel[plane * plane_voxels + i];
      if (record != 0) run_of_plane[plane] = run_of_plane[plane].with({record, record + 1});
    }
  }
  const auto loaded = [&](std::uint32_t first, std::uint32_t end) {
    FieldBrick brick{first, end, first > reach ? first - reach : 0, std::min(planes, end + reach)};
    RecordRun run;
    for (std::uint32_t plane = brick.first_loaded; plane < brick.end_loaded; ++plane) {
      run = run.with(run_of_plane[plane]);
    }
    brick.first_record = run.first;
    brick.end_record = run.end;
    return std::pair{brick, bytes_of(field, run)};
  };
  for (std::uint32_t first = 0; first < planes;) {
    auto [brick, bytes] = loaded(first, first + 1);
    if (bytes > most_bytes) return {};
    while (brick.end_plane < planes) {
      const auto [larger, larger_bytes] = loaded(first, brick.end_plane + 1);
      if (larger_bytes > most_bytes) break;
      brick = larger;
      bytes = larger_bytes;
    }
    result.bricks_.push_back(brick);
    result.largest_bytes_ = std::max(result.largest_bytes_, bytes);
    first = brick.end_plane;
  }
  return result;
}

std::uint32_t FieldBricks::brick_at(float z) const {
  std::uint32_t i = 0;
  while (i + 1 < bricks_.size() && !(z < high(i))) ++i;
  return i;
}

float FieldBricks::low(std::size_t i) const {
  return i == 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(bricks_[i].first_plane) - 0.5f;
}

float FieldBricks::high(std::size_t i) const {
  return i + 1 == bricks_.size() ? std::numeric_limits<float>::infinity() : low(i + 1);
}

std::vector<std::uint32_t> FieldBricks::record_of_voxel(const Field& field, std::size_t i) const {
  const FieldBrick& brick = bricks_[i];
  std::vector<std::uint32_t> numbers(field.record_of_voxel.size());
  const auto plane_voxels = static_cast<std::size_t>(field.geometry.size[0] * field.geometry.size[1]);
  for (std::size_t voxel = brick.first_loaded * plane_voxels; voxel < brick.end_loaded * plane_voxels; ++voxel) {
    const std::uint32_t record = field.record_of_voxel[voxel];
    if (record != 0) numbers[voxel] = record - brick.first_record + 1;
  }
  return numbers;
}

}  // namespace cingulum
