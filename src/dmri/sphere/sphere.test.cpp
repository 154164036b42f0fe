#include "dmri/sphere/sphere.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <set>

#include "dmri/sphere/convex_hull.hpp"
#include "numerics/mirror_sum.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

struct NamedCount {
  const char* name;
  std::size_t directions;
};
constexpr NamedCount known[] = {
    {"mirror321", 321}, {"mirror406", 406}, {"mirror501", 501}, {"repulsion724", 362}, {"repulsion362", 181}};

Sphere sphere_of(std::string_view name) {
  auto sphere = named_sphere(name);
  EXPECT_TRUE(sphere.has_value()) << (sphere ? "" : sphere.error().message());
  return sphere ? *std::move(sphere) : Sphere{};
}

bool is_kept(Vec3d v) {
  return v.z > 0 || (v.z == 0 && (v.y > 0 || (v.y == 0 && v.x > 0)));
}

std::vector<double> nearest_angles_deg(const Sphere& sphere) {
  std::vector<double> result;
  for (std::size_t i = 0; i < sphere.size(); ++i) {
    double largest = -1;
    for (std::size_t j = 0; j < sphere.size(); ++j) {
      if (i != j) largest = std::max(largest, std::abs(dot(sphere.directions[i], sphere.directions[j])));
    }
    result.push_back(std::acos(largest) * 180 / M_PI);
  }
  return result;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(sphere, named_spheres_have_the_counts_of_their_names) {
  for (const auto& [name, count] : known) {
    const Sphere half = sphere_of(name);
    EXPECT_EQ(half.size(), count) << name;
    EXPECT_EQ(half.edges.size(), 3 * count - 3) << name;
    EXPECT_TRUE(half.is_hemisphere);
    const Sphere full = sphere_of(std::string(name) + "-full");
    EXPECT_EQ(full.size(), 2 * count) << name;
    EXPECT_EQ(full.edges.size(), 6 * count - 6) << name;
    EXPECT_FALSE(full.is_hemisphere);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(full.directions[i], -full.directions[i + count]);
  }
  EXPECT_EQ(sphere_of("default").name, "mirror321");
  EXPECT_EQ(sphere_of("small").name, "repulsion362");
}

TEST(sphere, kept_directions_are_of_unit_length_and_on_the_kept_hemisphere) {
  for (const auto& [name, count] : known) {
    for (const Vec3d& v : sphere_of(name).directions) {
      EXPECT_NEAR(dot(v, v), 1, 1e-15) << name;
      EXPECT_TRUE(is_kept(v)) << name;
      for (const double component : {v.x, v.y, v.z}) EXPECT_FALSE(component == 0 && std::signbit(component)) << name;
    }
  }
}

TEST(sphere, mirror_images_are_exact_negations) {
  for (const char* name : {"mirror321", "mirror406", "mirror501"}) {
    const Sphere sphere = sphere_of(name);
    std::set<std::array<double, 3>> whole;
    for (const Vec3d& v : sphere.directions) {
      whole.insert({v.x, v.y, v.z});
      whole.insert({0.0 - v.x, 0.0 - v.y, 0.0 - v.z});
    }
    EXPECT_EQ(whole.size(), 2 * sphere.size());
    for (const auto& [x, y, z] : whole) {
      EXPECT_TRUE(whole.contains({0.0 - x, y, z}));
      EXPECT_TRUE(whole.contains({x, 0.0 - y, z}));
      EXPECT_TRUE(whole.contains({x, y, 0.0 - z}));
    }
  }
}

TEST(sphere, vertex_order_of_mirror_spheres_is_slot_order) {
  for (const char* name : {"mirror321", "mirror406", "mirror501"}) {
    const Sphere sphere = sphere_of(name);
    ASSERT_TRUE(sphere.mirror_symmetric);
    ASSERT_EQ(sphere.slots.size() % 128, 0U);
    std::uint32_t expected = 0;
    for (const std::uint32_t vertex : sphere.slots) {
      if (vertex == no_vertex) continue;
      EXPECT_EQ(vertex, expected++);
    }
    EXPECT_EQ(expected, sphere.size());
    constexpr double signs[4][3] = {{1, 1, 1}, {1, 1, -1}, {1, -1, 1}, {-1, 1, 1}};
    for (std::uint32_t orbit = 0; orbit < sphere.orbits.size(); ++orbit) {
      const Vec3d o = sphere.orbits[orbit];
      EXPECT_TRUE(o.x >= 0 && o.y >= 0 && o.z >= 0);
      std::vector<Vec3d> earlier;
      for (std::uint32_t member = 0; member < 4; ++member) {
        Vec3d v = {o.x * signs[member][0], o.y * signs[member][1], o.z * signs[member][2]};
        if (!is_kept(v)) v = -v;
        const bool repeated = std::find(earlier.begin(), earlier.end(), v) != earlier.end();
        earlier.push_back(v);
        const std::uint32_t vertex = sphere.slots[numerics::mirror_slot(orbit, member)];
        EXPECT_EQ(vertex == no_vertex, repeated) << name << " orbit " << orbit << " member " << member;
        if (vertex == no_vertex) continue;
        EXPECT_EQ(sphere.directions[vertex], v);
      }
    }
    EXPECT_TRUE(sphere_of(std::string(name) + "-full").slots.empty());
  }
}

TEST(sphere, orbits_of_a_lane_of_mirror321_are_triangles) {
  const Sphere sphere = sphere_of("mirror321");
  ASSERT_EQ(sphere.orbits.size(), 93U);
  const auto joined = [&](std::uint32_t a, std::uint32_t b) {
    const std::array<std::uint32_t, 2> edge = {std::min(a, b), std::max(a, b)};
    return std::binary_search(sphere.edges.begin(), sphere.edges.end(), edge);
  };
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const auto vertex = [&](std::uint32_t k) { return sphere.slots[numerics::mirror_slot(32 * k + lane, 0)]; };
    EXPECT_TRUE(joined(vertex(0), vertex(1))) << lane;
    if (64 + lane >= 93) continue;
    EXPECT_TRUE(joined(vertex(0), vertex(2))) << lane;
    EXPECT_TRUE(joined(vertex(1), vertex(2))) << lane;
  }
}

