// What OctKernels does with whole A-lines: the tissue interface, rolls, projections.
#include <fmt/format.h>

#include "numerics/portable.hpp"
#include "oct/axis_taps.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel_backend.hpp"
#include "oct/oct_kernels.hpp"

namespace cingulum::oct {
namespace {

// Zeros of a batch around the weights of a window.
void append_padded(const std::vector<double>& window, std::vector<std::uint32_t>& words) {
  words.insert(words.end(), peak_batch - 1, 0u);
  for (const double weight : window) words.push_back(numerics::float_bits(static_cast<float>(weight)));
  words.insert(words.end(), peak_batch - 1, 0u);
}

// What DerivativePeakRecord::odd says of the weights, as float32 has them.
bool is_odd(const std::vector<double>& window) {
  if (window.size() != 2 * odd_peak_radius + 1) return false;
  for (std::size_t i = 0; i <= odd_peak_radius; ++i) {
    if (static_cast<float>(window[i]) != -static_cast<float>(window[window.size() - 1 - i])) return false;
  }
  return true;
}

}  // namespace

// Lines run through all planes, so that a launch binds the whole volume.
Status OctKernels::check_binds(const VolumeShape& shape) const {
  if (shape.voxels() > most_elements_) {
    return fail(ErrorKind::device,
                "device {}: a volume of {} x {} x {} voxels is more than one binding; use smaller tiles", device_.id(),
                shape.z, shape.y, shape.x);
  }
  return {};
}

Result<DeviceVolume> OctKernels::find_interface(Queue& queue, const DeviceVolume& volume,
                                                const InterfaceOptions& options, const DeviceVolume* mask) {
  const VolumeShape& shape = volume.shape;
  if (!(options.sigma_z > 0.0) || options.sigma_z > 1000.0 || options.derivative_order > 3) {
    return fail_argument("sigma_z", "interface: sigma {} along z, derivative {}; above 0 to 1000, and 0 to 3",
                         options.sigma_z, options.derivative_order);
  }
  if (mask != nullptr && mask->shape != shape) {
    return fail(ErrorKind::invalid_argument, "interface: a mask of {} x {} x {} for a volume of {} x {} x {}",
                mask->shape.z, mask->shape.y, mask->shape.x, shape.z, shape.y, shape.x);
  }
  CGL_TRY(check_binds({shape.z + 1, shape.y, shape.x}));
  CGL_TRY_ASSIGN(DeviceVolume smoothed, allocate(shape));
  const std::uint32_t window = std::max(options.box_xy, 1u);
  const bool wide = window > log_box_most_window;
  const std::uint32_t fused = wide ? 1 : window;
  const LogBoxRecord box{shape.z,
                         shape.y,
                         shape.x,
                         fused,
                         options.use_log ? 1u : 0u,
                         static_cast<float>(1.0 / (static_cast<double>(fused) * fused))};
  const std::uint32_t strips = (shape.x + log_box_outputs(fused) - 1) / log_box_outputs(fused);
  const std::uint32_t segments = (shape.y + log_box_block_rows - 1) / log_box_block_rows;
  CGL_TRY(backend_->launch(queue, OctKernel::log_box, box, {whole_range(volume), whole_range(smoothed)},
                           {strips * log_box_threads, segments, shape.z}));
  if (wide) {
    CGL_TRY_ASSIGN(DeviceVolume logs, allocate(shape));
    std::swap(logs, smoothed);
    CGL_TRY(filter_box(queue, logs, smoothed, {1, window, window}, {Boundary::reflect, 0.0f}));
  }

  DeviceVolume places = smoothed;
  if (mask != nullptr) {
    CGL_TRY_ASSIGN(places, allocate({shape.z + 1, shape.y, shape.x}));
    const CompressLinesRecord compress{shape.z, shape.y, shape.x};
    CGL_TRY(backend_->launch(queue, OctKernel::compress_lines, compress,
                             {whole_range(smoothed), whole_range(*mask), whole_range(places)}, {shape.x, shape.y, 1}));
  }

  std::vector<std::uint32_t> words;
  const std::vector<double> derivative = gaussian_window(options.sigma_z, options.derivative_order, 4.0);
  append_padded(derivative, words);
  if (options.detect_cutting_errors) append_padded(gaussian_window(options.sigma_z, 0, 4.0), words);
  const std::string key =
      fmt::format("interface {} {} {}", options.sigma_z, options.derivative_order, options.detect_cutting_errors);
  CGL_TRY_ASSIGN(const Table* const weights, table(queue, key, std::move(words)));
  CGL_TRY_ASSIGN(DeviceVolume depths, allocate({1, shape.y, shape.x}));
  DerivativePeakRecord peak{};
  peak.z = shape.z;
  peak.y = shape.y;
  peak.x = shape.x;
  peak.radius = static_cast<std::uint32_t>(derivative.size() / 2);
  peak.smooth_weights = options.detect_cutting_errors ? 1 : 0;
  peak.sub_voxel = options.sub_voxel ? 1 : 0;
  peak.masked = mask != nullptr ? 1 : 0;
  peak.lift = static_cast<float>(0.5 * options.sigma_z);
  peak.odd = is_odd(derivative) ? 1 : 0;
  CGL_TRY(backend_->launch(queue, OctKernel::derivative_peak, peak,
                           {whole_range(smoothed),
                            {weights->buffer.get(), 0, weights->words.size()},
                            whole_range(places),
                            whole_range(depths)},
                           {shape.x, shape.y, 1}));
  return depths;
}

Status OctKernels::roll_lines(Queue& queue, const DeviceVolume& from, const DeviceVolume& by, DeviceVolume& to,
                              const RollOptions& options) {
  const VolumeShape& shape = from.shape;
  if (to.shape != shape || by.shape != VolumeShape{1, shape.y, shape.x} || from.buffer == to.buffer) {
    return fail(ErrorKind::invalid_argument,
                "rolling a volume of {} x {} x {}: the result has its shape and memory of its own, the map one plane",
                shape.z, shape.y, shape.x);
  }
  CGL_TRY(check_binds(shape));
  const RollLinesRecord record{shape.z, shape.y, shape.x, options.circular ? 1u : 0u, options.fill};
  const std::uint32_t pieces = (shape.z + roll_depth_per_thread - 1) / roll_depth_per_thread;
  return backend_->launch(queue, OctKernel::roll_lines, record, {whole_range(from), whole_range(by), whole_range(to)},
                          {shape.x, shape.y, pieces});
}

Status OctKernels::order_lines(Queue& queue, const DeviceVolume& from, std::uint32_t first_line, DeviceVolume& to) {
  const auto [rows, lines, planes] = from.shape;
  if (to.shape.z != planes || to.shape.y != rows || to.shape.x > lines || first_line >= lines ||
      from.buffer == to.buffer) {
    return fail(ErrorKind::invalid_argument,
                "ordering {} rows of {} lines of {} samples from line {}: the result is a volume of its own of {} x {} "
                "x {}",
                rows, lines, planes, first_line, to.shape.z, to.shape.y, to.shape.x);
  }
  CGL_TRY(check_binds(from.shape));
  const OrderLinesRecord record{planes, rows, to.shape.x, lines, first_line};
  const std::uint32_t squares = (planes + order_side - 1) / order_side;
  return backend_->launch(queue, OctKernel::order_lines, record, {whole_range(from), whole_range(to)},
                          {to.shape.x, rows * order_block_rows, squares});
}

Status OctKernels::sum_layers(Queue& queue, const DeviceVolume& volume, const DeviceVolume& surface,
                              std::uint32_t depth, DeviceVolume& to) {
  const VolumeShape& shape = volume.shape;
  if (surface.shape != VolumeShape{1, shape.y, shape.x} || to.shape.z < 2 || to.shape.y != shape.y ||
      to.shape.x != shape.x || to.shape.z - 2 > shape.z) {
    return fail(ErrorKind::invalid_argument, "layers of a volume of {} x {} x {}: {} planes of {} x {}", shape.z,
                shape.y, shape.x, to.shape.z, to.shape.y, to.shape.x);
  }
  CGL_TRY(check_binds(shape));
  const LayerSumsRecord record{shape.z, shape.y, shape.x, to.shape.z - 2, depth};
  return backend_->launch(queue, OctKernel::layer_sums, record,
                          {whole_range(volume), whole_range(surface), whole_range(to)}, {shape.x, shape.y, 1});
}

Status OctKernels::divide_by_map(Queue& queue, const DeviceVolume& from, std::uint32_t first, const DeviceVolume& map,
                                 DeviceVolume& to) {
  if (map.shape != VolumeShape{1, from.shape.y, from.shape.x} || to.shape.y != from.shape.y ||
      to.shape.x != from.shape.x || first > from.shape.z || to.shape.z > from.shape.z - first) {
    return fail(ErrorKind::invalid_argument, "dividing {} planes of {} x {} from plane {}: the volume is {} x {} x {}",
                to.shape.z, to.shape.y, to.shape.x, first, from.shape.z, from.shape.y, from.shape.x);
  }
  CGL_TRY(check_binds({1, to.shape.y, to.shape.x}));
  return for_each_slab(to.shape.z, to.shape.plane(), most_elements_, [&](std::uint32_t z, std::uint32_t planes) {
    return backend_->launch(
        queue, OctKernel::divide_lines, DivideLinesRecord{planes, to.shape.y, to.shape.x},
        {planes_range(from, std::uint64_t{first} + z, planes), whole_range(map), planes_range(to, z, planes)},
        {to.shape.x, to.shape.y, planes});
  });
}

Status OctKernels::project(Queue& queue, const DeviceVolume& from, DeviceVolume& to, Projection projection) {
  const VolumeShape& shape = from.shape;
  if (to.shape != VolumeShape{1, shape.y, shape.x}) {
    return fail(ErrorKind::invalid_argument, "projecting planes of {} x {}: the result is one of {} x {}", shape.y,
                shape.x, to.shape.y, to.shape.x);
  }
  CGL_TRY(check_binds(shape));
  const ProjectDepthRecord record{shape.z, shape.y, shape.x, projection == Projection::max ? 1u : 0u};
  return backend_->launch(queue, OctKernel::project_depth, record, {whole_range(from), whole_range(to)},
                          {shape.x, shape.y, 1});
}

}  // namespace cingulum::oct
