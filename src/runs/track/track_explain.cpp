#include "runs/track/track_explain.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/series/volume_selection.hpp"
#include "formats/nifti.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "runs/layout_parameters.hpp"
#include "runs/track/track_options.hpp"
#include "runs/track/track_part.hpp"
#include "runs/track/track_seeds.hpp"
#include "runs/track/track_series.hpp"
#include "tract/run/tracking_batches.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Where no mask is given: of what median Otsu leaves of a head no more was seen.
constexpr double most_of_image_in_made_mask = 0.6;

struct ExplainedSource {
  ImageGeometry geometry;
  NamedGrid grid;
  fs::path seed_mask;
};

std::uint64_t count_set(const std::vector<std::uint8_t>& mask) {
  return static_cast<std::uint64_t>(
      std::count_if(mask.begin(), mask.end(), [](std::uint8_t value) { return value != 0; }));
}

std::uint64_t coefficients_of_degree(int degree) {
  return static_cast<std::uint64_t>(numerics::coefficient_count(degree, false));
}

Status take_mask(const fs::path& mask, const NamedGrid& grid, double share_without, RunFacts& facts) {
  if (mask.empty()) {
    facts.mask_voxels = static_cast<std::uint64_t>(std::ceil(share_without * static_cast<double>(facts.voxels)));
    return {};
  }
  CGL_TRY_ASSIGN(const std::vector<std::uint8_t> voxels, read_mask_on(mask, "the mask", grid));
  facts.mask_voxels = count_set(voxels);
  return {};
}

// What is fitted and what a voxel's record holds.
Status take_model(const TrackRun& run, const TrackingOptions& options, const TrackingPlan& plan,
                  const GradientTable& table, RunFacts& facts) {
  CGL_TRY_ASSIGN(facts.model, choose_model(run.request, run.getter));
  CGL_TRY_ASSIGN(const FieldRequest field, field_request(run.request, facts.model, options, plan));
  facts.volumes = table.size();
  facts.fitted_volumes = facts.volumes;
  if (facts.model == FieldModel::dti) {
    facts.record_numbers = 7;
    return {};
  }
  CGL_TRY_ASSIGN(const VolumeSelection selection,
                 select_volumes(table, ShellChoice::one_shell, field.shell, run.request.b0_threshold.value()));
  facts.fitted_volumes = selection.volumes.size();
  facts.coefficients = coefficients_of_degree(degree_for_directions(field.degree, selection.weighted.size()));
  facts.amplitudes = field.amplitudes && !field.bootstrap;
  facts.record_numbers = facts.coefficients + 1;
  if (field.bootstrap) facts.record_numbers += selection.weighted.size() + 1;
  if (facts.amplitudes) {
    CGL_TRY_ASSIGN(const Sphere sphere, tracking_sphere(run.request));
    facts.record_numbers = sphere.size() + 1;
  }
  return {};
}

Result<ExplainedSource> take_series(TrackRun& run, RunMachine& machine, RunFacts& facts) {
  const TrackRequest& request = run.request;
  if (request.data.value().empty()) {
    return fail(ErrorKind::invalid_argument, "{}: name a series, or what else is to be tracked",
                argument_name("explain"));
  }
  CGL_TRY_ASSIGN(const SeriesPaths paths, series_paths(request, {}, machine));
  CGL_TRY_ASSIGN(const SeriesHead head, read_series_head(paths.files));
  ExplainedSource source = {head.geometry, series_grid(paths.files, head), paths.seed_mask};
  facts.voxels = static_cast<std::uint64_t>(head.geometry.voxel_count());
  CGL_TRY(take_mask(paths.files.mask, source.grid, most_of_image_in_made_mask, facts));
  CGL_TRY_ASSIGN(const TrackingOptions options,
                 tracking_options(request, run.getter, head.geometry.smallest_edge_mm()));
  CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, head.geometry));
  CGL_TRY(take_model(run, options, plan, head.table, facts));
  return source;
}

