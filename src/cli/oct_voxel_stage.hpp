// The voxel kernels of OCT on one device, from host volumes to host volumes: what the actions of `cingulum oct` call
// that compute on --device.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/verb.hpp"
#include "device/registry.hpp"
#include "oct/oct_kernels.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum {

// one caller at a time
class VoxelStage {
 public:
  [[nodiscard]] static Result<std::unique_ptr<VoxelStage>> open(VerbContext& context) {
    const std::vector<std::string>& names = context.common().devices;
    if (names.size() != 1) return fail(ErrorKind::invalid_argument, "--device: one device is accepted here");
    auto stage = std::unique_ptr<VoxelStage>(new VoxelStage());
    CGL_TRY_ASSIGN(stage->opened_, open_one_device(context.settings(), names[0]));
    CGL_TRY_ASSIGN(stage->kernels_, oct::OctKernels::create(*stage->opened_.device));
    CGL_TRY_ASSIGN(stage->queue_, stage->opened_.device->create_queue());
    return stage;
  }

  [[nodiscard]] std::string device() const { return kernels_->device().id(); }

  [[nodiscard]] Result<oct::HostImage> find_interface(const oct::HostVolume& volume,
                                                      const oct::InterfaceOptions& options) {
    CGL_TRY_ASSIGN(const oct::DeviceVolume there, upload(volume));
    CGL_TRY_ASSIGN(const oct::DeviceVolume map, kernels_->find_interface(*queue_, there, options));
    CGL_TRY_ASSIGN(const std::vector<float> values, kernels_->download(*queue_, map));
    oct::HostImage image(volume.rows, volume.columns);
    std::copy(values.begin(), values.end(), image.values.begin());
    return image;
  }

  // A-lines come up by so many planes; what comes from below the last is zero.
  [[nodiscard]] Result<oct::HostVolume> roll(const oct::HostVolume& volume, const oct::HostImage& by) {
    oct::HostVolume lines(1, by.rows, by.columns);
    std::transform(by.values.begin(), by.values.end(), lines.values.begin(),
                   [](double value) { return static_cast<float>(value); });
    CGL_TRY_ASSIGN(const oct::DeviceVolume from, upload(volume));
    CGL_TRY_ASSIGN(const oct::DeviceVolume map, upload(lines));
    CGL_TRY_ASSIGN(oct::DeviceVolume to, kernels_->allocate(from.shape));
    CGL_TRY(kernels_->roll_lines(*queue_, from, map, to, {.circular = false}));
    return download(to);
  }

  [[nodiscard]] Result<oct::HostVolume> resize(const oct::HostVolume& volume, oct::VolumeShape shape,
                                               const oct::ResizeOptions& options = {}) {
    CGL_TRY_ASSIGN(const oct::DeviceVolume from, upload(volume));
    CGL_TRY_ASSIGN(oct::DeviceVolume to, kernels_->allocate(shape));
    CGL_TRY(kernels_->resize(*queue_, from, to, options));
    return download(to);
  }

  [[nodiscard]] Result<oct::HostVolume> mean_over_planes(const oct::HostVolume& volume) {
    CGL_TRY_ASSIGN(const oct::DeviceVolume from, upload(volume));
    CGL_TRY_ASSIGN(oct::DeviceVolume to, kernels_->allocate({1, from.shape.y, from.shape.x}));
    CGL_TRY(kernels_->project(*queue_, from, to, oct::Projection::mean));
    return download(to);
  }

  [[nodiscard]] Result<oct::OverlapFound> find_overlap(const oct::HostVolume& fixed, const oct::HostVolume& moving,
                                                       const oct::OverlapSearch& search) {
    CGL_TRY_ASSIGN(const oct::DeviceVolume a, upload(fixed));
    CGL_TRY_ASSIGN(const oct::DeviceVolume b, upload(moving));
    return kernels_->find_z_overlap(*queue_, a, b, search);
  }

 private:
  VoxelStage() = default;
  [[nodiscard]] Result<oct::DeviceVolume> upload(const oct::HostVolume& volume) {
    return kernels_->upload(*queue_, shape_of(volume), volume.values);
  }
  [[nodiscard]] Result<oct::HostVolume> download(const oct::DeviceVolume& volume) {
    auto result = oct::HostVolume::unset(volume.shape.z, volume.shape.y, volume.shape.x);
    CGL_TRY(cingulum::download(*queue_, std::span(result.values), *volume.buffer));
    CGL_TRY(queue_->synchronise());
    return result;
  }
  static oct::VolumeShape shape_of(const oct::HostVolume& volume) {
    return {static_cast<std::uint32_t>(volume.planes), static_cast<std::uint32_t>(volume.rows),
            static_cast<std::uint32_t>(volume.columns)};
  }

  OpenedDevice opened_;  // outlives all below
  std::unique_ptr<oct::OctKernels> kernels_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace cingulum
