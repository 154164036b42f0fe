// The arithmetic of simulated OCT, shared by host and devices: white noise of the sample's texture, gamma speckle, and
// the intensity of a voxel. Plain functions of the bit contract: float32, own elementary functions, counters instead of
// state, so that a voxel does not depend on tiles, threads or devices around it. simulation.hpp gives the parameters.
#pragma once

#include <cstdint>

#include "numerics/elementary.hpp"
#include "numerics/philox.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"

namespace cingulum::oct {

// Lateral coordinates of the sample lattice have 16 bits each; the mosaic's first pixel is at 0.
inline constexpr std::int32_t lattice_limit = 32768;

// White noise of variance 1 at a point of the sample's lattice: uniform, since a window of hundreds of points makes it
// normal.
CGL_HD inline float texture_noise(numerics::PhiloxKey key, std::int32_t plane, std::int32_t row, std::int32_t column) {
  constexpr float root_twelve = 0x1.bb67aep+1f;
  const std::uint32_t voxel =
      ((static_cast<std::uint32_t>(row) & 0xffffu) << 16) | (static_cast<std::uint32_t>(column) & 0xffffu);
  const numerics::DrawCounter counter{voxel, numerics::DrawPurpose::oct_texture, 0u,
                                      0u,    static_cast<std::uint32_t>(plane),  0u};
  return (numerics::uniform_from_word(numerics::random_word(key, counter, 0u)) - 0.5f) * root_twelve;
}

// A gamma variate of whole shape k and mean 1: the mean of k exponential ones.
CGL_HD inline float gamma_speckle(numerics::PhiloxKey key, std::uint32_t voxel, std::uint32_t tile,
                                  std::uint32_t shape) {
  const numerics::DrawCounter counter{voxel, numerics::DrawPurpose::oct_speckle, 0u, 0u, tile, 0u};
  float sum = 0.0f;
  for (std::uint32_t first = 0; first < shape; first += 4u) {
    const numerics::PhiloxBlock block = numerics::random_block(key, counter, first / 4u);
    for (std::uint32_t i = 0; i < 4u && first + i < shape; ++i) {
      sum = sum + numerics::logarithm(static_cast<float>((block.word[i] >> 8) + 1u) * 0x1p-24f);
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

// The intensity before speckle. `texture` is the sample's reflectivity there; agarose has none of its own.
CGL_HD inline float mean_intensity(const TileModel& tile, const LineModel& line, std::uint32_t plane, float texture) {
  constexpr float interface_width = 0.7f;
  const float depth = static_cast<float>(plane) - line.surface;
  const float edge = 1.0f / (1.0f + numerics::exponential(-(depth / interface_width)));
  const float below = depth > 0.0f ? depth : 0.0f;
  const float reflected = line.in_tissue ? tile.tissue * texture : tile.agarose;
  // Agarose is clear: light is not attenuated in it.
  const float left = line.in_tissue ? numerics::exponential(-(tile.decay * below)) : 1.0f;
  float intensity = tile.water + ((reflected * edge) * left);
  intensity = intensity * line.flat;
  if (tile.rayleigh_planes > 0.0f) {
    const float distance = (static_cast<float>(plane) - tile.focus_plane) / tile.rayleigh_planes;
    intensity = intensity / (1.0f + distance * distance);
  }
  return (intensity + tile.noise_floor) * tile.gain;
}

}  // namespace cingulum::oct
