#include "tract/field/float16_field.hpp"

#include <gtest/gtest.h>

#include "numerics/float16.hpp"
#include "support/random_plan.hpp"

namespace cingulum {
namespace {

// Three voxels in a row with one amplitude each.
Field field_of(const std::vector<float>& values, float stop = 1.0f) {
  const ImageGeometry geometry = test::grid(3, 1, 1);
  Sphere sphere = named_sphere("repulsion724").value();
  std::vector<float> amplitudes(3 * sphere.size());
  for (std::size_t i = 0; i < values.size(); ++i) amplitudes[i] = values[i];
  const std::vector<float> stop_map(3, stop);
  const std::vector<std::uint32_t> voxels = {0, 1, 2};
  const std::size_t channels = sphere.size();
  return make_amplitude_field(geometry, stop_map, {voxels, channels, amplitudes}, std::move(sphere)).value();
}

TEST(Float16Field, numbers_are_rounded_to_nearest_even_once) {
  // 1 + 2^-11 is a tie and goes down to 1, 1 + 3 * 2^-11 a tie that goes up; the least subnormal stays.
  Field field = field_of({1.0f, 1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f, -0.333f, 0x1p-24f, 65504.0f}, 0.1f);
  const std::size_t numbers = field.records.size();
  const std::size_t bytes = field.stored_bytes().size();
  ASSERT_TRUE(store_as_float16(field));
  EXPECT_TRUE(field.is_float16());
  EXPECT_TRUE(field.records.empty());
  EXPECT_EQ(field.number_count(), numbers);
  EXPECT_EQ(field.stored_bytes().size(), bytes / 2);
  EXPECT_EQ(field.record_count(), 4u);
  const std::uint16_t* const first = field.float16_records.data() + field.stride;
  const std::vector<std::uint16_t> expected = {0x3c00, 0x3c00, 0x3c02, 0xb554, 0x0001, 0x7bff};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(first[i], expected[i]) << i;
  EXPECT_EQ(first[field.channels], 0x2e66);
  EXPECT_TRUE(store_as_float16(field)) << "nothing happens the second time";
}

TEST(Float16Field, what_float16_cannot_hold_is_refused_and_the_field_stays) {
  for (const float value : {65520.0f, 1e9f}) {
    Field field = field_of({value});
    const Status refused = store_as_float16(field);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::invalid_argument);
    EXPECT_NE(refused.error().message().find("65504"), std::string::npos) << refused.error().message();
    EXPECT_FALSE(field.is_float16());
    EXPECT_FALSE(field.records.empty());
  }
  Field small = field_of({1e-5f, -2e-4f});
  EXPECT_FALSE(store_as_float16(small));
  Field stop = field_of({1.0f}, 70000.0f);
  const Status refused = store_as_float16(stop);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("the stopping map"), std::string::npos);
}

TEST(Float16Field, kinds_of_which_nothing_is_gained_are_refused_with_the_reason) {
  const auto pool = ThreadPool::create(1).value();
  int refused = 0;
  for (std::uint32_t number = 0; number < 60; ++number) {
    test::RandomPlan plan = test::random_plan(number, *pool);
    if (plan.field.kind == FieldKind::amplitudes || plan.field.kind == FieldKind::harmonics) continue;
    const Status outcome = store_as_float16(plan.field);
    ASSERT_FALSE(outcome) << plan.name;
    EXPECT_EQ(outcome.error().argument(), "field_precision");
    EXPECT_NE(outcome.error().message().find("use field_precision float"), std::string::npos);
    ++refused;
  }
  EXPECT_GT(refused, 3);
}

// The field in float32 with the numbers of the float16 field gives the same streamlines: nothing but the storage
// differs.
TEST(Float16Field, tracks_as_the_same_numbers_in_float32) {
  const auto pool = ThreadPool::create(2).value();
  std::uint64_t points = 0;
  int plans = 0;
  for (std::uint32_t number = 0; number < 120; ++number) {
    const test::RandomPlan plan = test::random_plan(number, *pool);
    if (!plan.field.is_float16()) continue;
    ++plans;
    Field single = plan.field;
    single.float16_records.clear();
    for (const std::uint16_t float16 : plan.field.float16_records)
      single.records.push_back(numerics::float16_to_float(float16));
    const TrackingPlan numbers = make_tracking_plan(plan.options, plan.field.geometry).value();
    const auto seeds = listed_seeds(plan.seeds).value();
    StreamlineBatch of_float16, of_singles;
    for (const auto& [field, batch] : {std::pair{&plan.field, &of_float16}, {&std::as_const(single), &of_singles}}) {
      const auto tracker = make_cpu_tracker(*pool);
      ASSERT_TRUE(tracker->prepare(numbers, *field, *seeds, nullptr));
      ASSERT_TRUE(tracker->track({0, plan.seeds.size()}, *batch));
    }
    EXPECT_TRUE(test::same_batch(of_float16, of_singles)) << plan.name;
    points += of_float16.points.size() / 3;
  }
  EXPECT_GT(plans, 5);
  EXPECT_GT(points, 1000u);
}

}  // namespace
}  // namespace cingulum
