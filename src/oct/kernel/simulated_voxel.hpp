// The arithmetic of simulated OCT, as CPU and CUDA compute it: white noise of the sample's texture, gamma speckle, the
// intensity of a voxel, and which voxel a line of a raw tile shows. Plain functions of the bit contract: float32, own
// elementary functions, counters instead of state, so that a voxel does not depend on tiles, threads or devices around
// it. simulate/simulation.hpp gives the parameters; mirrored by webgpu/texture_noise.wgsl and webgpu/tile_voxels.wgsl.
#pragma once

#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/pack.hpp"
#include "numerics/philox.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"

namespace cingulum::oct {

// Lateral coordinates of the sample lattice have 16 bits each; the mosaic's first pixel is at 0.
inline constexpr std::int32_t lattice_limit = 32768;

inline constexpr float root_twelve = 0x1.bb67aep+1f;

CGL_HD constexpr numerics::DrawCounter texture_counter(std::int32_t plane, std::int32_t row, std::int32_t column) {
  const std::uint32_t point =
      ((static_cast<std::uint32_t>(row) & 0xffffu) << 16) | (static_cast<std::uint32_t>(column) & 0xffffu);
  return {point, numerics::DrawPurpose::oct_texture, 0u, 0u, static_cast<std::uint32_t>(plane), 0u};
}
CGL_HD constexpr numerics::DrawCounter speckle_counter(std::uint32_t voxel, std::uint32_t tile) {
  return {voxel, numerics::DrawPurpose::oct_speckle, 0u, 0u, tile, 0u};
}

// Uniform noise of variance 1, from the first word of a draw.
CGL_HD constexpr float noise_from_word(std::uint32_t word) {
  return (numerics::uniform_from_word(word) - 0.5f) * root_twelve;
}
// A uniform number in (0, 1]; minus its logarithm is an exponential variate.
CGL_HD constexpr float share_from_word(std::uint32_t word) {
  return static_cast<float>((word >> 8) + 1u) * 0x1p-24f;
}

// White noise of variance 1 at a point of the sample's lattice: uniform, since a window of hundreds of points makes it
// normal.
CGL_HD inline float texture_noise(numerics::PhiloxKey key, std::int32_t plane, std::int32_t row, std::int32_t column) {
  return noise_from_word(numerics::random_word(key, texture_counter(plane, row, column), 0u));
}

// A gamma variate of whole shape k and mean 1: the mean of k exponential ones.
CGL_HD inline float gamma_speckle(numerics::PhiloxKey key, std::uint32_t voxel, std::uint32_t tile,
                                  std::uint32_t shape) {
  float sum = 0.0f;
  for (std::uint32_t first = 0; first < shape; first += 4u) {
    const numerics::PhiloxBlock block = numerics::random_block(key, speckle_counter(voxel, tile), first / 4u);
    for (std::uint32_t i = 0; i < 4u && first + i < shape; ++i) {
      sum = sum + numerics::logarithm(share_from_word(block.word[i]));
    }
  }
  return -sum / static_cast<float>(shape);
}

// One tile. Coordinates of the sample are those of the box of texture that the tile reads.
struct TileModel {
  // Row and column of the sample at the pixel (row, column) of the tile.
  float sample_row, row_by_row, row_by_column;
  float sample_column, column_by_row, column_by_column;
  float sample_plane;                                // of plane 0 where nothing is curved
  float surface, surface_by_row, surface_by_column;  // plane of the cut, by pixel of the tile
  float row_scale, column_scale;                     // from pixels to -1 .. 1
  float curvature, curvature_mean;                   // planes
  float depth_offset;                                // planes, of the whole tile
  float flat_field;                                  // share lost at distance 1 from the centre
  float focus_plane, rayleigh_planes;                // axial profile; 0 planes: none
  float water, tissue, agarose;                      // intensities
  float decay;                                       // 2 mu
  float noise_floor;
  float gain;
  float tissue_row, tissue_column, tissue_row_radius, tissue_column_radius;  // an ellipse; radius 0: tissue everywhere
};

// What the voxels of an A-line share.
struct LineModel {
  float surface;      // plane of the apparent interface
  float depth_shift;  // by which the A-line is moved down
  float flat;
  float row, column;  // in the box of texture
  bool in_tissue;
};

CGL_HD inline LineModel line_model(const TileModel& tile, std::uint32_t row, std::uint32_t column) {
  const float r = static_cast<float>(row);
  const float c = static_cast<float>(column);
  const float v = (r + 0.5f) * tile.row_scale - 1.0f;
  const float u = (c + 0.5f) * tile.column_scale - 1.0f;
  const float square = u * u + v * v;
  LineModel line;
  line.depth_shift = (tile.curvature * (0.5f * square) - tile.curvature_mean) + tile.depth_offset;
  line.surface = ((tile.surface + tile.surface_by_row * r) + tile.surface_by_column * c) + line.depth_shift;
  line.flat = 1.0f - tile.flat_field * square;
  line.row = (tile.sample_row + tile.row_by_row * r) + tile.row_by_column * c;
  line.column = (tile.sample_column + tile.column_by_row * r) + tile.column_by_column * c;
  line.in_tissue = true;
  if (tile.tissue_row_radius > 0.0f) {
    const float a = (line.row - tile.tissue_row) / tile.tissue_row_radius;
    const float b = (line.column - tile.tissue_column) / tile.tissue_column_radius;
    line.in_tissue = a * a + b * b < 1.0f;
  }
  return line;
}

// Plane of the sample's texture that the plane of the tile shows.
CGL_HD inline float sample_plane_of(const TileModel& tile, const LineModel& line, std::uint32_t plane) {
  return (tile.sample_plane + static_cast<float>(plane)) - line.depth_shift;
}

inline constexpr float interface_width = 0.7f;  // planes

// The intensity before speckle at a plane of lines that end up side by side: a number, or a pack of them. `texture` is
// the sample's reflectivity there; agarose has none of its own.
CGL_HD_GENERIC
template <class Number, class Mask>
CGL_HD inline Number mean_intensity(const TileModel& tile, Number surface, Number flat, Mask in_tissue, float plane,
                                    Number texture) {
  using numerics::exponential;
  using numerics::select;
  const Number one(1.0f);
  const Number depth = Number(plane) - surface;
  const Number edge = one / (one + exponential(-(depth / Number(interface_width))));
  const Number below = select(depth > Number(0.0f), depth, Number(0.0f));
  const Number reflected = select(in_tissue, Number(tile.tissue) * texture, Number(tile.agarose));
  // Agarose is clear: light is not attenuated in it.
  const Number left = select(in_tissue, exponential(-(Number(tile.decay) * below)), one);
  Number intensity = Number(tile.water) + ((reflected * edge) * left);
  intensity = intensity * flat;
  if (tile.rayleigh_planes > 0.0f) {
    const float distance = (plane - tile.focus_plane) / tile.rayleigh_planes;
    intensity = intensity / Number(1.0f + distance * distance);
  }
  return (intensity + Number(tile.noise_floor)) * Number(tile.gain);
}

// What a line of a stored tile shows: a column of the tile, a share of its light.
struct LineSource {
  std::uint32_t column;
  float share;
};

// As the scanner stores lines: they begin in the middle, and behind line `last` stand `extra` lines of the mirror's way
// back, faster and darker. Without extra lines they stand in order.
CGL_HD constexpr LineSource line_source(std::uint32_t line, std::uint32_t columns, std::uint32_t last,
                                        std::uint32_t extra) {
  if (extra == 0u) return {line, 1.0f};
  if (line <= last) return {columns - 1u - last + line, 1.0f};
  const std::uint32_t behind = line - last - 1u;
  if (behind >= extra) return {behind - extra, 1.0f};
  return {(columns - 1u) * (extra - behind) / (extra + 1u), 0.5f};
}

}  // namespace cingulum::oct
