#include "oct/oct_kernels.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numerics/plane_sum.hpp"
#include "numerics/portable.hpp"
#include "oct/kernel/kernel_records.hpp"
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

Result<std::vector<float>> interface_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape shape = draw.shape(40);
  const std::vector<float> voxels = draw.volume(shape);
  CGL_TRY_ASSIGN(const DeviceVolume volume, bench.kernels->upload(*bench.queue, shape, voxels));
  InterfaceOptions options;
  options.box_xy = draw.one_in(6) ? 25 + draw.below(6) : draw.below(25);
  options.sigma_z = 0.3 + 3.0 * draw.unit();
  options.derivative_order = draw.one_in(4) ? 2 : 1;
  options.use_log = !draw.one_in(4);
  options.detect_cutting_errors = draw.one_in(3);
  options.sub_voxel = draw.one_in(3);
  DeviceVolume mask;
  const bool masked = draw.one_in(3);
  if (masked) {
    std::vector<float> kept(shape.voxels());
    const std::uint32_t rarity = draw.between(1, 4);
    for (float& value : kept) value = draw.one_in(rarity) ? 1.0f : 0.0f;
    CGL_TRY_ASSIGN(mask, bench.kernels->upload(*bench.queue, shape, kept));
  }
  CGL_TRY_ASSIGN(const DeviceVolume depths,
                 bench.kernels->find_interface(*bench.queue, volume, options, masked ? &mask : nullptr));
  return bench.kernels->download(*bench.queue, depths);
}

// The defaults, for which there are kernels of their own, over more than a strip of columns.
Result<std::vector<float>> default_interface_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape shape{draw.between(1, 60), draw.between(1, 20), draw.between(1, 400)};
  CGL_TRY_ASSIGN(const DeviceVolume volume, bench.kernels->upload(*bench.queue, shape, draw.volume(shape)));
  InterfaceOptions options;
  options.sub_voxel = draw.one_in(2);
  options.detect_cutting_errors = draw.one_in(4);
  options.derivative_order = draw.one_in(4) ? 3 : 1;
  DeviceVolume mask;
  const bool masked = draw.one_in(4);
  if (masked) {
    std::vector<float> kept(shape.voxels());
    for (float& value : kept) value = draw.one_in(3) ? 0.0f : 1.0f;
    CGL_TRY_ASSIGN(mask, bench.kernels->upload(*bench.queue, shape, kept));
  }
  CGL_TRY_ASSIGN(const DeviceVolume depths,
                 bench.kernels->find_interface(*bench.queue, volume, options, masked ? &mask : nullptr));
  return bench.kernels->download(*bench.queue, depths);
}

Result<std::vector<float>> roll_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape shape = draw.shape(70);
  CGL_TRY_ASSIGN(const DeviceVolume from, bench.kernels->upload(*bench.queue, shape, draw.volume(shape)));
  std::vector<float> map(shape.plane());
  const float reach = draw.one_in(3) ? 1e10f : 2.0f * static_cast<float>(shape.z);
  for (float& value : map) value = draw.one_in(5) ? static_cast<float>(draw.below(9)) : draw.value(-reach, reach);
  CGL_TRY_ASSIGN(const DeviceVolume by, bench.kernels->upload(*bench.queue, {1, shape.y, shape.x}, map));
  CGL_TRY_ASSIGN(DeviceVolume to, bench.kernels->allocate(shape));
  CGL_TRY(bench.kernels->roll_lines(*bench.queue, from, by, to, {draw.one_in(2), draw.value(-1.0f, 1.0f)}));
  CGL_TRY_ASSIGN(DeviceVolume flat, bench.kernels->allocate({1, shape.y, shape.x}));
  CGL_TRY(bench.kernels->project(*bench.queue, to, flat, draw.one_in(2) ? Projection::mean : Projection::max));
  CGL_TRY_ASSIGN(std::vector<float> result, bench.kernels->download(*bench.queue, to));
  CGL_TRY_ASSIGN(const std::vector<float> projected, bench.kernels->download(*bench.queue, flat));
  result.insert(result.end(), projected.begin(), projected.end());
  return result;
}

// Lines as they are acquired to planes, sums by their surface, and the planes over a map.
Result<std::vector<float>> lines_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape raw = draw.shape(70);  // rows, lines, samples
  const VolumeShape shape{raw.x, raw.z, draw.between(1, raw.y)};
  CGL_TRY_ASSIGN(const DeviceVolume from, bench.kernels->upload(*bench.queue, raw, draw.volume(raw)));
  CGL_TRY_ASSIGN(DeviceVolume ordered, bench.kernels->allocate(shape));
  CGL_TRY(bench.kernels->order_lines(*bench.queue, from, draw.below(raw.y), ordered));
  CGL_TRY_ASSIGN(std::vector<float> result, bench.kernels->download(*bench.queue, ordered));
  const auto keep = [&](const DeviceVolume& volume) -> Status {
    CGL_TRY_ASSIGN(const std::vector<float> values, bench.kernels->download(*bench.queue, volume));
    result.insert(result.end(), values.begin(), values.end());
    return {};
  };
  std::vector<float> map(shape.plane());
  const float deep = static_cast<float>(shape.z);
  for (float& value : map) value = draw.one_in(3) ? 0.5f * static_cast<float>(draw.below(60)) : draw.value(-3.0f, deep);
  CGL_TRY_ASSIGN(const DeviceVolume surface, bench.kernels->upload(*bench.queue, {1, shape.y, shape.x}, map));
  CGL_TRY_ASSIGN(DeviceVolume sums, bench.kernels->allocate({2 + draw.below(shape.z + 1), shape.y, shape.x}));
  CGL_TRY(bench.kernels->sum_layers(*bench.queue, ordered, surface, draw.below(60), sums));
  CGL_TRY(keep(sums));
  for (float& value : map) value = draw.value(0.2f, 2.0f);
  CGL_TRY_ASSIGN(const DeviceVolume light, bench.kernels->upload(*bench.queue, {1, shape.y, shape.x}, map));
  const std::uint32_t first = draw.below(shape.z);
  CGL_TRY_ASSIGN(DeviceVolume to, bench.kernels->allocate({draw.between(1, shape.z - first), shape.y, shape.x}));
  CGL_TRY(bench.kernels->divide_by_map(*bench.queue, ordered, first, light, to));
  CGL_TRY(keep(to));
  return result;
}

std::vector<PlaneProduct> random_products(OctDraw& draw, const VolumeShape& a, const VolumeShape& b) {
  std::vector<PlaneProduct> products(draw.between(1, 30));
  for (PlaneProduct& one : products) {
    one.kind = static_cast<ProductKind>(draw.below(5));
    one.rows = draw.between(1, std::min(a.y, b.y));
    one.columns = draw.between(1, std::min(a.x, b.x));
    one.a_z = draw.below(a.z);
    one.a_y = draw.below(a.y - one.rows + 1);
    one.a_x = draw.below(a.x - one.columns + 1);
    one.b_z = draw.below(b.z);
    one.b_y = draw.below(b.y - one.rows + 1);
    one.b_x = draw.below(b.x - one.columns + 1);
  }
  return products;
}

