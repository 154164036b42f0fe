#include "cli/fit_input.hpp"

#include "base/quantity.hpp"
#include "dmri/series/gradient_check.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"
#include "formats/sidecar.hpp"
#include "tract/field/dwi_preparation.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using numerics::Vec3d;

Result<GradientTable> read_gradients(const ParsedArguments& arguments) {
  if (arguments.given("grad")) {
    if (arguments.given("bvals") || arguments.given("bvecs")) {
      return fail(ErrorKind::invalid_argument,
                  "--grad already holds b-values and vectors; leave --bvals and --bvecs out");
    }
    return read_mrtrix_gradients(arguments.text("grad"));
  }
  if (!arguments.given("bvals") || !arguments.given("bvecs")) {
    return fail(ErrorKind::invalid_argument, "gradients are missing: give --bvals and --bvecs, or --grad");
  }
  return read_fsl_gradients(arguments.text("bvals"), arguments.text("bvecs"));
}

Result<std::vector<std::uint8_t>> make_mask(FitRun& run, const ImageGeometry& geometry, const GradientTable& table,
                                            double b0_threshold) {
  const std::string& series = run.arguments.text("dwi");
  CGL_TRY_ASSIGN(const std::vector<double> b0, mean_b0(series, table, b0_threshold));
  CGL_TRY_ASSIGN(BrainMask brain, median_otsu(b0, geometry.size, {}, run.pool));
  run.warn(fmt::format("no --mask: a brain mask of {} voxels was made by median Otsu, to be written to {}",
                       format_count(brain.voxels), (run.folder.path() / "mask.nii.gz").string()));
  run.made_mask = std::move(brain);
  return run.made_mask->mask;
}

Result<std::vector<std::uint8_t>> take_mask(FitRun& run, const ImageGeometry& geometry, const GradientTable& table,
                                            double b0_threshold) {
  if (!run.arguments.given("mask")) return make_mask(run, geometry, table, b0_threshold);
  const std::string& path = run.arguments.text("mask");
  ImageGeometry mask_geometry;
  CGL_TRY_ASSIGN(auto mask, read_mask(path, mask_geometry));
  CGL_TRY(check_same_grid(mask_geometry, "the mask " + path, geometry, "the series " + run.arguments.text("dwi")));
  return mask;
}

// The frame that the b-vectors are in: as given; by the coherence of fibres with auto; otherwise that of the format,
// and the run ends where another is clearly better.
Result<GradientFrame> settle_frame(FitRun& run, const GradientTable& table, const FitInput& input) {
  const std::string wanted = run.arguments.given("bvec-frame") ? run.arguments.text("bvec-frame") : "";
  GradientFrame frame = table.frame;
  if (wanted == "voxel") frame = GradientFrame::voxel;
  if (wanted == "world") frame = GradientFrame::world;
  if (wanted == "fsl") frame = GradientFrame::fsl;
  GradientTable selected;
  selected.frame = table.frame;
  for (const std::size_t volume : input.selection.volumes) {
    selected.b_values.push_back(table.b_values[volume]);
    selected.vectors.push_back(table.vectors[volume]);
  }
  const auto checked = check_gradients(input.signals, selected, frame, run.machine());
  if (!checked) {
    if (checked.error().kind() == ErrorKind::interrupted) return tl::make_unexpected(checked.error());
    log_debug("no gradient check: {}", checked.error());
    return frame;
  }
  run.parameters["gradient_check"] = {{"verdict", gradient_verdict_name(checked->verdict)},
                                      {"voxels", checked->voxels},
                                      {"message", with_option_names(checked->message)}};
  if (checked->verdict != GradientVerdict::another_is_better) {
    log_debug("gradient check: {}", checked->message);
    return frame;
  }
  if (wanted == "auto" && checked->better_frame) {
    log_info("--bvec-frame auto: {} rather than {}", gradient_frame_name(*checked->better_frame),
             gradient_frame_name(frame));
    return *checked->better_frame;
  }
  if (wanted.empty() || wanted == "auto") return fail(ErrorKind::corrupt, "{}", checked->message);
  run.warn(checked->message);
  return frame;
}

}  // namespace

std::vector<Vec3d> to_world(std::span<const Vec3d> directions, const Affine& affine) {
  Vec3d axes[3];
  for (int c = 0; c < 3; ++c) axes[c] = normalise(Vec3d{affine.at(0, c), affine.at(1, c), affine.at(2, c)});
  std::vector<Vec3d> result;
  for (const Vec3d& d : directions) result.push_back(normalise(combine(axes[0], d.x, axes[1], d.y, axes[2], d.z)));
  return result;
}