// Amplitudes, harmonics, peaks or tensors in a file.
Result<ExplainedSource> take_image(const TrackRun& run, const fs::path& path, RunFacts& facts) {
  const TrackRequest& request = run.request;
  CGL_TRY_ASSIGN(const NiftiReader reader, NiftiReader::open(path));
  const NiftiHeader& header = reader.header();
  ExplainedSource source;
  source.geometry = header.geometry;
  source.grid = {header.geometry, fmt::format("the tracked image {}", path.string()),
                 header.affine_source != AffineSource::pixdim};
  if (request.seed_mask.given()) source.seed_mask = request.seed_mask.value();
  const auto volumes = static_cast<std::uint64_t>(header.volume_count());
  facts.voxels = static_cast<std::uint64_t>(header.geometry.voxel_count());
  facts.image_bytes = facts.voxels * volumes * sizeof(float);
  facts.record_numbers = volumes + 1;
  CGL_TRY_ASSIGN(const bool sampled, interpolates_amplitudes(request));
  if (request.sh.given() && sampled) {
    CGL_TRY_ASSIGN(const Sphere sphere, tracking_sphere(request));
    facts.record_numbers = sphere.size() + 1;
  }
  CGL_TRY(take_mask(request.mask.given() ? fs::path(request.mask.value()) : fs::path(), source.grid, 1, facts));
  return source;
}

Result<ExplainedSource> take_prepared(const TrackRun& run, RunFacts& facts) {
  ExplainedSource source;
  source.geometry = run.prepared_run->geometry;
  source.grid = {source.geometry, fmt::format("the prepared field {}", run.prepared_run->path.string()),
                 run.prepared_run->oriented};
  if (run.request.seed_mask.given()) source.seed_mask = run.request.seed_mask.value();
  facts.voxels = static_cast<std::uint64_t>(source.geometry.voxel_count());
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(run.prepared_run->path, error);
  if (error) return fail(ErrorKind::io, "looking at {}: {}", run.prepared_run->path.string(), error.message());
  // Its records are what is in the file besides maps, and the file's bytes are there as they are read.
  const std::uint64_t maps = facts.voxels * 9;
  facts.image_bytes = bytes > maps ? bytes - maps : 0;
  facts.mask_voxels = facts.image_bytes / (16 * sizeof(float)) + 1;
  facts.record_numbers = 16;
  return source;
}

// In how many voxels seeds lie: known with a seed mask alone, else most of the mask.
Result<std::uint64_t> seeded_voxels(const ExplainedSource& source, const RunFacts& facts, bool& known) {
  if (source.seed_mask.empty()) {
    known = false;
    return facts.mask_voxels;
  }
  CGL_TRY_ASSIGN(const std::vector<std::uint8_t> mask, read_mask_on(source.seed_mask, "the seed mask", source.grid));
  return count_set(mask);
}

// A range of a run is asked of seeds; here they are but a number.
class CountedSeeds final : public Seeds {
 public:
  explicit CountedSeeds(std::uint64_t count) : count_(count) {}
  [[nodiscard]] std::uint64_t count() const override { return count_; }
  void fill(std::uint64_t, std::span<numerics::Vec3>) const override {}

 private:
  std::uint64_t count_;
};

Result<std::uint64_t> seed_count(const TrackRequest& request, const ExplainedSource& source, const RunFacts& facts,
                                 bool& known) {
  const SeedSpace space = request.seed_space.value() == "voxel" ? SeedSpace::voxel : SeedSpace::world;
  if (request.seed_file.given()) {
    CGL_TRY_ASSIGN(const auto positions, read_seed_positions(request.seed_file.value(), space, source.geometry));
    return positions.size();
  }
  if (request.seed_ends.given()) {
    CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(request.seed_ends.value()));
    const std::int64_t streamlines = reader->layout().streamline_count;
    known = streamlines >= 0;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(streamlines, 0)) * 2;
  }
  if (request.seeds_per_voxel.given()) {
    CGL_TRY_ASSIGN(const std::uint64_t voxels, seeded_voxels(source, facts, known));
    return voxels * static_cast<std::uint64_t>(request.seeds_per_voxel.value());
  }
  if (request.seed_grid.given()) {
    CGL_TRY_ASSIGN(const auto per_axis, parse_seed_grid(request.seed_grid.value()));
    CGL_TRY_ASSIGN(const std::uint64_t voxels, seeded_voxels(source, facts, known));
    return voxels * per_axis[0] * per_axis[1] * per_axis[2];
  }
  if (request.select.given()) return most_seeds;
  return static_cast<std::uint64_t>(request.nseeds.value());
}

