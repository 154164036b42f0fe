#include "zarr/direct/box_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "support/each_device.hpp"
#include "zarr/box_move.hpp"

namespace cingulum::zarr {
namespace box_kernel_tests {

using cingulum::testing::EachDevice;

constexpr std::uint64_t table_alignment = 256;

// A batch of boxes of random shapes, orders, strides, types and places that do not overlap.
struct RandomBatch {
  std::vector<std::byte> chunks;
  std::vector<std::byte> region;  // before the move
  std::vector<BoxTask> tasks;
  std::vector<std::byte> fill;
};

struct Kind {
  std::uint32_t element_bytes;
  std::uint32_t swapped_bytes;
};
constexpr Kind kinds[] = {{1, 1}, {2, 1}, {2, 2}, {4, 1}, {4, 4}, {8, 1}, {8, 8}, {8, 4}, {16, 1}, {16, 8}};

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : generator_(seed) {}
  std::uint64_t below(std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(generator_); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  void bytes(std::span<std::byte> to) {
    for (std::byte& b : to) b = static_cast<std::byte>(below(256));
  }

 private:
  std::mt19937 generator_;
};

RandomBatch random_batch(std::uint32_t seed, std::size_t boxes) {
  Draw draw(seed);
  RandomBatch batch;
  const Kind kind = kinds[draw.below(std::size(kinds))];
  const std::uint64_t element = kind.element_bytes;
  batch.fill.resize(element);
  draw.bytes(batch.fill);
  std::uint64_t chunk_end = 0;
  std::uint64_t place_end = draw.below(3) * 4 + (draw.one_in(3) ? draw.below(16) : 0);
  for (std::size_t i = 0; i < boxes; ++i) {
    BoxTask task;
    BoxMove& move = task.move;
    move.element_bytes = kind.element_bytes;
    move.swapped_bytes = kind.swapped_bytes;
    move.shuffled = draw.one_in(4) ? 1 : 0;
    move.rank = static_cast<std::uint32_t>(draw.below(draw.one_in(4) ? max_move_rank + 1 : 4));
    task.is_fill = draw.one_in(5);
    // The chunk's own shape, a box in it, and an order of dimensions on each side.
    std::array<std::uint64_t, max_move_rank> whole{};
    for (std::uint32_t d = 0; d < move.rank; ++d) {
      const std::uint64_t longest = move.rank > 4 ? 3 : d + 1 == move.rank ? 150 : 17;
      move.extent[d] = 1 + draw.below(longest);
      whole[d] = move.extent[d] + (draw.one_in(2) ? draw.below(4) * (draw.one_in(2) ? 4 : 1) : 0);
    }
    std::vector<std::uint32_t> order(move.rank);
    std::iota(order.begin(), order.end(), 0u);
    if (draw.one_in(3)) std::shuffle(order.begin(), order.end(), std::mt19937(seed + 7));
    std::uint64_t elements = 1;
    for (std::uint32_t d = move.rank; d > 0; --d) {
      const std::uint32_t axis = order[d - 1];
      move.chunk_stride[axis] = elements;
      elements *= whole[axis];
    }
    for (std::uint32_t d = 0; d < move.rank; ++d) {
      move.chunk_offset += draw.below(whole[d] - move.extent[d] + 1) * move.chunk_stride[d];
    }
    move.chunk_elements = elements;
    task.chunk_at = (chunk_end + 15) / 16 * 16 + (draw.one_in(4) ? draw.below(16) : 0);
    chunk_end = task.chunk_at + elements * element;
    // The place: rows of the region, with gaps, some of them backwards.
    std::uint64_t place_bytes = element;
    const std::uint64_t gap = draw.one_in(2) ? 0 : draw.below(8) * (draw.one_in(2) ? element : 1);
    for (std::uint32_t d = move.rank; d > 0; --d) {
      const bool backwards = draw.one_in(8);
      move.place_stride[d - 1] = static_cast<std::int64_t>(place_bytes);
      if (backwards) {
        move.place_offset += place_bytes * (move.extent[d - 1] - 1);
        move.place_stride[d - 1] = -move.place_stride[d - 1];
      }
      place_bytes = place_bytes * move.extent[d - 1] + gap;
    }
    move.place_offset += place_end;
    place_end += place_bytes;
    if (draw.one_in(2)) place_end = (place_end + 15) / 16 * 16;
    batch.tasks.push_back(task);
  }
  batch.chunks.resize(chunk_end + 16);
  batch.region.resize(place_end + draw.below(7));
  draw.bytes(batch.chunks);
  draw.bytes(batch.region);
  return batch;
}

std::vector<std::byte> scattered_by_host(const RandomBatch& batch) {
  std::vector<std::byte> region = batch.region;
  for (const BoxTask& task : batch.tasks) {
    if (task.is_fill) {
      fill_box(task.move, batch.fill, region.data());
    } else {
      scatter(task.move, batch.chunks.data() + task.chunk_at, region.data());
    }
  }
  return region;
}

std::vector<std::byte> gathered_by_host(const RandomBatch& batch) {
  std::vector<std::byte> chunks = batch.chunks;
  for (const BoxTask& task : batch.tasks) gather(task.move, batch.region.data(), chunks.data() + task.chunk_at);
  return chunks;
}

std::size_t first_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

class BoxKernelTest : public EachDevice {
 protected:
  // The batch through the device; `binding_bytes` plays a device that binds no more than that at once.
  void run(const RandomBatch& batch, BoxDirection direction, std::uint64_t binding_bytes, const std::string& what) {
    ASSERT_OK_AND_ASSIGN(const auto kernels, BoxKernels::create(device()));
    ASSERT_OK_AND_ASSIGN(const auto place, device().allocate(std::max<std::size_t>(batch.region.size(), 1)));
    BoxLimits limits = kernels->limits_of(*place);
    if (binding_bytes != 0) limits.binding_bytes = binding_bytes;
    BoxPlan plan(limits, batch.fill);
    for (const BoxTask& task : batch.tasks) plan.add(task);
    const std::uint64_t table_at = (batch.chunks.size() + table_alignment - 1) / table_alignment * table_alignment;
    const std::uint64_t table_bytes = plan.records().size_bytes();
    ASSERT_OK_AND_ASSIGN(const auto staging, device().allocate(table_at + table_bytes));
    ASSERT_OK_AND_ASSIGN(const auto table, device().allocate(table_bytes));
    ASSERT_OK(queue().upload(*staging, 0, batch.chunks));
    ASSERT_OK(queue().upload(*staging, table_at, std::as_bytes(plan.records())));
    ASSERT_OK(queue().upload(*table, 0, std::as_bytes(plan.records())));
    ASSERT_OK(queue().upload(*place, 0, batch.region));
    const bool scatters = direction == BoxDirection::scatter;
    if (scatters) {
      ASSERT_OK(kernels->scatter(queue(), {&plan, staging.get(), table_at}, *staging, *place));
    } else {
      ASSERT_OK(kernels->gather(queue(), {&plan, table.get(), 0}, *staging, *place));
    }
    std::vector<std::byte> result(scatters ? batch.region.size() : batch.chunks.size());
    ASSERT_OK(queue().download(result, scatters ? *place : *staging, 0));
    ASSERT_OK(queue().synchronise());
    const std::vector<std::byte> expected = scatters ? scattered_by_host(batch) : gathered_by_host(batch);
    ASSERT_EQ(result.size(), expected.size());
    const std::size_t differs = first_difference(result, expected);
    EXPECT_EQ(differs, result.size()) << what << ": byte " << differs << " of " << result.size();
  }
};

TEST_P(BoxKernelTest, random_boxes_are_scattered_as_the_host_does_it) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    run(random_batch(seed, 1 + seed % 12), BoxDirection::scatter, 0, fmt::format("seed {}", seed));
  }
}