Result<FitInput> read_fit_input(FitRun& run) {
  const ParsedArguments& arguments = run.arguments;
  const std::string& series = arguments.text("dwi");
  FitInput input;
  input.model = arguments.text("model");
  const double b0_threshold = arguments.real("b0-threshold");
  CGL_TRY_ASSIGN(const GradientTable table, read_gradients(arguments));
  for (const std::string& warning : table.warnings) run.warn(warning);
  ImageGeometry geometry;
  {
    CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(series));
    for (const std::string& warning : reader.header().warnings) run.warn(fmt::format("{}: {}", series, warning));
    geometry = reader.header().geometry;
    if (reader.header().volume_count() != static_cast<std::int64_t>(table.size())) {
      return fail(ErrorKind::corrupt, "{} has {} volumes, the gradient table has {} b-values", series,
                  reader.header().volume_count(), table.size());
    }
  }
  CGL_TRY_ASSIGN(const auto mask, take_mask(run, geometry, table, b0_threshold));
  const auto choice = input.model == "dti" ? ShellChoice::all_volumes : ShellChoice::one_shell;
  std::optional<double> shell;
  if (arguments.given("shell")) shell = arguments.real("shell");
  CGL_TRY_ASSIGN(input.selection, select_volumes(table, choice, shell, b0_threshold));
  for (const std::string& warning : input.selection.warnings) run.warn(warning);
  CGL_TRY_ASSIGN(input.signals, read_dwi_signals(series, mask, input.selection.volumes));
  if (input.signals.replaced > 0) {
    run.warn(
        fmt::format("{} values of {} were not finite and count as 0", format_count(input.signals.replaced), series));
  }

  CGL_TRY_ASSIGN(const GradientFrame frame, settle_frame(run, table, input));
  const auto all = directions_in_image_axes(table, frame, geometry.voxel_to_world);
  for (const std::size_t volume : input.selection.volumes) input.image_directions.push_back(all[volume]);
  for (const std::uint32_t position : input.selection.weighted) {
    if (length(input.image_directions[position]) == 0) {
      return fail(ErrorKind::corrupt, "volume {} has b = {} and no direction", input.selection.volumes[position],
                  input.selection.b_values[position]);
    }
  }
  const bool mrtrix_like =
      input.model == "dti" ? arguments.text("tensor-order") == "mrtrix" : arguments.text("sh-basis") == "tournier07";
  input.world = arguments.given("frame") ? arguments.text("frame") == "world" : mrtrix_like;
  input.directions = input.world ? to_world(input.image_directions, geometry.voxel_to_world) : input.image_directions;

  run.parameters["b0_threshold"] = b0_threshold;
  run.parameters["bvec_frame"] = gradient_frame_name(frame);
  run.parameters["frame"] = input.world ? "world" : "image";
  run.parameters["volumes"] = input.selection.volumes.size();
  run.parameters["b0_volumes"] = input.selection.b0.size();
  if (input.selection.shell) {
    run.parameters["shell"] = {{"b_value", input.selection.shell->b_value},
                               {"smallest", input.selection.shell->smallest},
                               {"largest", input.selection.shell->largest},
                               {"volumes", input.selection.shell->volumes.size()}};
  }
  return input;
}

Status describe_fit(FitRun& run, const FitInput& input) {
  Json inputs = Json::object();
  for (const char* name : {"dwi", "bvals", "bvecs", "grad", "mask", "response"}) {
    if (!run.arguments.given(name)) continue;
    const fs::path path = run.arguments.text(name);
    CGL_TRY_ASSIGN(const std::string hash, hash_of_file(path));
    inputs[name] = {{"file", path.filename().string()}, {"xxh3_128", hash}};
  }
  Json facts = {{"made_by", "cingulum fit"},
                {"model", input.model},
                {"parameters", run.parameters},
                {"inputs", inputs},
                {"voxels", input.signals.voxels.size()},
                {"replaced_values", input.signals.replaced},
                {"warnings", run.warnings}};
  run.folder.describe(input.signals.geometry, input.signals.voxels, std::move(facts));
  if (!run.made_mask) return {};
  return run.folder.write_mask(run.made_mask->mask, {{"threshold", run.made_mask->threshold}}, run.pool);
}

}  // namespace cingulum
