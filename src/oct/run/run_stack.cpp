#include "oct/run/run_stack.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/log.hpp"
#include "oct/registration/slice_registration.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/tiles/motor_shifts.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {
namespace {

// Planes of a slice that is made, read as they are needed. A slice that cannot be read ends the run, and is no slice
// that cannot be registered: `unread` says which it was.
Result<SlicePlanes> slice_planes(const RunState& run, std::size_t s, Status& unread) {
  CGL_TRY_ASSIGN(const VolumeDescription slice, describe_volume(run.path_of(s), run.reading()));
  return SlicePlanes{slice.shape[0], [&run, s, &unread](std::size_t first, std::size_t count) -> Result<HostVolume> {
                       auto planes = read_planes(run.path_of(s), first, count, run.reading());
                       if (!planes) unread = tl::make_unexpected(planes.error());
                       return planes;
                     }};
}

// Planes between the first ones of a slice and of the one before it.
double interval_planes(const RunState& run, std::size_t moving) {
  return (run.first_plane_mm(moving) - run.first_plane_mm(moving - 1)) * 1000.0 / run.result.voxel_um[0];
}

}  // namespace

Status register_pair(RunState& run, std::size_t s) {
  CGL_TRY(run.check());
  Status unread;
  CGL_TRY_ASSIGN(const SlicePlanes fixed, slice_planes(run, s - 1, unread));
  CGL_TRY_ASSIGN(const SlicePlanes moving, slice_planes(run, s, unread));
  const TileGrid& a = run.result.slices[s - 1].grid;
  const TileGrid& b = run.result.slices[s].grid;
  RegistrationOptions registering = run.options.registration;
  registering.pool = run.options.pool;
  if (run.needs.slices_in_files) registering.planes_at_a_time = run.needs.slice_planes;
  registering.expected_planes = interval_planes(run, s);
  registering.search_planes =
      static_cast<std::size_t>(std::lround(run.options.search_range_mm * 1000.0 / run.result.voxel_um[0]));
  for (std::size_t d = 0; d < 2; ++d) {
    registering.start_px[d] = (b.origin_mm[d] - a.origin_mm[d]) * 1000.0 / run.result.voxel_um[d + 1];
  }
  auto found = register_slices(fixed, moving, registering);
  CGL_TRY(unread);
  if (found) {
    run.result.registrations.emplace_back(*found);
  } else if (found.error().kind() == ErrorKind::interrupted || found.error().kind() == ErrorKind::out_of_memory) {
    return tl::make_unexpected(found.error());
  } else {
    log_warning("slices {} and {} are not registered: {}; the motors place them", a.slice, b.slice, found.error());
    run.result.registrations.emplace_back();
  }
  return {};
}

Status plan_stack(RunState& run) {
  std::vector<SliceFacts> facts;
  for (std::size_t s = 0; s < run.result.slices.size(); ++s) {
    CGL_TRY_ASSIGN(const VolumeDescription slice, describe_volume(run.path_of(s), run.reading()));
    facts.push_back({run.result.slices[s].grid.slice, slice.shape[0], slice.shape[1], slice.shape[2],
                     s > 0 ? interval_planes(run, s) : 0});
  }
  std::vector<SliceShift> shifts = motor_shifts(run.set);
  run.result.spikes = replace_spikes(shifts);
  if (run.result.spikes > 0) {
    run.result.decisions.push_back({"shifts of the stage", fmt::format("{} replaced", run.result.spikes),
                                    "above 0.5 mm and taken back at the next slice"});
  }
  CGL_TRY_ASSIGN(run.result.plan,
                 decide_stack(facts, shifts, run.result.registrations, run.result.voxel_um, run.options.stack));
  return {};
}

}  // namespace cingulum::oct
