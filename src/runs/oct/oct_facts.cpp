#include "runs/oct/oct_facts.hpp"

#include <string>
#include <utility>

#include "base/log.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

Json image_json(const oct::HostImage& image) {
  if (image.values.empty()) return {};
  return {{"rows", image.rows}, {"columns", image.columns}, {"values", image.values}};
}

Json decision_json(const oct::RunDecision& decision) {
  return {{"subject", decision.subject}, {"choice", decision.choice}, {"reason", decision.reason}};
}

}  // namespace

Json placement_json(const oct::TileGrid& grid, const oct::Placement& placement) {
  Json links = Json::array();
  for (const oct::TileLink& link : placement.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"step_px", link.step_px},
                     {"motor_px", link.motor_px},
                     {"ncc", link.ncc},
                     {"residual_px", link.residual_px},
                     {"state", oct::link_state_name(link.state)}});
  }
  Json islands = Json::array();
  for (const auto& island : placement.islands) islands.push_back(island);
  return {{"slice", grid.slice},
          {"places_px", placement.places_px},
          {"motor_matrix", placement.motor_matrix},
          {"threshold", placement.threshold},
          {"null_pairs", placement.null_pairs},
          {"links_rejected", placement.rejected},
          {"residual_rms_px", placement.residual_rms_px},
          {"islands", std::move(islands)},
          {"links", std::move(links)}};
}

void warn_of_placement(const oct::TileGrid& grid, const oct::Placement& placement) {
  for (const auto& island : placement.islands) {
    std::string names;
    for (const std::size_t tile : island) names += (names.empty() ? "" : "; ") + grid.name_of(tile);
    log_warning("{}: no link holds it to the others, it stands where the motors put it", names);
  }
  if (placement.rejected > 0) {
    log_warning("slice {}: {} of {} links between tiles were rejected; the motors stand in for them", grid.slice,
                placement.rejected, placement.links.size());
  }
}

Json registration_json(std::size_t fixed, std::size_t moving, const oct::SliceRegistration& found) {
  return {{"fixed_id", fixed},
          {"moving_id", moving},
          {"rotation_deg", found.rigid.rotation_deg},
          {"shift_px", found.rigid.shift_px},
          {"correlation", found.rigid.ncc},
          {"converged", found.rigid.converged},
          {"interval_planes", found.interval_planes},
          {"z_correlation", found.z_ncc},
          {"at_border", found.at_border},
          {"registration_confidence", found.confidence}};
}

Json stack_json(const oct::StackPlan& plan) {
  Json decisions = Json::array();
  for (const oct::SliceDecision& slice : plan.slices) {
    decisions.push_back({{"slice_id", slice.id},
                         {"place_px", slice.motor_px},
                         {"rotation_deg", slice.rotation_deg},
                         {"shift_px", slice.shift_px},
                         {"interval_planes", slice.interval_planes},
                         {"start_plane", slice.start_plane},
                         {"gain", slice.gain},
                         {"transform", oct::transform_use_name(slice.transform)},
                         {"reason", slice.reason}});
  }
  return decisions;
}

Json reconstruction_json(const oct::TileSet& set, const oct::Reconstruction& made) {
  Json slices = Json::array();
  for (const oct::SliceReport& slice : made.slices) {
    Json json = placement_json(slice.grid, slice.placement);
    json["grid"] = {slice.grid.rows, slice.grid.columns};
    Json missing = Json::array();
    for (std::size_t t = 0; t < slice.grid.count(); ++t) {
      if (slice.grid.tiles[t].missing) missing.push_back(slice.grid.name_of(t));
    }
    json["missing_tiles"] = std::move(missing);
    json["depths_planes"] = slice.depths;
    json["surface_plane"] = slice.surface_plane;
    json["first_plane"] = slice.first_plane;
    json["replaced_values"] = slice.replaced_values;
    json["uncovered_pixels"] = slice.uncovered_pixels;
    json["profile"] = slice.corrected.profile;
    json["noise_floor"] = slice.corrected.noise_floor;
    json["mean_attenuation_per_plane"] = slice.corrected.mean_attenuation;
    Json decisions = Json::array();
    for (const oct::RunDecision& one : slice.corrected.decisions) decisions.push_back(decision_json(one));
    json["decisions"] = std::move(decisions);
    slices.push_back(std::move(json));
  }
  Json registrations = Json::array();
  for (std::size_t i = 0; i < made.registrations.size(); ++i) {
    const auto& found = made.registrations[i];
    registrations.push_back(found ? registration_json(made.slices[i].grid.slice, made.slices[i + 1].grid.slice, *found)
                                  : Json());
  }
  Json decisions = Json::array();
  for (const oct::RunDecision& one : made.decisions) decisions.push_back(decision_json(one));
  return {{"tile", set.shape},
          {"tile_in_slice", made.tile},
          {"voxel_um", made.voxel_um},
          {"first_kept_plane", made.plan.first_plane},
          {"missing", set.missing},
          {"spikes", made.spikes},
          {"light", image_json(made.light)},
          {"curvature_planes", image_json(made.curvature)},
          {"decisions", std::move(decisions)},
          {"slices", std::move(slices)},
          {"registrations", std::move(registrations)},
          {"stack", stack_json(made.plan)}};
}

}  // namespace cingulum
