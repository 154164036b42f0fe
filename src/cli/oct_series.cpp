// `cingulum oct register` and `cingulum oct stack`: slices against each other, and as one volume.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "base/json_text.hpp"
#include "base/read_file.hpp"
#include "cli/oct_actions.hpp"
#include "formats/sidecar.hpp"
#include "oct/registration/slice_registration.hpp"
#include "oct/stacking/stack_decisions.hpp"
#include "oct/stacking/stack_slices.hpp"
#include "oct/volume/slab_volume.hpp"
#include "runs/oct/oct_facts.hpp"
#include "runs/oct/oct_options.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using SeriesJson = nlohmann::ordered_json;

// A stitched slice and what it says of itself.
struct SliceFile {
  fs::path path;
  oct::VolumeDescription description;
  std::size_t id = 0;
  std::array<double, 2> origin_mm = {0, 0};
  double stage_z_mm = 0;
};

// Opened in the order of their numbers; each number once, the same voxels and planes in all.
Result<std::vector<SliceFile>> open_slices(const ParsedArguments& arguments, VerbContext& context) {
  std::vector<SliceFile> slices;
  CGL_TRY_ASSIGN(const oct::VolumeReadOptions reading, volume_read_options(oct_request(arguments), context));
  for (const std::string& path : arguments.texts("paths")) {
    SliceFile slice;
    slice.path = path;
    CGL_TRY_ASSIGN(slice.description, oct::describe_volume(path, reading));
    try {
      const SeriesJson& facts = slice.description.attributes.at("slice");
      facts.at("number").get_to(slice.id);
      facts.at("origin_mm").get_to(slice.origin_mm);
      facts.at("stage_z_mm").get_to(slice.stage_z_mm);
    } catch (const SeriesJson::exception&) {
      return fail_file(path, ErrorKind::corrupt,
                       "{}: it does not say which slice it is; `cingulum oct stitch` writes "
                       "slices that do",
                       path);
    }
    slices.push_back(std::move(slice));
  }
  if (slices.size() < 2) {
    return fail(ErrorKind::invalid_argument, "cingulum oct {} takes two slices or more, {} given",
                arguments.text("action"), slices.size());
  }
  std::stable_sort(slices.begin(), slices.end(), [](const SliceFile& a, const SliceFile& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < slices.size(); ++i) {
    const SliceFile& a = slices[i - 1];
    const SliceFile& b = slices[i];
    if (a.id == b.id) {
      return fail_file(b.path.native(), ErrorKind::corrupt, "{} and {} are both slice {}", a.path.native(),
                       b.path.native(), a.id);
    }
    if (b.id != a.id + 1 && !arguments.flag("allow-missing")) {
      return fail(ErrorKind::not_found, "slice {} is missing between {} and {}; --allow-missing goes on without it",
                  a.id + 1, a.path.native(), b.path.native());
    }
    if (a.description.shape[0] != b.description.shape[0]) {
      return fail_file(b.path.native(), ErrorKind::corrupt, "{} has {} planes, {} has {}", b.path.native(),
                       b.description.shape[0], a.path.native(), a.description.shape[0]);
    }
    for (std::size_t d = 0; d < 3; ++d) {
      const double here = b.description.voxel_um[d], before = a.description.voxel_um[d];
      if (std::abs(here - before) <= 1e-6 * before) continue;
      return fail_file(b.path.native(), ErrorKind::corrupt, "{} has voxels of {} um, {} of {} um", b.path.native(),
                       here, a.path.native(), before);
    }
  }
  return slices;
}

// Planes between slices: as asked for, else as the stage moved.
double expected_interval(const ParsedArguments& arguments, const SliceFile& fixed, const SliceFile& moving) {
  const double mm = arguments.given("slicing-interval")
                        ? arguments.real("slicing-interval") * static_cast<double>(moving.id - fixed.id)
                        : moving.stage_z_mm - fixed.stage_z_mm;
  return mm * 1000.0 / fixed.description.voxel_um[0];
}

std::string registration_name(std::size_t moving) {
  return fmt::format("register_z{:02}.json", moving);
}

Result<oct::SliceRegistration> parse_registration(const std::string& text, std::size_t fixed, std::size_t moving) {
  CGL_TRY_ASSIGN(const SeriesJson json, parse_json(text));
  oct::SliceRegistration found;
  try {
    if (json.at("fixed_id") != fixed || json.at("moving_id") != moving) {
      return fail(ErrorKind::corrupt, "it is of slices {} and {}, not of {} and {}", json.at("fixed_id").dump(),
                  json.at("moving_id").dump(), fixed, moving);
    }
    json.at("rotation_deg").get_to(found.rigid.rotation_deg);
    json.at("shift_px").get_to(found.rigid.shift_px);
    json.at("interval_planes").get_to(found.interval_planes);
    json.at("z_correlation").get_to(found.z_ncc);
    json.at("at_border").get_to(found.at_border);
    json.at("registration_confidence").get_to(found.confidence);
  } catch (const SeriesJson::exception& error) {
    return fail(ErrorKind::corrupt, "{}", error.what());
  }
  return found;
}

}  // namespace

