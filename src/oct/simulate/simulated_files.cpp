#include "oct/simulate/simulated_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/first_failure.hpp"
#include "base/json_text.hpp"
#include "base/progress.hpp"
#include "formats/folder_output.hpp"
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

// Fortran order (z, A-line, B-scan): z fastest, which is TileOrder::acquired.
Status write_raw_tile(FolderOutput& folder, const SimulatedScene& scene, const TileTruth& tile,
                      std::span<const float> voxels, std::size_t files) {
  const SimulationPlan& plan = scene.plan;
  const std::string name = folder_of(tile);
  CGL_TRY(write_text(folder, name + "/info.txt", info_text(plan, tile)));
  const std::size_t scans = (plan.tile_rows + files - 1) / files;
  const std::size_t scan = voxels.size() / plan.tile_rows;
  for (std::size_t f = 0, first = 0; first < plan.tile_rows; ++f, first += scans) {
    static_assert(std::endian::native == std::endian::little, "raw tiles are little-endian");
    const std::size_t count = std::min(scans, plan.tile_rows - first);
    const std::span<const std::byte> bytes = std::as_bytes(voxels.subspan(first * scan, count * scan));
    CGL_TRY(folder.write_file(fmt::format("{}/image_{:05}.bin", name, f), std::span(&bytes, 1)));
  }
  return {};
}

VoxelSize voxel_of(const SimulationPlan& plan) {
  return {plan.axial_step_um, plan.lateral_step_um, plan.lateral_step_um};
}

std::string table_name(const TileTruth& tile) {
  return fmt::format("tiles/{}.ome.zarr", folder_of(tile));
}

Status write_table_tile(FolderOutput& folder, const SimulatedScene& scene, const TileTruth& tile,
                        std::span<const float> voxels, const SimulatedFilesOptions& options) {
  const SimulationPlan& plan = scene.plan;
  HostVolume copy(plan.tile_planes, plan.tile_rows, plan.tile_columns);
  std::copy(voxels.begin(), voxels.end(), copy.values.begin());
  NestedHierarchy hierarchy(folder, table_name(tile) + "/");
  VolumeWriteOptions volume;
  volume.pool = options.pool;
  volume.cancel = options.run.cancel;
  volume.name = folder_of(tile);
  return write_volume(copy, voxel_of(plan), Json::object(), hierarchy, volume);
}

std::string table_of(const SimulatedScene& scene) {
  const SimulationPlan& plan = scene.plan;
  std::string table = "file,slice,ix,iy,x_mm,y_mm,z_mm\n";
  for (const TileTruth& tile : scene.tiles) {
    if (tile.missing) continue;
    table += fmt::format("{},{},{},{},{},{},{}\n", table_name(tile), tile.slice, tile.column, tile.row,
                         stage_mm(tile.stage_px[1], plan.lateral_step_um),
                         stage_mm(tile.stage_px[0], plan.lateral_step_um), slice_mm(plan, tile.slice));
  }
  return table;
}

// Threads that write tiles, for each device; one more waits for the device or uses it. More at once do not write
// faster.
constexpr std::size_t most_writers = 4;

std::size_t workers_of_device(const SimulatedFilesOptions& options, std::size_t tiles) {
  const auto threads = static_cast<std::size_t>(options.pool != nullptr ? options.pool->threads() : 1);
  const std::size_t devices = options.simulators.size();
  return std::min(std::min(threads, most_writers) + 1, (tiles + devices - 1) / devices);
}

