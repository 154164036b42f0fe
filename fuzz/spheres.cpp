// Spheres from text, as half and as full spheres: what is accepted is a closed graph on unit vectors.
#include "dmri/sphere/sphere.hpp"

#include "fuzz/fuzz_target.hpp"

namespace {

using namespace cingulum;

void require_sound(const Sphere& sphere) {
  const std::size_t count = sphere.size();
  fuzz::require(sphere.neighbour_offsets.size() == count + 1, "offsets do not fit the directions");
  fuzz::require(sphere.neighbours.size() == 2 * sphere.edges.size(), "neighbours do not fit the edges");
  // On the half sphere both diagonals of four points on a circle may be edges.
  fuzz::require(sphere.is_hemisphere || sphere.edges.size() == 3 * count - 6, "the hull is not closed");
  for (const auto& [a, b] : sphere.edges) fuzz::require(a < b && b < count, "an edge leads nowhere");
  for (const numerics::Vec3d& v : sphere.directions) {
    const double square = numerics::dot(v, v);
    fuzz::require(square > 1 - 1e-12 && square < 1 + 1e-12, "a direction is not of unit length");
    const bool kept = v.z > 0 || (v.z == 0 && (v.y > 0 || (v.y == 0 && v.x > 0)));
    fuzz::require(kept || !sphere.is_hemisphere, "a direction is not on the kept half");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 20000) return 0;  // the hull takes quadratic time
  const std::string_view text = fuzz::as_text(data, size);
  for (const bool full : {false, true}) {
    const auto sphere = parse_sphere("text", text, full);
    if (!sphere) continue;
    require_sound(*sphere);
    const Sphere again = fuzz::expect(make_sphere("again", sphere->directions, full), "making it again");
    fuzz::require(again.edges == sphere->edges && again.directions == sphere->directions, "another graph");
  }
  return 0;
}
