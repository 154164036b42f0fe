#include "dmri/phantom/phantom_files.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "dmri/phantom/phantom_description.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/spherical_harmonics.hpp"

namespace cingulum {

using numerics::Vec3d;
using Json = nlohmann::ordered_json;

namespace {

// Where a folder's files come from and go to.
class PhantomWriter {
 public:
  PhantomWriter(const PhantomRequest& request, PhantomField field, std::filesystem::path folder,
                const WriteOptions& options, ThreadPool& pool)
      : request_(request), field_(std::move(field)), folder_(std::move(folder)), options_(options), pool_(pool) {}

  Status write_series(const RunContext& context);
  Status write_gradients();
  Status write_tissue();
  Status write_bundles();
  Status write_fod();
  Status write_fibres();
  Status write_description();
  [[nodiscard]] PhantomSummary summary() const;

 private:
  [[nodiscard]] const ImageGeometry& geometry() const { return field_.grid.stored; }
  [[nodiscard]] std::size_t voxels() const { return static_cast<std::size_t>(geometry().voxel_count()); }
  [[nodiscard]] double sigma() const { return request_.snr > 0 ? request_.signals.white_s0 / request_.snr : 0; }
  // Puts down size and hash of a complete file.
  Status note(const std::string& name);
  Status write_volume(const std::string& name, std::span<const float> values, ElementType type, bool parallel);
  template <class Body>
  void for_each_voxel(Body&& body) const {
    const auto& size = field_.grid.canonical.size;
    std::size_t v = 0;
    for (std::int64_t z = 0; z < size[2]; ++z) {
      for (std::int64_t y = 0; y < size[1]; ++y) {
        for (std::int64_t x = 0; x < size[0]; ++x, ++v) body(v, field_.grid.stored_index(x, y, z));
      }
    }
  }

