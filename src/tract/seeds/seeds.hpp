// Where streamlines begin: positions in voxel space (centre of a voxel = integer), each a function of its global index,
// so that any range of seeds can be made anywhere in any order. Random, per voxel, on a grid, or given. Called by the
// trackers' drivers; the trackers get ranges.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "numerics/philox.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

class Seeds {
 public:
  virtual ~Seeds() = default;
  // Number of seeds; unlimited (--select) seeds answer 2^32.
  [[nodiscard]] virtual std::uint64_t count() const = 0;
  // Positions of seeds first .. first + positions.size() - 1.
  virtual void fill(std::uint64_t first, std::span<numerics::Vec3> positions) const = 0;
};

// `count` seeds, each in a voxel of `mask` (one byte per voxel) drawn evenly, at a random place in it. count 0: without
// end.
[[nodiscard]] Result<std::unique_ptr<Seeds>> random_seeds(const ImageGeometry& geometry,
                                                          std::span<const std::uint8_t> mask, std::uint64_t count,
                                                          numerics::PhiloxKey key);
[[nodiscard]] Result<std::unique_ptr<Seeds>> random_seeds_per_voxel(const ImageGeometry& geometry,
                                                                    std::span<const std::uint8_t> mask,
                                                                    std::uint32_t per_voxel, numerics::PhiloxKey key);
// per_axis^3 in each voxel, evenly spaced.
[[nodiscard]] Result<std::unique_ptr<Seeds>> grid_seeds(const ImageGeometry& geometry,
                                                        std::span<const std::uint8_t> mask,
                                                        std::array<std::uint32_t, 3> per_axis);
[[nodiscard]] Result<std::unique_ptr<Seeds>> listed_seeds(std::vector<numerics::Vec3> positions_voxel);

// The random counter holds the seed's index in 32 bits.
constexpr std::uint64_t most_seeds = std::uint64_t{1} << 32U;

enum class SeedSpace { voxel, world };

// One "x y z" per line, separated by blanks or commas; what follows a # is left out. World positions (RAS+ in mm) are
// mapped into voxel space in float64 and rounded once.
[[nodiscard]] Result<std::vector<numerics::Vec3>> read_seed_positions(const std::filesystem::path& path,
                                                                      SeedSpace space, const ImageGeometry& geometry);
// The same of rows that are in memory.
[[nodiscard]] Result<std::vector<numerics::Vec3>> take_seed_positions(std::span<const numerics::Vec3d> rows,
                                                                      SeedSpace space, const ImageGeometry& geometry);
// The first and the last point of every streamline, in this order; a streamline of one point gives one.
[[nodiscard]] Result<std::vector<numerics::Vec3>> seed_positions_of_ends(const std::filesystem::path& tractogram,
                                                                         const ImageGeometry& geometry);
// Initial directions, written like seeds: unit vectors in image axes; those of world space are turned.
[[nodiscard]] Result<std::vector<numerics::Vec3>> read_directions(const std::filesystem::path& path, SeedSpace space,
                                                                  const ImageGeometry& geometry);
[[nodiscard]] Result<std::vector<numerics::Vec3>> take_directions(std::span<const numerics::Vec3d> rows,
                                                                  SeedSpace space, const ImageGeometry& geometry);

}  // namespace cingulum
