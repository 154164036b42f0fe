// Fields of files whose numbers are known: which voxels are stored, with which numbers, and where the stopping map of a
// file without one is set, by one thread and by many.
#include "tract/field/file_field.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "dmri/sphere/sphere.hpp"

namespace cingulum {
namespace file_field_tests {

constexpr std::int64_t edge = 23;
constexpr std::size_t voxels = edge * edge * edge;

// Amplitudes on `sphere`: many voxels are zero, some in all volumes but the last, some hold nothing but a number that
// is not finite.
Image some_amplitudes(const Sphere& sphere) {
  std::mt19937 random(4);
  Image image;
  image.geometry.size = {edge, edge, edge};
  image.volumes = static_cast<std::int64_t>(sphere.size());
  image.values.assign(sphere.size() * voxels, 0.0f);
  for (std::size_t v = 0; v < voxels; ++v) {
    const unsigned kind = random() % 4;
    for (std::size_t i = 0; i < sphere.size(); ++i) {
      float& value = image.values[i * voxels + v];
      if (kind == 1) value = 0.25f + static_cast<float>(random() % 1000);
      if (kind == 2 && i + 1 == sphere.size()) value = 3.0f;
      if (kind == 3 && i == 5) value = std::numeric_limits<float>::quiet_NaN();
    }
  }
  return image;
}

TEST(FileField, the_default_stopping_map_is_set_where_a_number_is_not_zero) {
  const Sphere sphere = named_sphere("repulsion362").value();
  const Image image = some_amplitudes(sphere);
  const auto pool = ThreadPool::create(3).value();
  const FieldFile file = take_field_image(image, {.kind = FieldFileKind::amplitudes, .path = "amplitudes"}).value();
  const std::vector<float> alone = default_stop_map(file).value();
  ASSERT_EQ(alone.size(), voxels);
  std::size_t set = 0;
  for (std::size_t v = 0; v < voxels; ++v) {
    float expected = 0;
    for (std::size_t i = 0; i < sphere.size(); ++i) {
      const float value = image.values[i * voxels + v];
      if (std::isfinite(value) && value != 0) expected = 1;
    }
    ASSERT_EQ(alone[v], expected) << v;
    set += expected > 0 ? 1U : 0U;
  }
  EXPECT_GT(set, voxels / 4);
  EXPECT_LT(set, 3 * voxels / 4);
  EXPECT_EQ(default_stop_map(file, pool.get()).value(), alone);
}

TEST(FileField, the_record_of_a_voxel_holds_its_numbers_in_the_order_of_the_volumes) {
  const Sphere sphere = named_sphere("repulsion362").value();
  const Image image = some_amplitudes(sphere);
  const FieldFile file = take_field_image(image, {.kind = FieldFileKind::amplitudes, .path = "amplitudes"}).value();
  std::vector<float> stop_map(voxels);
  std::vector<std::uint8_t> mask(voxels);
  for (std::size_t v = 0; v < voxels; ++v) {
    stop_map[v] = v % 11 == 0 ? 0.5f : 0.0f;
    mask[v] = v % 7 == 0 ? 0 : 1;
  }
  for (const bool masked : {false, true}) {
    for (const int threads : {1, 4}) {
      const auto pool = ThreadPool::create(threads).value();
      const auto given = masked ? std::span<const std::uint8_t>(mask) : std::span<const std::uint8_t>();
      const Field field = make_file_field(file, stop_map, given, sphere, *pool).value().field;
      std::uint32_t next = 1;
      std::uint64_t replaced = 0;
      for (std::size_t v = 0; v < voxels; ++v) {
        bool stored = stop_map[v] != 0;
        for (std::size_t i = 0; i < sphere.size(); ++i) stored = stored || image.values[i * voxels + v] != 0;
        if (masked && mask[v] == 0) stored = false;
        ASSERT_EQ(field.record_of_voxel[v], stored ? next : 0) << v;
        if (!stored) continue;
        const float* const record = field.records.data() + std::size_t{next} * field.stride;
        for (std::size_t i = 0; i < sphere.size(); ++i) {
          const float value = image.values[i * voxels + v];
          replaced += std::isfinite(value) ? 0U : 1U;
          ASSERT_EQ(record[i], std::isfinite(value) ? value : 0) << v << ' ' << i;
        }
        ASSERT_EQ(record[sphere.size()], stop_map[v]);
        // Kernels read whole rows.
        for (std::size_t i = sphere.size() + 1; i < field.stride; ++i) ASSERT_EQ(record[i], 0.0f);
        ++next;
      }
      EXPECT_EQ(field.record_count(), next);
      EXPECT_EQ(field.replaced, replaced);
      for (std::size_t i = 0; i < field.stride; ++i) ASSERT_EQ(field.records[i], 0.0f);
      for (std::size_t i = 0; i < Field::record_padding; ++i)
        ASSERT_EQ(field.records[field.records.size() - 1 - i], 0.0f);
    }
  }
}

}  // namespace file_field_tests
}  // namespace cingulum
