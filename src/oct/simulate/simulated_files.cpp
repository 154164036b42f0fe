#include "oct/simulate/simulated_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "base/bulk_memory.hpp"
#include "base/json_text.hpp"
#include "base/progress.hpp"
#include "formats/folder_output.hpp"
#include "oct/volume/shared_loop.hpp"
#include "oct/volume/volume_file.hpp"

namespace cingulum::oct {
namespace {

namespace fs = std::filesystem;
using zarr::Json;

constexpr const char* truth_name = "truth.json";

bool is_simulation(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / truth_name, error);
}

// Keys of one hierarchy below a folder that appears whole.
class NestedHierarchy final : public zarr::StoreOutput {
 public:
  NestedHierarchy(FolderOutput& folder, std::string prefix) : folder_(folder), prefix_(std::move(prefix)) {}
  using zarr::StoreOutput::put;
  Status put(const std::string& key, std::span<const std::span<const std::byte>> parts) override {
    return folder_.write_file(prefix_ + key, parts);
  }
  Status commit() override { return {}; }

 private:
  FolderOutput& folder_;
  std::string prefix_;
};

Status write_text(FolderOutput& folder, const std::string& name, std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return folder.write_file(name, std::span(&bytes, 1));
}

double stage_mm(double pixels, double step_um) {
  return pixels * step_um / 1000.0;
}

double slice_mm(const SimulationPlan& plan, std::size_t slice) {
  return stage_mm(static_cast<double>(slice * plan.interval_planes), plan.axial_step_um);
}

std::string folder_of(const TileTruth& tile) {
  return fmt::format("tile_x{:02}_y{:02}_z{:02}", tile.column, tile.row, tile.slice);
}

std::string info_text(const SimulationPlan& plan, const TileTruth& tile) {
  std::string text;
  const auto add = [&](const char* key, const auto& value) { text += fmt::format("{}: {}\n", key, value); };
  add("nx", plan.tile_columns);
  add("ny", plan.tile_rows);
  add("n_extra", plan.galvo_lines);
  add("n_repeat", 1);
  add("width", static_cast<double>(plan.tile_columns) * plan.lateral_step_um);
  add("height", static_cast<double>(plan.tile_rows) * plan.lateral_step_um);
  add("top_z", 0);
  add("bottom_z", plan.tile_planes - 1);
  add("focus_z", plan.focus_plane);
  add("stage_x_pos_mm", stage_mm(tile.stage_px[1], plan.lateral_step_um));
  add("stage_y_pos_mm", stage_mm(tile.stage_px[0], plan.lateral_step_um));
  add("stage_z_pos_mm", slice_mm(plan, tile.slice));
  return text;
}

// Fortran order (z, A-line, B-scan): z fastest.
Status write_raw_tile(FolderOutput& folder, const SimulatedScene& scene, const TileTruth& tile,
                      const HostVolume& voxels, std::size_t files, ThreadPool* pool) {
  HostVolume with_band;
  if (scene.plan.galvo_lines > 0) with_band = with_galvo_band(scene, voxels);
  const HostVolume& raw = scene.plan.galvo_lines > 0 ? with_band : voxels;
  const std::string name = folder_of(tile);
  CGL_TRY(write_text(folder, name + "/info.txt", info_text(scene.plan, tile)));
  const std::size_t scans = (raw.rows + files - 1) / files;
  for (std::size_t f = 0, first = 0; first < raw.rows; ++f, first += scans) {
    const std::size_t count = std::min(scans, raw.rows - first);
    BulkVector<float> values(count * raw.columns * raw.planes);
    for_each_index(pool, count, [&](std::size_t r) {
      // Planes that stay in the cache while all lines of the row take their samples of them.
      constexpr std::size_t block = 16;
      for (std::size_t first_plane = 0; first_plane < raw.planes; first_plane += block) {
        const std::size_t end_plane = std::min(raw.planes, first_plane + block);
        for (std::size_t c = 0; c < raw.columns; ++c) {
          float* const line = values.data() + (r * raw.columns + c) * raw.planes;
          for (std::size_t z = first_plane; z < end_plane; ++z) line[z] = raw.at(z, first + r, c);
        }
      }
    });
    static_assert(std::endian::native == std::endian::little, "raw tiles are little-endian");
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    CGL_TRY(folder.write_file(fmt::format("{}/image_{:05}.bin", name, f), std::span(&bytes, 1)));
  }
  return {};
}

Json truth_of(const SimulatedScene& scene) {
  const SimulationPlan& plan = scene.plan;
  Json parameters = {{"seed", plan.seed},
                     {"grid", {plan.grid_rows, plan.grid_columns}},
                     {"tile", {plan.tile_planes, plan.tile_rows, plan.tile_columns}},
                     {"overlap", plan.overlap},
                     {"step_px", {plan.step_rows(), plan.step_columns()}},
                     {"surface_plane", plan.surface_plane},
                     {"curvature_planes", plan.curvature_planes},
                     {"tilt_planes", {plan.tilt_row_planes, plan.tilt_column_planes}},
                     {"attenuation", plan.attenuation},
                     {"speckle_shape", plan.speckle_shape},
                     {"water", plan.water},
                     {"tissue", plan.tissue},
                     {"agarose", plan.agarose},
                     {"tissue_radius", plan.tissue_radius},
                     {"depth_jitter_planes", plan.depth_jitter_planes},
                     {"texture_strength", plan.texture_strength},
                     {"flat_field", plan.flat_field},
                     {"focus_plane", plan.focus_plane},
                     {"rayleigh_planes", plan.rayleigh_planes},
                     {"noise_floor", plan.noise_floor},
                     {"galvo_lines", plan.galvo_lines},
                     {"galvo_last_line", scene.galvo_last_line},
                     {"motor_jitter_px", plan.motor_jitter_px},
                     {"motor_angle_deg", plan.motor_angle_deg},
                     {"motor_scale", plan.motor_scale},
                     {"slices", plan.slices},
                     {"interval_planes", plan.interval_planes},
                     {"axial_step_um", plan.axial_step_um},
                     {"lateral_step_um", plan.lateral_step_um}};
  Json slices = Json::array();
  for (std::size_t s = 0; s < scene.slices.size(); ++s) {
    const SliceTruth& slice = scene.slices[s];
    slices.push_back({{"slice", s},
                      {"motor_shift_px", slice.motor_shift_px},
                      {"shift_px", slice.shift_px},
                      {"rotation_deg", slice.rotation_deg},
                      {"gain", slice.gain}});
  }
  Json tiles = Json::array();
  for (const TileTruth& tile : scene.tiles) {
    tiles.push_back({{"slice", tile.slice},
                     {"row", tile.row},
                     {"column", tile.column},
                     {"stage_px", tile.stage_px},
                     {"place_px", tile.place_px},
                     {"depth_offset_planes", tile.depth_offset_planes},
                     {"missing", tile.missing}});
  }
  return {{"command", "oct simulate"},
          {"parameters", std::move(parameters)},
          {"extent_px", scene.extent_px},
          {"slices", std::move(slices)},
          {"tiles", std::move(tiles)}};
}

std::string truth_tiles_csv(const SimulatedScene& scene) {
  std::string text = "slice,row,column,stage_row_px,stage_column_px,row_px,column_px,depth_offset_planes,missing\n";
  for (const TileTruth& tile : scene.tiles) {
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", tile.slice, tile.row, tile.column, tile.stage_px[0],
                        tile.stage_px[1], tile.place_px[0], tile.place_px[1], tile.depth_offset_planes,
                        tile.missing ? 1 : 0);
  }
  return text;
}

