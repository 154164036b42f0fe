#include "zarr/direct/staging.hpp"

#include <utility>

namespace cingulum::zarr {

Staging::Staging(Device& device)
    : device_(device),
      pinned_(device, device.capabilities().pinned_host_memory ? HostMemoryKind::pinned : HostMemoryKind::pageable),
      memory_(device) {}

Result<std::unique_ptr<Staging>> Staging::create(Device& device) {
  std::unique_ptr<Staging> staging(new Staging(device));
  CGL_TRY_ASSIGN(staging->kernels_, BoxKernels::create(device));
  CGL_TRY_ASSIGN(staging->copies_, device.create_queue());
  return staging;
}

Staging::~Staging() {
  static_cast<void>(release_slabs());
}

Status Staging::release_slabs() {
  Status status;
  for (const std::unique_ptr<Slab>& slab : slabs_) {
    for (Event* const event : {slab->uploaded.get(), slab->consumed.get()}) {
      if (event == nullptr) continue;
      if (Status done = event->wait(); !done && status) status = std::move(done);
    }
  }
  slabs_.clear();
  slab_bytes_ = 0;
  return status;
}

Result<std::span<const std::unique_ptr<Slab>>> Staging::slabs(std::uint64_t bytes, std::size_t count) {
  if (bytes > slab_bytes_) {
    CGL_TRY(release_slabs());
    // What the smaller slabs had would stay beside the new ones.
    CGL_TRY(pinned_.trim());
    CGL_TRY(memory_.trim());
    slab_bytes_ = bytes;
  }
  while (slabs_.size() < count) {
    CGL_TRY_ASSIGN(auto host, pinned_.acquire(slab_bytes_));
    CGL_TRY_ASSIGN(auto device, memory_.acquire(slab_bytes_));
    slabs_.push_back(std::make_unique<Slab>(Slab{std::move(host), std::move(device), nullptr, nullptr}));
  }
  return std::span<const std::unique_ptr<Slab>>(slabs_);
}

std::uint64_t Staging::ring_bytes() const {
  std::uint64_t bytes = 0;
  for (const std::unique_ptr<Slab>& slab : slabs_) bytes += slab->host_bytes().size();
  return bytes;
}

}  // namespace cingulum::zarr
