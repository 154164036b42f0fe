#include "tract/field/field_builders.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "numerics/mirror_sum.hpp"
#include "support/analytic_field.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

TEST(FieldBuilders, store_listed_voxels_alone_and_append_the_stopping_map) {
  const ImageGeometry geometry = test::grid(3, 2, 2);
  const std::vector<std::uint32_t> voxels = {1, 4, 11};
  const std::vector<float> peaks = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  std::vector<float> stop(12);
  for (std::size_t i = 0; i < 12; ++i) stop[i] = 0.5f + static_cast<float>(i);
  const Field field = make_peak_field(geometry, stop, {voxels, 3, peaks}, DirectionFrame::image).value();
  EXPECT_EQ(field.record_count(), 4u);
  EXPECT_EQ(field.record_of_voxel, (std::vector<std::uint32_t>{0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 3}));
  for (std::size_t i = 0; i < field.stride; ++i) EXPECT_EQ(field.records[i], 0.0f);
  EXPECT_EQ(field.records[3 * field.stride + 2], 1.0f);
  EXPECT_EQ(field.records[3 * field.stride + 3], 11.5f);
  EXPECT_EQ(field.replaced, 0u);
}

TEST(FieldBuilders, replace_and_count_what_backends_must_not_see) {
  const ImageGeometry geometry = test::grid(2, 1, 1);
  const std::vector<std::uint32_t> voxels = {0, 1};
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> peaks = {2, nan, 1e-20f, 0, infinity, -1e30f};
  const std::vector<float> stop = {nan, 1};
  const Field field = make_peak_field(geometry, stop, {voxels, 3, peaks}, DirectionFrame::image).value();
  EXPECT_EQ(field.replaced, 5u);
  const float* record = field.records.data() + field.stride;
  EXPECT_EQ(record[0], 2.0f);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(record[i], 0.0f) << i;
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(record[field.stride + i], 0.0f) << i;
  EXPECT_EQ(record[field.stride + 3], 1.0f);
}

TEST(FieldBuilders, refuse_what_does_not_fit_together) {
  const ImageGeometry geometry = test::grid(2, 2, 1);
  const std::vector<float> stop(4, 1.0f), numbers(12);
  const std::vector<std::uint32_t> voxels = {0, 1}, unordered = {1, 0}, beyond = {0, 4};
  const Sphere sphere = named_sphere("repulsion362").value();
  const auto image = DirectionFrame::image;
  EXPECT_FALSE(make_peak_field(geometry, std::span(stop).first(3), {voxels, 6, numbers}, image));
  EXPECT_FALSE(make_peak_field(geometry, stop, {voxels, 5, numbers}, image));
  EXPECT_FALSE(make_peak_field(geometry, stop, {unordered, 6, numbers}, image));
  EXPECT_FALSE(make_peak_field(geometry, stop, {beyond, 6, numbers}, image));
  EXPECT_FALSE(make_amplitude_field(geometry, stop, {voxels, 6, numbers}, sphere));
  EXPECT_FALSE(make_harmonic_field(geometry, stop, {voxels, 6, numbers},
                                   {numerics::HarmonicConvention::tournier07, 4, false}, image, sphere));
  EXPECT_TRUE(make_harmonic_field(geometry, stop, {voxels, 6, numbers},
                                  {numerics::HarmonicConvention::tournier07, 2, false}, image, sphere));
  EXPECT_FALSE(make_tensor_field(geometry, stop, {std::span(voxels).first(1), 12, numbers}, TensorOrder::fsl, image));
  EXPECT_TRUE(make_tensor_field(geometry, stop, {voxels, 6, numbers}, TensorOrder::fsl, image));
}

