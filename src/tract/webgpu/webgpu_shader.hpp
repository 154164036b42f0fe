// The WGSL of a tracking run: the mirror of the numerics and of the kernel's headers, put together for one getter on
// one kind of field, with the bindings and the numbers that it reads. Called by the WebGPU tracker; plain text, needs
// no device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "device/kernel.hpp"
#include "device/shader_library.hpp"
#include "tract/paged/device_tables.hpp"

namespace cingulum {

// How records lie in bindings.
struct FieldPieces {
  std::uint32_t records_per_piece = 0;
  std::uint32_t count = 1;
};

// What changes from launch to launch.
struct LaunchNumbers {
  std::uint32_t seed_count = 0;
  std::uint32_t first_seed = 0;   // the global index of seed 0
  std::uint32_t budget = 0;       // getter calls of a workgroup
  std::uint32_t call_shares = 0;  // of ptt_probes.wgsl: of all workgroups together
  std::uint32_t page_capacity = 0;
  std::uint32_t at_seeds = 0;   // in the words after the counters
  std::uint32_t at_values = 0;  // of ptt_probes.wgsl, likewise
  std::uint32_t given_directions = 0;
  // Streamlines wait at z below `brick_low` and from `brick_high` on: the field is not there.
  float brick_low = -unbounded;
  float brick_high = unbounded;
  static constexpr float unbounded = 1e30f;
};

// A number of the uniform block.
struct PlanNumber {
  std::string name;
  KernelArgument value;  // u32 or f32
};
// All of them, in the order of the block. The same names in the same order for every plan.
// In the buffer of tables, the numbers of records per voxel follow the words of `tables`.
[[nodiscard]] std::vector<PlanNumber> plan_numbers(const DeviceTables& tables, const FieldPieces& pieces,
                                                   const LaunchNumbers& launch);

struct ShaderForm {
  LaneForm lanes = LaneForm::workgroup;
  // Whether the field's shape is written into the text, so that the driver can unroll: faster (ptt_probes.wgsl 45
  // instead of 38 M points/s on an H200), but every shape is compiled anew. Held equal by
  // WebgpuTracking.by_a_text_for_one_shape_has_the_cpus_bits.
  bool specialised = false;
  // Whether ptt runs by ptt_probes.wgsl instead of ptt.wgsl and track.wgsl. That takes two more bindings before the
  // work: the field's records once more, and the words of probe_words.hpp.
  bool probes = false;
  bool int64 = false;  // the adapter has 64-bit integers
};

// Workgroup memory that the text takes. Reads the counts of `input` alone.
[[nodiscard]] std::uint32_t tracking_workgroup_bytes(const TrackingInput& input, bool specialised);

// Words of the buffer that a workgroup of ptt_probes.wgsl takes for values.
[[nodiscard]] std::uint32_t tracking_value_words(const TrackingInput& input);

// The getter's .wgsl files, after those that every module has.
[[nodiscard]] std::vector<std::string_view> tracking_shader_files(const TrackingInput& input, bool probes);

[[nodiscard]] KernelSource make_tracking_shader(const TrackingInput& input, const std::vector<PlanNumber>& numbers,
                                                const FieldPieces& pieces, const ShaderForm& form);

}  // namespace cingulum
