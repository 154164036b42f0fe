#include "oct/oct_kernels.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "numerics/portable.hpp"
#include "support/each_device.hpp"
#include "support/oct_draw.hpp"

namespace cingulum::oct {
namespace oct_kernel_tests {

using cingulum::testing::EachDevice;
using cingulum::testing::oct_plan_count;
using cingulum::testing::OctDraw;

constexpr Boundary boundaries[] = {Boundary::reflect, Boundary::mirror, Boundary::nearest, Boundary::constant,
                                   Boundary::wrap};

// A place to run kernels: a device with its queue.
struct Bench {
  Device* device = nullptr;
  std::unique_ptr<Queue> queue;
  std::unique_ptr<OctKernels> kernels;

  static Result<Bench> on(Device& device) {
    Bench bench;
    bench.device = &device;
    CGL_TRY_ASSIGN(bench.queue, device.create_queue());
    CGL_TRY_ASSIGN(bench.kernels, OctKernels::create(device));
    return bench;
  }
};

class OctKernelTest : public EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_OK_AND_ASSIGN(bench_, Bench::on(device()));
  }
  [[nodiscard]] OctKernels& kernels() const { return *bench_.kernels; }
  [[nodiscard]] const Bench& bench() const { return bench_; }

 private:
  Bench bench_;
};

// The bits of two results; NaN equal NaN.
::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " numbers";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (numerics::float_bits(a[i]) != numerics::float_bits(b[i])) {
      return ::testing::AssertionFailure()
             << "number " << i << " of " << a.size() << ": " << fmt::format("{:a} and {:a}", a[i], b[i]);
    }
  }
  return ::testing::AssertionSuccess();
}

// One operation with random arguments: a seed gives the same on every device.
using Plan = Result<std::vector<float>> (*)(const Bench& bench, std::uint32_t seed);

Result<std::vector<float>> filter_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape shape = draw.shape(24);
  CGL_TRY_ASSIGN(const DeviceVolume from, bench.kernels->upload(*bench.queue, shape, draw.volume(shape)));
  CGL_TRY_ASSIGN(DeviceVolume to, bench.kernels->allocate(shape));
  const FilterBoundary boundary{boundaries[draw.below(5)], draw.value(-1.0f, 1.0f)};
  if (draw.one_in(3)) {
    CGL_TRY(bench.kernels->filter_box(*bench.queue, from, to, {draw.below(9), draw.below(9), draw.below(9)}, boundary));
  } else {
    const auto sigma = [&] { return draw.one_in(3) ? 0.0 : 0.2 + 3.0 * draw.unit(); };
    const std::array<double, 3> sigmas = {sigma(), sigma(), sigma()};
    CGL_TRY(bench.kernels->filter_gaussian(*bench.queue, from, to, sigmas,
                                           {draw.below(3), draw.one_in(2) ? 0 : draw.below(4), 0}, boundary));
  }
  return bench.kernels->download(*bench.queue, to);
}

Result<std::vector<float>> resize_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape shape = draw.shape(30);
  CGL_TRY_ASSIGN(const DeviceVolume from, bench.kernels->upload(*bench.queue, shape, draw.volume(shape)));
  CGL_TRY_ASSIGN(DeviceVolume to, bench.kernels->allocate(draw.shape(30)));
  constexpr int orders[] = {0, 1, 1, 3};
  ResizeOptions options;
  options.order = orders[draw.below(4)];
  options.anti_aliasing = !draw.one_in(3);
  options.alignment = draw.one_in(2) ? Alignment::center : Alignment::corner;
  options.compat_edge_zero = draw.one_in(4);
  CGL_TRY(bench.kernels->resize(*bench.queue, from, to, options));
  return bench.kernels->download(*bench.queue, to);
}

struct NamedPlan {
  const char* name;
  Plan plan;
};
constexpr NamedPlan plans[] = {{"filter", filter_plan}, {"resize", resize_plan}};

class OctKernelParity : public OctKernelTest {};

TEST_P(OctKernelParity, random_plans_have_the_bits_of_the_cpu) {
  ASSERT_OK_AND_ASSIGN(Device* const cpu, cingulum::testing::registry().select_one("cpu"));
  ASSERT_OK_AND_ASSIGN(const Bench truth, Bench::on(*cpu));
  for (std::uint32_t i = 0; i < oct_plan_count(); ++i) {
    const NamedPlan& one = plans[i % std::size(plans)];
    ASSERT_OK_AND_ASSIGN(const std::vector<float> expected, one.plan(truth, i));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> result, one.plan(bench(), i));
    ASSERT_TRUE(same_bits(result, expected)) << one.name << ", plan " << i;
  }
}