Result<std::vector<float>> product_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape a = draw.shape(90);
  const VolumeShape b = draw.shape(90);
  CGL_TRY_ASSIGN(const DeviceVolume first, bench.kernels->upload(*bench.queue, a, draw.volume(a)));
  CGL_TRY_ASSIGN(const DeviceVolume second, bench.kernels->upload(*bench.queue, b, draw.volume(b)));
  const float a_offset = draw.value(0.0f, 3.0f);
  const float b_offset = draw.value(0.0f, 3.0f);
  return bench.kernels->plane_products(*bench.queue, first, second, a_offset, b_offset, random_products(draw, a, b));
}

Result<std::vector<float>> sample_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape shape = draw.shape(24);
  CGL_TRY_ASSIGN(const DeviceVolume from, bench.kernels->upload(*bench.queue, shape, draw.volume(shape)));
  const VolumeShape out = draw.shape(20);
  CGL_TRY_ASSIGN(DeviceVolume to, bench.kernels->allocate(out));
  constexpr int orders[] = {0, 1, 1, 3};
  SampleOptions options;
  options.order = orders[draw.below(4)];
  options.boundary = options.order == 3 ? boundaries[draw.one_in(2)   ? 0
                                                     : draw.one_in(2) ? 1
                                                                      : 3]
                                        : boundaries[draw.below(5)];
  options.value = draw.value(-1.0f, 1.0f);
  if (draw.one_in(2)) {
    std::array<std::array<double, 4>, 3> matrix{};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) matrix[i][j] = (i == j ? 1.0 : 0.0) + 0.6 * (draw.unit() - 0.5);
      matrix[i][3] = 8.0 * (draw.unit() - 0.5);
    }
    CGL_TRY(bench.kernels->transform_affine(*bench.queue, from, to, matrix, options));
    return bench.kernels->download(*bench.queue, to);
  }
  const bool displaces = draw.one_in(2);
  const VolumeShape triple{3 * out.z, out.y, out.x};
  std::vector<float> places(triple.voxels());
  const float reach = draw.one_in(8) ? 1e20f : 30.0f;
  for (float& value : places)
    value = draw.one_in(9) ? static_cast<float>(draw.below(20)) : draw.value(-0.3f * reach, reach);
  CGL_TRY_ASSIGN(const DeviceVolume field, bench.kernels->upload(*bench.queue, triple, places));
  if (displaces) {
    CGL_TRY(bench.kernels->displace(*bench.queue, from, field, to, options));
  } else {
    CGL_TRY(bench.kernels->map_coordinates(*bench.queue, from, field, to, options));
  }
  return bench.kernels->download(*bench.queue, to);
}

Result<std::vector<float>> count_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape shape = draw.shape(20);
  CGL_TRY_ASSIGN(const DeviceVolume from, bench.kernels->upload(*bench.queue, shape, draw.volume(shape)));
  CGL_TRY_ASSIGN(DeviceVolume to, bench.kernels->allocate(shape));
  const std::array<std::uint32_t, 3> sizes = {draw.between(1, 4), draw.between(1, 5), draw.between(1, 6)};
  CGL_TRY(bench.kernels->filter_median(*bench.queue, from, to, sizes));
  CGL_TRY_ASSIGN(std::vector<float> result, bench.kernels->download(*bench.queue, to));
  const double percents[] = {0.0, 100.0 * draw.unit(), 50.0, 99.9, 100.0};
  CGL_TRY_ASSIGN(const std::vector<double> values, bench.kernels->percentiles(*bench.queue, from, percents));
  for (const double value : values) result.push_back(static_cast<float>(value));
  return result;
}

Result<std::vector<float>> blend_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape shape = draw.shape(25);
  const std::vector<float> zeros(shape.voxels(), 0.0f);
  CGL_TRY_ASSIGN(DeviceVolume sum, bench.kernels->upload(*bench.queue, shape, zeros));
  CGL_TRY_ASSIGN(DeviceVolume weight_sum, bench.kernels->upload(*bench.queue, shape, zeros));
  for (std::uint32_t tile = 0; tile < 4; ++tile) {
    const VolumeShape size = draw.shape(20);
    CGL_TRY_ASSIGN(const DeviceVolume voxels, bench.kernels->upload(*bench.queue, size, draw.volume(size)));
    std::vector<float> weights(size.plane());
    for (float& weight : weights) weight = draw.one_in(4) ? 0.0f : draw.value(0.0f, 1.0f);
    CGL_TRY_ASSIGN(const DeviceVolume map, bench.kernels->upload(*bench.queue, {1, size.y, size.x}, weights));
    const auto place = [&] { return static_cast<std::int32_t>(draw.below(30)) - 8; };
    const Offset3 at{place(), place(), place()};
    CGL_TRY(bench.kernels->blend_add(*bench.queue, voxels, map, at, sum, weight_sum));
  }
  CGL_TRY_ASSIGN(DeviceVolume to, bench.kernels->allocate(shape));
  CGL_TRY(bench.kernels->blend_finish(*bench.queue, sum, weight_sum, to));
  return bench.kernels->download(*bench.queue, to);
}

Result<std::vector<float>> attenuation_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape shape = draw.shape(60);
  CGL_TRY_ASSIGN(const DeviceVolume from, bench.kernels->upload(*bench.queue, shape, draw.volume(shape)));
  CGL_TRY_ASSIGN(DeviceVolume tails, bench.kernels->allocate({1, shape.y, shape.x}));
  CGL_TRY(bench.kernels->crop_planes(*bench.queue, from, shape.z - 1, tails));
  CGL_TRY_ASSIGN(DeviceVolume found, bench.kernels->allocate(shape));
  CGL_TRY_ASSIGN(DeviceVolume to, bench.kernels->allocate(shape));
  const double step = 0.5 + draw.unit();
  CGL_TRY(bench.kernels->find_attenuation(*bench.queue, from, tails, 20.0 * draw.unit(), step, found));
  CGL_TRY(bench.kernels->compensate_attenuation(*bench.queue, from, found, step, draw.unit(), 0.05, to));
  CGL_TRY_ASSIGN(std::vector<float> result, bench.kernels->download(*bench.queue, found));
  CGL_TRY_ASSIGN(const std::vector<float> compensated, bench.kernels->download(*bench.queue, to));
  result.insert(result.end(), compensated.begin(), compensated.end());
  return result;
}