  const PhantomRequest& request_;
  PhantomField field_;
  std::filesystem::path folder_;
  WriteOptions options_;
  ThreadPool& pool_;
  Json files_ = Json::object();
  std::size_t fibres_ = 0;
  std::uint64_t bytes_ = 0;
  ElementType series_type_ = {};
  double slope_ = 1;
};

Status PhantomWriter::note(const std::string& name) {
  const std::filesystem::path path = folder_ / name;
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) return fail(ErrorKind::io, "{}: {}", path.string(), error.message());
  CGL_TRY_ASSIGN(const std::string hash, hash_of_file(path));
  files_[name] = {{"bytes", bytes}, {"xxh3_128", hash}};
  bytes_ += bytes;
  return {};
}

Status PhantomWriter::write_volume(const std::string& name, std::span<const float> values, ElementType type,
                                   bool parallel) {
  NiftiWriteOptions options;
  options.file = options_;
  options.type = type;
  options.pool = parallel ? &pool_ : nullptr;
  const auto volumes = static_cast<std::int64_t>(values.size() / voxels());
  return write_image(folder_ / name, geometry(), volumes, values, options);
}

Status PhantomWriter::write_series(const RunContext& context) {
  const PhantomNoise noise{sigma(), request_.seed};
  series_type_ = element_type_of<float>();
  if (request_.type == SeriesType::int16 || (request_.type == SeriesType::automatic && noise.sigma > 0)) {
    series_type_ = element_type_of<std::int16_t>();
    // The normals of the noise are below 5.8. A power of two makes every stored number exact when it is read; rounding
    // adds less than a hundredth of the noise (rms).
    const double largest =
        std::max({request_.signals.white_s0, request_.signals.grey_s0, request_.signals.fluid_s0}) + 6 * noise.sigma;
    slope_ = 0x1p-6;
    while (noise.sigma > 64 * slope_ || largest / slope_ > 32767) slope_ *= 2;
  }
  NiftiWriteOptions options;
  options.file = options_;
  options.type = series_type_;
  options.slope = slope_;
  options.pool = &pool_;
  options.description = "cingulum phantom " + request_.model.preset;
  const PhantomScheme& scheme = request_.scheme;
  CGL_TRY_ASSIGN(NiftiWriter writer, NiftiWriter::create(folder_ / "dwi.nii.gz", geometry(),
                                                         {static_cast<std::int64_t>(scheme.volumes())}, options));
  Progress progress("measuring", scheme.volumes(), "volumes", context.progress);
  std::vector<float> volume(voxels());
  for (std::size_t i = 0; i < scheme.volumes(); ++i) {
    CGL_TRY(context.cancel.check());
    synthesise(field_, request_.signals, scheme.b_values[i], scheme.directions[i], noise, static_cast<std::uint32_t>(i),
               volume, pool_);
    CGL_TRY(writer.append(std::span<const float>(volume)));
    progress.advance();
  }
  CGL_TRY(writer.commit());
  progress.finish();
  return note("dwi.nii.gz");
}

Status PhantomWriter::write_gradients() {
  GradientTable table;
  table.b_values = request_.scheme.b_values;
  table.vectors = fsl_vectors(request_.scheme.directions, geometry().voxel_to_world);
  table.frame = GradientFrame::fsl;
  CGL_TRY(write_file_atomically(folder_ / "dwi.bval", format_bvals(table), options_));
  CGL_TRY(write_file_atomically(folder_ / "dwi.bvec", format_bvecs(table), options_));
  CGL_TRY(note("dwi.bval"));
  return note("dwi.bvec");
}

Status PhantomWriter::write_tissue() {
  const std::size_t count = voxels();
  std::vector<float> fractions(3 * count);
  std::vector<float> mask(count);
  for_each_voxel([&](std::size_t v, std::size_t at) {
    fractions[at] = field_.white[v];
    fractions[count + at] = field_.grey[v];
    fractions[2 * count + at] = field_.fluid[v];
    mask[at] = field_.white[v] + field_.grey[v] + field_.fluid[v] >= 0.5f ? 1.0f : 0.0f;
  });
  CGL_TRY(write_volume("tissue.nii.gz", fractions, element_type_of<float>(), true));
  CGL_TRY(write_volume("mask.nii.gz", mask, element_type_of<std::uint8_t>(), true));
  CGL_TRY(note("tissue.nii.gz"));
  return note("mask.nii.gz");
}

Status PhantomWriter::write_bundles() {
  // Where each bundle is: (stored voxel, content).
  struct Place {
    std::uint32_t at;
    std::uint32_t content;
  };
  std::vector<std::vector<Place>> places(field_.bundles.size());
  for_each_voxel([&](std::size_t v, std::size_t at) {
    for (std::uint32_t c = field_.first[v]; c < field_.first[v + 1]; ++c) {
      places[field_.contents[c].bundle].push_back({static_cast<std::uint32_t>(at), c});
    }
  });
  std::vector<Status> results(field_.bundles.size());
  pool_.parallel_for(places.size(), 1, [&](std::size_t begin, std::size_t end) {
    std::vector<float> volume(voxels());
    for (std::size_t b = begin; b < end; ++b) {
      const std::string& name = field_.bundles[b].name();
      const auto write = [&](const std::string& file, float VoxelBundle::*fraction) -> Status {
        std::fill(volume.begin(), volume.end(), 0.0f);
        for (const Place& place : places[b]) volume[place.at] = field_.contents[place.content].*fraction;
        return write_volume(file, volume, element_type_of<float>(), false);
      };
      results[b] = write("bundles/" + name + ".nii.gz", &VoxelBundle::fraction)
                       .and_then([&] { return write("ends/" + name + "_a.nii.gz", &VoxelBundle::start_fraction); })
                       .and_then([&] { return write("ends/" + name + "_b.nii.gz", &VoxelBundle::end_fraction); });
    }
  });
  for (const Status& result : results) CGL_TRY(result);
  for (const Bundle& bundle : field_.bundles) {
    CGL_TRY(note("bundles/" + bundle.name() + ".nii.gz"));
    CGL_TRY(note("ends/" + bundle.name() + "_a.nii.gz"));
    CGL_TRY(note("ends/" + bundle.name() + "_b.nii.gz"));
  }
  return {};
}

Status PhantomWriter::write_fod() {
  constexpr auto count = static_cast<std::size_t>(numerics::coefficient_count(true_fod_degree, false));
  const TrueFod fod = true_fod(field_, pool_);
  Json damping = Json::array();
  for (int l = 0; l <= true_fod_degree; l += 2) damping.push_back(true_fod_damping(l));
  const auto sidecar = std::make_shared<OutputSidecar>(folder_ / "fod.nii.gz", options_);
  sidecar->describe([&]() -> Json {
    return {{"content", "true fODF: a damped delta function per fibre direction, integral = white-matter fraction"},
            {"sh_basis", "tournier07"},
            {"frame", "world"},
            {"sh_order", true_fod_degree},
            {"damping_by_even_degree", damping},
            {"preset", request_.model.preset}};
  });
  NiftiWriteOptions options;
  options.file = with_sidecar(options_, sidecar);
  options.pool = &pool_;
  CGL_TRY_ASSIGN(NiftiWriter writer,
                 NiftiWriter::create(folder_ / "fod.nii.gz", geometry(), {static_cast<std::int64_t>(count)}, options));
  std::vector<std::uint32_t> stored(voxels());
  for_each_voxel([&](std::size_t v, std::size_t at) { stored[v] = static_cast<std::uint32_t>(at); });
  std::vector<float> volume(voxels());
  for (std::size_t c = 0; c < count; ++c) {
    for (std::size_t i = 0; i < fod.voxels.size(); ++i) volume[stored[fod.voxels[i]]] = fod.coefficients[i * count + c];
    CGL_TRY(writer.append(std::span<const float>(volume)));
  }
  CGL_TRY(writer.commit());
  return note("fod.nii.gz");
}

Status PhantomWriter::write_fibres() {
  constexpr double golden_angle = 2.39996322972865332;
  TractogramLayout layout;
  layout.format = TractogramFormat::trx;
  layout.reference = geometry();
  layout.position_type = element_type_of<float>();
  CGL_TRY_ASSIGN(const std::unique_ptr<TractogramWriter> writer,
                 TractogramWriter::create(folder_ / "truth.trx", layout, options_));
  for (const Bundle& bundle : field_.bundles) {
    TractogramBatch batch;
    TractogramGroup group;
    group.name = bundle.name();
    const auto steps = static_cast<std::size_t>(numerics::floor_of(bundle.length() / request_.truth_step_mm)) + 1;
    for (int f = 0; f < request_.truth_fibres; ++f) {
      // A sunflower over nine tenths of the cross-section (Vogel 1979).
      const double r = f == 0 ? 0 : 0.9 * numerics::root(static_cast<double>(f) / (request_.truth_fibres - 1));
      const auto angle = numerics::sine_cosine(golden_angle * (f % 100));
      for (std::size_t i = 0; i <= steps; ++i) {
        const double arc = bundle.length() * (static_cast<double>(i) / static_cast<double>(steps));
        const Vec3d point = bundle.fibre_point(arc, {r * angle.cosine, r * angle.sine});
        batch.positions.push_back(static_cast<float>(point.x));
        batch.positions.push_back(static_cast<float>(point.y));
        batch.positions.push_back(static_cast<float>(point.z));
      }
      batch.offsets.push_back(batch.positions.size() / 3);
      group.streamlines.push_back(static_cast<std::uint32_t>(fibres_++));
    }
    CGL_TRY(writer->append(batch));
    CGL_TRY(writer->add_group(std::move(group)));
  }
  CGL_TRY(writer->commit());
  return note("truth.trx");
}

Status PhantomWriter::write_description() {
  Json bundles = Json::array();
  for (const Bundle& bundle : field_.bundles) bundles.push_back(bundle_json(bundle));
  Json regions = Json::array();
  for (const TissueRegion& region : request_.model.regions) {
    regions.push_back({{"tissue", tissue_name(region.tissue)},
                       {"form", region.form == TissueRegion::Form::box ? "box" : "ellipsoid"},
                       {"centre", vector_json(region.centre)},
                       {"half", vector_json(region.half)}});
  }
  Json directions = Json::array();
  for (const Vec3d& d : request_.scheme.directions) directions.push_back(vector_json(d));
  const PhantomTissueSignals& s = request_.signals;
  const PhantomSummary facts = summary();
  const Json json = {
      {"format", phantom_format},
      {"version", phantom_version},
      {"preset", request_.model.preset},
      {"meaning", request_.model.meaning},
      {"geometry", geometry_json(geometry())},
      {"grid",
       {{"voxel_mm", request_.grid.voxel_mm},
        {"rotate_deg", request_.grid.rotate_deg},
        {"orientation", request_.grid.orientation}}},
      {"subsamples", request_.subsamples},
      {"signal",
       {{"s0", {{"white_matter", s.white_s0}, {"grey_matter", s.grey_s0}, {"fluid", s.fluid_s0}}},
        {"diffusivity_mm2_per_s",
         {{"fibre_along", s.fibre_along},
          {"fibre_across", s.fibre_across},
          {"grey_matter", s.grey},
          {"fluid", s.fluid}}},
        {"stored_type", series_type_.name()},
        {"stored_slope", slope_}}},
      {"noise",
       {{"kind", "rician"},
        {"snr", request_.snr > 0 ? Json(request_.snr) : Json("inf")},
        {"sigma", sigma()},
        {"seed", request_.seed}}},
      {"scheme",
       {{"name", request_.scheme.name}, {"b_values", request_.scheme.b_values}, {"directions_world", directions}}},
      {"shares",
       {{"white_matter", facts.white_share}, {"tissue", facts.brain_share}, {"crossings", facts.crossing_share}}},
      {"regions", regions},
      {"bundles", bundles},
      {"files", files_}};
  return write_file_atomically(folder_ / "phantom.json",
                               json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", options_);
}

PhantomSummary PhantomWriter::summary() const {
  PhantomSummary summary;
  summary.bundles = field_.bundles.size();
  summary.fibres = fibres_;
  summary.volumes = request_.scheme.volumes();
  summary.geometry = geometry();
  summary.bytes = bytes_;
  double white = 0, tissue = 0;
  std::size_t with_fibres = 0, crossings = 0;
  for (std::size_t v = 0; v < voxels(); ++v) {
    white += field_.white[v];
    tissue += static_cast<double>(field_.white[v]) + field_.grey[v] + field_.fluid[v];
    const std::uint32_t here = field_.first[v + 1] - field_.first[v];
    with_fibres += here > 0 ? 1 : 0;
    crossings += here > 1 ? 1 : 0;
  }
  summary.white_share = white / static_cast<double>(voxels());
  summary.brain_share = tissue / static_cast<double>(voxels());
  summary.crossing_share = with_fibres > 0 ? static_cast<double>(crossings) / static_cast<double>(with_fibres) : 0;
  return summary;
}

Status make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error || !std::filesystem::is_directory(folder)) {
    return fail(ErrorKind::io, "creating the folder {}: {}", folder.string(),
                error ? error.message() : "there is something else under that name");
  }
  return {};
}

