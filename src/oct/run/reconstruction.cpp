#include "oct/run/reconstruction.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/hash.hpp"
#include "base/progress.hpp"
#include "base/side_task.hpp"
#include "oct/run/pair_products.hpp"
#include "oct/run/run_fits.hpp"
#include "oct/run/run_stack.hpp"
#include "oct/run/run_state.hpp"
#include "oct/run/slice_maker.hpp"
#include "oct/run/tile_summary.hpp"

namespace cingulum::oct {
namespace {

// Tiles are compared on a device that is quicker at it than the threads are; null: there is none.
Result<std::unique_ptr<DevicePairProducts>> products_for(const std::vector<TileStage*>& stages) {
  for (TileStage* const stage : stages) {
    if (stage->in_host_memory() || stage->device().capabilities().software) continue;
    return DevicePairProducts::create(stage->device());
  }
  return nullptr;
}

Status place(RunState& run, std::size_t s, DevicePairProducts* products) {
  SliceReport& slice = run.result.slices[s];
  std::vector<TileSummary>& summaries = run.summaries[s];
  std::vector<std::vector<HostImage>> layers;
  for (const TileSummary& tile : summaries) layers.resize(std::max(layers.size(), tile.layers.size()));
  for (std::size_t k = 0; k < layers.size(); ++k) {
    for (TileSummary& tile : summaries) {
      layers[k].push_back(tile.layers.empty() ? HostImage() : std::move(tile.layers[k]));
    }
  }
  for (TileSummary& tile : summaries) tile.layers.clear();
  PlacementOptions placing = run.options.placement;
  placing.pool = run.options.pool;
  if (products != nullptr) {
    placing.products = [products](const LayerImages& images, const TileGrid& grid, std::span<const TilePair> pairs) {
      return products->make(images, grid, pairs);
    };
  }
  CGL_TRY_ASSIGN(slice.placement, add_context(place_tiles(slice.grid, layers, placing), "slice {}", slice.grid.slice));
  return {};
}

// A run that is repeated has the tiles that it had.
Status compare_voxels(RunState& run) {
  Hash128 hash;
  for (const std::vector<TileSummary>& tiles : run.summaries) {
    for (const TileSummary& tile : tiles) {
      hash.add(tile.voxels);
      hash.add(";");  // a missing tile has none
    }
  }
  run.result.voxels = hash.hex();
  if (run.options.expected_voxels.empty() || run.options.expected_voxels == run.result.voxels) return {};
  return fail(ErrorKind::corrupt, "the tiles are not those of the run that is repeated (hash {}, was {})",
              run.result.voxels, run.options.expected_voxels);
}

Status look_at_tiles(RunState& run, DevicePairProducts* products) {
  Progress progress("looking at tiles", run.set.tiles.size(), "tiles", run.options.run.progress);
  const std::vector<std::size_t> ids = run.set.slices();
  run.result.slices.resize(ids.size());
  run.summaries.resize(ids.size());
  // Slice s is placed while the tiles of slice s + 1 are read: the layers by which tiles are placed are the largest
  // part of their summaries.
  SideTask<void> placing;
  const auto end_placing = [&] { return placing.end(); };
  for (std::size_t s = 0; s < ids.size(); ++s) {
    SliceReport& slice = run.result.slices[s];
    CGL_TRY_ASSIGN(slice.grid, grid_of_slice(run.set, ids[s]));
    run.summaries[s].resize(slice.grid.count());
    std::mutex counting;
    const auto look = [&](TileStage& stage, std::size_t t, const ReadTile& read) -> Status {
      CGL_TRY_ASSIGN(DeviceVolume tile, stage.order(read, run.set));
      CGL_TRY_ASSIGN(run.summaries[s][t],
                     stage.summarise(tile, run.options.crop || run.options.curvature, run.options.pool));
      run.summaries[s][t].voxels = read.voxels;
      CGL_TRY(run.tiles.keep(stage, std::move(tile), s, t));
      progress.advance();
      const std::lock_guard lock(counting);
      slice.replaced_values += read.replaced;
      return {};
    };
    CGL_TRY(run.timed("looking at tiles", [&] { return run.tiles.for_each(slice.grid, s, look); }));
    CGL_TRY(run.timed("placing tiles", end_placing));
    placing.begin([&run, s, products] { return place(run, s, products); });
  }
  CGL_TRY(run.timed("placing tiles", end_placing));
  progress.finish();
  return compare_voxels(run);
}

Status register_all(RunState& run, SliceMaker& making) {
  if (run.result.slices.size() < 2) return making.end_writing();
  Progress progress("registering", run.result.slices.size() - 1, "pairs", run.options.run.progress);
  for (std::size_t s = 1; s < run.result.slices.size(); ++s) {
    // The last slice is written while the pairs before it are registered.
    if (s + 1 == run.result.slices.size()) CGL_TRY(making.end_writing());
    CGL_TRY(run.timed("registering", [&] { return register_pair(run, s); }));
    progress.advance();
  }
  progress.finish();
  return {};
}

}  // namespace

Result<Reconstruction> reconstruct(const TileSet& set, const std::filesystem::path& work,
                                   const ReconstructionOptions& options) {
  return catch_out_of_memory([&]() -> Result<Reconstruction> {
    CGL_TRY_ASSIGN(const RunNeeds needs, run_needs(set, options));
    RunState run{set, work, options, needs};
    SliceMaker making(run);
    CGL_TRY(run.tiles.start_readers());
    CGL_TRY(making.start_writers());
    CGL_TRY_ASSIGN(const std::unique_ptr<DevicePairProducts> products, products_for(options.stages));
    CGL_TRY(run.tiles.set_budgets(products != nullptr ? needs.comparing_device_bytes : 0));
    CGL_TRY(look_at_tiles(run, products.get()));
    CGL_TRY(run.timed("fitting", [&] { return fit_instrument(run); }));
    CGL_TRY(run.timed("fitting", [&] { return choose_planes(run); }));
    note_fit_decisions(run);
    CGL_TRY(making.make_all());
    CGL_TRY(register_all(run, making));
    CGL_TRY(plan_stack(run));
    return std::move(run.result);
  });
}

}  // namespace cingulum::oct
