// What a page drives is what the tracker of WebGPU does: the same bits as the CPU's, and a field that no adapter of the
// kind can hold is refused with the limit that it breaks.
#include "tract/run/driven_tracking.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "support/analytic_field.hpp"
#include "support/each_device.hpp"
#include "support/random_plan.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {
namespace {

using numerics::Vec3;
using numerics::Vec3d;

Field bending_amplitudes(std::int64_t edge) {
  return test::amplitude_field(test::grid(edge, edge, edge, {1.5, 1.25, 2}), named_sphere("repulsion362").value(),
                               [](Vec3d p, Vec3d v) {
                                 return std::pow(numerics::dot(v, test::unit({1, 0.1 * p.x, 0.05 * p.y})), 8) + 0.02;
                               });
}

class DrivenByADevice : public testing::EachDevice {
 protected:
  // Drives the tracking as a page does, on our own device.
  [[nodiscard]] Status drive(DrivenTracking& driven, const Field& field, SeedRange range, const Seeds& seeds,
                             StreamlineBatch& batch) {
    CGL_TRY_ASSIGN(const auto queue, device().create_queue());
    KernelSource source;
    source.name = "track";
    source.language = KernelLanguage::wgsl;
    source.text = driven.text();
    source.parameters.push_back({"tables", ParameterKind::buffer_in});
    std::vector<std::unique_ptr<Buffer>> buffers;
    const DrivenLayout& layout = driven.layout();
    const std::vector<std::uint32_t> tables = driven.tables();
    const auto add = [&](std::span<const std::byte> bytes, std::uint64_t size) -> Status {
      CGL_TRY_ASSIGN(buffers.emplace_back(), device().allocate(size));
      if (!bytes.empty()) CGL_TRY(queue->upload(*buffers.back(), 0, bytes));
      return {};
    };
    CGL_TRY(add(std::as_bytes(std::span(tables)), tables.size() * sizeof(std::uint32_t)));
    for (std::uint32_t piece = 0; piece < layout.pieces; ++piece) {
      const auto bytes = field.stored_bytes().subspan(std::size_t{piece} * layout.piece_bytes);
      CGL_TRY(add(bytes.first(std::min<std::size_t>(bytes.size(), layout.piece_bytes)), layout.piece_bytes));
      source.parameters.push_back({fmt::format("field_{}", piece), ParameterKind::buffer_in});
    }
    CGL_TRY_ASSIGN(const std::span<const std::byte> words, driven.begin(range, seeds));
    CGL_TRY(add({}, layout.work_bytes));
    Buffer& work = *buffers.back();
    CGL_TRY(queue->fill(work, 0, layout.seeds_at, std::byte{0}));
    CGL_TRY(queue->upload(work, layout.seeds_at, words));
    CGL_TRY(add({}, layout.pages_bytes));
    Buffer& pages = *buffers.back();
    source.parameters.push_back({"work", ParameterKind::buffer_inout});
    source.parameters.push_back({"pages", ParameterKind::buffer_inout});
    const std::size_t numbers = driven.launch_words().size();
    for (std::size_t i = 0; i < numbers; ++i) {
      source.parameters.push_back({fmt::format("number_{}", i), ParameterKind::u32});
    }
    CGL_TRY_ASSIGN(const auto kernel, device().compile(source));
    while (!driven.finished()) {
      std::vector<KernelArgument> arguments;
      for (const auto& buffer : buffers) arguments.push_back(argument(*buffer));
      const std::vector<std::uint32_t> launch = driven.launch_words();
      EXPECT_EQ(launch.size() % 4, 0u);
      for (std::size_t i = 0; i < numbers; ++i) arguments.emplace_back(launch[i]);
      CGL_TRY(queue->fill(work, layout.dispatch_counters_at, layout.dispatch_counter_bytes, std::byte{0}));
      CGL_TRY(queue->launch(*kernel, {{driven.launch_workgroups(), 1, 1}, {32, 1, 1}, 0}, arguments));
      std::vector<std::uint32_t> counters(layout.counter_bytes / sizeof(std::uint32_t));
      CGL_TRY(download(*queue, std::span(counters), work));
      CGL_TRY(queue->synchronise());
      const std::uint32_t used = driven.after_dispatch(counters, 0.06);
      if (used == 0) continue;
      std::vector<std::byte> entries(std::size_t{used} * layout.entry_bytes),
          points(std::size_t{used} * layout.page_bytes);
      CGL_TRY(download(*queue, std::span(entries), pages));
      CGL_TRY(download(*queue, std::span(points), pages, layout.points_at));
      CGL_TRY(queue->fill(work, layout.pages_counter_at, sizeof(std::uint32_t), std::byte{0}));
      CGL_TRY(queue->synchronise());
      driven.take_pages(entries, points);
    }
    return driven.assemble(batch);
  }
};
CGL_FOR_DEVICES(DrivenByADevice, "webgpu");

TEST_P(DrivenByADevice, has_the_cpus_bits_in_one_binding_and_in_several) {
  const Field field = bending_amplitudes(9);
  std::vector<Vec3> positions;
  for (int i = 0; i < 40; ++i) {
    const auto t = static_cast<float>(i);
    positions.push_back({-0.6f + 0.24f * t, 8.9f - 0.2f * t, 4.0f + 0.05f * t});
  }
  const std::unique_ptr<Seeds> seeds = listed_seeds(positions).value();
  const std::unique_ptr<ThreadPool> pool = ThreadPool::create(1).value();
  const std::uint64_t record_bytes = std::uint64_t{field.stride} * sizeof(float);
  for (const Getter getter : {Getter::prob, Getter::det}) {
    const TrackingPlan plan =
        make_tracking_plan({.getter = getter, .max_length_mm = 20, .random_key = 77}, field.geometry).value();
    const std::unique_ptr<Tracker> cpu = make_cpu_tracker(*pool);
    ASSERT_OK(cpu->prepare(plan, field, *seeds, nullptr));
    StreamlineBatch expected;
    ASSERT_OK(cpu->track({5, 30}, expected));
    EXPECT_GT(expected.steps, 100u);
    for (const std::uint64_t records : {field.record_count(), std::size_t{200}}) {
      ASSERT_OK_AND_ASSIGN(
          const auto driven,
          make_driven_tracking(
              field, {.software = true, .largest_binding_bytes = records * record_bytes, .storage_bindings = 10}));
      EXPECT_EQ(driven->layout().pieces, (field.record_count() + records - 1) / records);
      ASSERT_OK(driven->use(plan));
      StreamlineBatch batch;
      ASSERT_OK(drive(*driven, field, {5, 30}, *seeds, batch));
      EXPECT_TRUE(test::same_batch(batch, expected));
    }
  }
}

TEST(DrivenTracking, a_field_beyond_a_limit_is_refused_by_its_name) {
  const Field field = bending_amplitudes(5);
  const auto refusal = [&](const DrivenAdapter& adapter) {
    const auto made = make_driven_tracking(field, adapter);
    return made ? std::string() : testing::message_of(made);
  };
  const std::uint64_t record_bytes = std::uint64_t{field.stride} * sizeof(float);
  EXPECT_EQ(refusal({}), "");
  // 126 records in five bindings: 26 each suffice, 25 do not.
  ASSERT_EQ(field.record_count(), 126u);
  EXPECT_EQ(refusal({.largest_binding_bytes = 26 * record_bytes}), "");
  EXPECT_NE(refusal({.largest_binding_bytes = 25 * record_bytes}).find("maxStorageBufferBindingSize"),
            std::string::npos);
  EXPECT_NE(refusal({.largest_binding_bytes = 26 * record_bytes, .storage_bindings = 7})
                .find("maxStorageBuffersPerShaderStage"),
            std::string::npos);
  EXPECT_NE(refusal({.storage_bindings = 3}).find("maxStorageBuffersPerShaderStage"), std::string::npos);
  EXPECT_NE(refusal({.workgroup_bytes = 512}).find("maxComputeWorkgroupStorageSize"), std::string::npos);
}

TEST(DrivenTracking, a_range_has_at_most_the_seeds_that_there_is_memory_for) {
  const Field field = bending_amplitudes(3);
  ASSERT_OK_AND_ASSIGN(const auto driven, make_driven_tracking(field, {}));
  const std::unique_ptr<Seeds> seeds =
      listed_seeds(std::vector<Vec3>(DrivenTracking::most_seeds_of_range + 1, Vec3{1, 1, 1})).value();
  EXPECT_TRUE(driven->begin({0, DrivenTracking::most_seeds_of_range}, *seeds));
  EXPECT_FALSE(driven->begin({0, DrivenTracking::most_seeds_of_range + 1}, *seeds));
  EXPECT_FALSE(driven->begin({2, DrivenTracking::most_seeds_of_range}, *seeds));
}

}  // namespace
}  // namespace cingulum
