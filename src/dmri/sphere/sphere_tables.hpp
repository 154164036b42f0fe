// The numbers behind the named spheres, made by tools/make_spheres.py. Read by sphere.cpp alone.
#pragma once

#include <cstdint>
#include <span>

namespace cingulum {

struct SphereTable {
  const char* name;
  std::span<const double[3]> directions;    // hemisphere; of a mirror sphere in slot order
  std::span<const std::uint16_t[2]> edges;  // each once, the lower index first, ascending
  std::span<const double[3]> orbits;        // member 0 (x, y, z >= 0) of each orbit; empty unless mirror-symmetric
};

[[nodiscard]] std::span<const SphereTable> sphere_tables();

}  // namespace cingulum