// Noise, windows inside, exponentials, and the voxels of a tile of any model.
Result<std::vector<float>> simulation_plan(const Bench& bench, std::uint32_t seed) {
  OctDraw draw(seed);
  const VolumeShape box = draw.shape(20);
  std::array<std::vector<float>, 3> windows;
  for (std::vector<float>& window : windows) {
    window.resize(draw.between(1, 9));
    for (float& weight : window) weight = draw.value(-0.5f, 1.0f);
  }
  const auto wider = [&](std::uint32_t count, std::size_t axis) {
    return count + static_cast<std::uint32_t>(windows[axis].size()) - 1;
  };
  const std::uint64_t key = (std::uint64_t{draw.below(UINT32_MAX)} << 32) | draw.below(UINT32_MAX);
  const auto place = [&] { return static_cast<std::int32_t>(draw.below(4000)) - 2000; };
  CGL_TRY_ASSIGN(DeviceVolume noise, bench.kernels->allocate({wider(box.z, 0), wider(box.y, 1), wider(box.x, 2)}));
  CGL_TRY(bench.kernels->fill_noise(*bench.queue, key, {place(), place(), place()}, noise));
  CGL_TRY_ASSIGN(DeviceVolume texture, bench.kernels->allocate(box));
  CGL_TRY(bench.kernels->filter_inside(*bench.queue, noise, texture, windows));
  CGL_TRY(bench.kernels->exponentiate(*bench.queue, texture, draw.value(-2.0f, 2.0f)));
  TileVoxelsRecord record{};
  TileModel& model = record.model;
  // Cells inside, at the border and beyond it.
  model.sample_row = draw.value(-3.0f, 5.0f);
  model.row_by_row = draw.value(0.8f, 1.1f);
  model.row_by_column = draw.value(-0.2f, 0.2f);
  model.sample_column = draw.value(-3.0f, 5.0f);
  model.column_by_row = draw.value(-0.2f, 0.2f);
  model.column_by_column = draw.value(0.8f, 1.1f);
  model.sample_plane = draw.value(-3.0f, 5.0f);
  model.surface = draw.value(-5.0f, 20.0f);
  model.surface_by_row = draw.value(-0.1f, 0.1f);
  model.surface_by_column = draw.value(-0.1f, 0.1f);
  record.tile_y = draw.between(1, 24);
  record.tile_x = draw.one_in(3) ? draw.between(60, 140) : draw.between(1, 24);
  model.row_scale = 2.0f / static_cast<float>(record.tile_y);
  model.column_scale = 2.0f / static_cast<float>(record.tile_x);
  model.curvature = draw.value(-6.0f, 6.0f);
  model.curvature_mean = draw.value(-2.0f, 2.0f);
  model.depth_offset = draw.value(-2.0f, 2.0f);
  model.flat_field = draw.one_in(3) ? 0.0f : draw.value(0.0f, 0.4f);
  model.focus_plane = draw.value(0.0f, 20.0f);
  model.rayleigh_planes = draw.one_in(3) ? 0.0f : draw.value(1.0f, 30.0f);
  model.water = draw.value(0.0f, 0.1f);
  model.tissue = draw.value(0.5f, 2.0f);
  model.agarose = draw.value(0.0f, 0.5f);
  model.decay = draw.one_in(8) ? 30.0f : draw.value(0.0f, 0.1f);
  model.noise_floor = draw.one_in(3) ? 0.0f : draw.value(0.0f, 0.1f);
  model.gain = draw.value(0.5f, 2.0f);
  model.tissue_row = draw.value(0.0f, 10.0f);
  model.tissue_column = draw.value(0.0f, 10.0f);
  model.tissue_row_radius = draw.one_in(3) ? 0.0f : draw.value(1.0f, 20.0f);
  model.tissue_column_radius = draw.value(1.0f, 20.0f);
  record.key_low = draw.below(UINT32_MAX);
  record.key_high = draw.below(UINT32_MAX);
  record.tile = draw.below(1000);
  record.speckle_shape = draw.one_in(4) ? 0 : draw.between(1, 9);
  record.box_z = box.z;
  record.box_y = box.y;
  record.box_x = box.x;
  record.part_y = box.y;
  record.first_z = draw.below(30);
  record.first_y = draw.below(record.tile_y);
  record.z = draw.between(1, 40);
  record.y = draw.between(1, record.tile_y - record.first_y);
  record.extra_lines = draw.one_in(2) ? 0 : draw.below(record.tile_x / 2 + 1);
  record.lines = record.tile_x + record.extra_lines;
  record.last_line = draw.below(record.tile_x);
  record.as_acquired = draw.below(2);
  CGL_TRY_ASSIGN(const DeviceVolume made, bench.kernels->allocate({record.z, record.y, record.lines}));
  CGL_TRY(bench.kernels->simulate_voxels(*bench.queue, record, texture, *made.buffer, 0));
  CGL_TRY_ASSIGN(std::vector<float> result, bench.kernels->download(*bench.queue, texture));
  CGL_TRY_ASSIGN(const std::vector<float> voxels, bench.kernels->download(*bench.queue, made));
  result.insert(result.end(), voxels.begin(), voxels.end());
  return result;
}

struct NamedPlan {
  const char* name;
  Plan plan;
};
constexpr NamedPlan plans[] = {{"filter", filter_plan},       {"resize", resize_plan},
                               {"interface", interface_plan}, {"interface by default", default_interface_plan},
                               {"roll", roll_plan},           {"product", product_plan},
                               {"sample", sample_plan},       {"count", count_plan},
                               {"blend", blend_plan},         {"attenuation", attenuation_plan},
                               {"lines", lines_plan},         {"simulation", simulation_plan}};

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

// Larger than random plans: more than a strip of columns, a segment of rows, a batch of planes; cells inside and at the
// border; coordinates by a table, given, and as displacements.
TEST_P(OctKernelParity, volumes_of_many_blocks_have_the_bits_of_the_cpu) {
  ASSERT_OK_AND_ASSIGN(Device* const cpu, cingulum::testing::registry().select_one("cpu"));
  ASSERT_OK_AND_ASSIGN(const Bench truth, Bench::on(*cpu));
  const VolumeShape shape{29, 277, 381};
  const std::vector<float> voxels = OctDraw(3).volume(shape);
  const std::array<std::array<double, 4>, 3> turn = {{{1, 0.02, 0, -3}, {-0.02, 1, 0.05, 2}, {0, -0.05, 1, 4}}};
  std::vector<float> places(3 * shape.voxels());
  OctDraw noise(4);
  for (std::uint64_t i = 0; i < places.size(); ++i) {
    places[i] = static_cast<float>(i / shape.voxels()) + noise.value(-1.5f, 1.5f);
  }
  const auto results_of = [&](const Bench& where) -> Result<std::vector<std::vector<float>>> {
    OctKernels& kernels = *where.kernels;
    CGL_TRY_ASSIGN(const DeviceVolume volume, kernels.upload(*where.queue, shape, voxels));
    CGL_TRY_ASSIGN(const DeviceVolume field, kernels.upload(*where.queue, {3 * shape.z, shape.y, shape.x}, places));
    CGL_TRY_ASSIGN(DeviceVolume to, kernels.allocate(shape));
    std::vector<std::vector<float>> results(4);
    InterfaceOptions options;
    options.sub_voxel = true;
    CGL_TRY_ASSIGN(const DeviceVolume depths, kernels.find_interface(*where.queue, volume, options));
    CGL_TRY_ASSIGN(results[0], kernels.download(*where.queue, depths));
    CGL_TRY(kernels.transform_affine(*where.queue, volume, to, turn, {}));
    CGL_TRY_ASSIGN(results[1], kernels.download(*where.queue, to));
    CGL_TRY(kernels.displace(*where.queue, volume, field, to, {1, Boundary::mirror, 0.0f}));
    CGL_TRY_ASSIGN(results[2], kernels.download(*where.queue, to));
    CGL_TRY(kernels.map_coordinates(*where.queue, volume, field, to, {}));
    CGL_TRY_ASSIGN(results[3], kernels.download(*where.queue, to));
    return results;
  };
  ASSERT_OK_AND_ASSIGN(const auto expected, results_of(truth));
  ASSERT_OK_AND_ASSIGN(const auto results, results_of(bench()));
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(results[i], expected[i])) << i;
}

