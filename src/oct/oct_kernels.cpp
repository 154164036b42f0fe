#include "oct/oct_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "numerics/portable.hpp"
#include "oct/axis_taps.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel_backend.hpp"

namespace cingulum::oct {

namespace {

constexpr std::size_t most_tables = 512;

Status check_axes(const VolumeShape& shape) {
  if (shape.z == 0 || shape.y == 0 || shape.x == 0 || shape.plane() > UINT32_MAX) {
    return fail(ErrorKind::invalid_argument,
                "volume of {} x {} x {}: every axis has at least one voxel, a plane at most 2^32", shape.z, shape.y,
                shape.x);
  }
  return {};
}

std::uint32_t extent(const VolumeShape& shape, std::uint32_t axis) {
  return axis == 0 ? shape.z : axis == 1 ? shape.y : shape.x;
}

void set_extent(VolumeShape& shape, std::uint32_t axis, std::uint32_t value) {
  (axis == 0 ? shape.z : axis == 1 ? shape.y : shape.x) = value;
}

}  // namespace

Result<std::unique_ptr<OctKernels>> OctKernels::create(Device& device, std::uint64_t most_elements) {
  const auto made = [&]() -> Result<std::unique_ptr<KernelBackend>> {
    switch (device.description().backend) {
      case Backend::cuda: return make_cuda_oct_backend(device);
      case Backend::webgpu: return make_webgpu_oct_backend(device);
      case Backend::cpu: return make_host_oct_backend(device);
    }
    return fail(ErrorKind::unavailable, "device {}: no kernels for OCT", device.id());
  };
  CGL_TRY_ASSIGN(auto backend, made());
  return std::unique_ptr<OctKernels>(new OctKernels(device, std::move(backend), most_elements));
}

OctKernels::OctKernels(Device& device, std::unique_ptr<KernelBackend> backend, std::uint64_t most_elements)
    : device_(device),
      backend_(std::move(backend)),
      most_elements_(std::min(most_elements, backend_->most_elements())),
      pool_(std::make_shared<DevicePool>(device)) {}

OctKernels::~OctKernels() = default;

Result<DeviceVolume> OctKernels::allocate(VolumeShape shape) {
  CGL_TRY(check_axes(shape));
  CGL_TRY_ASSIGN(auto block, pool_->acquire(shape.bytes()));
  // The block goes back to the pool with the last owner of the buffer.
  auto held = std::make_shared<PooledBlock<DeviceBlock>>(std::move(block));
  return DeviceVolume{std::shared_ptr<Buffer>(held, (**held).get()), shape};
}

Result<DeviceVolume> OctKernels::upload(Queue& queue, VolumeShape shape, std::span<const float> voxels) {
  if (voxels.size() != shape.voxels()) {
    return fail(ErrorKind::invalid_argument, "volume of {} x {} x {}: {} values given", shape.z, shape.y, shape.x,
                voxels.size());
  }
  CGL_TRY_ASSIGN(DeviceVolume volume, allocate(shape));
  CGL_TRY(cingulum::upload(queue, *volume.buffer, voxels));
  CGL_TRY(queue.synchronise());
  return volume;
}

Result<std::vector<float>> OctKernels::download(Queue& queue, const DeviceVolume& volume) {
  std::vector<float> voxels(volume.shape.voxels());
  CGL_TRY(cingulum::download(queue, std::span(voxels), *volume.buffer));
  CGL_TRY(queue.synchronise());
  return voxels;
}

Status OctKernels::trim() {
  CGL_TRY(pool_->trim());
  return {};
}

Result<const OctKernels::Table*> OctKernels::table(Queue& queue, const std::string& key,
                                                   std::vector<std::uint32_t> words) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = tables_.find(key); found != tables_.end() && found->second->words == words) {
    return found->second.get();
  }
  if (tables_.size() >= most_tables) {
    // Work that reads them may be under way.
    CGL_TRY(queue.synchronise());
    tables_.clear();
  }
  auto made = std::make_unique<Table>();
  made->words = std::move(words);
  CGL_TRY_ASSIGN(made->buffer, device_.allocate(std::max<std::size_t>(made->words.size(), 1) * 4));
  CGL_TRY(cingulum::upload(queue, *made->buffer, std::span<const std::uint32_t>(made->words)));
  CGL_TRY(queue.synchronise());
  return (tables_[key] = std::move(made)).get();
}

