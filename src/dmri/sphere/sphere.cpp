#include "dmri/sphere/sphere.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "base/read_file.hpp"
#include "dmri/sphere/convex_hull.hpp"
#include "dmri/sphere/sphere_tables.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/mirror_sum.hpp"

namespace cingulum {

namespace {

using numerics::Vec3d;

constexpr std::size_t largest_direction_count = 20000;
// Directions nearer than this are the same: text files carry six digits at least.
constexpr double same_direction_radians = 1e-5;
constexpr std::string_view full_suffix = "-full";

// -0.0 becomes +0.0.
Vec3d kept_representative(Vec3d v) {
  const bool keep = v.z > 0 || (v.z == 0 && (v.y > 0 || (v.y == 0 && v.x > 0)));
  const Vec3d chosen = keep ? v : -v;
  return {chosen.x + 0.0, chosen.y + 0.0, chosen.z + 0.0};
}

void set_edges(Sphere& sphere, std::vector<std::array<std::uint32_t, 2>> edges) {
  for (std::array<std::uint32_t, 2>& edge : edges) {
    if (edge[0] > edge[1]) std::swap(edge[0], edge[1]);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  sphere.neighbour_offsets.assign(sphere.size() + 1, 0);
  for (const auto& [a, b] : edges) {
    ++sphere.neighbour_offsets[a + 1];
    ++sphere.neighbour_offsets[b + 1];
  }
  for (std::size_t i = 0; i < sphere.size(); ++i) sphere.neighbour_offsets[i + 1] += sphere.neighbour_offsets[i];
  sphere.neighbours.resize(2 * edges.size());
  std::vector<std::uint32_t> next(sphere.neighbour_offsets.begin(), sphere.neighbour_offsets.end() - 1);
  // Edges ascend, so each vertex gets its lower neighbours first, in ascending order, then its higher ones.
  for (const auto& [a, b] : edges) sphere.neighbours[next[b]++] = a;
  for (const auto& [a, b] : edges) sphere.neighbours[next[a]++] = b;
  sphere.edges = std::move(edges);
}

// The edges of the hull of `points`, vertices taken modulo `count`. An edge that joins a vertex to its own opposite
// (very few directions) says nothing and is left out.
Result<std::vector<std::array<std::uint32_t, 2>>> hull_edges(std::span<const Vec3d> points, std::uint32_t count,
                                                             bool must_surround_origin) {
  CGL_TRY_ASSIGN(const auto triangles, convex_hull_on_sphere(points));
  std::vector<std::array<std::uint32_t, 2>> edges;
  edges.reserve(3 * triangles.size());
  for (const auto& corners : triangles) {
    const Vec3d a = points[corners[0]];
    const Vec3d normal = cross(points[corners[1]] - a, points[corners[2]] - a);
    if (must_surround_origin && !(dot(normal, a) > 0)) {
      return fail(ErrorKind::invalid_argument,
                  "joining {} directions to a graph: a full sphere's directions must lie all around the origin; give "
                  "them as a half sphere if each also stands for its opposite",
                  points.size());
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint32_t from = corners[i] % count;
      const std::uint32_t to = corners[(i + 1) % 3] % count;
      if (from != to) edges.push_back({from, to});
    }
  }
  return edges;
}

std::vector<Vec3d> with_opposites(const std::vector<Vec3d>& directions) {
  std::vector<Vec3d> all = directions;
  all.reserve(2 * directions.size());
  for (const Vec3d& direction : directions) all.push_back({0.0 - direction.x, 0.0 - direction.y, 0.0 - direction.z});
  return all;
}

void set_orbits(Sphere& sphere, std::span<const double[3]> orbits) {
  sphere.mirror_symmetric = true;
  const std::size_t groups = (orbits.size() + numerics::lane_count - 1) / numerics::lane_count;
  sphere.slots.assign(groups * 4 * numerics::lane_count, no_vertex);
  for (std::uint32_t orbit = 0; orbit < orbits.size(); ++orbit) {
    const auto& [x, y, z] = orbits[orbit];
    sphere.orbits.push_back({x, y, z});
    const bool on_axis = (x == 0) + (y == 0) + (z == 0) == 2;
    const bool filled[4] = {true, !on_axis && z != 0, !on_axis && x != 0 && y != 0, x != 0 && y != 0 && z != 0};
    for (std::uint32_t member = 0; member < 4; ++member) {
      if (filled[member]) sphere.slots[numerics::mirror_slot(orbit, member)] = 0;
    }
  }
  std::uint32_t vertex = 0;
  for (std::uint32_t& slot : sphere.slots) {
    if (slot != no_vertex) slot = vertex++;
  }
}

Sphere hemisphere_from_table(const SphereTable& table) {
  Sphere sphere;
  sphere.name = table.name;
  for (const auto& [x, y, z] : table.directions) sphere.directions.push_back({x, y, z});
  std::vector<std::array<std::uint32_t, 2>> edges;
  for (const auto& [a, b] : table.edges) edges.push_back({a, b});
  set_edges(sphere, std::move(edges));
  if (!table.orbits.empty()) set_orbits(sphere, table.orbits);
  return sphere;
}

}  // namespace

std::vector<std::string> sphere_names() {
  std::vector<std::string> names;
  for (const SphereTable& table : sphere_tables()) names.emplace_back(table.name);
  return names;
}

Result<Sphere> named_sphere(std::string_view name) {
  std::string_view stem = name;
  const bool full = stem.ends_with(full_suffix);
  if (full) stem.remove_suffix(full_suffix.size());
  if (stem == "default") stem = "mirror321";
  if (stem == "small") stem = "repulsion362";
  for (const SphereTable& table : sphere_tables()) {
    if (stem != table.name) continue;
    Sphere sphere = hemisphere_from_table(table);
    if (!full) return sphere;
    return make_sphere(sphere.name + std::string(full_suffix), with_opposites(sphere.directions), true);
  }
  return fail(ErrorKind::not_found, "there is no sphere '{}' (known: default, small, {}; each with {} for the whole)",
              name, fmt::join(sphere_names(), ", "), full_suffix);
}

Result<Sphere> make_sphere(std::string name, std::vector<Vec3d> directions, bool full) {
  if (directions.size() > largest_direction_count) {
    return fail(ErrorKind::invalid_argument, "sphere {}: {} directions, at most {} are possible", name,
                directions.size(), largest_direction_count);
  }
  for (std::size_t i = 0; i < directions.size(); ++i) {
    const Vec3d v = directions[i];
    const bool finite = numerics::is_finite(v.x) && numerics::is_finite(v.y) && numerics::is_finite(v.z);
    const double length = finite ? numerics::length(v) : 0;
    if (!finite || !(length > 1e-6) || !(length < 1e6)) {
      return fail(ErrorKind::invalid_argument, "sphere {}: direction {} is ({}, {}, {}), which has no direction", name,
                  i + 1, v.x, v.y, v.z);
    }
    // A vector that is already of unit length keeps its bits: files made from our own tables give them back.
    const bool unit = length > 1 - 0x1p-50 && length < 1 + 0x1p-50;
    const Vec3d normal = unit ? v : Vec3d{v.x / length, v.y / length, v.z / length};
    directions[i] = full ? Vec3d{normal.x + 0.0, normal.y + 0.0, normal.z + 0.0} : normal;
  }
  std::vector<Vec3d> kept;
  for (std::size_t i = 0; i < directions.size(); ++i) {
    bool opposite_known = false;
    for (std::size_t j = 0; j < i; ++j) {
      const Vec3d difference = directions[i] - directions[j];
      const Vec3d sum = directions[i] + directions[j];
      constexpr double limit = same_direction_radians * same_direction_radians;
      if (dot(difference, difference) < limit) {
        return fail(ErrorKind::invalid_argument, "sphere {}: direction {} is the same as direction {}", name, i + 1,
                    j + 1);
      }
      opposite_known = opposite_known || (!full && dot(sum, sum) < limit);
    }
    if (!opposite_known) kept.push_back(full ? directions[i] : kept_representative(directions[i]));
  }
  if (kept.size() < (full ? 6U : 3U)) {
    return fail(ErrorKind::invalid_argument, "sphere {}: {} directions are too few", name, kept.size());
  }
  Sphere sphere;
  sphere.is_hemisphere = !full;
  sphere.directions = std::move(kept);
  const auto count = static_cast<std::uint32_t>(sphere.size());
  auto edges =
      full ? hull_edges(sphere.directions, count, true) : hull_edges(with_opposites(sphere.directions), count, false);
  CGL_TRY_ASSIGN(auto own_edges, add_context(std::move(edges), "sphere {}", name));
  set_edges(sphere, std::move(own_edges));
  sphere.name = std::move(name);
  return sphere;
}

Result<Sphere> parse_sphere(std::string name, std::string_view text, bool full) {
  std::vector<Vec3d> directions;
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    constexpr std::string_view blanks = " \t\r,";
    double numbers[3] = {};
    std::size_t count = 0;
    for (;;) {
      const std::size_t begin = line.find_first_not_of(blanks);
      if (begin == std::string_view::npos) break;
      line.remove_prefix(begin);
      const std::string_view word = line.substr(0, line.find_first_of(blanks));
      line.remove_prefix(word.size());
      double number = 0;
      const char* first = word.data() + (word.front() == '+' ? 1 : 0);
      const auto [stop, error] = std::from_chars(first, word.data() + word.size(), number);
      if (error != std::errc{} || stop != word.data() + word.size()) {
        return fail(ErrorKind::corrupt, "sphere {}: line {}: '{}' is not a number", name, line_number,
                    word.substr(0, 40));
      }
      if (count < 3) numbers[count] = number;
      ++count;
    }
    if (count == 0) continue;
    if (count != 3) {
      return fail(ErrorKind::corrupt, "sphere {}: line {} has {} numbers; a direction is x y z", name, line_number,
                  count);
    }
    if (directions.size() == largest_direction_count) {
      return fail(ErrorKind::invalid_argument, "sphere {}: more than {} directions", name, largest_direction_count);
    }
    directions.push_back({numbers[0], numbers[1], numbers[2]});
  }
  return make_sphere(std::move(name), std::move(directions), full);
}

Result<Sphere> read_sphere(const std::filesystem::path& path, bool full) {
  return catch_out_of_memory([&]() -> Result<Sphere> {
    constexpr std::uint64_t limit_bytes = std::uint64_t{16} << 20U;
    CGL_TRY_ASSIGN(const std::string text, read_text_file(path, limit_bytes));
    return parse_sphere(path.string(), text, full);
  });
}

Result<Sphere> sphere_by_name_or_file(const std::string& text, bool full) {
  return catch_out_of_memory([&]() -> Result<Sphere> {
    Result<Sphere> named = named_sphere(full ? text + "-full" : text);
    if (named || named.error().kind() != ErrorKind::not_found) return named;
    std::error_code error;
    if (std::filesystem::exists(text, error)) return read_sphere(text, full);
    return fail(ErrorKind::not_found, "{}, nor a file of that name", named.error().message());
  });
}

}  // namespace cingulum
