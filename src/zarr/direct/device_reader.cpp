#include <algorithm>

#include "base/bulk_memory.hpp"
#include "zarr/direct/cufile_library.hpp"
#include "zarr/direct/device_place.hpp"
#include "zarr/direct/device_region.hpp"
#include "zarr/direct/direct_transport.hpp"
#include "zarr/direct/leaf_transport.hpp"
#include "zarr/direct/nvcomp_transport.hpp"
#include "zarr/direct/staged_read.hpp"
#include "zarr/direct/staging.hpp"
#include "zarr/region_plan.hpp"

namespace cingulum::zarr {

struct DeviceReader::Parts {
  Device& device;
  EngineSettings settings;
  RingOptions ring;
  std::unique_ptr<Staging> staging;  // null where the device's memory is the host's
  std::vector<CodecScratch> scratch;

  [[nodiscard]] Result<DeviceReadReport> read(const Array& array, const Region& region, Queue& queue,
                                              const DevicePlace& to, const DeviceReadOptions& options);
  [[nodiscard]] Result<std::unique_ptr<LeafTransport>> make_transport(Engine engine, const RegionPlan& plan,
                                                                      ReadCounters& counters);
  [[nodiscard]] Result<ReadReport> read_through_host(const Array& array, const Region& region, Queue& queue,
                                                     const DevicePlace& to, const ReadOptions& options) const;
};

DeviceReader::DeviceReader(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
DeviceReader::~DeviceReader() = default;

Result<std::unique_ptr<DeviceReader>> DeviceReader::create(Device& device, EngineSettings settings, RingOptions ring) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<DeviceReader>> {
    auto parts = std::make_unique<Parts>(Parts{device, std::move(settings), ring, nullptr, {}});
    if (!device.capabilities().shares_host_memory) {
      CGL_TRY_ASSIGN(parts->staging, Staging::create(device));
    }
    return std::unique_ptr<DeviceReader>(new DeviceReader(std::move(parts)));
  });
}

Result<DeviceReadReport> DeviceReader::read(const Array& array, const Region& region, Queue& queue,
                                            const DevicePlace& to, const DeviceReadOptions& options) {
  return catch_out_of_memory([&] { return parts_->read(array, region, queue, to, options); });
}

Result<std::unique_ptr<LeafTransport>> DeviceReader::Parts::make_transport(Engine engine, const RegionPlan& plan,
                                                                           ReadCounters& counters) {
  if (engine == Engine::direct) {
    CGL_TRY_ASSIGN(auto library, CufileLibrary::open({settings.cufile_library, settings.allow_cufile_compatibility}));
    return make_direct_transport(plan, *staging, counters, std::move(library));
  }
  if (engine == Engine::nvcomp) {
    CGL_TRY_ASSIGN(auto library, NvcompLibrary::open(settings.nvcomp_library));
    return make_nvcomp_transport(plan, *staging, counters, std::move(library));
  }
  return make_host_transport(plan, *staging, counters);
}

// Chunks of more joined dimensions than a kernel has, or larger than a binding: put in place by the host, uploaded as
// they lie there.
Result<ReadReport> DeviceReader::Parts::read_through_host(const Array& array, const Region& region, Queue& queue,
                                                          const DevicePlace& to, const ReadOptions& options) const {
  if (!is_dense(array, region, to)) {
    return fail(ErrorKind::invalid_argument,
                "{}: its chunks do not fit the kernels of {}, and a region with strides cannot be uploaded whole; read "
                "it without strides",
                array.name(), device.id());
  }
  std::uint64_t bytes = array.metadata().type.bytes();
  for (const std::uint64_t extent : region.shape) bytes *= extent;
  BulkVector<std::byte> memory(static_cast<std::size_t>(bytes));
  CGL_TRY_ASSIGN(const ReadReport report, read_region(array, region, std::span(memory), options));
  if (!memory.empty()) CGL_TRY(queue.upload(to.buffer, to.offset, memory));
  // The memory goes with this function.
  CGL_TRY(queue.synchronise());
  return report;
}

Result<DeviceReadReport> DeviceReader::Parts::read(const Array& array, const Region& region, Queue& queue,
                                                   const DevicePlace& to, const DeviceReadOptions& options) {
  CGL_TRY(check_place(array, region, queue, to));
  const int threads = options.pool == nullptr ? 1 : options.pool->threads();
  CGL_TRY_ASSIGN(EngineChoice choice, choose_engine(array, device, options.engine, settings, threads));
  DeviceReadReport report;
  report.engine = choice.engine;
  report.reason = std::move(choice.reason);
  const ReadOptions read_options{options.pool, options.cancel, options.complete};
  if (staging == nullptr) {
    // What is queued on a device that is the host is done already.
    const std::span<std::byte> memory = host_bytes(to);
    CGL_TRY_ASSIGN(report.read, read_region(array, region, memory, to.strides, read_options));
    return report;
  }

  CGL_TRY_ASSIGN(RegionPlan plan, RegionPlan::create(array, region, to.strides));
  ReadCounters counters;
  CGL_TRY_ASSIGN(const std::unique_ptr<LeafTransport> transport, make_transport(report.engine, plan, counters));
  const std::uint64_t binding = device.capabilities().largest_binding_bytes;
  if (!plan.moves_fit() || (binding != 0 && transport->most_slot_bytes() + (std::uint64_t{1} << 20) > binding)) {
    CGL_TRY_ASSIGN(report.read, read_through_host(array, region, queue, to, read_options));
    return report;
  }
  CGL_TRY(run_staged_read({plan,
                           *transport,
                           *staging,
                           counters,
                           queue,
                           to.buffer,
                           to.offset,
                           {ring.slab_bytes, ring.slabs},
                           read_options,
                           scratch}));
  report.read.chunks = plan.leaf_count();
  report.read.filled_chunks = counters.filled_chunks;
  report.read.stored_bytes = counters.stored_bytes;
  report.read.retried_chunks = counters.retried_chunks;
  report.ring_bytes = staging->ring_bytes();
  return report;
}

}  // namespace cingulum::zarr