Status OctKernels::filter_axis(Queue& queue, const DeviceVolume& from, DeviceVolume& to, std::uint32_t axis,
                               const std::string& key, const AxisTaps& taps) {
  CGL_TRY_ASSIGN(const Table* const words, table(queue, key, taps.words()));
  const std::uint64_t in_plane = from.shape.plane();
  const std::uint64_t out_plane = to.shape.plane();
  const std::uint64_t most = most_elements_;
  std::uint32_t first = 0;
  while (first < to.shape.z) {
    // Each launch makes as many planes of the output as can be bound together with the planes that they need.
    std::uint64_t in_first = UINT64_MAX;
    std::uint64_t in_end = 0;
    std::uint32_t end = first;
    while (end < to.shape.z) {
      std::uint64_t low = end;
      std::uint64_t high = std::uint64_t{end} + 1;
      if (axis == 0) {
        low = taps.count[end] == 0 ? std::min<std::uint64_t>(in_first, from.shape.z - 1) : taps.first[end];
        high = std::max<std::uint64_t>(std::uint64_t{taps.first[end]} + taps.count[end], low + 1);
      }
      const std::uint64_t new_first = std::min(in_first, low);
      const std::uint64_t new_end = std::max(in_end, high);
      if ((new_end - new_first) * in_plane > most || (end + 1 - first) * out_plane > most) break;
      in_first = new_first;
      in_end = new_end;
      ++end;
    }
    if (end == first) {
      return fail(ErrorKind::device, "device {}: a plane of {} x {} voxels with its neighbours is more than it binds",
                  device_.id(), from.shape.y, from.shape.x);
    }
    FilterAxisRecord record{};
    record.axis = axis;
    record.out_first_z = first;
    record.out_z = end - first;
    record.out_y = to.shape.y;
    record.out_x = to.shape.x;
    record.in_first_z = static_cast<std::uint32_t>(in_first);
    record.in_y = from.shape.y;
    record.in_x = from.shape.x;
    record.outputs = taps.outputs();
    const auto groups = [](std::uint32_t outputs) {
      return (outputs + filter_outputs_per_thread - 1) / filter_outputs_per_thread;
    };
    const std::array<std::uint32_t, 3> threads = {record.out_x, axis == 1 ? groups(record.out_y) : record.out_y,
                                                  axis == 0 ? groups(record.out_z) : record.out_z};
    CGL_TRY(backend_->launch(queue, OctKernel::filter_axis, record,
                             {planes_range(from, in_first, in_end - in_first),
                              {words->buffer.get(), 0, words->words.size()},
                              planes_range(to, first, record.out_z)},
                             threads));
    first = end;
  }
  return {};
}

Status OctKernels::spline_axis(Queue& queue, DeviceVolume& volume, std::uint32_t axis, bool half_sample) {
  const VolumeShape& shape = volume.shape;
  if (shape.voxels() > most_elements_) {
    return fail(ErrorKind::device,
                "device {}: splines of a volume of {} x {} x {} voxels: more than it binds; use order 1", device_.id(),
                shape.z, shape.y, shape.x);
  }
  const SplineAxisRecord record{axis, shape.z, shape.y, shape.x, half_sample ? 1u : 0u};
  const std::array<std::uint32_t, 3> threads = {axis == 2 ? shape.y : shape.x, axis == 0 ? shape.y : shape.z, 1};
  return backend_->launch(queue, OctKernel::spline_axis, record, {whole_range(volume)}, threads);
}

Status OctKernels::filter_steps(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                std::span<const AxisStep> steps) {
  CGL_TRY(check_axes(from.shape));
  CGL_TRY(check_axes(to.shape));
  if (from.buffer == to.buffer) {
    return fail(ErrorKind::invalid_argument, "filtering a volume in place: give another one for the result");
  }
  DeviceVolume current = from;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const AxisStep& step = steps[i];
    DeviceVolume next = to;
    if (i + 1 < steps.size()) {
      VolumeShape shape = current.shape;
      set_extent(shape, step.axis, step.taps.outputs());
      CGL_TRY_ASSIGN(next, allocate(shape));
    }
    CGL_TRY(filter_axis(queue, current, next, step.axis, step.key, step.taps));
    current = next;
    if (step.makes_coefficients) CGL_TRY(spline_axis(queue, current, step.axis, false));
  }
  if (steps.empty()) return queue.copy(*to.buffer, 0, *from.buffer, 0, from.shape.bytes());
  return {};
}

