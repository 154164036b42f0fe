#include "zarr/direct/device_place.hpp"

#include <algorithm>

namespace cingulum::zarr {

Status check_place(const Array& array, const Region& region, const Queue& queue, const DevicePlace& place) {
  CGL_TRY(check_region(array, region));
  if (&queue.device() != &place.buffer.device()) {
    return fail(ErrorKind::invalid_argument, "{}: the queue is one of {}, the buffer lies on {}", array.name(),
                queue.device().id(), place.buffer.device().id());
  }
  const std::size_t rank = region.shape.size();
  if (!place.strides.empty() && place.strides.size() != rank) {
    return fail(ErrorKind::invalid_argument, "{}: {} strides for a region of {} dimensions", array.name(),
                place.strides.size(), rank);
  }
  if (std::any_of(region.shape.begin(), region.shape.end(), [](std::uint64_t n) { return n == 0; })) return {};
  const std::size_t element_bytes = array.metadata().type.bytes();
  const Strides dense = row_major_strides(region.shape, element_bytes);
  const std::span<const std::int64_t> strides = place.strides.empty() ? std::span(dense) : place.strides;
  // 128 bits: extents and strides are anything that a caller may write.
  __extension__ using Wide = __int128;
  Wide begin = place.offset;
  Wide end = begin + static_cast<Wide>(element_bytes);
  for (std::size_t d = 0; d < rank; ++d) {
    const Wide reach = static_cast<Wide>(strides[d]) * static_cast<Wide>(region.shape[d] - 1);
    (reach < 0 ? begin : end) += reach;
  }
  if (begin < 0 || end > static_cast<Wide>(place.buffer.bytes())) {
    return fail(ErrorKind::invalid_argument,
                "{}: the region does not lie in its buffer of {} bytes: its first element is at byte {}", array.name(),
                place.buffer.bytes(), place.offset);
  }
  return {};
}

bool is_dense(const Array& array, const Region& region, const DevicePlace& place) {
  return place.strides.empty() ||
         std::ranges::equal(place.strides, row_major_strides(region.shape, array.metadata().type.bytes()));
}

std::span<std::byte> host_bytes(const DevicePlace& place) {
  const std::span all(static_cast<std::byte*>(place.buffer.device_pointer()),
                      static_cast<std::size_t>(place.buffer.bytes()));
  return all.subspan(place.offset);
}

}  // namespace cingulum::zarr
