// A region on its way to a device in batches: threads fill the slabs of a ring, each batch goes to the device when its
// last leaf is there, and one launch on the caller's queue puts its boxes in place while the next slabs are filled.
// Which way bytes take is the transport's matter (leaf_transport.hpp). Called by DeviceReader.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "zarr/direct/leaf_transport.hpp"
#include "zarr/direct/staging.hpp"
#include "zarr/region_plan.hpp"

namespace cingulum::zarr {

struct RingShape {
  std::uint64_t slab_bytes = 0;
  std::size_t slabs = 0;
};

struct StagedReadJob {
  RegionPlan& plan;
  LeafTransport& transport;
  Staging& staging;
  ReadCounters& counters;
  Queue& queue;  // of the caller: boxes are put in place in its order
  Buffer& to;
  std::uint64_t to_offset = 0;
  RingShape ring;  // at most; regions that need less take less
  const ReadOptions& options;
  std::vector<CodecScratch>& scratch;  // one a thread, kept from region to region
};

// Returns when all boxes are queued; everything that may fail for what is stored has been verified then. On failure
// boxes of some leaves may have been put in place, each by its own bytes.
[[nodiscard]] Status run_staged_read(const StagedReadJob& job);

}  // namespace cingulum::zarr
