// Sets of directions with the graph that joins neighbours: our own spheres by name, others from a file. Called by the
// models (constraints, ODFs), peaks and the trackers. The tables behind the names are made by tools/make_spheres.py.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

inline constexpr std::uint32_t no_vertex = 0xffffffffu;

struct Sphere {
  std::string name;
  // On the hemisphere each direction stands for itself and its opposite; kept are z > 0, or z = 0 and y > 0, or
  // z = y = 0 and x > 0. Edges of a hemisphere may lead to the opposite of a vertex.
  bool is_hemisphere = true;
  // Directions come in slot order of the contract's mirror sum, empty slots left out. Never true of a full sphere: the
  // mirror sum is of even functions.
  bool mirror_symmetric = false;
  std::vector<numerics::Vec3d> directions;
  std::vector<std::array<std::uint32_t, 2>> edges;  // each once, the lower index first, ascending
  std::vector<std::uint32_t> neighbour_offsets;     // size() + 1
  std::vector<std::uint32_t> neighbours;            // of each vertex, ascending
  // Empty unless mirror-symmetric. `orbits` holds member 0 of each orbit, all components >= 0; members 0 to
  // 3 are (x, y, z), (x, y, -z), (x, -y, z), (-x, y, z). `slots` is indexed by numerics::mirror_slot(orbit, member) and
  // gives the vertex or no_vertex; its size is 128 times the number of groups of 32 orbits. Where members coincide (up
  // to sign) the first keeps its slot: on z = 0 members 0 and 2, on x = 0 or y = 0 members 0 and 1, on an axis member
  // 0. The vertex is the member itself or its opposite, whichever lies on the kept hemisphere.
  std::vector<numerics::Vec3d> orbits;
  std::vector<std::uint32_t> slots;

  [[nodiscard]] std::size_t size() const { return directions.size(); }
};

// mirror321 (the default), mirror406, mirror501, repulsion724 (362 directions), repulsion362 (181); with "-full" the
// whole sphere. "default" = mirror321, "small" = repulsion362.
[[nodiscard]] Result<Sphere> named_sphere(std::string_view name);
[[nodiscard]] std::vector<std::string> sphere_names();
// One "x y z" per line, # begins a comment; antipodal pairs are recognised and halved unless `full`. The graph is the
// convex hull's.
[[nodiscard]] Result<Sphere> read_sphere(const std::filesystem::path& path, bool full);
[[nodiscard]] Result<Sphere> parse_sphere(std::string name, std::string_view text, bool full);
// Directions need not be of unit length. Unless `full`, each is replaced by its opposite where that is the one kept,
// and the second of an antipodal pair is left out; the order stays. Of a full sphere the directions must surround the
// origin. 6 to 20 000 directions (3 on the hemisphere), none given twice.
[[nodiscard]] Result<Sphere> make_sphere(std::string name, std::vector<numerics::Vec3d> directions, bool full);
// A name or, where there is no such name, a file.
[[nodiscard]] Result<Sphere> sphere_by_name_or_file(const std::string& text, bool full = false);

}  // namespace cingulum
