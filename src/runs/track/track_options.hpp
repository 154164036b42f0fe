// What a request asks of the tracker and of the model under it: options of the plan, model, sphere, stopping threshold.
// Combinations that cannot be are refused here. Every request has been completed (track_defaults.hpp).
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "dmri/sphere/sphere.hpp"
#include "runs/machine.hpp"
#include "runs/track/track_request.hpp"
#include "tract/field/dwi_preparation.hpp"
#include "tract/field/tracking_data.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/run/selection.hpp"

namespace cingulum {

// The output: --out, --output-prefix with --write-method, or tracks.trx.
[[nodiscard]] Result<std::filesystem::path> tracking_output(const TrackRequest& request);

// Lengths in voxels are of the smallest voxel edge.
[[nodiscard]] Result<TrackingOptions> tracking_options(const TrackRequest& request, Getter getter,
                                                       double smallest_edge_mm);

// --min-points and --max-points.
[[nodiscard]] Status limit_points(const TrackRequest& request, SelectionRules& rules);

[[nodiscard]] Result<FieldModel> choose_model(const TrackRequest& request, Getter getter);

// What is fitted to the series; `plan` says how far from a passing voxel it is read.
[[nodiscard]] Result<FieldRequest> field_request(const TrackRequest& request, FieldModel model,
                                                 const TrackingOptions& options, const TrackingPlan& plan);

// Whether amplitudes are interpolated between voxels instead of harmonics.
[[nodiscard]] Result<bool> interpolates_amplitudes(const TrackRequest& request);

[[nodiscard]] Result<Sphere> tracking_sphere(const TrackRequest& request);

[[nodiscard]] double stop_threshold(const TrackRequest& request);

// --stop-rule; what `auto` is, the map says: nearest where it has one or two values in the mask.
[[nodiscard]] StopRule stop_rule(const TrackRequest& request, const TrackingData& data);

}  // namespace cingulum
