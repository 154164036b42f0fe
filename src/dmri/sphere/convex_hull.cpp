#include "dmri/sphere/convex_hull.hpp"

#include <algorithm>
#include <utility>

#include "numerics/portable.hpp"

namespace cingulum {

namespace {

__extension__ using Wide = __int128;
using Triangle = std::array<std::uint32_t, 3>;
using GridPoint = std::array<std::int64_t, 3>;

constexpr std::uint32_t none = 0xffffffffu;

// Symmetric about zero, so that opposite points stay opposite.
std::int64_t to_grid(double coordinate) {
  const double scaled = coordinate * 0x1p38;
  return scaled < 0 ? -static_cast<std::int64_t>(0.5 - scaled) : static_cast<std::int64_t>(scaled + 0.5);
}

// Six times the signed volume of the tetrahedron (a, b, c, d): positive where d lies on the side from which a, b, c
// appear counter-clockwise. Differences are below 2^40, so the sum of six products is below 2^123.
Wide volume(const GridPoint& a, const GridPoint& b, const GridPoint& c, const GridPoint& d) {
  const auto difference = [&](const GridPoint& p, std::size_t axis) { return static_cast<Wide>(p[axis] - d[axis]); };
  const Wide ax = difference(a, 0), ay = difference(a, 1), az = difference(a, 2);
  const Wide bx = difference(b, 0), by = difference(b, 1), bz = difference(b, 2);
  const Wide cx = difference(c, 0), cy = difference(c, 1), cz = difference(c, 2);
  return -(ax * (by * cz - bz * cy) - ay * (bx * cz - bz * cx) + az * (bx * cy - by * cx));
}

// Faces around each point inserted so far, by incremental insertion: the faces that see the new point are taken away
// and the hole is closed by triangles to it.
class Hull {
 public:
  explicit Hull(std::span<const numerics::Vec3d> points) {
    grid_.reserve(points.size());
    for (const numerics::Vec3d& point : points) grid_.push_back({to_grid(point.x), to_grid(point.y), to_grid(point.z)});
    at_first_corner_.resize(points.size(), none);
  }

  Result<std::vector<Triangle>> build() {
    CGL_TRY_ASSIGN(const Triangle base, first_triangle());
    CGL_TRY_ASSIGN(const std::uint32_t top, off_plane(base));
    start(base, top);
    for (std::uint32_t point = 0; point < grid_.size(); ++point) {
      if (point == base[0] || point == base[1] || point == base[2] || point == top) continue;
      CGL_TRY(insert(point));
    }
    std::vector<Triangle> result;
    for (const Face& face : faces_) {
      if (face.alive) result.push_back(face.corners);
    }
    if (result.size() + 4 != 2 * grid_.size()) {
      return fail(ErrorKind::invalid_argument,
                  "joining {} directions to a graph: {} triangles in the place of {}; some directions are too near to "
                  "each other",
                  grid_.size(), result.size(), 2 * grid_.size() - 4);
    }
    return result;
  }

 private:
  struct Face {
    Triangle corners;
    Triangle across;  // across[i]: the face at the edge from corner i to corner i + 1
    bool alive;
  };

  [[nodiscard]] Result<Triangle> first_triangle() const {
    for (std::uint32_t b = 1; b < grid_.size(); ++b) {
      if (grid_[b] == grid_[0]) continue;
      for (std::uint32_t c = b + 1; c < grid_.size(); ++c) {
        if (!on_one_line(grid_[0], grid_[b], grid_[c])) return Triangle{0, b, c};
      }
    }
    return fail(ErrorKind::invalid_argument, "joining {} directions to a graph: all are the same or opposite",
                grid_.size());
  }

  static bool on_one_line(const GridPoint& a, const GridPoint& b, const GridPoint& c) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t j = (i + 1) % 3;
      const Wide area = static_cast<Wide>(b[i] - a[i]) * (c[j] - a[j]) - static_cast<Wide>(b[j] - a[j]) * (c[i] - a[i]);
      if (area != 0) return false;
    }
    return true;
  }

  // The point farthest from the plane of the triangle.
  [[nodiscard]] Result<std::uint32_t> off_plane(const Triangle& base) const {
    Wide largest = 0;
    std::uint32_t found = none;
    for (std::uint32_t point = 0; point < grid_.size(); ++point) {
      const Wide signed_size = volume(grid_[base[0]], grid_[base[1]], grid_[base[2]], grid_[point]);
      const Wide size = signed_size < 0 ? -signed_size : signed_size;
      if (size > largest) {
        largest = size;
        found = point;
      }
    }
    if (found == none) {
      return fail(ErrorKind::invalid_argument, "joining {} directions to a graph: all lie on one circle", grid_.size());
    }
    return found;
  }