TEST_P(BoxKernelTest, random_boxes_are_gathered_as_the_host_does_it) {
  for (std::uint32_t seed = 101; seed <= 140; ++seed) {
    RandomBatch batch = random_batch(seed, 1 + seed % 12);
    for (BoxTask& task : batch.tasks) task.is_fill = false;
    run(batch, BoxDirection::gather, 0, fmt::format("seed {}", seed));
  }
}

TEST_P(BoxKernelTest, a_region_larger_than_a_binding_is_moved_in_windows) {
  for (std::uint32_t seed = 201; seed <= 215; ++seed) {
    const RandomBatch batch = random_batch(seed, 20);
    run(batch, BoxDirection::scatter, 1024, fmt::format("scatter, seed {}", seed));
    RandomBatch plain = batch;
    for (BoxTask& task : plain.tasks) task.is_fill = false;
    run(plain, BoxDirection::gather, 1024, fmt::format("gather, seed {}", seed));
  }
}

TEST_P(BoxKernelTest, a_box_of_many_blocks_is_moved_whole) {
  RandomBatch batch;
  batch.fill.resize(4);
  BoxTask task;
  task.move.rank = 2;
  task.move.element_bytes = 4;
  task.move.extent = {301, 1000};
  task.move.chunk_stride = {1000, 1};
  task.move.place_stride = {4000, 4};
  batch.tasks.push_back(task);
  batch.chunks.resize(301 * 4000);
  batch.region.resize(301 * 4000);
  Draw(5).bytes(batch.chunks);
  run(batch, BoxDirection::scatter, 0, "rows of 4000 bytes");
  // 65 535 is the widest grid of WebGPU: many boxes of one element each need more than one row of it.
  RandomBatch many;
  many.fill.resize(1);
  for (std::uint64_t i = 0; i < 70000; ++i) {
    BoxTask one;
    one.move.element_bytes = 1;
    one.move.place_offset = 2 * i;
    one.chunk_at = i;
    many.tasks.push_back(one);
  }
  many.chunks.resize(70000);
  many.region.resize(140000);
  Draw(6).bytes(many.chunks);
  run(many, BoxDirection::scatter, 0, "boxes of one byte");
}

