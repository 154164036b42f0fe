// Volumes read at other places: affine transforms, coordinates, displacements.
#include <algorithm>

#include "numerics/portable.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/sample_item.hpp"
#include "oct/kernel_backend.hpp"
#include "oct/oct_kernels.hpp"

namespace cingulum::oct {
namespace {

// A coordinate of float64 as a whole number and a fraction of float32 below 1.
struct SplitCoordinate {
  std::uint32_t whole;
  std::uint32_t fraction;
};

SplitCoordinate split_coordinate(double coordinate) {
  const double limited =
      std::clamp(coordinate, -static_cast<double>(farthest_whole), static_cast<double>(farthest_whole));
  double whole = numerics::floor_of(limited);
  auto fraction = static_cast<float>(limited - whole);
  if (fraction >= 1.0f) {
    fraction = 0.0f;
    whole += 1.0;
  }
  return {static_cast<std::uint32_t>(static_cast<std::int32_t>(whole)), numerics::float_bits(fraction)};
}

}  // namespace

Status OctKernels::sample(Queue& queue, const DeviceVolume& from, DeviceVolume& to, const SampleOptions& options,
                          const Coordinates& coordinates) {
  if (options.order != 0 && options.order != 1 && options.order != 3) {
    return fail_argument("order", "transforming: order {}; 0, 1 and 3 are known", options.order);
  }
  if (options.order == 3 && (options.boundary == Boundary::nearest || options.boundary == Boundary::wrap)) {
    return fail_argument("order", "transforming: order 3 goes with constant, mirrored and reflected boundaries");
  }
  if (from.buffer == to.buffer) {
    return fail(ErrorKind::invalid_argument, "transforming a volume in place: give another one for the result");
  }
  CGL_TRY(check_binds(from.shape));
  DeviceVolume source = from;
  if (options.order == 3) {
    CGL_TRY_ASSIGN(source, allocate(from.shape));
    CGL_TRY(queue.copy(*source.buffer, 0, *from.buffer, 0, from.shape.bytes()));
    for (std::uint32_t axis = 0; axis < 3; ++axis) {
      CGL_TRY(spline_axis(queue, source, axis, options.boundary == Boundary::reflect));
    }
  }
  const VolumeShape& out = to.shape;
  CGL_TRY(check_binds({1, out.y, out.x}));
  return for_each_slab(out.z, out.plane(), most_elements_, [&](std::uint32_t first, std::uint32_t planes) {
    SampleVolumeRecord record{};
    record.source = coordinates.source;
    record.order = static_cast<std::uint32_t>(options.order);
    record.boundary = static_cast<std::uint32_t>(options.boundary);
    record.value = options.value;
    record.in_z = from.shape.z;
    record.in_y = from.shape.y;
    record.in_x = from.shape.x;
    record.out_first_z = first;
    record.out_z = planes;
    record.out_y = out.y;
    record.out_x = out.x;
    record.all_z = out.z;
    const auto places = [&](std::size_t axis) -> KernelRange {
      if (coordinates.table == nullptr) return planes_range(*coordinates.volume, axis * out.z + first, planes);
      return {coordinates.table->buffer.get(), coordinates.table_first[axis], coordinates.table_count[axis]};
    };
    return backend_->launch(queue, OctKernel::sample_volume, record,
                            {whole_range(source), places(0), places(1), places(2), planes_range(to, first, planes)},
                            {out.x, out.y, (planes + sample_planes_per_thread - 1) / sample_planes_per_thread});
  });
}

Status OctKernels::transform_affine(Queue& queue, const DeviceVolume& from, DeviceVolume& to,
                                    const std::array<std::array<double, 4>, 3>& matrix, const SampleOptions& options) {
  std::vector<std::uint32_t> words;
  Coordinates coordinates;
  const std::array<std::uint32_t, 3> extents = {to.shape.z, to.shape.y, to.shape.x};
  std::string key = "affine";
  for (const auto& row : matrix) {
    for (const double value : row) key += fmt::format(" {}", value);
  }
  for (std::size_t d = 0; d < 3; ++d) {
    coordinates.table_first[d] = words.size();
    const std::size_t first = words.size();
    words.resize(first + 6 * std::size_t{extents[d]});
    for (std::uint32_t o = 0; o < extents[d]; ++o) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const SplitCoordinate at = split_coordinate(matrix[axis][d] * o + (d == 0 ? matrix[axis][3] : 0.0));
        words[first + 2 * axis * extents[d] + o] = at.whole;
        words[first + (2 * axis + 1) * extents[d] + o] = at.fraction;
      }
    }
    coordinates.table_count[d] = words.size() - coordinates.table_first[d];
    key += fmt::format(" {}", extents[d]);
  }
  coordinates.source = static_cast<std::uint32_t>(CoordinateSource::affine);
  CGL_TRY_ASSIGN(coordinates.table, table(queue, key, std::move(words)));
  return sample(queue, from, to, options, coordinates);
}

Status OctKernels::map_coordinates(Queue& queue, const DeviceVolume& from, const DeviceVolume& places, DeviceVolume& to,
                                   const SampleOptions& options) {
  return sample_at(queue, from, places, to, options, static_cast<std::uint32_t>(CoordinateSource::given));
}

Status OctKernels::displace(Queue& queue, const DeviceVolume& from, const DeviceVolume& field, DeviceVolume& to,
                            const SampleOptions& options) {
  return sample_at(queue, from, field, to, options, static_cast<std::uint32_t>(CoordinateSource::displacement));
}

Status OctKernels::sample_at(Queue& queue, const DeviceVolume& from, const DeviceVolume& places, DeviceVolume& to,
                             const SampleOptions& options, std::uint32_t source) {
  if (places.shape.z != 3 * to.shape.z || places.shape.y != to.shape.y || places.shape.x != to.shape.x) {
    return fail(
        ErrorKind::invalid_argument,
        "coordinates of {} x {} x {} for a result of {} x {} x {}: three volumes of its shape one after the other",
        places.shape.z, places.shape.y, places.shape.x, to.shape.z, to.shape.y, to.shape.x);
  }
  Coordinates coordinates;
  coordinates.source = source;
  coordinates.volume = &places;
  return sample(queue, from, to, options, coordinates);
}

}  // namespace cingulum::oct
