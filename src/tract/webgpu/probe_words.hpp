// The tables of ptt_points.wgsl as words of one buffer, four to an element: directions of the slots, arcs of the disc,
// the small table of nearest slots, and of every cell of the image the addresses of its eight records. Called by the
// WebGPU tracker, which uploads them, and by webgpu_shader.cpp, which tells the text where they lie.
#pragma once

#include <cstdint>
#include <vector>

#include "tract/field/field.hpp"
#include "tract/kernel/views.hpp"
#include "tract/paged/device_tables.hpp"
#include "tract/run/tracker.hpp"

namespace cingulum {

// Where each begins, in elements of four words; the directions at 0.
struct ProbeOffsets {
  std::uint32_t arcs = 0;
  std::uint32_t nearest = 0;
  std::uint32_t cells = 0;
  std::uint64_t end = 0;
};
[[nodiscard]] ProbeOffsets probe_offsets(const TrackingInput& input);

// Whether ptt_probes.wgsl can track this: its slots fit into ten bits and it has no code for several parallel probes,
// exponents, half precision and whole spheres.
[[nodiscard]] bool probes_fit(const TrackingInput& input);
// Whether halves start along unit vectors (to 2^-20), since ptt_probes.wgsl takes inverse roots near one alone: the
// directions of the sphere, or those that are given.
[[nodiscard]] bool starts_are_unit(const DeviceTables& tables, const GivenDirections* directions);

[[nodiscard]] std::vector<std::uint32_t> make_probe_words(const DeviceTables& tables, const Field& field);

}  // namespace cingulum
