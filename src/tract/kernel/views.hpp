// What the kernels of every backend read, as plain pointers and counts: the field, the sphere in slots, the matrices of
// spherical harmonics and of the bootstrap, and the working memory of one streamline. Made by each backend's tracker
// (cpu/tables.hpp on the host); nothing here owns memory or has a function with code, so that files compiled for
// different instruction sets share it.
#pragma once

#include <cstdint>

#include "numerics/rotation.hpp"
#include "numerics/vec3.hpp"
#include "tract/kernel/plan.hpp"

namespace cingulum {

// FieldKind as the numbers that views carry.
inline constexpr std::uint32_t field_of_amplitudes = 0;
inline constexpr std::uint32_t field_of_harmonics = 1;
inline constexpr std::uint32_t field_of_bootstrap = 2;
inline constexpr std::uint32_t field_of_peaks = 3;
inline constexpr std::uint32_t field_of_tensors = 4;

struct FieldView {
  std::uint32_t kind;      // FieldKind
  std::uint32_t channels;  // the stopping value is the number after them
  std::uint32_t stride;
  const std::uint32_t* record_of_voxel;
  const float* records;      // readable for 32 numbers past the last record
  std::uint32_t is_small;    // below 2^31 numbers: 32 bits address them all
  std::uint32_t is_float16;  // the numbers are float16: what `records` points to is read as uint16
};

// Directions in slots: the vertices themselves for amplitudes, the slots of the contract's mirror sum, empty ones
// included, where a series is sampled on a mirror-symmetric sphere. Arrays have 32 * rows entries, empty ones 0.
struct SphereView {
  std::uint32_t rows;
  std::uint32_t is_hemisphere;    // each direction stands for its opposite, too
  std::uint32_t degree;           // columns of `neighbours`
  const std::uint32_t* occupied;  // per row, a bit per slot
  const float* x;
  const float* y;
  const float* z;
  const std::uint32_t* neighbours;  // [(32 * rows) * column + slot]; the slot itself where it has fewer
};

// Where even series are sampled. With `mirror` the matrix is laid out as numerics/mirror_sum.hpp says; else the value
// of harmonic j at slot 32 row + lane is at [(32 n) row + 32 j + lane], n = coefficients, and sums run over j.
struct HarmonicView {
  std::uint32_t coefficients;
  std::uint32_t degree;
  std::uint32_t mirror;
  std::uint32_t class_sizes[4];
  const float* matrix;
  const std::uint32_t* record_index;  // where the record has coefficient i of descoteaux07_legacy
  const float* recurrence;            // kernel/series.hpp
};

// The bootstrap's matrices over gradients, in rows of 32 with zeros past the last.
struct BootstrapView {
  std::uint32_t csa;
  std::uint32_t gradients;
  std::uint32_t rows;
  const float* basis;           // [(32 n) row + 32 j + lane], j the coefficient's index in the record
  const float* fit;             // [(32 rows) j + 32 row + lane], j as the sphere's matrix has it
  const std::uint32_t* level;   // l / 2 of coefficient j of `fit`
  const float* residual_scale;  // 32 * rows
  float inverse_scale_sum;      // 1 / sum of residual_scale
};

// Points of the unit disc of curvatures whose supports bound the rejection (kernel/ptt.hpp).
struct DiscView {
  std::uint32_t count;  // 32, one per lane
  const float* k1;      // 32 entries
  const float* k2;
};

// Which slots can be nearest to a direction: a cube map. A direction belongs to the face of its largest component (on
// hemispheres the faces of its opposite are the same, so three suffice); the other two, divided by it, lie in [-1, 1]
// and give a cell. Each cell has `capacity` slots, ascending, the first repeated where there are fewer.
struct NearestView {
  std::uint32_t cells;  // along an edge of a face
  std::uint32_t capacity;
  const std::uint32_t* slots;  // [((face * cells + j) * cells + i) * capacity + n]
};

// What ptt reads where 32 threads follow 32 probes (kernel/ptt_in_registers.hpp); null elsewhere.
struct ProbeView {
  // The records of the corners of each cell of the grid, in units of four numbers, clamped at the faces:
  // [8 ((z (size.y + 1) + y) (size.x + 1) + x) + corner]. Cells reach from the one before the first voxel to the one
  // behind the last along every axis.
  const std::uint32_t* cells;
  // Where memory allows, the corners' amplitudes side by side: those of slot s of cell c begin at
  // [8 ((channels + 1) corners_of_cell[c] + ranks[s])], those of the stopping map at rank `channels`.
  const std::uint32_t* corners_of_cell;
  const std::uint32_t* ranks;  // of each slot, its number in an order in which near directions are mostly near
  const float* corners;
  // Bounds: nowhere in cell c is an amplitude of ranks 16 g to 16 g + 15 above [32 corners_of_cell[c] + g].
  const float* greatest;
  const std::uint32_t* nearest;  // up to three slots, ten bits each, of every cell of a coarser NearestView
  const float* directions;       // x, y, z of each slot, and the bits of its rank
  const float* arcs;             // the ProbeArc of each point of the disc
};

struct TrackingInput {
  TrackingPlan plan;
  FieldView field;
  SphereView sphere;
  HarmonicView harmonics;
  BootstrapView bootstrap;
  DiscView disc;
  NearestView nearest;
  ProbeView probes;
};

// The working memory of one streamline; on a GPU it lies in shared memory. Counts in floats or words.
struct Slab {
  float* record;             // 32 * rows of channels + 1
  float* values;             // 32 * sphere rows
  std::uint32_t* survivors;  // 32 * sphere rows
  std::uint32_t* peaks;      // most_initial_directions
  float* signal;             // bootstrap: 32 * rows * (degree / 2 + 1)
  float* coefficients;       // bootstrap: 96
  float* probe;              // ptt on series: 96 per lane that probes, of which a warp has 32 and the CPU up to 48
};

// What became of one half.
struct HalfEnd {
  std::uint32_t points;  // kept, the seed not counted
  std::uint32_t steps;   // directions asked for
  std::uint32_t reason;  // EndReason
};

// A half that is being tracked (kernel/walk.hpp).
struct HalfWalk {
  std::uint32_t seed;
  std::uint32_t direction_index;
  std::uint32_t half;
  std::uint32_t moves;  // made; for ptt arcs
  std::uint32_t arcs;   // ptt: since the last point that was kept
  std::uint32_t kept;   // points written
  numerics::Vec3 position;
  numerics::Frame frame;  // its tangent is where the streamline heads; the rest is ptt's
  float* points;          // where there is an array for them
  HalfEnd end;            // set by advance_halves (cpu/track_kernels.hpp) once the half has ended
  float bound = 0.0f;     // ptt: of the rejection, as the last arc left it
};

struct InitialDirections {
  std::uint32_t count;
  std::uint32_t seed_reason;  // EndReason::none, or why no streamline may start here
};

}  // namespace cingulum
