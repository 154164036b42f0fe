// The direct engine: cuFile reads leaves into device memory, a kernel verifies their checksums there, and no byte of
// them visits the host. For leaves that are stored as they are, with crc32c or without.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "zarr/direct/cufile_library.hpp"
#include "zarr/direct/leaf_transport.hpp"

namespace cingulum::zarr {

// A leaf that cuFile fails to read, or reads short, is read by the host instead and counted. A checksum that does not
// fit is damage: a failure.
[[nodiscard]] Result<std::unique_ptr<LeafTransport>> make_direct_transport(
    const RegionPlan& plan, Staging& staging, ReadCounters& counters, std::shared_ptr<const CufileLibrary> library);

}  // namespace cingulum::zarr
