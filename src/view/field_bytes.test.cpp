#include "view/field_bytes.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "support/analytic_field.hpp"
#include "support/each_device.hpp"
#include "tract/field/float16_field.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

ImageGeometry oblique_grid() {
  return {.size = {4, 3, 2}, .voxel_to_world = {{-1.9, 0.21, 0.1, 58.25, 0.2, 1.7, -0.33, -61.5, 0.05, 0.4, 2.9, -40}}};
}

Field example_field(int which) {
  const Sphere mirror = named_sphere("mirror321").value();
  switch (which) {
    case 0:
      return test::harmonic_field(oblique_grid(), mirror, 4, [](Vec3d p, double* c) {
        for (int i = 0; i < 15; ++i) c[i] = 0.1 * i + p.x;
      });
    case 1:
      return test::amplitude_field(oblique_grid(), named_sphere("repulsion362").value(),
                                   [](Vec3d p, Vec3d v) { return v.z + p.y; });
    case 2: return test::tensor_field(oblique_grid(), [](Vec3d) { return Vec3d{1, 0, 0}; });
    default: return test::peak_field(oblique_grid(), 2, [](Vec3d p, Vec3d* peaks) { peaks[0] = {1, p.x, 0}; });
  }
}

TEST(FieldBytes, a_field_is_the_same_after_it_was_read) {
  for (int which = 0; which < 5; ++which) {
    Field field = example_field(which == 4 ? 1 : which);
    if (which == 4) ASSERT_OK(store_as_float16(field));
    if (which == 0) {
      field.bootstrap = {true, 3, 2, {1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}, {0.5f, 0.25f, 0.125f}};
    }
    ASSERT_OK_AND_ASSIGN(Field read, view::field_of_head_bytes(view::field_head_bytes(field)));
    ASSERT_EQ(view::record_memory(read).size(), field.stored_bytes().size());
    std::memcpy(view::record_memory(read).data(), field.stored_records(), field.stored_bytes().size());
    EXPECT_EQ(read.kind, field.kind);
    EXPECT_EQ(read.geometry, field.geometry);
    EXPECT_EQ(read.degree, field.degree);
    EXPECT_EQ(read.channels, field.channels);
    EXPECT_EQ(read.stride, field.stride);
    EXPECT_EQ(read.is_float16(), which == 4);
    EXPECT_EQ(read.records, field.records);
    EXPECT_EQ(read.float16_records, field.float16_records);
    EXPECT_EQ(read.record_of_voxel, field.record_of_voxel);
    EXPECT_EQ(read.sphere.is_hemisphere, field.sphere.is_hemisphere);
    EXPECT_EQ(read.sphere.mirror_symmetric, field.sphere.mirror_symmetric);
    EXPECT_EQ(read.sphere.edges, field.sphere.edges);
    EXPECT_EQ(read.sphere.neighbour_offsets, field.sphere.neighbour_offsets);
    EXPECT_EQ(read.sphere.neighbours, field.sphere.neighbours);
    EXPECT_EQ(read.sphere.slots, field.sphere.slots);
    ASSERT_EQ(read.sphere.directions.size(), field.sphere.directions.size());
    ASSERT_EQ(read.sphere.orbits.size(), field.sphere.orbits.size());
    for (std::size_t i = 0; i < read.sphere.directions.size(); ++i) {
      EXPECT_EQ(std::memcmp(&read.sphere.directions[i], &field.sphere.directions[i], sizeof(Vec3d)), 0);
    }
    EXPECT_EQ(read.bootstrap.csa, field.bootstrap.csa);
    EXPECT_EQ(read.bootstrap.gradients, field.bootstrap.gradients);
    EXPECT_EQ(read.bootstrap.coefficients, field.bootstrap.coefficients);
    EXPECT_EQ(read.bootstrap.basis, field.bootstrap.basis);
    EXPECT_EQ(read.bootstrap.fit, field.bootstrap.fit);
    EXPECT_EQ(read.bootstrap.residual_scale, field.bootstrap.residual_scale);
  }
}

TEST(FieldBytes, what_is_cut_short_too_long_or_contradicts_itself_is_refused) {
  const std::vector<std::byte> whole = view::field_head_bytes(example_field(0));
  ASSERT_OK(view::field_of_head_bytes(whole));
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_FALSE(view::field_of_head_bytes(std::span(whole).first(size))) << size;
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(view::field_of_head_bytes(longer));
  const auto refused_with = [&](std::size_t at, std::uint32_t word) {
    std::vector<std::byte> changed = whole;
    std::memcpy(changed.data() + at, &word, sizeof word);
    return !view::field_of_head_bytes(changed);
  };
  EXPECT_TRUE(refused_with(0, 7));           // the magic
  EXPECT_TRUE(refused_with(4, 9));           // the kind
  EXPECT_TRUE(refused_with(12, 1000));       // channels beyond the stride
  EXPECT_TRUE(refused_with(16, 0));          // the stride
  EXPECT_TRUE(refused_with(48, 5));          // the size of the grid
  EXPECT_TRUE(refused_with(168, 12345));     // how many numbers
  EXPECT_TRUE(refused_with(172, 1u << 31));  // and that beyond any memory
  EXPECT_TRUE(refused_with(176, 322));       // directions
}

TEST(FieldBytes, numbers_that_lead_out_of_the_sphere_are_refused) {
  const auto refused = [](const auto& change) {
    Field field = example_field(0);
    change(field.sphere);
    return !view::field_of_head_bytes(view::field_head_bytes(field));
  };
  EXPECT_FALSE(refused([](Sphere&) {}));
  EXPECT_TRUE(refused([](Sphere& s) { s.edges.back()[1] = static_cast<std::uint32_t>(s.size()); }));
  EXPECT_TRUE(refused([](Sphere& s) { s.neighbours.back() = static_cast<std::uint32_t>(s.size()); }));
  EXPECT_TRUE(refused([](Sphere& s) { s.neighbour_offsets[1] = s.neighbour_offsets[2] + 1; }));
  EXPECT_TRUE(refused([](Sphere& s) { s.neighbour_offsets.pop_back(); }));
  EXPECT_TRUE(refused([](Sphere& s) { s.slots.back() = static_cast<std::uint32_t>(s.size()); }));
  EXPECT_TRUE(refused([](Sphere& s) { s.orbits.resize(s.orbits.size() + 64); }));
}

}  // namespace
}  // namespace cingulum
