// The parameters of each OCT kernel: records of words, the same for every backend. In WGSL the members stand in this
// order in the kernel's uniform block, after the skips of its buffers and the negative zero (webgpu_backend.cpp).
#pragma once

#include <cstdint>

#include "numerics/portable.hpp"
#include "oct/kernel/simulated_voxel.hpp"

namespace cingulum::oct {

// One output along the filtered axis is bias + sum of weight * sample, samples ascending: the table (axis_taps.hpp)
// holds for each output the first sample, how many, where its weights begin, the bias; then all weights.
struct FilterAxisRecord {
  std::uint32_t axis;         // 0 z, 1 y, 2 x
  std::uint32_t out_first_z;  // the first plane of the output's range
  std::uint32_t out_z;        // planes in it
  std::uint32_t out_y;
  std::uint32_t out_x;
  std::uint32_t in_first_z;
  std::uint32_t in_y;
  std::uint32_t in_x;
  std::uint32_t outputs;  // along the axis, in the table
};

// How many outputs along z or y one thread makes: neighbours share most samples.
inline constexpr std::uint32_t filter_outputs_per_thread = 8;

// Values to coefficients of cubic B-splines, in place, along one axis.
struct SplineAxisRecord {
  std::uint32_t axis;
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  std::uint32_t half_sample;  // 1: Boundary::reflect, 0: Boundary::mirror
};

// On GPUs a block takes a strip of columns and so many rows of a plane, and finishes some of them at a time.
inline constexpr std::uint32_t log_box_threads = 192;
inline constexpr std::uint32_t log_box_block_rows = 256;
inline constexpr std::uint32_t log_box_batch = 8;
// Wider windows are left to filters along an axis: a thread keeps a sum for each row of a window.
inline constexpr std::uint32_t log_box_most_window = 24;

// Outputs of a strip, a thread for each column that their windows hold.
CGL_HD constexpr std::uint32_t log_box_outputs(std::uint32_t window) {
  return (log_box_threads - window + 1) / log_box_batch * log_box_batch;
}
// Where a column of a strip stands in the row that lies in shared memory: every eighth beside each other, since
// neighbouring threads read those at a time. Row and pitch let 32 neighbours meet 32 banks, in writing and reading.
inline constexpr std::uint32_t log_box_eighth = 28;
inline constexpr std::uint32_t log_box_pitch = 246;
CGL_HD constexpr std::uint32_t log_box_place(std::uint32_t column) {
  return column % log_box_batch * log_box_eighth + column / log_box_batch;
}

struct LogBoxRecord {
  std::uint32_t z;  // planes in the range
  std::uint32_t y;
  std::uint32_t x;
  std::uint32_t window;
  std::uint32_t use_log;
  float scale;  // 1 / window^2
};
inline constexpr std::uint32_t log_box_window_word = 3;

// Moves the masked samples of each line to its beginning, in place, and notes where each stood; behind `z` planes of
// these positions stands their number.
struct CompressLinesRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
};

// Responses that a thread computes at a time: they share most samples. Weights have as many zeros before and behind.
inline constexpr std::uint32_t peak_batch = 8;
// Weights of this radius that are odd take half of the products (those of sigma 2, which is the default).
inline constexpr std::uint32_t odd_peak_radius = 8;

struct DerivativePeakRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  std::uint32_t radius;
  std::uint32_t smooth_weights;  // 1: weights of a Gaussian follow, against cutting errors
  std::uint32_t sub_voxel;
  std::uint32_t masked;  // 1: lines are compressed
  float lift;            // half of sigma z
  std::uint32_t odd;     // 1: odd_peak_radius, and weight i is minus weight 16 - i, so that the middle one is zero
};
inline constexpr std::uint32_t derivative_peak_odd_word = 8;

// How many voxels along z a thread moves.
inline constexpr std::uint32_t roll_depth_per_thread = 32;

struct RollLinesRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  std::uint32_t circular;
  float fill;
};

struct ProjectDepthRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  std::uint32_t is_max;
};

// Reorders lines as they were acquired, samples of a line beside each other, into planes. Lines are taken from
// `first_line` on and go on with the first one behind the last; `x` of them are taken.
struct OrderLinesRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  std::uint32_t lines;  // of a row
  std::uint32_t first_line;
};
// A block turns a square of this side through shared memory.
inline constexpr std::uint32_t order_side = 32;
inline constexpr std::uint32_t order_block_rows = 8;