TEST_P(OctKernelTest, a_constant_volume_stays_constant) {
  const VolumeShape shape{37, 41, 111};
  const std::vector<float> voxels(shape.voxels(), 3.0f);
  ASSERT_OK_AND_ASSIGN(const DeviceVolume from, kernels().upload(queue(), shape, voxels));
  for (const Alignment alignment : {Alignment::center, Alignment::corner}) {
    for (const int order : {0, 1, 3}) {
      ASSERT_OK_AND_ASSIGN(DeviceVolume to, kernels().allocate({14, 50, 28}));
      ResizeOptions options;
      options.order = order;
      options.alignment = alignment;
      ASSERT_OK(kernels().resize(queue(), from, to, options));
      ASSERT_OK_AND_ASSIGN(const std::vector<float> result, kernels().download(queue(), to));
      for (const float value : result) ASSERT_NEAR(value, 3.0f, 2e-6f) << "order " << order;
    }
  }
}

TEST_P(OctKernelTest, what_scipy_loses_at_the_last_sample_is_lost_on_request_alone) {
  // 110 to 51: 109/50 times 50 is above 109 in float64.
  const VolumeShape shape{1, 1, 110};
  ASSERT_OK_AND_ASSIGN(const DeviceVolume from, kernels().upload(queue(), shape, std::vector<float>(110, 1.0f)));
  ASSERT_OK_AND_ASSIGN(DeviceVolume to, kernels().allocate({1, 1, 51}));
  ResizeOptions options;
  options.alignment = Alignment::corner;
  for (const bool compat : {false, true}) {
    options.compat_edge_zero = compat;
    ASSERT_OK(kernels().resize(queue(), from, to, options));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> result, kernels().download(queue(), to));
    EXPECT_NEAR(result[50], compat ? 0.0f : 1.0f, 1e-6f);
    EXPECT_NEAR(result[49], 1.0f, 1e-6f);
  }
}

TEST_P(OctKernelTest, half_of_even_sizes_is_the_mean_of_eight) {
  OctDraw draw(5);
  const VolumeShape shape{6, 8, 10};
  const std::vector<float> voxels = draw.volume(shape);
  ASSERT_OK_AND_ASSIGN(const DeviceVolume from, kernels().upload(queue(), shape, voxels));
  ASSERT_OK_AND_ASSIGN(DeviceVolume to, kernels().allocate(halved_shape(shape)));
  ResizeOptions options;
  options.anti_aliasing = false;
  ASSERT_OK(kernels().resize(queue(), from, to, options));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> result, kernels().download(queue(), to));
  ASSERT_EQ(to.shape, (VolumeShape{3, 4, 5}));
  for (std::uint32_t z = 0; z < 3; ++z) {
    for (std::uint32_t y = 0; y < 4; ++y) {
      for (std::uint32_t x = 0; x < 5; ++x) {
        double sum = 0;
        for (std::uint32_t corner = 0; corner < 8; ++corner) {
          sum += voxels[((2 * z + corner / 4) * 8 + 2 * y + corner / 2 % 2) * 10 + 2 * x + corner % 2];
        }
        EXPECT_NEAR(result[(z * 4 + y) * 5 + x], sum / 8, 1e-6);
      }
    }
  }
}

TEST(OctShapes, scaled_sizes_are_rounded_half_to_even_and_resampled_ones_truncated) {
  EXPECT_EQ(rescaled_shape({5, 3, 400}, {0.5, 0.5, 0.3}), (VolumeShape{2, 2, 120}));
  EXPECT_EQ(rescaled_shape({1, 7, 11}, {0.1, 0.5, 1.5}), (VolumeShape{1, 4, 16}));
  EXPECT_EQ(resampled_shape({10, 10, 10}, {1.0, 2.0, 0.5}, {1.5, 1.5, 10.0}), (VolumeShape{6, 13, 1}));
  EXPECT_EQ(halved_shape({1, 5, 8}), (VolumeShape{1, 2, 4}));
}

CGL_FOR_EACH_DEVICE(OctKernelTest);
CGL_FOR_DEVICES(OctKernelParity, "cuda", "webgpu");

}  // namespace oct_kernel_tests
}  // namespace cingulum::oct