Status OctKernels::resize(Queue& queue, const DeviceVolume& from, DeviceVolume& to, const ResizeOptions& options) {
  if (options.order != 0 && options.order != 1 && options.order != 3) {
    return fail_argument("order", "resizing: order {}; 0, 1 and 3 are known", options.order);
  }
  std::vector<AxisStep> steps;
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    const std::uint32_t in = extent(from.shape, axis);
    const std::uint32_t out = extent(to.shape, axis);
    if (in == 0 || out == 0) return check_axes(in == 0 ? from.shape : to.shape);
    if (in == out) continue;
    if (options.order == 3) {
      const double sigma = options.anti_aliasing ? anti_aliasing_sigma(in, out) : 0.0;
      const FilterBoundary boundary{options.alignment == Alignment::corner ? Boundary::reflect : Boundary::mirror,
                                    0.0f};
      // A window of one sample copies where nothing is smoothed, so that the volume given stays as it is.
      steps.push_back({axis, fmt::format("smooth {} {} {}", in, out, static_cast<int>(boundary.mode)),
                       sigma > 0.0 ? gaussian_taps(in, sigma, 0, 4.0, boundary) : box_taps(in, 1, boundary), true});
    }
    steps.push_back({axis,
                     fmt::format("resize {} {} {} {} {} {}", in, out, options.order, options.anti_aliasing,
                                 static_cast<int>(options.alignment), options.compat_edge_zero),
                     resize_taps(in, out, options), false});
  }
  return filter_steps(queue, from, to, steps);
}

Status OctKernels::filter_gaussian(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                   const std::array<double, 3>& sigma, const std::array<std::uint32_t, 3>& orders,
                                   const FilterBoundary& boundary, double truncate) {
  if (from.shape != to.shape) return fail(ErrorKind::invalid_argument, "filtering: the shapes of the volumes differ");
  std::vector<AxisStep> steps;
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    if (!(sigma[axis] >= 0.0) || sigma[axis] > 1e6 || orders[axis] > 3) {
      return fail_argument("sigma", "Gaussian: sigma {}, derivative {}; from 0 on, and 0 to 3", sigma[axis],
                           orders[axis]);
    }
    if (sigma[axis] <= 1e-15) continue;
    const std::uint32_t samples = extent(from.shape, axis);
    steps.push_back({axis,
                     fmt::format("gaussian {} {} {} {} {} {}", samples, sigma[axis], orders[axis], truncate,
                                 static_cast<int>(boundary.mode), boundary.value),
                     gaussian_taps(samples, sigma[axis], orders[axis], truncate, boundary), false});
  }
  return filter_steps(queue, from, to, steps);
}

Status OctKernels::filter_box(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                              const std::array<std::uint32_t, 3>& sizes, const FilterBoundary& boundary) {
  if (from.shape != to.shape) return fail(ErrorKind::invalid_argument, "filtering: the shapes of the volumes differ");
  std::vector<AxisStep> steps;
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    if (sizes[axis] <= 1) continue;
    const std::uint32_t samples = extent(from.shape, axis);
    steps.push_back(
        {axis, fmt::format("box {} {} {} {}", samples, sizes[axis], static_cast<int>(boundary.mode), boundary.value),
         box_taps(samples, sizes[axis], boundary), false});
  }
  return filter_steps(queue, from, to, steps);
}

Status OctKernels::crop_planes(Queue& queue, const DeviceVolume& from, std::uint32_t first, DeviceVolume& to) {
  if (to.shape.y != from.shape.y || to.shape.x != from.shape.x || first > from.shape.z ||
      to.shape.z > from.shape.z - first) {
    return fail(ErrorKind::invalid_argument, "cropping {} planes of {} x {} from plane {}: the volume is {} x {} x {}",
                to.shape.z, to.shape.y, to.shape.x, first, from.shape.z, from.shape.y, from.shape.x);
  }
  return queue.copy(*to.buffer, 0, *from.buffer, first * from.shape.plane() * sizeof(float), to.shape.bytes());
}

VolumeShape rescaled_shape(VolumeShape shape, const std::array<double, 3>& scale) {
  const auto scaled = [](std::uint32_t count, double factor) {
    const double exact = count * factor;
    const double below = numerics::floor_of(exact);
    const double fraction = exact - below;
    const bool odd = below - 2.0 * numerics::floor_of(below / 2.0) != 0.0;
    const double rounded = fraction > 0.5 || (fraction == 0.5 && odd) ? below + 1.0 : below;
    return static_cast<std::uint32_t>(std::clamp(rounded, 1.0, 4294967040.0));
  };
  return {scaled(shape.z, scale[0]), scaled(shape.y, scale[1]), scaled(shape.x, scale[2])};
}

VolumeShape resampled_shape(VolumeShape shape, const std::array<double, 3>& spacing,
                            const std::array<double, 3>& target) {
  const auto scaled = [](std::uint32_t count, double from, double to) {
    return static_cast<std::uint32_t>(std::clamp(numerics::floor_of(count * from / to), 1.0, 4294967040.0));
  };
  return {scaled(shape.z, spacing[0], target[0]), scaled(shape.y, spacing[1], target[1]),
          scaled(shape.x, spacing[2], target[2])};
}

VolumeShape halved_shape(VolumeShape shape) {
  const auto half = [](std::uint32_t count) { return std::max(count / 2, 1u); };
  return {half(shape.z), half(shape.y), half(shape.x)};
}

}  // namespace cingulum::oct
