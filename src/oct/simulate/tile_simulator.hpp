// Voxels of simulated tiles, and the texture of their sample, made on one device: white noise of the sample's lattice,
// three windows, an exponential, and what a scanner makes of it. The bits are the same on every device, and do not
// depend on the pieces in which a tile is made. Called by simulated_files.hpp, which writes what is made.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "device/device.hpp"
#include "oct/oct_kernels.hpp"
#include "oct/simulate/simulation.hpp"

namespace cingulum::oct {

// The order of voxels, the last index fastest.
enum class TileOrder {
  planes,    // (plane, row, column)
  acquired,  // (row, A-line, plane), with the lines of the galvo's band
};
[[nodiscard]] std::uint64_t voxels_of(const SimulationPlan& plan, TileOrder order);

// Host memory of a tile that a device writes fast.
struct TileMemory {
  std::unique_ptr<HostMemory> host;
  std::unique_ptr<Buffer> buffer;  // the same memory, where kernels of the device address it

  [[nodiscard]] std::span<float> values() const {
    return {reinterpret_cast<float*>(host->bytes().data()), host->bytes().size() / sizeof(float)};
  }
};

// All members: one caller at a time, but for `memory` (any thread)
class TileSimulator {
 public:
  // `most_elements` as for OctKernels: a tile is made in pieces that need no more.
  [[nodiscard]] static Result<std::unique_ptr<TileSimulator>> create(Device& device,
                                                                     std::uint64_t most_elements = UINT64_MAX);

  [[nodiscard]] Device& device() const { return kernels_->device(); }
  // Host memory for making a box of texture, without the memory that tiles and textures are written to.
  [[nodiscard]] std::uint64_t host_bytes(const SampleBox& box) const;
  [[nodiscard]] Result<TileMemory> memory(std::uint64_t voxels);

  // All voxels of a tile to the beginning of `to`; returns when they are there.
  [[nodiscard]] Status simulate(const SimulatedScene& scene, std::size_t tile, TileOrder order, const TileMemory& to,
                                const CancelToken& cancel = {});
  // The reflectivity of the sample on its lattice: exp(strength * t), t Gaussian of variance 1. Boxes agree where they
  // overlap.
  [[nodiscard]] Status texture(std::uint64_t seed, double strength, const SampleBox& box, std::span<float> to,
                               const CancelToken& cancel = {});

 private:
  TileSimulator() : windows_(texture_windows()) {}
  [[nodiscard]] std::uint64_t most_elements() const;
  [[nodiscard]] std::uint64_t noise_voxels(std::uint64_t planes, std::uint64_t rows, std::uint64_t columns) const;
  [[nodiscard]] Result<DeviceVolume> texture_on_device(std::uint64_t seed, double strength, const SampleBox& box);
  // What is made of a tile at a time, and the part of the tile's box that it reads.
  struct TilePiece {
    std::uint32_t first_plane, planes, first_row, rows;
    std::uint32_t box_plane, box_planes, box_row, box_rows;
  };
  [[nodiscard]] Result<std::vector<TilePiece>> pieces_of(const SimulationPlan& plan, const PreparedTile& tile,
                                                         TileOrder order) const;

  std::unique_ptr<OctKernels> kernels_;
  std::unique_ptr<Queue> queue_;
  std::array<std::vector<float>, 3> windows_;
};

}  // namespace cingulum::oct