TEST_P(OctKernelTest, slabs_of_a_volume_that_is_not_bound_at_once_have_the_same_bits) {
  OctDraw draw(71);
  const VolumeShape shape{40, 12, 70};
  const std::vector<float> voxels = draw.volume(shape);
  // Ten planes at a time: a window along z needs fewer.
  ASSERT_OK_AND_ASSIGN(const auto small, OctKernels::create(device(), 10 * shape.plane() + 3));
  std::vector<std::vector<float>> results[2];
  for (std::size_t i = 0; i < 2; ++i) {
    OctKernels& used = i == 0 ? kernels() : *small;
    const auto keep = [&](const DeviceVolume& volume) -> Status {
      CGL_TRY_ASSIGN(auto result, used.download(queue(), volume));
      results[i].push_back(std::move(result));
      return {};
    };
    ASSERT_OK_AND_ASSIGN(const DeviceVolume from, used.upload(queue(), shape, voxels));
    ASSERT_OK_AND_ASSIGN(DeviceVolume to, used.allocate(shape));
    ASSERT_OK(used.filter_gaussian(queue(), from, to, {0.8, 1, 1}, {0, 0, 0}, {}));
    ASSERT_OK(keep(to));
    ASSERT_OK_AND_ASSIGN(DeviceVolume third, used.allocate({31, 5, 90}));
    ASSERT_OK(used.resize(queue(), from, third, {}));
    ASSERT_OK(keep(third));
    ASSERT_OK_AND_ASSIGN(const DeviceVolume piece, used.upload(queue(), {9, 12, 70}, std::span(voxels).first(7560)));
    ASSERT_OK_AND_ASSIGN(DeviceVolume turned, used.allocate({40, 12, 70}));
    ASSERT_OK(
        used.transform_affine(queue(), piece, turned, {{{0.2, 0, 0.01, 0}, {0, 1, 0, 0.5}, {0, 0.1, 0.9, 1}}}, {}));
    ASSERT_OK(keep(turned));
    ASSERT_OK_AND_ASSIGN(const DeviceVolume field, used.upload(queue(), {120, 12, 70}, [&] {
      std::vector<float> all = voxels;
      for (int copy = 0; copy < 2; ++copy) all.insert(all.end(), voxels.begin(), voxels.end());
      return all;
    }()));
    ASSERT_OK(used.displace(queue(), piece, field, turned, {1, Boundary::mirror, 0.0f}));
    ASSERT_OK(keep(turned));
    ASSERT_OK_AND_ASSIGN(DeviceVolume weights, used.upload(queue(), {1, 12, 70}, std::span(voxels).first(840)));
    ASSERT_OK_AND_ASSIGN(DeviceVolume sum, used.upload(queue(), shape, voxels));
    ASSERT_OK_AND_ASSIGN(DeviceVolume weight_sum, used.upload(queue(), shape, voxels));
    ASSERT_OK(used.blend_add(queue(), from, weights, {3, -2, 5}, sum, weight_sum));
    ASSERT_OK(used.blend_finish(queue(), sum, weight_sum, to));
    ASSERT_OK(keep(to));
    const double percents[] = {25.0, 50.0};
    ASSERT_OK_AND_ASSIGN(const std::vector<double> found, used.percentiles(queue(), from, percents));
    results[i].push_back({static_cast<float>(found[0]), static_cast<float>(found[1])});
  }
  for (std::size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(same_bits(results[1][i], results[0][i])) << i;
  // What runs through all planes says that it does not fit.
  ASSERT_OK_AND_ASSIGN(const DeviceVolume from, small->upload(queue(), shape, voxels));
  ASSERT_OK_AND_ASSIGN(DeviceVolume flat, small->allocate({1, 12, 70}));
  EXPECT_TRUE(cingulum::testing::fails_with(small->project(queue(), from, flat, Projection::mean), ErrorKind::device,
                                            "40 x 12 x 70 voxels is more than one binding"));
}

// Voxel by voxel by their definitions, in float64 where something is summed.
TEST_P(OctKernelTest, lines_are_ordered_summed_by_their_surface_and_divided) {
  const VolumeShape raw{5, 37, 70};  // rows, lines, samples
  const VolumeShape shape{70, 5, 34};
  constexpr std::uint32_t first_line = 30;
  constexpr std::uint32_t layers = 3, depth = 20;
  const std::vector<float> voxels = OctDraw(12).volume(raw);
  ASSERT_OK_AND_ASSIGN(const DeviceVolume from, kernels().upload(queue(), raw, voxels));
  ASSERT_OK_AND_ASSIGN(DeviceVolume ordered, kernels().allocate(shape));
  ASSERT_OK(kernels().order_lines(queue(), from, first_line, ordered));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> planes, kernels().download(queue(), ordered));
  const auto sample = [&](std::uint32_t z, std::uint32_t y, std::uint32_t x) {
    return voxels[(y * raw.y + (first_line + x) % raw.y) * raw.x + z];
  };
  // Halves round up; below the surface three planes are left out and above it six; what lies past an end is cut.
  const std::vector<float> surfaces = {0.0f, 10.0f, 10.4f, 10.5f, 6.0f, 6.4f, 6.5f, 45.0f, 69.5f, 70.0f, -2.0f, 80.0f};
  std::vector<float> surface(shape.plane()), light(shape.plane());
  for (std::size_t i = 0; i < surface.size(); ++i) {
    surface[i] = surfaces[i % surfaces.size()];
    light[i] = 0.5f + 0.01f * static_cast<float>(i);
  }
  const VolumeShape map_shape{1, shape.y, shape.x};
  ASSERT_OK_AND_ASSIGN(const DeviceVolume surface_map, kernels().upload(queue(), map_shape, surface));
  ASSERT_OK_AND_ASSIGN(const DeviceVolume light_map, kernels().upload(queue(), map_shape, light));
  ASSERT_OK_AND_ASSIGN(DeviceVolume summed, kernels().allocate({layers + 2, shape.y, shape.x}));
  ASSERT_OK(kernels().sum_layers(queue(), ordered, surface_map, depth, summed));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> sums, kernels().download(queue(), summed));
  constexpr std::uint32_t first_plane = 7;
  ASSERT_OK_AND_ASSIGN(DeviceVolume divided, kernels().allocate({60, shape.y, shape.x}));
  ASSERT_OK(kernels().divide_by_map(queue(), ordered, first_plane, light_map, divided));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> quotients, kernels().download(queue(), divided));
  for (std::uint32_t y = 0; y < shape.y; ++y) {
    for (std::uint32_t x = 0; x < shape.x; ++x) {
      const std::uint32_t pixel = y * shape.x + x;
      const double at = std::clamp(static_cast<double>(surface[pixel]), 0.0, 70.0);
      const long first = std::min(std::lround(at + 3), 69L);
      const long water = std::lround(at - 6);
      const auto sum = [&](long begin, long end) {
        double total = 0;
        for (long z = std::max(0L, begin); z < std::min(end, 70L); ++z) {
          total += static_cast<double>(sample(static_cast<std::uint32_t>(z), y, x));
        }
        return total;
      };
      for (std::uint32_t z = 0; z < shape.z; ++z) EXPECT_EQ(planes[z * shape.plane() + pixel], sample(z, y, x));
      for (std::uint32_t k = 0; k < layers; ++k) {
        EXPECT_NEAR(sums[k * shape.plane() + pixel], sum(first + 8 * k, first + 8 * k + 8), 1e-4) << k;
      }
      EXPECT_NEAR(sums[layers * shape.plane() + pixel], sum(first, first + depth), 1e-4);
      EXPECT_NEAR(sums[(layers + 1) * shape.plane() + pixel], sum(0, water), 1e-4);
      for (std::uint32_t z = 0; z < 60; ++z) {
        EXPECT_EQ(quotients[z * shape.plane() + pixel], sample(first_plane + z, y, x) / light[pixel]);
      }
    }
  }
  ASSERT_OK_AND_ASSIGN(DeviceVolume wrong, kernels().allocate({70, 5, 38}));
  EXPECT_TRUE(cingulum::testing::fails_with(kernels().order_lines(queue(), from, 0, wrong), ErrorKind::invalid_argument,
                                            "5 rows of 37 lines of 70 samples"));
  EXPECT_TRUE(cingulum::testing::fails_with(kernels().divide_by_map(queue(), ordered, 11, light_map, divided),
                                            ErrorKind::invalid_argument, "60 planes of 5 x 34 from plane 11"));
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