std::string truth_slices_csv(const SimulatedScene& scene) {
  const SimulationPlan& plan = scene.plan;
  std::string text =
      "slice,motor_shift_row_px,motor_shift_column_px,shift_row_px,shift_column_px,rotation_deg,gain,overlap_planes\n";
  for (std::size_t s = 0; s < scene.slices.size(); ++s) {
    const SliceTruth& slice = scene.slices[s];
    const std::size_t overlap = plan.tile_planes > plan.interval_planes ? plan.tile_planes - plan.interval_planes : 0;
    text += fmt::format("{},{},{},{},{},{},{},{}\n", s, slice.motor_shift_px[0], slice.motor_shift_px[1],
                        slice.shift_px[0], slice.shift_px[1], slice.rotation_deg, slice.gain, overlap);
  }
  return text;
}

}  // namespace

Result<SimulatedFiles> write_simulation(const fs::path& path, const SimulatedScene& scene, const WriteOptions& write,
                                        const SimulatedFilesOptions& options) {
  const SimulationPlan& plan = scene.plan;
  SimulatedFiles files;
  const std::uint64_t tile_bytes =
      std::uint64_t{4} * plan.tile_planes * plan.tile_rows *
      (plan.tile_columns + (options.layout == SimulatedLayout::raw ? plan.galvo_lines : 0));
  // Of a tile: its texture with margins, noise and windows, the voxels and their copy.
  CGL_TRY(check_host_memory("simulating a tile", tile_bytes * 8 + (std::uint64_t{64} << 20U)));
  WriteOptions writing = write;
  writing.expected_bytes = tile_bytes * scene.tiles.size();
  CGL_TRY_ASSIGN(FolderOutput folder,
                 FolderOutput::create(path, {"folder of simulated tiles", is_simulation}, writing));
  const VoxelSize voxel_um = {plan.axial_step_um, plan.lateral_step_um, plan.lateral_step_um};
  std::string table = "file,slice,ix,iy,x_mm,y_mm,z_mm\n";
  Progress progress("simulating", scene.tiles.size(), "tiles", options.run.progress);
  for (std::size_t t = 0; t < scene.tiles.size(); ++t) {
    CGL_TRY(options.run.cancel.check());
    const TileTruth& tile = scene.tiles[t];
    if (!tile.missing) {
      CGL_TRY_ASSIGN(const HostVolume voxels, simulate_tile(scene, t, options.pool));
      if (options.layout == SimulatedLayout::raw) {
        CGL_TRY(write_raw_tile(folder, scene, tile, voxels, std::max<std::size_t>(1, options.files_per_tile),
                               options.pool));
      } else {
        const std::string name = fmt::format("tiles/{}.ome.zarr", folder_of(tile));
        NestedHierarchy hierarchy(folder, name + "/");
        VolumeWriteOptions volume;
        volume.pool = options.pool;
        volume.name = folder_of(tile);
        CGL_TRY(write_volume(voxels, voxel_um, Json::object(), hierarchy, volume));
        table += fmt::format("{},{},{},{},{},{},{}\n", name, tile.slice, tile.column, tile.row,
                             stage_mm(tile.stage_px[1], plan.lateral_step_um),
                             stage_mm(tile.stage_px[0], plan.lateral_step_um), slice_mm(plan, tile.slice));
      }
      ++files.tiles;
      files.bytes += tile_bytes;
    }
    progress.advance();
  }
  progress.finish();
  if (options.layout == SimulatedLayout::table) CGL_TRY(write_text(folder, "tiles.csv", table));
  if (options.sample_volume) {
    SampleBox box;
    box.rows = static_cast<std::size_t>(scene.extent_px[0]);
    box.columns = static_cast<std::size_t>(scene.extent_px[1]);
    box.planes = plan.tile_planes + (plan.slices - 1) * plan.interval_planes;
    const std::uint64_t bytes = std::uint64_t{4} * box.planes * box.rows * box.columns;
    CGL_TRY(check_host_memory("simulating the sample", 4 * bytes));
    NestedHierarchy hierarchy(folder, "truth.ome.zarr/");
    VolumeWriteOptions volume;
    volume.pool = options.pool;
    volume.name = "truth";
    CGL_TRY(write_volume(simulate_texture(plan.seed, plan.texture_strength, box, options.pool), voxel_um,
                         Json::object(), hierarchy, volume));
  }
  CGL_TRY(write_text(folder, "truth_tiles.csv", truth_tiles_csv(scene)));
  CGL_TRY(write_text(folder, "truth_slices.csv", truth_slices_csv(scene)));
  CGL_TRY(write_text(folder, truth_name, json_text(truth_of(scene))));
  CGL_TRY(folder.commit());
  return files;
}

}  // namespace cingulum::oct