CGL_FOR_EACH_DEVICE(BoxKernelTest);

BoxRecord record_of(const BoxTask& task, const BoxLimits& limits) {
  const std::byte zero[16] = {};
  BoxPlan plan(limits, std::span(zero).first(task.move.element_bytes));
  plan.add(task);
  return plan.records().front();
}

TEST(BoxPlanTest, rows_are_moved_by_the_widest_unit_that_both_sides_allow) {
  BoxTask task;
  task.move.rank = 2;
  task.move.element_bytes = 2;
  task.move.extent = {3, 32};
  task.move.chunk_stride = {32, 1};
  task.move.place_stride = {640, 2};
  const BoxLimits limits{4096, 0, 0};
  EXPECT_EQ(record_of(task, limits).unit_bytes, 16u);
  EXPECT_EQ(record_of(task, limits).items, 12u);
  BoxTask moved = task;
  moved.chunk_at = 8;
  EXPECT_EQ(record_of(moved, limits).unit_bytes, 8u);
  moved.move.place_offset = 2;
  EXPECT_EQ(record_of(moved, limits).unit_bytes, 0u);
  EXPECT_EQ(record_of(task, {4096, 0, 4}).unit_bytes, 4u) << "a buffer that begins at an odd address";
  BoxTask turned = task;
  turned.move.place_stride = {2, 640};
  EXPECT_EQ(record_of(turned, {64000, 0, 0}).unit_bytes, 0u) << "columns of two bytes";
}

TEST(BoxPlanTest, a_window_never_spans_more_than_is_bound) {
  BoxTask task;
  task.move.rank = 3;
  task.move.element_bytes = 4;
  task.move.extent = {40, 50, 60};
  task.move.chunk_stride = {3000, 60, 1};
  task.move.place_stride = {100000, 1000, 4};
  const BoxLimits limits{4000000, 8192, 0};
  const std::byte zero[4] = {};
  BoxPlan plan(limits, zero);
  plan.add(task);
  std::uint64_t elements = 0;
  std::uint32_t records = 0;
  for (const BoxLaunch& launch : plan.launches()) {
    EXPECT_LE(launch.place_bytes, limits.binding_bytes);
    EXPECT_EQ(launch.place_begin % 256, 0u);
    EXPECT_EQ(launch.first_record, records);
    records += launch.records;
  }
  for (const BoxRecord& record : plan.records()) elements += record.items * (record.unit_bytes / 4);
  EXPECT_EQ(records, plan.records().size());
  EXPECT_EQ(elements, 120000u);
}

TEST(BoxPlanTest, a_box_without_elements_adds_nothing) {
  BoxTask task;
  task.move.rank = 1;
  task.move.extent = {0};
  BoxPlan plan({16, 0, 0}, {});
  plan.add(task);
  EXPECT_TRUE(plan.records().empty());
  EXPECT_TRUE(plan.launches().empty());
}

}  // namespace box_kernel_tests
}  // namespace cingulum::zarr