Status take_seeds(const TrackRequest& request, const ExplainedSource& source, RunExplanation& explanation) {
  RunFacts& facts = explanation.facts;
  CGL_TRY_ASSIGN(const std::uint64_t count, seed_count(request, source, facts, explanation.seeds_known));
  TrackingRunOptions options;
  options.select = request.select.has() ? static_cast<std::uint64_t>(request.select.value()) : 0;
  options.max_seeds = request.max_seeds.has() ? static_cast<std::uint64_t>(request.max_seeds.value()) : 0;
  const CountedSeeds seeds(std::min(count, most_seeds));
  CGL_TRY_ASSIGN(const std::optional<SeedRange> range, seed_range_of_part(request, seeds, options));
  explanation.run_seeds = seeds_of_run(seeds, options);
  facts.seeds = range ? range->count : explanation.run_seeds;
  explanation.first_seed = range ? range->first : 0;
  facts.select = options.select;
  // About so many seeds are drawn for as many streamlines.
  if (facts.select > 0) explanation.seeds_known = false;
  if (request.prepare.given()) facts.seeds = 0;
  return {};
}

}  // namespace

Result<RunExplanation> explain_run(TrackRun& run, RunMachine& machine) {
  const TrackRequest& request = run.request;
  RunExplanation explanation;
  RunFacts& facts = explanation.facts;
  fs::path image;
  for (const auto* const parameter : {&request.sf, &request.sh, &request.peaks, &request.tensor}) {
    if (parameter->given()) image = parameter->value();
  }
  ExplainedSource source;
  if (run.prepared_run) {
    CGL_TRY_ASSIGN(source, take_prepared(run, facts));
  } else if (!image.empty()) {
    CGL_TRY_ASSIGN(source, take_image(run, image, facts));
  } else {
    CGL_TRY_ASSIGN(source, take_series(run, machine, facts));
  }
  const double edge = source.geometry.smallest_edge_mm();
  CGL_TRY_ASSIGN(const TrackingOptions options, tracking_options(request, run.getter, edge));
  CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, source.geometry));
  const std::array<double, 3> edges = source.geometry.voxel_mm();
  facts.voxel_mm3 = edges[0] * edges[1] * edges[2];
  facts.half = request.field_precision.value() == "half";
  facts.getter = run.getter;
  facts.step_mm = static_cast<double>(plan.step_mm);
  facts.min_length_mm = options.min_length_mm;
  facts.max_length_mm = options.max_length_mm;
  facts.one_sided = options.one_sided;
  CGL_TRY(take_seeds(request, source, explanation));
  facts.chunk_seeds = static_cast<std::uint64_t>(request.chunk_size.value());
  facts.fixed_chunks = request.chunk_size.given();
  facts.threads = static_cast<std::uint64_t>(machine.threads());

  CGL_TRY_ASSIGN(const fs::path out, tracking_output(request));
  CGL_TRY_ASSIGN(facts.format, format_of_name(out));
  const ElementType positions = asked_position_type(request).value_or(element_type_of<float>());
  facts.position_bytes = positions.bytes();
  facts.save_seeds = request.save_seeds.value();
  facts.linearise_mm = request.linearise.has() ? request.linearise.value().in_mm(edge) : 0;

  CGL_TRY_ASSIGN(const std::vector<Device*> devices, run.wanted->devices());
  for (const Device* device : devices) {
    if (!explanation.device.empty()) explanation.device += ",";
    explanation.device += device->id();
    facts.on_gpu = facts.on_gpu || device->description().backend != Backend::cpu;
  }
  explanation.estimate = estimate_run(facts);
  return explanation;
}

Json explanation_json(const RunExplanation& explanation) {
  const RunFacts& facts = explanation.facts;
  const RunEstimate& estimate = explanation.estimate;
  return {{"layout", 1},
          {"device", explanation.device},
          {"memory", {{"host_bytes", estimate.host_bytes}, {"device_bytes", estimate.device_bytes}}},
          {"seeds",
           {{"run", explanation.run_seeds},
            {"first", explanation.first_seed},
            {"count", facts.seeds},
            {"exact", explanation.seeds_known}}},
          {"expected",
           {{"streamlines", estimate.streamlines},
            {"points", estimate.points},
            {"bytes", estimate.bytes},
            {"fit_bytes", estimate.fit_bytes}}},
          {"work",
           {{"voxels", facts.voxels},
            {"volumes", facts.volumes},
            {"tracked_voxels", facts.mask_voxels},
            {"coefficients", facts.coefficients}}},
          {"core_seconds", {{"prepare", estimate.prepare_seconds}, {"track", estimate.track_seconds}}}};
}

}  // namespace cingulum