Status run_oct_register(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path output, oct_output(arguments));
  CGL_TRY_ASSIGN(const std::vector<SliceFile> slices, open_slices(arguments, context));
  std::error_code error;
  fs::create_directories(output, error);
  if (error) return fail_file(output.native(), ErrorKind::io, "making {}: {}", output.native(), error.message());
  SeriesJson all = SeriesJson::array();
  CGL_TRY_ASSIGN(oct::VolumeFile fixed, read_oct_volume(slices[0].path, arguments, context));
  Progress progress("registering", slices.size() - 1, "pairs", context.progress_options());
  for (std::size_t i = 1; i < slices.size(); ++i) {
    CGL_TRY(context.cancel().check());
    CGL_TRY(check_output(output / registration_name(slices[i].id), context.write_options()));
    CGL_TRY_ASSIGN(oct::VolumeFile moving, read_oct_volume(slices[i].path, arguments, context));
    oct::RegistrationOptions options = registration_options(oct_request(arguments));
    CGL_TRY_ASSIGN(options.pool, context.pool());
    options.expected_planes = expected_interval(arguments, slices[i - 1], slices[i]);
    options.search_planes =
        static_cast<std::size_t>(std::lround(arguments.real("search-range") * 1000.0 / fixed.voxel_um[0]));
    for (std::size_t d = 0; d < 2; ++d) {
      options.start_px[d] = (slices[i].origin_mm[d] - slices[i - 1].origin_mm[d]) * 1000.0 / fixed.voxel_um[d + 1];
    }
    CGL_TRY_ASSIGN(const oct::SliceRegistration found,
                   add_context(oct::register_slices(oct::planes_of_volume(fixed.volume),
                                                    oct::planes_of_volume(moving.volume), options),
                               "slices {} and {}", slices[i - 1].id, slices[i].id));
    const SeriesJson json = registration_json(slices[i - 1].id, slices[i].id, found);
    CGL_TRY(write_file_atomically(output / registration_name(slices[i].id), json_text(json), context.write_options()));
    if (!context.common().json) {
      context.print_format(
          "slices {} and {}: {:.3f} degrees, shift {:.2f}, {:.2f} pixels, {:.2f} planes, confidence {:.2f}\n",
          slices[i - 1].id, slices[i].id, found.rigid.rotation_deg, found.rigid.shift_px[0], found.rigid.shift_px[1],
          found.interval_planes, found.confidence);
    }
    all.push_back(json);
    fixed = std::move(moving);
    progress.advance();
  }
  progress.finish();
  if (context.common().json) context.print(json_text(all));
  return {};
}

