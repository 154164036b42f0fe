// WGSL text that is part of the library: the numerics mirror (src/numerics/wgsl) and kernels. WGSL has no includes, so
// a kernel is the mirror followed by its own text. Plain text: needs no WebGPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cingulum {

// How the 32 lanes of lane sums and choices talk to each other.
enum class LaneForm {
  workgroup,  // through workgroup memory: works everywhere
  subgroup,   // by subgroup operations: needs the feature and subgroups of exactly 32
};

// A file by its name; empty if there is none.
[[nodiscard]] std::string_view embedded_shader(std::string_view file_name);

// `const NAME = VALUE;`, so that a number which C++ and WGSL share stands in one place.
[[nodiscard]] std::string wgsl_constant(std::string_view name, std::uint32_t value);
[[nodiscard]] std::string wgsl_constant(std::string_view name, std::int32_t value);
[[nodiscard]] std::string wgsl_constant(std::string_view name, float value);

// Every function of numerics/wgsl in one text. `negative_zero` is where the kernel's uniform block has -0.0
// ("plan.negative_zero"). Without it a private variable holds the number, which the entry point sets; browsers then
// take every product for different in each invocation, and refuse a barrier whose execution depends on one. With
// `int64` the text needs an adapter that has 64-bit integers.
[[nodiscard]] std::string numerics_wgsl(LaneForm form = LaneForm::workgroup, std::string_view negative_zero = {},
                                        bool int64 = false);

}  // namespace cingulum