TEST(sphere, spacing_is_as_even_as_the_theory_allows) {
  // A hexagonal lattice of 2 n points on the sphere would have the angle sqrt(8 pi / sqrt(3) / 2 n).
  for (const auto& [name, count] : known) {
    const std::vector<double> angles = nearest_angles_deg(sphere_of(name));
    const double lattice = std::sqrt(8 * M_PI / std::sqrt(3.0) / (2.0 * static_cast<double>(count))) * 180 / M_PI;
    EXPECT_GT(mean(angles), 0.94 * lattice) << name;
    EXPECT_LT(mean(angles), lattice) << name;
    EXPECT_GT(*std::min_element(angles.begin(), angles.end()), 0.88 * lattice) << name;
  }
  EXPECT_NEAR(mean(nearest_angles_deg(sphere_of("mirror321"))), 8.2, 0.1);
  EXPECT_NEAR(mean(nearest_angles_deg(sphere_of("repulsion724"))), 7.8, 0.1);
}

TEST(sphere, repulsion_spheres_are_ordered_along_a_path_of_neighbours) {
  for (const char* name : {"repulsion724", "repulsion362"}) {
    const Sphere sphere = sphere_of(name);
    for (std::uint32_t i = 0; i + 1 < sphere.size(); ++i) {
      const std::array<std::uint32_t, 2> edge = {i, i + 1};
      EXPECT_TRUE(std::binary_search(sphere.edges.begin(), sphere.edges.end(), edge)) << name << " " << i;
    }
  }
}

TEST(sphere, neighbour_tables_agree_with_the_edges) {
  for (const char* name : {"mirror406", "repulsion362-full"}) {
    const Sphere sphere = sphere_of(name);
    ASSERT_EQ(sphere.neighbour_offsets.size(), sphere.size() + 1);
    ASSERT_EQ(sphere.neighbours.size(), 2 * sphere.edges.size());
    std::vector<std::array<std::uint32_t, 2>> from_table;
    for (std::uint32_t v = 0; v < sphere.size(); ++v) {
      const auto begin = sphere.neighbours.begin() + sphere.neighbour_offsets[v];
      const auto end = sphere.neighbours.begin() + sphere.neighbour_offsets[v + 1];
      EXPECT_TRUE(std::is_sorted(begin, end));
      for (auto it = begin; it != end; ++it) {
        if (v < *it) from_table.push_back({v, *it});
      }
    }
    EXPECT_EQ(from_table, sphere.edges);
  }
}

TEST(sphere, a_sphere_written_as_text_comes_back_with_its_graph) {
  const Sphere original = sphere_of("mirror321");
  std::string text = "# made here\n";
  for (const Vec3d& v : original.directions) text += fmt::format("{} {} {}\n", v.x, v.y, v.z);
  for (const Vec3d& v : original.directions) text += fmt::format("{}\t{}\t{}\r\n", -v.x, -v.y, -v.z);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "directions.txt";
  std::ofstream(path) << text;
  const auto again = sphere_by_name_or_file(path.string());
  ASSERT_TRUE(again.has_value()) << again.error().message();
  EXPECT_EQ(again->directions, original.directions);
  EXPECT_EQ(again->edges, original.edges);
  EXPECT_FALSE(again->mirror_symmetric);
}

