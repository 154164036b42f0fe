#include "tract/seeds/sphere_seeds.hpp"

#include <array>

#include "base/quantity.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/random.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

// A cube's place lies outside of its ball with probability 0.48: all attempts fail once in 10^20 seeds, which then lie
// in the centre.
constexpr std::uint32_t most_ball_attempts = 64;

// A place in the ball of radius 1. Coordinates are multiples of 2^-23, so that squares and their sum are exact in
// float64.
Vec3d place_in_unit_ball(numerics::PhiloxKey key, std::uint64_t seed) {
  for (std::uint32_t attempt = 0; attempt < most_ball_attempts; ++attempt) {
    const numerics::PhiloxBlock block = numerics::random_block(key,
                                                               {.index = static_cast<std::uint32_t>(seed),
                                                                .purpose = numerics::DrawPurpose::seed_position,
                                                                .initial_direction = 0,
                                                                .half = 0,
                                                                .step = 0,
                                                                .attempt = attempt},
                                                               0);
    const auto coordinate = [&](int word) { return 2 * numerics::uniform64_from_word(block.word[word]) - 1; };
    const Vec3d place = {coordinate(0), coordinate(1), coordinate(2)};
    if ((place.x * place.x + place.y * place.y) + place.z * place.z <= 1) return place;
  }
  return {0, 0, 0};
}

class SphereSeeds final : public Seeds {
 public:
  SphereSeeds(const Affine& world_to_voxel, const WorldSphere& sphere, std::uint64_t count, numerics::PhiloxKey key)
      : world_to_voxel_(world_to_voxel), sphere_(sphere), count_(count), key_(key) {}

  [[nodiscard]] std::uint64_t count() const override { return count_; }
  void fill(std::uint64_t first, std::span<numerics::Vec3> positions) const override {
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const Vec3d place = place_in_unit_ball(key_, first + i);
      const Vec3d voxel = world_to_voxel_.apply({sphere_.centre_world.x + sphere_.radius_mm * place.x,
                                                 sphere_.centre_world.y + sphere_.radius_mm * place.y,
                                                 sphere_.centre_world.z + sphere_.radius_mm * place.z});
      positions[i] = {static_cast<float>(voxel.x), static_cast<float>(voxel.y), static_cast<float>(voxel.z)};
    }
  }

 private:
  Affine world_to_voxel_;
  WorldSphere sphere_;
  std::uint64_t count_;
  numerics::PhiloxKey key_;
};

// Whether the ball's box along the image's axes meets the image.
bool may_reach(const ImageGeometry& geometry, const Affine& world_to_voxel, const WorldSphere& sphere) {
  const Vec3d centre = world_to_voxel.apply(sphere.centre_world);
  const std::array<double, 3> at = {centre.x, centre.y, centre.z};
  for (int axis = 0; axis < 3; ++axis) {
    const double a = world_to_voxel.at(axis, 0), b = world_to_voxel.at(axis, 1), c = world_to_voxel.at(axis, 2);
    const double half = sphere.radius_mm * numerics::root((a * a + b * b) + c * c);
    const auto index = static_cast<std::size_t>(axis);
    if (at[index] + half < -0.5 || at[index] - half > static_cast<double>(geometry.size[index]) - 0.5) return false;
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<Seeds>> sphere_seeds(const ImageGeometry& geometry, const WorldSphere& sphere,
                                            std::uint64_t count, numerics::PhiloxKey key) {
  if (count > most_seeds) {
    return fail(ErrorKind::invalid_argument,
                "seeding: {} seeds; a run takes at most 2^32 ({}), since the random numbers count seeds in 32 bits",
                format_count(count), format_count(most_seeds));
  }
  // A NaN passes no comparison.
  for (const double x : {sphere.centre_world.x, sphere.centre_world.y, sphere.centre_world.z}) {
    if (!(numerics::absolute(x) <= 1e6)) {
      return fail(ErrorKind::invalid_argument, "seeding in a sphere: centre {} mm: accepted is -1000000 to 1000000 mm",
                  x);
    }
  }
  if (!(sphere.radius_mm > 0 && sphere.radius_mm <= 1e6)) {
    return fail(ErrorKind::invalid_argument,
                "seeding in a sphere: radius {} mm: accepted is more than 0, at most 1000000 mm", sphere.radius_mm);
  }
  CGL_TRY_ASSIGN(const Affine world_to_voxel, geometry.voxel_to_world.inverse());
  if (!may_reach(geometry, world_to_voxel, sphere)) {
    return fail(ErrorKind::invalid_argument,
                "seeding in a sphere: the one about {} {} {} mm with a radius of {} mm lies outside of the image",
                sphere.centre_world.x, sphere.centre_world.y, sphere.centre_world.z, sphere.radius_mm);
  }
  return std::make_unique<SphereSeeds>(world_to_voxel, sphere, count == 0 ? most_seeds : count, key);
}

}  // namespace cingulum
