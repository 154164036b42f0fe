// Products of pairs of tiles at all shifts, by a device: nearly all of the work of placing tiles. The bits are those of
// the host. Called by reconstruction.cpp through PlacementOptions, beside the stages that read and look at tiles.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "oct/oct_kernels.hpp"
#include "oct/placement/tile_placement.hpp"

namespace cingulum::oct {

// One caller at a time.
class DevicePairProducts {
 public:
  // `most_voxels` plays a device that takes no more at once.
  [[nodiscard]] static Result<std::unique_ptr<DevicePairProducts>> create(Device& device,
                                                                          std::uint64_t most_voxels = UINT64_MAX);

  // What it takes of the device at most.
  [[nodiscard]] static std::uint64_t bytes_for(std::size_t tiles, std::size_t layers, std::array<std::size_t, 2> size);

  // Makes the products as the function PairProducts has to.
  [[nodiscard]] Result<std::vector<float>> make(const LayerImages& images, const TileGrid& grid,
                                                std::span<const TilePair> pairs);

 private:
  DevicePairProducts() = default;
  [[nodiscard]] Status make_group(const LayerImages& images, const TileGrid& grid, std::span<const TilePair> pairs,
                                  std::span<const std::size_t> tiles, std::vector<float>& products);

  std::unique_ptr<OctKernels> kernels_;
  std::unique_ptr<Queue> queue_;
  std::uint64_t most_voxels_ = 0;
};

}  // namespace cingulum::oct