TEST(sphere, cubes_and_other_degenerate_hulls_are_triangulated) {
  for (const int steps : {1, 2, 5}) {  // points of a cube's surface: many on one circle
    std::vector<Vec3d> directions;
    for (int i = -steps; i <= steps; ++i) {
      for (int j = -steps; j <= steps; ++j) {
        for (int k = -steps; k <= steps; ++k) {
          if (std::max({std::abs(i), std::abs(j), std::abs(k)}) != steps) continue;
          directions.push_back({double(i), double(j), double(k)});
        }
      }
    }
    const auto full = make_sphere("cube", directions, true);
    ASSERT_TRUE(full.has_value()) << full.error().message();
    EXPECT_EQ(full->size(), directions.size());
    EXPECT_EQ(full->edges.size(), 3 * directions.size() - 6);
    const auto half = make_sphere("cube", directions, false);
    ASSERT_TRUE(half.has_value()) << half.error().message();
    EXPECT_EQ(half->size(), directions.size() / 2);
  }
}

TEST(sphere, hulls_of_random_points_have_no_point_outside_any_face) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<Vec3d> points;
  for (int i = 0; i < 300; ++i) {
    points.push_back(numerics::normalise(Vec3d{normal(random), normal(random), normal(random)}));
  }
  const auto triangles = convex_hull_on_sphere(points);
  ASSERT_TRUE(triangles.has_value());
  EXPECT_EQ(triangles->size(), 596U);
  for (const auto& [a, b, c] : *triangles) {
    const Vec3d normal_vector = cross(points[b] - points[a], points[c] - points[a]);
    for (const Vec3d& point : points) EXPECT_LE(dot(normal_vector, point - points[a]), 1e-10);
  }
}

// Minus zero and zero are one direction, and have one text and one set of bits.
TEST(sphere, no_direction_has_a_minus_zero) {
  const std::vector<Vec3d> octahedron = {{1, -0.0, -0.0}, {-1, -0.0, 0},   {-0.0, 1, -0.0},
                                         {0, -1, -0.0},   {-0.0, -0.0, 1}, {-0.0, 0, -1}};
  for (const bool full : {false, true}) {
    const auto made = make_sphere("octahedron", octahedron, full);
    ASSERT_TRUE(made.has_value()) << made.error().message();
    EXPECT_EQ(made->size(), full ? 6U : 3U);
    for (const Vec3d v : made->directions) {
      for (const double component : {v.x, v.y, v.z}) EXPECT_TRUE(component != 0 || !std::signbit(component)) << full;
    }
  }
}

TEST(sphere, what_is_no_sphere_is_refused_with_the_reason) {
  const auto message = [](std::string_view text, bool full) {
    const auto sphere = parse_sphere("s", text, full);
    return sphere ? std::string("accepted") : sphere.error().message();
  };
  EXPECT_EQ(message("1 0 0\n0 1 0\n0 0 one\n", false), "sphere s: line 3: 'one' is not a number");
  EXPECT_EQ(message("1 0 0\n0 1\n", false), "sphere s: line 2 has 2 numbers; a direction is x y z");
  EXPECT_EQ(message("1 0 0\n0 1 0\n0 0 1\n2 0 0\n", false), "sphere s: direction 4 is the same as direction 1");
  EXPECT_NE(message("1 0 0\n0 1 0\n0 0 nan\n", false).find("direction 3"), std::string::npos);
  EXPECT_NE(message("1 0 0\n0 1 0\n0 0 0\n", false).find("has no direction"), std::string::npos);
  EXPECT_NE(message("1 0 0\n0 1 0\n", false).find("too few"), std::string::npos);
  EXPECT_NE(message("1 0 0\n0 1 0\n1 1 0\n1 -1 0\n", false).find("one circle"), std::string::npos);
  EXPECT_NE(message("1 0 0\n0 1 0\n0 0 1\n1 1 0\n1 0 1\n0 1 1\n", true).find("around the origin"), std::string::npos);
  EXPECT_EQ(message("1 0 0\n0 1 0\n0 0 1\n", false), "accepted");
  // A length that rounding leaves a direction.
  EXPECT_EQ(message("1 0 0\n0 1.01e-6 0\n0 0 999999\n", false), "accepted");
  for (const char* const length : {"1e-6", "9.9e-7", "1e6", "1000001"}) {
    EXPECT_NE(message(fmt::format("1 0 0\n0 1 0\n0 0 {}\n", length), false).find("has no direction"), std::string::npos)
        << length;
  }
  const auto unknown = sphere_by_name_or_file("mirror99");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message().find("mirror321"), std::string::npos);
}

}  // namespace
}  // namespace cingulum