// An oblique image with a flipped axis: the function along a direction of the image is the file's along the same
// direction of the world, whatever the convention of its coefficients.
TEST(FieldBuilders, bring_series_peaks_and_tensors_from_world_to_image_axes) {
  ImageGeometry geometry = test::grid(1, 1, 1);
  const double c = std::cos(0.4), s = std::sin(0.4);
  geometry.voxel_to_world.rows = {-2 * c, -1.5 * s, 0, 3, -2 * s, 1.5 * c, 0, 4, 0, 0, 3, 5};
  const auto world = [&](Vec3d v) {  // with unit columns
    return Vec3d{-c * v.x - s * v.y, -s * v.x + c * v.y, v.z};
  };
  const std::vector<float> stop = {1};
  const std::vector<std::uint32_t> voxels = {0};
  std::mt19937 generator(3);
  std::normal_distribution<double> normal;
  for (const char* name : {"mirror321", "repulsion362"}) {
    for (const auto convention : {numerics::HarmonicConvention::tournier07, numerics::HarmonicConvention::descoteaux07,
                                  numerics::HarmonicConvention::descoteaux07_legacy}) {
      const numerics::HarmonicBasis given{convention, 8, false},
          stored{numerics::HarmonicConvention::descoteaux07_legacy, 8, false};
      std::vector<float> coefficients(45);
      for (float& value : coefficients) value = static_cast<float>(normal(generator));
      const Sphere sphere = named_sphere(name).value();
      const Field field =
          make_harmonic_field(geometry, stop, {voxels, 45, coefficients}, given, DirectionFrame::world, sphere).value();
      std::uint32_t order[45];
      for (std::uint32_t j = 0; j < 45; ++j) order[j] = j;
      if (sphere.mirror_symmetric) numerics::sort_by_mirror_class(stored.convention, 8, order);
      for (int round = 0; round < 20; ++round) {
        const Vec3d v = test::unit({normal(generator), normal(generator), normal(generator)});
        double in_image[45], in_world[45], found = 0, truth = 0;
        numerics::evaluate_harmonics(stored, v, in_image);
        numerics::evaluate_harmonics(given, world(v), in_world);
        for (std::size_t j = 0; j < 45; ++j) {
          found += static_cast<double>(field.records[field.stride + j]) * in_image[order[j]];
          truth += static_cast<double>(coefficients[j]) * in_world[j];
        }
        EXPECT_NEAR(found, truth, 1e-5) << name;
      }
    }
  }
  const Vec3d axis = test::unit({0.3, 0.5, 0.8}), turned = world(axis);
  const std::vector<float> peak = {static_cast<float>(turned.x), static_cast<float>(turned.y),
                                   static_cast<float>(turned.z)};
  const Field peaks = make_peak_field(geometry, stop, {voxels, 3, peak}, DirectionFrame::world).value();
  EXPECT_NEAR(peaks.records[peaks.stride], axis.x, 1e-6);
  EXPECT_NEAR(peaks.records[peaks.stride + 1], axis.y, 1e-6);
  EXPECT_NEAR(peaks.records[peaks.stride + 2], axis.z, 1e-6);
  const double d[6] = {turned.x * turned.x, turned.y * turned.y, turned.z * turned.z,
                       turned.x * turned.y, turned.x * turned.z, turned.y * turned.z};
  const std::size_t places[3][6] = {{0, 1, 2, 3, 4, 5}, {0, 3, 1, 4, 5, 2}, {0, 3, 4, 1, 5, 2}};
  for (const TensorOrder order : {TensorOrder::mrtrix, TensorOrder::dipy, TensorOrder::fsl}) {
    std::vector<float> tensor;
    for (const std::size_t place : places[static_cast<std::size_t>(order)]) {
      tensor.push_back(static_cast<float>(d[place]));
    }
    const Field field = make_tensor_field(geometry, stop, {voxels, 6, tensor}, order, DirectionFrame::world).value();
    const float* record = field.records.data() + field.stride;
    EXPECT_NEAR(record[0], axis.x * axis.x, 1e-6);
    EXPECT_NEAR(record[1], axis.y * axis.y, 1e-6);
    EXPECT_NEAR(record[2], axis.z * axis.z, 1e-6);
    EXPECT_NEAR(record[3], axis.x * axis.y, 1e-6);
    EXPECT_NEAR(record[4], axis.x * axis.z, 1e-6);
    EXPECT_NEAR(record[5], axis.y * axis.z, 1e-6);
  }
}

}  // namespace
}  // namespace cingulum