TEST_P(OctKernelTest, a_step_of_tissue_is_found_at_its_first_voxel) {
  const VolumeShape shape{64, 20, 33};
  std::vector<float> voxels(shape.voxels());
  const auto step = [](std::uint64_t line) { return 10 + static_cast<std::uint32_t>(line * 7 % 40); };
  for (std::uint32_t z = 0; z < shape.z; ++z) {
    for (std::uint64_t line = 0; line < shape.plane(); ++line) {
      voxels[z * shape.plane() + line] = z < step(line) ? 0.02f : 1.0f;
    }
  }
  ASSERT_OK_AND_ASSIGN(const DeviceVolume volume, kernels().upload(queue(), shape, voxels));
  InterfaceOptions options;
  options.box_xy = 1;
  for (const bool use_log : {false, true}) {
    for (const bool sub_voxel : {false, true}) {
      options.use_log = use_log;
      options.sub_voxel = sub_voxel;
      ASSERT_OK_AND_ASSIGN(const DeviceVolume depths, kernels().find_interface(queue(), volume, options));
      ASSERT_OK_AND_ASSIGN(const std::vector<float> result, kernels().download(queue(), depths));
      // The step lies between two samples; half of sigma is added, and the whole number above is taken.
      for (std::uint64_t line = 0; line < shape.plane(); ++line) {
        ASSERT_NEAR(result[line], static_cast<float>(step(line)) + (sub_voxel ? 0.5f : 0.0f), sub_voxel ? 1e-3f : 0.0f);
      }
    }
  }
}

TEST_P(OctKernelTest, samples_outside_the_mask_do_not_answer) {
  // A bright band hides the step behind it until it is left out; without any sample the answer is half of sigma.
  const VolumeShape shape{48, 1, 3};
  std::vector<float> voxels(shape.voxels(), 0.1f);
  std::vector<float> mask(shape.voxels(), 1.0f);
  for (std::uint32_t z = 0; z < shape.z; ++z) {
    for (std::uint32_t x = 0; x < 3; ++x) {
      float& voxel = voxels[z * 3 + x];
      if (z >= 30) voxel = 1.0f;
      if (z >= 10 && z < 14) voxel = 50.0f;
      if (x == 1 && z >= 10 && z < 14) mask[z * 3 + x] = 0.0f;
      if (x == 2) mask[z * 3 + x] = 0.0f;
    }
  }
  ASSERT_OK_AND_ASSIGN(const DeviceVolume volume, kernels().upload(queue(), shape, voxels));
  ASSERT_OK_AND_ASSIGN(const DeviceVolume kept, kernels().upload(queue(), shape, mask));
  InterfaceOptions options;
  options.box_xy = 1;
  ASSERT_OK_AND_ASSIGN(const DeviceVolume depths, kernels().find_interface(queue(), volume, options, &kept));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> result, kernels().download(queue(), depths));
  EXPECT_EQ(result, (std::vector<float>{10.0f, 30.0f, 1.0f}));
}

TEST_P(OctKernelTest, lines_roll_by_whole_numbers_and_by_parts) {
  const VolumeShape shape{5, 1, 4};
  std::vector<float> voxels(shape.voxels());
  for (std::uint32_t z = 0; z < 5; ++z) {
    for (std::uint32_t x = 0; x < 4; ++x) voxels[z * 4 + x] = static_cast<float>(z);
  }
  ASSERT_OK_AND_ASSIGN(const DeviceVolume from, kernels().upload(queue(), shape, voxels));
  ASSERT_OK_AND_ASSIGN(const DeviceVolume by,
                       kernels().upload(queue(), {1, 1, 4}, std::vector<float>{0, 2, -1, 0.25f}));
  ASSERT_OK_AND_ASSIGN(DeviceVolume to, kernels().allocate(shape));
  const auto line = [](const std::vector<float>& all, std::uint32_t x) {
    std::vector<float> values;
    for (std::uint32_t z = 0; z < 5; ++z) values.push_back(all[z * 4 + x]);
    return values;
  };
  ASSERT_OK(kernels().roll_lines(queue(), from, by, to, {true, 9.0f}));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> circular, kernels().download(queue(), to));
  EXPECT_EQ(line(circular, 0), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(line(circular, 1), (std::vector<float>{2, 3, 4, 0, 1}));
  EXPECT_EQ(line(circular, 2), (std::vector<float>{4, 0, 1, 2, 3}));
  EXPECT_EQ(line(circular, 3), (std::vector<float>{0.25f, 1.25f, 2.25f, 3.25f, 3.0f}));
  ASSERT_OK(kernels().roll_lines(queue(), from, by, to, {false, 9.0f}));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> filled, kernels().download(queue(), to));
  EXPECT_EQ(line(filled, 1), (std::vector<float>{2, 3, 4, 9, 9}));
  EXPECT_EQ(line(filled, 2), (std::vector<float>{9, 0, 1, 2, 3}));
  EXPECT_EQ(line(filled, 3), (std::vector<float>{0.25f, 1.25f, 2.25f, 3.25f, 5.25f}));
}

