// The options of the stages of a reconstruction (src/oct) from an OctRequest whose defaults are filled in. Called by
// reconstruct() and by the verb for its single stages.
#pragma once

#include <cstddef>
#include <optional>

#include "base/result.hpp"
#include "oct/fits/axial_corrections.hpp"
#include "oct/oct_kernels.hpp"
#include "oct/placement/tile_placement.hpp"
#include "oct/registration/slice_registration.hpp"
#include "oct/run/reconstruction.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/volume/volume_file.hpp"
#include "runs/machine.hpp"
#include "runs/oct/oct_request.hpp"

namespace cingulum {

[[nodiscard]] oct::PlacementOptions placement_options(const OctRequest& request);
[[nodiscard]] Result<oct::AttenuationOptions> attenuation_options(const OctRequest& request);
[[nodiscard]] oct::InterfaceOptions interface_options(const OctRequest& request);
[[nodiscard]] oct::RegistrationOptions registration_options(const OctRequest& request);
[[nodiscard]] oct::StackOptions stack_options(const OctRequest& request);
// All of them, but for the last good line of tiles and the stages on devices.
[[nodiscard]] Result<oct::ReconstructionOptions> reconstruction_options(const OctRequest& request, RunMachine& machine);

[[nodiscard]] Result<oct::VolumeReadOptions> volume_read_options(const OctRequest& request, RunMachine& machine);
// None: until a level is one chunk.
[[nodiscard]] Result<std::optional<std::size_t>> pyramid_levels(const OctRequest& request);

}  // namespace cingulum
