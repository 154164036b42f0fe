// The checks of a place that DeviceReader and DeviceWriter share.
#pragma once

#include "base/result.hpp"
#include "zarr/direct/device_region.hpp"

namespace cingulum::zarr {

// The queue is one of the buffer's device, and every element of the region lies in the buffer.
[[nodiscard]] Status check_place(const Array& array, const Region& region, const Queue& queue,
                                 const DevicePlace& place);

// Elements of the region lie one behind the other.
[[nodiscard]] bool is_dense(const Array& array, const Region& region, const DevicePlace& place);

// The bytes from the first element on, on a device whose memory is the host's.
[[nodiscard]] std::span<std::byte> host_bytes(const DevicePlace& place);

}  // namespace cingulum::zarr