TEST_P(OctKernelTest, projections_are_the_mean_and_the_greatest_value) {
  OctDraw draw(11);
  for (const std::uint32_t depth : {1u, 31u, 32u, 33u, 400u}) {
    const VolumeShape shape{depth, 3, 70};
    const std::vector<float> voxels = draw.volume(shape);
    ASSERT_OK_AND_ASSIGN(const DeviceVolume from, kernels().upload(queue(), shape, voxels));
    ASSERT_OK_AND_ASSIGN(DeviceVolume to, kernels().allocate({1, 3, 70}));
    ASSERT_OK(kernels().project(queue(), from, to, Projection::mean));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> mean, kernels().download(queue(), to));
    ASSERT_OK(kernels().project(queue(), from, to, Projection::max));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> most, kernels().download(queue(), to));
    for (std::uint64_t line = 0; line < shape.plane(); ++line) {
      double sum = 0.0;
      float greatest = voxels[line];
      for (std::uint32_t z = 0; z < depth; ++z) {
        sum += voxels[z * shape.plane() + line];
        greatest = std::max(greatest, voxels[z * shape.plane() + line]);
      }
      ASSERT_NEAR(mean[line], sum / depth, 1e-6 * std::abs(sum / depth) + 1e-7);
      ASSERT_EQ(most[line], greatest);
    }
  }
}

TEST_P(OctKernelTest, products_of_planes_are_plane_sums) {
  OctDraw draw(21);
  const VolumeShape a{3, 70, 100};
  const VolumeShape b{2, 80, 90};
  const std::vector<float> first = draw.volume(a);
  const std::vector<float> second = draw.volume(b);
  ASSERT_OK_AND_ASSIGN(const DeviceVolume va, kernels().upload(queue(), a, first));
  ASSERT_OK_AND_ASSIGN(const DeviceVolume vb, kernels().upload(queue(), b, second));
  const std::vector<PlaneProduct> products = random_products(draw, a, b);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> sums, kernels().plane_products(queue(), va, vb, 1.5f, 0.25f, products));
  for (std::size_t i = 0; i < products.size(); ++i) {
    const PlaneProduct& one = products[i];
    double exact = 0.0;
    const auto term = [&](std::uint32_t y, std::uint32_t x) {
      const float u = first[(one.a_z * a.y + one.a_y + y) * a.x + one.a_x + x] - 1.5f;
      const float w = second[(one.b_z * b.y + one.b_y + y) * b.x + one.b_x + x] - 0.25f;
      switch (one.kind) {
        case ProductKind::sum: return u;
        case ProductKind::square: return u * u;
        case ProductKind::product: return u * w;
        case ProductKind::other_sum: return w;
        case ProductKind::other_square: return w * w;
      }
      return 0.0f;
    };
    for (std::uint32_t y = 0; y < one.rows; ++y) {
      for (std::uint32_t x = 0; x < one.columns; ++x) exact += term(y, x);
    }
    EXPECT_EQ(sums[i], numerics::plane_sum(one.rows, one.columns, term)) << i;
    EXPECT_NEAR(sums[i], exact, 1e-2) << i;
  }
}

TEST_P(OctKernelTest, the_overlap_of_two_slices_is_found) {
  OctDraw draw(31);
  const VolumeShape whole{60, 48, 40};
  const std::vector<float> tissue = draw.volume(whole);
  const std::uint64_t plane = whole.plane();
  // Slices of 36 planes, 24 apart: 12 planes are in both, with speckle of their own.
  const auto slice = [&](std::uint32_t first, float gain) {
    std::vector<float> voxels(tissue.begin() + static_cast<std::ptrdiff_t>(first * plane),
                              tissue.begin() + static_cast<std::ptrdiff_t>((first + 36) * plane));
    for (float& voxel : voxels) voxel = gain * voxel + draw.value(0.0f, 1.0f);
    return voxels;
  };
  ASSERT_OK_AND_ASSIGN(const DeviceVolume fixed, kernels().upload(queue(), {36, 48, 40}, slice(0, 1.0f)));
  ASSERT_OK_AND_ASSIGN(const DeviceVolume moving, kernels().upload(queue(), {36, 48, 40}, slice(24, 0.7f)));
  ASSERT_OK_AND_ASSIGN(const OverlapFound found, kernels().find_z_overlap(queue(), fixed, moving, {9, 1, 20}));
  EXPECT_EQ(found.planes, 12);
  EXPECT_GT(found.correlation, 0.85);
  ASSERT_EQ(found.correlations.size(), 20u);
  EXPECT_LT(found.correlations[10], 0.2);
  ASSERT_OK_AND_ASSIGN(const OverlapFound nothing, kernels().find_z_overlap(queue(), fixed, moving, {9, 4, 4}));
  EXPECT_EQ(nothing.planes, 9);
  EXPECT_EQ(nothing.correlation, 0.0);
}

