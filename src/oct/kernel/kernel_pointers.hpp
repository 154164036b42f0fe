// The arguments of an OCT kernel on the CPU or on CUDA: addresses of its buffers, and its record of parameters as
// words. Plain C++, since nvcc compiles it, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace cingulum::oct {

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
