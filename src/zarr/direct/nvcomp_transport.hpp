// The nvcomp engine: threads read encoded leaves and verify their crc32c, nvCOMP decodes a batch of them on the device.
// What it says of each chunk, status and size, is looked at before any byte goes to its place.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "zarr/direct/leaf_transport.hpp"
#include "zarr/direct/nvcomp_library.hpp"

namespace cingulum::zarr {

// Why such leaves cannot be decoded by nvCOMP with every checksum verified; nothing where they can.
[[nodiscard]] std::optional<std::string> reason_against_nvcomp(const CodecChain& chain);

// Declared here, defined in cuda/. A leaf that nvCOMP refuses is decoded by the host and counted, unless the host finds
// it damaged.
[[nodiscard]] Result<std::unique_ptr<LeafTransport>> make_nvcomp_transport(
    const RegionPlan& plan, Staging& staging, ReadCounters& counters, std::shared_ptr<const NvcompLibrary> library);

}  // namespace cingulum::zarr