TEST_P(OctKernelTest, products_at_all_shifts_are_those_of_the_host_and_find_the_shift_of_two_planes) {
  OctDraw draw(41);
  const VolumeShape whole{1, 90, 90};
  const std::vector<float> scene = draw.volume(whole);
  const auto window = [&](std::uint32_t y0, std::uint32_t x0, std::uint32_t h, std::uint32_t w) {
    std::vector<float> voxels;
    for (std::uint32_t y = 0; y < h; ++y) {
      for (std::uint32_t x = 0; x < w; ++x) voxels.push_back(scene[(y0 + y) * 90 + x0 + x]);
    }
    return voxels;
  };
  const std::vector<float> fixed_pixels = window(0, 0, 50, 50);
  const std::vector<float> moving_pixels = window(3, 38, 40, 45);
  ASSERT_OK_AND_ASSIGN(const DeviceVolume fixed, kernels().upload(queue(), {1, 50, 50}, fixed_pixels));
  ASSERT_OK_AND_ASSIGN(const DeviceVolume moving, kernels().upload(queue(), {1, 40, 45}, moving_pixels));
  const ShiftWindow shifts{1, 36, 4, 14};  // 50 columns further nothing is left
  const ShiftWindow others{-2, 30, 1, 3};
  const std::array<PlanePair, 2> pairs = {PlanePair{0, 0, shifts}, PlanePair{0, 0, others}};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> products,
                       kernels().shift_products(queue(), fixed, moving, 1.5f, pairs));
  ASSERT_EQ(products.size(), shifts.count() + others.count());
  const ImageView fixed_image{fixed_pixels.data(), 50, 50}, moving_image{moving_pixels.data(), 40, 45};
  const auto compare = [&](const ShiftWindow& at, std::span<const float> found) {
    const std::vector<NccSums> expected = plane_terms_on_host(fixed_image, moving_image, 1.5f, at);
    const std::vector<NccSums> taken = plane_terms_on_host(fixed_image, moving_image, 1.5f, at, found);
    ASSERT_EQ(expected.size(), at.count());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[i], expected[i].product) << i;
      // What is given is taken, and beside it the sums are made as ever.
      EXPECT_EQ(taken[i].product, found[i]) << i;
      EXPECT_EQ(taken[i].fixed, expected[i].fixed) << i;
      EXPECT_EQ(taken[i].moving_square, expected[i].moving_square) << i;
      EXPECT_EQ(taken[i].pixels, expected[i].pixels) << i;
    }
  };
  compare(shifts, std::span(products).first(shifts.count()));
  compare(others, std::span(products).subspan(shifts.count()));
  const ImagePair pair{fixed_image, moving_image};
  const NccPeak peak = find_peak({&pair, 1}, 1.5f, shifts, 50, std::span(products).first(shifts.count()));
  ASSERT_TRUE(peak.found);
  EXPECT_NEAR(peak.shift[0], 3, 0.2);
  EXPECT_NEAR(peak.shift[1], 38, 0.2);
  EXPECT_NEAR(peak.ncc, 1.0, 1e-5);
}

TEST_P(OctKernelTest, transforms_by_whole_numbers_are_exact_and_a_ramp_stays_a_ramp) {
  OctDraw draw(51);
  const VolumeShape shape{9, 10, 11};
  const std::vector<float> voxels = draw.volume(shape);
  ASSERT_OK_AND_ASSIGN(const DeviceVolume from, kernels().upload(queue(), shape, voxels));
  ASSERT_OK_AND_ASSIGN(DeviceVolume to, kernels().allocate(shape));
  const auto at = [&](std::int32_t z, std::int32_t y, std::int32_t x) {
    const bool inside = z >= 0 && z < 9 && y >= 0 && y < 10 && x >= 0 && x < 11;
    return inside ? voxels[static_cast<std::size_t>((z * 10 + y) * 11 + x)] : -7.0f;
  };
  for (const int order : {0, 1}) {
    ASSERT_OK(kernels().transform_affine(queue(), from, to, {{{1, 0, 0, 2}, {0, 1, 0, -3}, {0, 0, 1, 1}}},
                                         {order, Boundary::constant, -7.0f}));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> moved, kernels().download(queue(), to));
    for (std::int32_t i = 0; i < 990; ++i) {
      ASSERT_EQ(moved[static_cast<std::size_t>(i)], at(i / 110 + 2, i / 11 % 10 - 3, i % 11 + 1)) << order;
    }
  }
  std::vector<float> ramp(shape.voxels());
  for (std::size_t i = 0; i < ramp.size(); ++i) {
    ramp[i] = 2.0f * static_cast<float>(i / 110) - 0.5f * static_cast<float>(i / 11 % 10) + static_cast<float>(i % 11);
  }
  ASSERT_OK_AND_ASSIGN(const DeviceVolume ramps, kernels().upload(queue(), shape, ramp));
  ASSERT_OK_AND_ASSIGN(DeviceVolume small, kernels().allocate({4, 4, 4}));
  for (const int order : {1, 3}) {
    ASSERT_OK(kernels().transform_affine(queue(), ramps, small,
                                         {{{0.7, 0.1, 0, 3.2}, {0, 0.8, 0.2, 2.9}, {-0.3, 0, 0.9, 4.3}}},
                                         {order, Boundary::constant, 0.0f}));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> result, kernels().download(queue(), small));
    for (std::uint32_t i = 0; i < 64; ++i) {
      const double z = i / 16;
      const double y = i / 4 % 4;
      const double x = i % 4;
      const double expected =
          2.0 * (0.7 * z + 0.1 * y + 3.2) - 0.5 * (0.8 * y + 0.2 * x + 2.9) + (-0.3 * z + 0.9 * x + 4.3);
      // Near the ends a mirrored ramp is bent, and splines of order 3 feel it.
      ASSERT_NEAR(result[i], expected, order == 1 ? 2e-6 * 27 : 0.05) << order;
    }
  }
}

TEST_P(OctKernelTest, percentiles_are_exact) {
  OctDraw draw(61);
  const VolumeShape shape{7, 31, 43};
  std::vector<float> voxels = draw.volume(shape);
  voxels[0] = -1e30f;
  voxels[1] = 1e30f;
  ASSERT_OK_AND_ASSIGN(const DeviceVolume volume, kernels().upload(queue(), shape, voxels));
  for (const bool positive : {false, true}) {
    std::vector<float> sorted;
    for (const float voxel : voxels) {
      if (!positive || voxel > 0.0f) sorted.push_back(voxel);
    }
    std::sort(sorted.begin(), sorted.end());
    const std::vector<double> percents = {0.0, 0.1, 12.5, 50.0, 99.9, 100.0};
    ASSERT_OK_AND_ASSIGN(const std::vector<double> found, kernels().percentiles(queue(), volume, percents, positive));
    for (std::size_t i = 0; i < percents.size(); ++i) {
      const double at = percents[i] / 100.0 * static_cast<double>(sorted.size() - 1);
      const auto low = static_cast<std::size_t>(at);
      const double above = sorted[std::min(low + 1, sorted.size() - 1)];
      EXPECT_DOUBLE_EQ(found[i], sorted[low] + (above - sorted[low]) * (at - static_cast<double>(low))) << percents[i];
    }
  }
}

TEST_P(OctKernelTest, a_median_leaves_out_what_stands_alone) {
  const VolumeShape shape{3, 9, 9};
  std::vector<float> voxels(shape.voxels());
  for (std::size_t i = 0; i < voxels.size(); ++i) voxels[i] = i % 9 < 4 ? 1.0f : 5.0f;
  voxels[81 + 4 * 9 + 1] = 100.0f;
  voxels[81 + 4 * 9 + 7] = -100.0f;
  ASSERT_OK_AND_ASSIGN(const DeviceVolume from, kernels().upload(queue(), shape, voxels));
  ASSERT_OK_AND_ASSIGN(DeviceVolume to, kernels().allocate(shape));
  ASSERT_OK(kernels().filter_median(queue(), from, to, {1, 3, 3}));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> result, kernels().download(queue(), to));
  for (std::size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], i % 9 < 4 ? 1.0f : 5.0f) << i;
  // The median of two samples is the upper one, as in SciPy: a step moves by one.
  ASSERT_OK(kernels().filter_median(queue(), from, to, {1, 1, 2}));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> pairs, kernels().download(queue(), to));
  EXPECT_EQ(pairs[3], 1.0f);
  EXPECT_EQ(pairs[4], 5.0f);
}