// Sums along each line by what it says of its surface (layer_line.hpp), ascending: of `layers` layers, of the first
// `depth` samples of tissue, and of what lies above. As many planes, in this order.
struct LayerSumsRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  std::uint32_t layers;
  std::uint32_t depth;
};

// Divides planes by a map.
struct DivideLinesRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
};

// Nine words each: kind, then a_z, a_y, a_x, b_z, b_y, b_x, rows, columns.
inline constexpr std::uint32_t product_words = 9;

struct ProductRowsRecord {
  std::uint32_t products;
  std::uint32_t most_rows;  // of any product
  std::uint32_t a_y;
  std::uint32_t a_x;
  std::uint32_t b_y;
  std::uint32_t b_x;
  float a_offset;
  float b_offset;
};

struct ProductFoldRecord {
  std::uint32_t products;
  std::uint32_t most_rows;
};

enum class CoordinateSource : std::uint32_t {
  affine,  // tables: of each output index, a whole part and a fraction
  given,   // a volume per axis
  displacement,
};

// How many planes one thread reads: they share what comes of y and x.
inline constexpr std::uint32_t sample_planes_per_thread = 4;

struct SampleVolumeRecord {
  std::uint32_t source;
  std::uint32_t order;
  std::uint32_t boundary;
  float value;
  std::uint32_t in_z;
  std::uint32_t in_y;
  std::uint32_t in_x;
  std::uint32_t out_first_z;  // the first plane of the range
  std::uint32_t out_z;
  std::uint32_t out_y;
  std::uint32_t out_x;
  std::uint32_t all_z;  // planes of the whole output
};

// Ordered keys (ordered_key.hpp) are counted by some of their bits: those whose higher bits are the prefix.
struct CountKeysRecord {
  std::uint32_t count;  // of values in the range
  std::uint32_t shift;  // the counted bits begin there
  std::uint32_t bins;   // a power of two
  std::uint32_t prefix;
  std::uint32_t prefix_shift;  // 32: every key has the prefix
  std::uint32_t least_key;     // keys below are left out
};
inline constexpr std::uint32_t most_key_bins = 2048;

// A box of a tile into accumulators, `weight` times its values and `weight` itself.
struct BlendAddRecord {
  std::uint32_t z;  // of the box
  std::uint32_t y;
  std::uint32_t x;
  std::uint32_t tile_first_y;
  std::uint32_t tile_first_x;
  std::uint32_t tile_y;
  std::uint32_t tile_x;
  std::uint32_t sum_first_y;
  std::uint32_t sum_first_x;
  std::uint32_t sum_y;
  std::uint32_t sum_x;
};

struct BlendFinishRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
};

struct MedianBoxRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  std::uint32_t size_z;
  std::uint32_t size_y;
  std::uint32_t size_x;
};

struct AttenuationRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  float tail_factor;  // of the map of what lies below the last sample
  float scale;        // 1 / (2 steps)
};

struct CompensationRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  float step;
  float strength;  // minus twice the share that is made up for
  float least;     // the greatest gain is its inverse
};

// White noise of a box of the sample's lattice.
struct TextureNoiseRecord {
  std::uint32_t key_low;
  std::uint32_t key_high;
  std::int32_t first_plane;  // of the lattice, at the range's first voxel
  std::int32_t first_row;
  std::int32_t first_column;
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
};

// exp(factor v), in place.
struct ExponentiateRecord {
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t x;
  float factor;
};

// Some planes and rows of a simulated tile from its texture, of which a part is bound.
struct TileVoxelsRecord {
  TileModel model;
  std::uint32_t key_low;
  std::uint32_t key_high;
  std::uint32_t tile;
  std::uint32_t speckle_shape;  // 0: none
  std::uint32_t box_z;          // the texture of the whole tile, whose coordinates the model has
  std::uint32_t box_y;
  std::uint32_t box_x;
  std::uint32_t part_first_z;  // the part of it that is bound, all columns
  std::uint32_t part_first_y;
  std::uint32_t part_y;
  std::uint32_t tile_y;  // the whole tile
  std::uint32_t tile_x;
  std::uint32_t first_z;  // what is made of it
  std::uint32_t first_y;
  std::uint32_t z;
  std::uint32_t y;
  std::uint32_t lines;      // of a row
  std::uint32_t last_line;  // line_source()
  std::uint32_t extra_lines;
  std::uint32_t as_acquired;  // 1: (y, line, z); 0: (z, y, line)
};

}  // namespace cingulum::oct