Status run_oct_stack(const ParsedArguments& arguments, VerbContext& context) {
  CGL_TRY_ASSIGN(const fs::path output, oct_volume_output(arguments, context));
  CGL_TRY_ASSIGN(const std::vector<SliceFile> slices, open_slices(arguments, context));
  std::vector<oct::SliceFacts> facts;
  std::vector<oct::SliceShift> shifts;
  std::vector<std::optional<oct::SliceRegistration>> registrations;
  oct::StackOptions options = stack_options(oct_request(arguments));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const auto& shape = slices[i].description.shape;
    facts.push_back({slices[i].id, shape[0], shape[1], shape[2]});
    if (i == 0) continue;
    facts.back().interval_planes = expected_interval(arguments, slices[i - 1], slices[i]);
    oct::SliceShift shift{.fixed = slices[i - 1].id, .moving = slices[i].id};
    for (std::size_t d = 0; d < 2; ++d) shift.shift_mm[d] = slices[i - 1].origin_mm[d] - slices[i].origin_mm[d];
    shifts.push_back(shift);
    registrations.emplace_back();
    if (!arguments.given("transforms-dir")) continue;
    const fs::path path = fs::path(arguments.text("transforms-dir")) / registration_name(slices[i].id);
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    CGL_TRY_ASSIGN(const std::string text, read_text_file(path));
    CGL_TRY_ASSIGN(registrations.back(), add_file_context(parse_registration(text, slices[i - 1].id, slices[i].id),
                                                          "reading", path.native()));
  }
  if (arguments.given("shifts")) {
    CGL_TRY_ASSIGN(const std::string text, read_text_file(arguments.text("shifts")));
    CGL_TRY_ASSIGN(shifts, add_file_context(oct::parse_shifts(text), "reading", arguments.text("shifts")));
  }
  const oct::VoxelSize voxel_um = slices.front().description.voxel_um;
  CGL_TRY_ASSIGN(oct::StackPlan plan, oct::decide_stack(facts, shifts, registrations, voxel_um, options));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  // Slices are read whole; the planes of the volume go down, so the last two are enough.
  std::deque<std::pair<std::size_t, oct::HostVolume>> held;
  const auto source = [&](std::size_t number, const oct::PlaneBox& box) -> Result<oct::HostVolume> {
    auto found = std::find_if(held.begin(), held.end(), [&](const auto& one) { return one.first == number; });
    if (found == held.end()) {
      CGL_TRY_ASSIGN(oct::VolumeFile file, read_oct_volume(slices[number].path, arguments, context));
      if (held.size() == 2) held.pop_front();
      found = held.insert(held.end(), {number, std::move(file.volume)});
    }
    oct::HostVolume part(box.planes, box.rows, found->second.columns);
    CGL_TRY(oct::SlabVolume(found->second).read_box(box, part.values));
    return part;
  };
  CGL_TRY(oct::find_gains(plan, source, options, pool));
  const std::array<std::size_t, 3> shape = {plan.planes, plan.rows, plan.columns};
  const auto make = [&](const oct::PlaneBox& box, std::span<float> to) -> Status {
    return oct::stack_box(plan, source, box, to, pool);
  };
  std::size_t moved_by_motors = 0;
  const SeriesJson decisions = stack_json(plan);
  for (const oct::SliceDecision& slice : plan.slices) {
    if (slice.id != plan.slices.front().id && slice.transform == oct::TransformUse::none) ++moved_by_motors;
  }
  if (moved_by_motors > 0) {
    log_warning("{} of {} slices stand where the motors put them; the decisions say why", moved_by_motors,
                plan.slices.size());
  }
  if (arguments.given("decisions")) {
    CGL_TRY(write_file_atomically(arguments.text("decisions"), oct::decisions_csv(plan), context.write_options()));
  }
  const SeriesJson about = {{"slices", decisions}};
  CGL_TRY(write_oct_boxes(stage_output(output, SeriesJson::object(), about, arguments), shape, make, voxel_um,
                          oct_request(arguments), context));
  if (context.common().json) {
    context.print(json_text({{"output", output.native()}, {"shape", shape}, {"slices", decisions}}));
    return {};
  }
  context.print_format("{}: {} slices, {} x {} x {} voxels\n", output.native(), plan.slices.size(), plan.planes,
                       plan.rows, plan.columns);
  return {};
}

}  // namespace cingulum
