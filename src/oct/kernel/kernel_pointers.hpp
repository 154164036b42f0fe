// The names of the OCT kernels, and the arguments of one on the CPU or on CUDA: addresses of its buffers, and its
// record of parameters as words. Plain C++, since nvcc compiles it, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace cingulum::oct {

// X(name) for each kernel: OctKernel, the facts, and what each backend has of it are in this order.
#define CGL_OCT_KERNELS(X) \
  X(filter_axis)           \
  X(spline_axis)           \
  X(log_box)               \
  X(compress_lines)        \
  X(derivative_peak)       \
  X(roll_lines)            \
  X(project_depth)         \
  X(order_lines)           \
  X(layer_sums)            \
  X(divide_lines)          \
  X(product_rows)          \
  X(product_fold)          \
  X(sample_volume)         \
  X(count_keys)            \
  X(blend_add)             \
  X(blend_finish)          \
  X(median_box)            \
  X(attenuation_lines)     \
  X(compensate_lines)      \
  X(texture_noise)         \
  X(exponentiate)          \
  X(tile_voxels)

inline constexpr std::size_t most_kernel_buffers = 5;

// The addresses of a launch's ranges, where buffers have addresses.
struct KernelPointers {
  std::array<float*, most_kernel_buffers> at{};
  std::span<const std::uint32_t> words;

  template <class Record>
  [[nodiscard]] Record record() const {
    static_assert(std::is_trivially_copyable_v<Record>);
    Record record;
    std::memcpy(&record, words.data(), sizeof(Record));
    return record;
  }
  [[nodiscard]] const std::uint32_t* words_at(std::size_t buffer) const {
    return reinterpret_cast<const std::uint32_t*>(at[buffer]);
  }
};

}  // namespace cingulum::oct