// The files of an earlier phantom that this one will not replace are removed; phantom.json goes first, so that what is
// left of an interrupted run is not taken for a phantom.
Status prepare_folder(const std::filesystem::path& folder, const PhantomModel& model, const WriteOptions& options) {
  std::error_code error;
  if (std::filesystem::exists(folder, error)) {
    if (!std::filesystem::is_directory(folder, error)) {
      return fail(ErrorKind::invalid_argument, "{} is not a folder", folder.string());
    }
    if (!options.force && !std::filesystem::is_empty(folder, error)) {
      return fail(ErrorKind::already_exists, "the folder {} is not empty; use {} to replace the phantom in it",
                  folder.string(), argument_name("force"));
    }
    if (auto old = read_phantom(folder)) {
      std::filesystem::remove(folder / "phantom.json", error);
      std::set<std::string> keep;
      for (const BundleShape& bundle : model.bundles) keep.insert(bundle.name);
      for (const Bundle& bundle : old->bundles) {
        if (keep.count(bundle.name()) != 0) continue;
        for (const std::string& name : {"bundles/" + bundle.name() + ".nii.gz", "ends/" + bundle.name() + "_a.nii.gz",
                                        "ends/" + bundle.name() + "_b.nii.gz"}) {
          std::filesystem::remove(folder / name, error);
        }
      }
    }
  }
  CGL_TRY(make_folder(folder));
  CGL_TRY(make_folder(folder / "bundles"));
  return make_folder(folder / "ends");
}

}  // namespace