  void start(Triangle base, std::uint32_t top) {
    // Seen from outside counter-clockwise: the top must be below the base's plane.
    if (volume(grid_[base[0]], grid_[base[1]], grid_[base[2]], grid_[top]) > 0) std::swap(base[1], base[2]);
    faces_ = {{base, {1, 2, 3}, true},
              {{base[1], base[0], top}, {0, 3, 2}, true},
              {{base[2], base[1], top}, {0, 1, 3}, true},
              {{base[0], base[2], top}, {0, 2, 1}, true}};
  }

  [[nodiscard]] bool sees(std::uint32_t face, std::uint32_t point) const {
    const Triangle& corners = faces_[face].corners;
    return volume(grid_[corners[0]], grid_[corners[1]], grid_[corners[2]], grid_[point]) > 0;
  }

  // Newest faces first: input is often ordered so that neighbours follow each other.
  [[nodiscard]] std::uint32_t face_seen_by(std::uint32_t point) const {
    for (auto face = static_cast<std::uint32_t>(faces_.size()); face-- > 0;) {
      if (faces_[face].alive && sees(face, point)) return face;
    }
    return none;
  }

  Status insert(std::uint32_t point) {
    const std::uint32_t first = face_seen_by(point);
    if (first == none) {
      return fail(ErrorKind::invalid_argument,
                  "joining {} directions to a graph: direction {} is too near to others, or given twice", grid_.size(),
                  point);
    }
    // The faces that see the point, and the edges around them. With exact tests they form one simply connected patch.
    struct BorderEdge {
      std::uint32_t from;
      std::uint32_t to;
      std::uint32_t outside;
    };
    std::vector<BorderEdge> border;
    std::vector<std::uint32_t> pending = {first};
    faces_[first].alive = false;
    std::vector<std::uint32_t> removed;
    while (!pending.empty()) {
      const std::uint32_t face = pending.back();
      pending.pop_back();
      removed.push_back(face);
      for (std::size_t i = 0; i < 3; ++i) {
        const std::uint32_t next = faces_[face].across[i];
        if (!faces_[next].alive) continue;
        if (sees(next, point)) {
          faces_[next].alive = false;
          pending.push_back(next);
        }
      }
    }
    for (const std::uint32_t face : removed) {
      for (std::size_t i = 0; i < 3; ++i) {
        const std::uint32_t next = faces_[face].across[i];
        if (faces_[next].alive) border.push_back({faces_[face].corners[i], faces_[face].corners[(i + 1) % 3], next});
      }
    }
    for (const BorderEdge& edge : border) {
      const std::uint32_t fresh = take_slot(removed);
      faces_[fresh] = {{edge.from, edge.to, point}, {edge.outside, none, none}, true};
      Face& outside = faces_[edge.outside];
      for (std::size_t i = 0; i < 3; ++i) {
        if (outside.corners[i] == edge.to && outside.corners[(i + 1) % 3] == edge.from) outside.across[i] = fresh;
      }
      at_first_corner_[edge.from] = fresh;
    }
    // The face that begins at `to` follows the one that ends there.
    for (const BorderEdge& edge : border) {
      const std::uint32_t current = at_first_corner_[edge.from];
      const std::uint32_t next = at_first_corner_[edge.to];
      faces_[current].across[1] = next;
      faces_[next].across[2] = current;
    }
    return {};
  }

  std::uint32_t take_slot(std::vector<std::uint32_t>& removed) {
    if (!removed.empty()) {
      const std::uint32_t slot = removed.back();
      removed.pop_back();
      return slot;
    }
    faces_.push_back({});
    return static_cast<std::uint32_t>(faces_.size() - 1);
  }

  std::vector<GridPoint> grid_;
  std::vector<Face> faces_;
  std::vector<std::uint32_t> at_first_corner_;  // the new face whose first corner is the point; used inside insert()
};

}  // namespace

Result<std::vector<std::array<std::uint32_t, 3>>> convex_hull_on_sphere(std::span<const numerics::Vec3d> points) {
  if (points.size() < 4) {
    return fail(ErrorKind::invalid_argument, "joining {} directions to a graph: at least 4 points are needed",
                points.size());
  }
  return Hull(points).build();
}

}  // namespace cingulum