// Each worker makes a tile on its device, which the others of that device wait for, and writes it while one of them has
// the device.
Status write_tiles(FolderOutput& folder, const SimulatedScene& scene, const std::vector<std::size_t>& tiles,
                   const SimulatedFilesOptions& options) {
  const bool raw = options.layout == SimulatedLayout::raw;
  const TileOrder order = raw ? TileOrder::acquired : TileOrder::planes;
  const std::uint64_t voxels = voxels_of(scene.plan, order);
  const std::size_t devices = options.simulators.size();
  Progress progress("simulating", tiles.size(), "tiles", options.run.progress);
  FirstFailure failure;
  std::atomic<bool> failed = false;
  std::atomic<std::size_t> next = 0;
  std::vector<std::mutex> device_mutexes(devices);
  const auto make_and_write = [&](std::size_t device, const TileMemory& memory, std::size_t number) -> Status {
    const TileTruth& tile = scene.tiles[number];
    {
      const std::lock_guard lock(device_mutexes[device]);
      CGL_TRY(options.run.cancel.check());
      if (failed) return {};
      CGL_TRY(options.simulators[device]->simulate(scene, number, order, memory, options.run.cancel));
    }
    const std::span<const float> made = memory.values().first(voxels);
    if (raw) return write_raw_tile(folder, scene, tile, made, std::max<std::size_t>(1, options.files_per_tile));
    return write_table_tile(folder, scene, tile, made, options);
  };
  const auto work = [&](std::size_t device) {
    auto memory = catch_out_of_memory([&] { return options.simulators[device]->memory(voxels); });
    for (std::size_t i = next++; i < tiles.size() && !failed; i = next++) {
      const Status done = memory ? catch_out_of_memory([&] { return make_and_write(device, *memory, tiles[i]); })
                                 : Status(tl::unexpected(memory.error()));
      if (!done) failed = true;
      failure.note(i, done);
      progress.advance();
    }
  };
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < devices * workers_of_device(options, tiles.size()); ++i) {
    workers.emplace_back(work, i % devices);
  }
  for (std::thread& worker : workers) worker.join();
  CGL_TRY(failure.take());
  progress.finish();
  return {};
}

Status write_sample(FolderOutput& folder, const SimulatedScene& scene, const SimulatedFilesOptions& options) {
  const SimulationPlan& plan = scene.plan;
  TileSimulator& simulator = *options.simulators.front();
  SampleBox box;
  box.rows = static_cast<std::size_t>(scene.extent_px[0]);
  box.columns = static_cast<std::size_t>(scene.extent_px[1]);
  box.planes = plan.tile_planes + (plan.slices - 1) * plan.interval_planes;
  const std::uint64_t bytes = std::uint64_t{4} * box.planes * box.rows * box.columns;
  CGL_TRY(check_host_memory("simulating the sample", bytes + simulator.host_bytes(box)));
  return catch_out_of_memory([&]() -> Status {
    HostVolume sample(box.planes, box.rows, box.columns);
    CGL_TRY(simulator.texture(plan.seed, plan.texture_strength, box, sample.values, options.run.cancel));
    NestedHierarchy hierarchy(folder, "truth.ome.zarr/");
    VolumeWriteOptions volume;
    volume.pool = options.pool;
    volume.cancel = options.run.cancel;
    volume.name = "truth";
    return write_volume(sample, voxel_of(plan), Json::object(), hierarchy, volume);
  });
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
  const bool raw = options.layout == SimulatedLayout::raw;
  const std::uint64_t tile_bytes = sizeof(float) * voxels_of(plan, raw ? TileOrder::acquired : TileOrder::planes);
  std::vector<std::size_t> tiles;
  for (std::size_t t = 0; t < scene.tiles.size(); ++t) {
    if (!scene.tiles[t].missing) tiles.push_back(t);
  }
  // Each worker holds its tile, and a copy of it that becomes an image; each device needs some memory of the host.
  std::uint64_t held =
      options.simulators.size() * workers_of_device(options, tiles.size()) * tile_bytes * (raw ? 1 : 2);
  for (const TileSimulator* simulator : options.simulators) held += simulator->host_bytes(prepare_tile(scene, 0).box);
  CGL_TRY(check_host_memory("simulating tiles", held));
  WriteOptions writing = write;
  writing.expected_bytes = tile_bytes * tiles.size();
  CGL_TRY_ASSIGN(FolderOutput folder,
                 FolderOutput::create(path, {"folder of simulated tiles", is_simulation}, writing));
  CGL_TRY(write_tiles(folder, scene, tiles, options));
  if (!raw) CGL_TRY(write_text(folder, "tiles.csv", table_of(scene)));
  if (options.sample_volume) CGL_TRY(write_sample(folder, scene, options));
  CGL_TRY(write_text(folder, "truth_tiles.csv", truth_tiles_csv(scene)));
  CGL_TRY(write_text(folder, "truth_slices.csv", truth_slices_csv(scene)));
  CGL_TRY(write_text(folder, truth_name, json_text(truth_of(scene))));
  CGL_TRY(folder.commit());
  return SimulatedFiles{tiles.size(), tile_bytes * tiles.size()};
}

}  // namespace cingulum::oct
