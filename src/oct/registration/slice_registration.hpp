// Neighbouring slices against each other: which plane of the upper slice (fixed) a plane of the next one (moving)
// shows, and how the next one is turned and shifted. Small fits on the host, float64, on a few planes. Called by `oct
// register`; stacking uses what is found.
//
// A pixel p = (row, column) of moving lies at R(angle) (p - centre) + centre + shift in fixed, centre that of fixed.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

struct RigidFit {
  double rotation_deg = 0;
  std::array<double, 2> shift_px = {0, 0};  // row, column
  double ncc = 0;                           // of the images where both are
  bool converged = false;
};

struct RegistrationOptions {
  std::size_t moving_plane = 4;  // the first of the planes that are compared
  std::size_t planes = 5;
  double expected_planes = 0;      // between the first planes of both slices: the slicing interval
  std::size_t search_planes = 10;  // to either side
  double max_rotation_deg = 5;
  double max_shift_px = 20;
  std::array<double, 2> start_px = {0, 0};  // shift that the motors say
  double smoothing_px = 1.5;
  // Planes of the fixed slice in memory, besides `planes`; 0: all that are compared, and what was made of them.
  std::size_t planes_at_a_time = 0;
  ThreadPool* pool = nullptr;  // changes no bit
};

// A slice whose planes are read as they are needed.
struct SlicePlanes {
  std::size_t planes = 0;
  std::function<Result<HostVolume>(std::size_t first, std::size_t count)> read;
};

struct SliceRegistration {
  RigidFit rigid;
  double interval_planes = 0;  // between the first planes, measured
  double z_ncc = 0;            // of the best plane
  bool at_border = false;      // the best plane was the last that was looked at
  double confidence = 0;       // 0.5 z + 0.3 (1 - shift / max) + 0.2 (1 - angle / max)
};

// All of it. Fails where the slices do not overlap, or their planes are of another size than asked for.
[[nodiscard]] Result<SliceRegistration> register_slices(const SlicePlanes& fixed, const SlicePlanes& moving,
                                                        const RegistrationOptions& options);
// Slices in memory.
[[nodiscard]] SlicePlanes planes_of_volume(const HostVolume& volume);

}  // namespace cingulum::oct