TEST_P(OctKernelTest, blended_tiles_are_weighted_means_and_zero_where_there_is_none) {
  const VolumeShape shape{2, 3, 6};
  const std::vector<float> zeros(shape.voxels(), 0.0f);
  ASSERT_OK_AND_ASSIGN(DeviceVolume sum, kernels().upload(queue(), shape, zeros));
  ASSERT_OK_AND_ASSIGN(DeviceVolume weight_sum, kernels().upload(queue(), shape, zeros));
  ASSERT_OK_AND_ASSIGN(DeviceVolume to, kernels().allocate(shape));
  const VolumeShape tile{2, 3, 4};
  const auto add = [&](float value, float weight, Offset3 at) -> Status {
    CGL_TRY_ASSIGN(const DeviceVolume voxels,
                   kernels().upload(queue(), tile, std::vector<float>(tile.voxels(), value)));
    CGL_TRY_ASSIGN(const DeviceVolume weights, kernels().upload(queue(), {1, 3, 4}, std::vector<float>(12, weight)));
    return kernels().blend_add(queue(), voxels, weights, at, sum, weight_sum);
  };
  ASSERT_OK(add(2.0f, 1.0f, {0, 0, -1}));  // columns 0 to 2
  ASSERT_OK(add(8.0f, 0.5f, {1, 0, 2}));   // columns 2 to 5 of plane 1
  ASSERT_OK(add(9.0f, 1.0f, {0, 3, 0}));   // outside
  ASSERT_OK(kernels().blend_finish(queue(), sum, weight_sum, to));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> result, kernels().download(queue(), to));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t x = i % 6;
    const bool first = x < 3;
    const bool second = i >= 18 && x >= 2;
    ASSERT_EQ(result[i], first && second ? 4.0f : first ? 2.0f : second ? 8.0f : 0.0f) << i;
  }
}

TEST_P(OctKernelTest, attenuation_of_an_exponential_is_its_rate_and_is_made_up_for) {
  // exp(-2 mu z step), with a tail below the last sample that continues it (Liu's factor).
  const double mu = 0.010;
  const double step = 1.5;
  const VolumeShape shape{200, 2, 70};
  std::vector<float> voxels(shape.voxels());
  for (std::size_t i = 0; i < voxels.size(); ++i) {
    voxels[i] = static_cast<float>(std::exp(-2.0 * mu * step * static_cast<double>(i / shape.plane())));
  }
  ASSERT_OK_AND_ASSIGN(const DeviceVolume from, kernels().upload(queue(), shape, voxels));
  ASSERT_OK_AND_ASSIGN(DeviceVolume tails, kernels().allocate({1, 2, 70}));
  ASSERT_OK(kernels().crop_planes(queue(), from, 199, tails));
  ASSERT_OK_AND_ASSIGN(DeviceVolume found, kernels().allocate(shape));
  ASSERT_OK(kernels().find_attenuation(queue(), from, tails, 1.0 / (std::exp(2.0 * mu * step) - 1.0), step, found));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> rates, kernels().download(queue(), found));
  for (const float rate : rates) ASSERT_NEAR(rate, mu, 1e-5);
  ASSERT_OK_AND_ASSIGN(DeviceVolume to, kernels().allocate(shape));
  ASSERT_OK(kernels().compensate_attenuation(queue(), from, found, step, 1.0, 1e-3, to));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> flat, kernels().download(queue(), to));
  for (const float value : flat) ASSERT_NEAR(value, 1.0f, 2e-3f);
  ASSERT_OK(kernels().compensate_attenuation(queue(), from, found, step, 1.0, 0.5, to));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> limited, kernels().download(queue(), to));
  EXPECT_NEAR(limited.back(), 2.0f * voxels.back(), 1e-5f);
}

TEST_P(OctKernelTest, the_axial_profile_is_the_mean_of_weighted_lines) {
  const VolumeShape shape{5, 40, 50};
  std::vector<float> voxels(shape.voxels());
  std::vector<float> weights(shape.plane(), 0.0f);
  for (std::size_t i = 0; i < voxels.size(); ++i) voxels[i] = i % 50 < 20 ? static_cast<float>(1 + i / 2000) : 77.0f;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i % 50 < 20 ? 1.0f : 0.0f;
  ASSERT_OK_AND_ASSIGN(const DeviceVolume volume, kernels().upload(queue(), shape, voxels));
  ASSERT_OK_AND_ASSIGN(const DeviceVolume map, kernels().upload(queue(), {1, 40, 50}, weights));
  ASSERT_OK_AND_ASSIGN(const std::vector<double> profile, kernels().axial_profile(queue(), volume, map));
  EXPECT_EQ(profile, (std::vector<double>{1, 2, 3, 4, 5}));
}

TEST_P(OctKernelTest, what_does_not_fit_together_is_refused) {
  ASSERT_OK_AND_ASSIGN(DeviceVolume a, kernels().allocate({4, 5, 6}));
  ASSERT_OK_AND_ASSIGN(DeviceVolume b, kernels().allocate({4, 5, 7}));
  using cingulum::testing::fails_with;
  EXPECT_TRUE(fails_with(kernels().filter_box(queue(), a, b, {3, 3, 3}, {}), ErrorKind::invalid_argument, "shapes"));
  EXPECT_TRUE(fails_with(kernels().filter_box(queue(), a, a, {3, 3, 3}, {}), ErrorKind::invalid_argument, "in place"));
  EXPECT_TRUE(fails_with(kernels().crop_planes(queue(), a, 1, a), ErrorKind::invalid_argument, "from plane 1"));
  EXPECT_TRUE(fails_with(kernels().find_z_overlap(queue(), a, b, {1, 1, 3}), ErrorKind::invalid_argument, "5 x 7"));
  EXPECT_TRUE(fails_with(kernels().resize(queue(), a, b, {2}), ErrorKind::invalid_argument, "order 2"));
  EXPECT_TRUE(fails_with(kernels().allocate({0, 5, 6}), ErrorKind::invalid_argument, "0 x 5 x 6"));
  PlaneProduct one;
  one.rows = 6;
  one.columns = 1;
  EXPECT_TRUE(fails_with(kernels().plane_products(queue(), a, b, 0, 0, std::span(&one, 1)), ErrorKind::invalid_argument,
                         "not in a volume of 4 x 5 x 6"));
  EXPECT_TRUE(
      fails_with(kernels().find_interface(queue(), a, {}, &b), ErrorKind::invalid_argument, "a mask of 4 x 5 x 7"));
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
