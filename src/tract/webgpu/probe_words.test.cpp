// The tables of ptt_points.wgsl: the slots of a cell include the nearest, a cell's addresses are those of the records
// of its corners.
#include "tract/webgpu/probe_words.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "support/analytic_field.hpp"
#include "tract/kernel/probe_tables.hpp"
#include "tract/plan/tracking_plan.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

class ProbeWords : public ::testing::Test {
 protected:
  ProbeWords() {
    TrackingOptions options;
    options.getter = Getter::ptt;
    plan_ = make_tracking_plan(options, field_.geometry).value();
    tables_ = make_device_tables(plan_, field_).value();
    words_ = make_probe_words(tables_, field_);
  }

  Field field_ = test::amplitude_field(
      test::grid(5, 4, 3, {1, 1, 1}), named_sphere("repulsion724").value(),
      [](Vec3d p, Vec3d v) { return std::abs(v.x) + 0.1 * p.y; }, [](Vec3d p) { return p.x < 3.5 ? 1.0f : 0.0f; });
  TrackingPlan plan_;
  DeviceTables tables_;
  std::vector<std::uint32_t> words_;
};

TEST_F(ProbeWords, are_made_where_the_kernel_fits) {
  EXPECT_TRUE(probes_fit(tables_.input));
  TrackingInput other = tables_.input;
  other.plan.ptt_probe_count = 2;
  EXPECT_FALSE(probes_fit(other));
  other = tables_.input;
  other.field.is_float16 = 1;
  EXPECT_FALSE(probes_fit(other));
  // Every other condition alone.
  const auto fits_after = [&](const auto& change) {
    TrackingInput input = tables_.input;
    change(input);
    return probes_fit(input);
  };
  EXPECT_FALSE(fits_after([](auto& i) { i.plan.getter = static_cast<std::uint32_t>(Getter::prob); }));
  EXPECT_FALSE(fits_after([](auto& i) { i.field.kind = field_of_harmonics; }));
  EXPECT_FALSE(fits_after([](auto& i) { i.field.stride += 1; }));
  EXPECT_TRUE(fits_after([](auto& i) { i.field.stride += 4; }));
  EXPECT_FALSE(fits_after([](auto& i) { i.sphere.is_hemisphere = 0; }));
  EXPECT_FALSE(fits_after([](auto& i) { i.nearest.cells += 1; }));
  EXPECT_TRUE(fits_after([](auto& i) { i.nearest.cells += kernel::packed_cells; }));
  EXPECT_TRUE(fits_after([](auto& i) { i.field.channels = kernel::packed_slot_mask; }));
  EXPECT_FALSE(fits_after([](auto& i) { i.field.channels = kernel::packed_slot_mask + 1; }));
  EXPECT_TRUE(fits_after([](auto& i) { i.plan.ptt_probe_count = 1; }));
  EXPECT_FALSE(fits_after([](auto& i) { i.plan.ptt_exponent_is_one = 0; }));
  EXPECT_EQ(words_.size(), 4 * probe_offsets(tables_.input).end);
}

TEST_F(ProbeWords, are_used_where_halves_start_along_unit_vectors) {
  EXPECT_TRUE(starts_are_unit(tables_, nullptr));
  GivenDirections given;
  given.directions = {{1, 0, 0}, {0, 0.6f, 0.8f}};
  EXPECT_TRUE(starts_are_unit(tables_, &given));
  given.directions[1].z = 0.80001f;
  EXPECT_FALSE(starts_are_unit(tables_, &given));
}

TEST_F(ProbeWords, have_the_nearest_slot_among_those_of_its_cell) {
  const ProbeOffsets at = probe_offsets(tables_.input);
  const auto direction = [&](std::uint32_t slot, std::uint32_t axis) {
    return double{std::bit_cast<float>(words_[4 * slot + axis])};
  };
  std::mt19937 generator(5);
  std::normal_distribution<double> normal;
  std::uint32_t few = 0;
  constexpr std::uint32_t tries = 20000;
  for (std::uint32_t i = 0; i < tries; ++i) {
    const Vec3d v = test::unit({normal(generator), normal(generator), normal(generator)});
    const double size[3] = {std::abs(v.x), std::abs(v.y), std::abs(v.z)};
    const auto face = static_cast<std::uint32_t>(std::max_element(size, size + 3) - size);
    const double part[3] = {v.x, v.y, v.z};
    const auto cell_of = [&](double minor) {
      return static_cast<std::uint32_t>((minor / part[face] + 1) * 0.5 * kernel::packed_cells);
    };
    const std::uint32_t column = cell_of(face == 0 ? v.y : v.x), row = cell_of(face == 2 ? v.y : v.z);
    const std::uint32_t entry =
        words_[4 * at.nearest + (face * kernel::packed_cells + row) * kernel::packed_cells + column];
    if ((entry & kernel::packed_too_many) != 0u) continue;
    ++few;
    std::uint32_t nearest = 0;
    double best = -1;
    for (std::uint32_t slot = 0; slot < tables_.input.field.channels; ++slot) {
      const double cosine = std::abs(direction(slot, 0) * v.x + direction(slot, 1) * v.y + direction(slot, 2) * v.z);
      if (cosine > best) {
        best = cosine;
        nearest = slot;
      }
    }
    const auto slot = [&](std::uint32_t n) {
      return entry >> (n * kernel::packed_slot_bits) & kernel::packed_slot_mask;
    };
    ASSERT_TRUE(slot(0) == nearest || slot(1) == nearest || slot(2) == nearest) << i;
  }
  // Else most directions would go the long way.
  EXPECT_GT(few, tries * 9 / 10);
}

TEST_F(ProbeWords, have_the_places_of_the_records_at_the_corners) {
  const ProbeOffsets at = probe_offsets(tables_.input);
  const auto size = plan_.size;
  const auto record = [&](int x, int y, int z) {
    const auto inside = [](int i, std::uint32_t extent) {
      return static_cast<std::uint32_t>(std::clamp(i, 0, static_cast<int>(extent) - 1));
    };
    return field_.record_of_voxel[inside(x, size.x) + size.x * (inside(y, size.y) + size.y * inside(z, size.z))];
  };
  std::uint32_t cell = 0;
  for (int z = -1; z < static_cast<int>(size.z); ++z) {
    for (int y = -1; y < static_cast<int>(size.y); ++y) {
      for (int x = -1; x < static_cast<int>(size.x); ++x, ++cell) {
        for (int corner = 0; corner < 8; ++corner) {
          const std::uint32_t place = words_[4 * at.cells + 8 * cell + static_cast<std::uint32_t>(corner)];
          ASSERT_EQ(place, record(x + (corner & 1), y + (corner >> 1 & 1), z + (corner >> 2)) * field_.stride) << cell;
        }
      }
    }
  }
  EXPECT_EQ(4 * std::size_t{at.cells} + 8 * std::size_t{cell}, words_.size());
}

}  // namespace
}  // namespace cingulum