std::vector<Vec3d> fsl_vectors(std::span<const Vec3d> world, const Affine& voxel_to_world) {
  std::array<Vec3d, 3> axes{};
  for (int c = 0; c < 3; ++c) {
    axes[static_cast<std::size_t>(c)] =
        numerics::normalise(Vec3d{voxel_to_world.at(0, c), voxel_to_world.at(1, c), voxel_to_world.at(2, c)});
  }
  const double x_sign = voxel_to_world.determinant() > 0 ? -1 : 1;
  std::vector<Vec3d> vectors;
  for (const Vec3d& d : world) vectors.push_back({x_sign * dot(axes[0], d), dot(axes[1], d), dot(axes[2], d)});
  return vectors;
}

Result<PhantomSummary> write_phantom(const PhantomRequest& request, const std::filesystem::path& folder,
                                     const WriteOptions& options, ThreadPool& pool, const RunContext& context) {
  return catch_out_of_memory([&]() -> Result<PhantomSummary> {
    if (request.truth_fibres < 1 || request.truth_fibres > 100'000 || !(request.truth_step_mm >= 0.01)) {
      return fail_argument("truth_fibres", "{} true fibres per bundle in steps of {} mm", request.truth_fibres,
                           request.truth_step_mm);
    }
    std::set<std::string> names;
    for (const BundleShape& bundle : request.model.bundles) {
      if (!names.insert(bundle.name).second) {
        return fail(ErrorKind::invalid_argument, "two bundles are called '{}'", bundle.name);
      }
    }
    CGL_TRY_ASSIGN(PhantomGrid grid, phantom_grid(request.model.extent_mm, request.grid));
    // Fails on unsound shapes before anything is touched.
    for (const BundleShape& shape : request.model.bundles) CGL_TRY(Bundle::create(shape).map([](const Bundle&) {}));
    CGL_TRY(prepare_folder(folder, request.model, options));
    CGL_TRY_ASSIGN(PhantomField field, PhantomField::create(request.model, std::move(grid), request.subsamples, pool));
    PhantomWriter writer(request, std::move(field), folder, options, pool);
    CGL_TRY(writer.write_series(context));
    CGL_TRY(writer.write_gradients());
    CGL_TRY(writer.write_tissue());
    CGL_TRY(writer.write_bundles());
    CGL_TRY(writer.write_fod());
    CGL_TRY(writer.write_fibres());
    CGL_TRY(writer.write_description());
    return writer.summary();
  });
}

}  // namespace cingulum
