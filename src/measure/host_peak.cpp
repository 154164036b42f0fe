#include "measure/host_peak.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

namespace cingulum::measure {

void forget_host_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";  // proc(5): resets VmHWM
}

std::uint64_t host_peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return 1024 * std::strtoull(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

}  // namespace cingulum::measure
