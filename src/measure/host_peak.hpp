// The most memory that this process held at a time, by the kernel's account. Called around what is measured.
#pragma once

#include <cstdint>

namespace cingulum::measure {

// The peak since `forget_host_peak`, else since the process began; 0 where the kernel does not report it.
[[nodiscard]] std::uint64_t host_peak_bytes();
void forget_host_peak();

}  // namespace cingulum::measure
