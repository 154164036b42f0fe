// What OctKernels does for simulated tiles: noise, windows, exponentials, voxels.
#include <fmt/format.h>

#include <algorithm>

#include "numerics/philox.hpp"
#include "oct/axis_taps.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel_backend.hpp"
#include "oct/oct_kernels.hpp"

namespace cingulum::oct {

Status OctKernels::fill_noise(Queue& queue, std::uint64_t seed, const std::array<std::int32_t, 3>& first,
                              DeviceVolume& to) {
  CGL_TRY(check_binds({1, to.shape.y, to.shape.x}));
  const numerics::PhiloxKey key = numerics::philox_key(seed);
  return for_each_slab(to.shape.z, to.shape.plane(), most_elements_, [&](std::uint32_t z, std::uint32_t planes) {
    const TextureNoiseRecord record{
        key.low, key.high, first[0] + static_cast<std::int32_t>(z), first[1], first[2], planes, to.shape.y, to.shape.x};
    return backend_->launch(queue, OctKernel::texture_noise, record, {planes_range(to, z, planes)},
                            {to.shape.x, to.shape.y, planes});
  });
}

Status OctKernels::exponentiate(Queue& queue, DeviceVolume& volume, float factor) {
  const VolumeShape& shape = volume.shape;
  CGL_TRY(check_binds({1, shape.y, shape.x}));
  return for_each_slab(shape.z, shape.plane(), most_elements_, [&](std::uint32_t z, std::uint32_t planes) {
    return backend_->launch(queue, OctKernel::exponentiate, ExponentiateRecord{planes, shape.y, shape.x, factor},
                            {planes_range(volume, z, planes)}, {shape.x, shape.y, planes});
  });
}

Status OctKernels::filter_inside(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                 const std::array<std::vector<float>, 3>& windows) {
  const std::array<std::uint32_t, 3> in = {from.shape.z, from.shape.y, from.shape.x};
  const std::array<std::uint32_t, 3> out = {to.shape.z, to.shape.y, to.shape.x};
  std::vector<AxisStep> steps;
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    if (windows[axis].empty() || out[axis] + windows[axis].size() - 1 != in[axis]) {
      return fail(ErrorKind::invalid_argument, "filtering {} samples by a window of {}: a result of {}", in[axis],
                  windows[axis].size(), out[axis]);
    }
    steps.push_back({axis, fmt::format("inside {} {}", out[axis], fmt::join(windows[axis], " ")),
                     inside_taps(out[axis], windows[axis]), false});
  }
  return filter_steps(queue, from, to, steps);
}

Status OctKernels::simulate_voxels(Queue& queue, const TileVoxelsRecord& record, const DeviceVolume& texture,
                                   const Buffer& to, std::uint64_t first) {
  const std::uint64_t count = std::uint64_t{record.z} * record.y * record.lines;
  if (texture.shape.y != record.part_y || texture.shape.x != record.box_x || (first + count) * 4 > to.bytes()) {
    return fail(ErrorKind::invalid_argument, "simulating {} x {} x {} voxels: a texture of {} x {} x {}, room for {}",
                record.z, record.y, record.lines, texture.shape.z, texture.shape.y, texture.shape.x, to.bytes() / 4);
  }
  CGL_TRY(check_binds(texture.shape));
  CGL_TRY(check_binds({record.z, record.y, record.lines}));
  const std::array<std::uint32_t, 3> threads = record.as_acquired != 0 ? std::array{record.z, record.lines, record.y}
                                                                       : std::array{record.lines, record.y, record.z};
  return backend_->launch(queue, OctKernel::tile_voxels, record, {whole_range(texture), {&to, first, count}}, threads);
}

}  // namespace cingulum::oct
