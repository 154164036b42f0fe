#include "oct/run/shared_tiles.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "base/first_failure.hpp"
#include "base/side_task.hpp"

namespace cingulum::oct {

Status SharedTiles::start_readers() {
  CGL_TRY_ASSIGN(readers_, ThreadPool::create(options_.pool->threads()));
  return {};
}

Status SharedTiles::set_budgets(std::uint64_t other_bytes) const {
  for (TileStage* const stage : options_.stages) {
    CGL_TRY_ASSIGN(const MemoryState memory, stage->device().memory());
    std::uint64_t free = memory.free_bytes.value_or(0);
    if (memory.limit_bytes)
      free = std::min(free, *memory.limit_bytes - std::min(*memory.limit_bytes, memory.used_bytes));
    const std::uint64_t worked_with = needs_.device_bytes + other_bytes;
    stage->set_tile_budget(std::min(needs_.kept_bytes, free - std::min(free, worked_with)));
  }
  return {};
}

std::vector<SharedTiles::TileToDo> SharedTiles::tiles_of(const TileGrid& grid, std::vector<KeptTile>& kept) const {
  std::vector<TileToDo> tiles(grid.count());
  std::size_t first_row = SIZE_MAX, first_column = SIZE_MAX;
  for (const TileRecord& record : set_.tiles) {
    if (record.slice != grid.slice) continue;
    first_row = std::min(first_row, record.row);
    first_column = std::min(first_column, record.column);
  }
  for (const TileRecord& record : set_.tiles) {
    if (record.slice != grid.slice) continue;
    const std::size_t t = (record.row - first_row) * grid.columns + record.column - first_column;
    if (!grid.tiles[t].missing) tiles[t] = {t, &record, &kept[t]};
  }
  std::erase_if(tiles, [](const TileToDo& tile) { return tile.record == nullptr; });
  return tiles;
}

Result<ReadTile> SharedTiles::read(TileStage& stage, const TileToDo& tile) const {
  if (tile.kept->stage != nullptr) return ReadTile();
  if (!tile.kept->on_host.values.empty()) return stage.lend(tile.kept->on_host, readers_.get());
  return stage.read({&set_, options_.last_line, readers_.get(), options_.run.cancel}, *tile.record);
}

// The tiles of one slice, until each is worked up.
class SharedTiles::Round {
 public:
  Round(const SharedTiles& owner, std::vector<TileToDo> tiles, const Body& body)
      : owner_(owner), tiles_(std::move(tiles)), body_(body) {}

  // What one stage does, until there is no tile for it. any thread
  void work(TileStage& stage) {
    std::optional<TileToDo> now = next(stage);
    SideTask<ReadTile> reading;
    const auto begin_reading = [&](const std::optional<TileToDo>& tile) {
      if (tile) reading.begin([this, &stage, tile = *tile] { return owner_.read(stage, tile); });
    };
    begin_reading(now);
    while (now) {
      const Result<ReadTile> tile = reading.end();
      const std::optional<TileToDo> ahead = next(stage);
      begin_reading(ahead);
      const auto work_up = [&]() -> Status {
        CGL_TRY(owner_.options_.run.cancel.check());
        CGL_TRY(tile);
        return body_(stage, now->number, *tile);
      };
      const Status state = catch_out_of_memory(work_up);
      if (!state) {
        const std::lock_guard lock(taking_);
        failed_ = std::min(failed_, now->number);
      }
      failure_.note(now->number, state);
      now = ahead;
    }
  }

  [[nodiscard]] FirstFailure& failure() { return failure_; }

 private:
  [[nodiscard]] std::optional<TileToDo> next(const TileStage& stage) {
    const std::lock_guard lock(taking_);
    const auto found = std::find_if(tiles_.begin(), tiles_.end(), [&](const TileToDo& tile) {
      return tile.kept->stage == nullptr || tile.kept->stage == &stage;
    });
    if (found == tiles_.end() || found->number > failed_) return std::nullopt;
    const TileToDo tile = *found;
    tiles_.erase(found);
    return tile;
  }

  const SharedTiles& owner_;
  std::mutex taking_;
  std::vector<TileToDo> tiles_;    // guarded by taking_
  std::size_t failed_ = SIZE_MAX;  // what comes behind it is not begun; guarded by taking_
  const Body& body_;
  FirstFailure failure_;
};

Status SharedTiles::for_each(const TileGrid& grid, std::size_t s, const Body& body) {
  kept_[s].resize(grid.count());
  Round round(*this, tiles_of(grid, kept_[s]), body);
  std::vector<SideTask<void>> others(options_.stages.size() - 1);
  for (std::size_t i = 0; i < others.size(); ++i) {
    others[i].begin([&round, stage = options_.stages[i + 1]]() -> Status {
      round.work(*stage);
      return {};
    });
  }
  round.work(*options_.stages.front());
  for (SideTask<void>& other : others) round.failure().note(SIZE_MAX, other.end());
  return round.failure().take();
}

Status SharedTiles::keep(TileStage& stage, DeviceVolume tile, std::size_t s, std::size_t t) {
  KeptTile& kept = kept_[s][t];
  const std::uint64_t bytes = tile.shape.bytes();
  const auto keep_on_device = [&] {
    kept.stage = &stage;
    kept.on_device = std::move(tile);
  };
  if (!stage.in_host_memory() && stage.reserve_tile(bytes)) {
    keep_on_device();
    return {};
  }
  if (kept_bytes_.fetch_add(bytes) + bytes > needs_.kept_bytes) {
    kept_bytes_ -= bytes;
    return {};
  }
  if (stage.in_host_memory()) {
    keep_on_device();
    return {};
  }
  CGL_TRY_ASSIGN(kept.on_host, stage.copy_to_host(tile, options_.pool));
  return {};
}

DeviceVolume SharedTiles::take(std::size_t s, std::size_t t) {
  kept_[s][t].on_host = {};
  return std::move(kept_[s][t].on_device);
}

Status SharedTiles::forget(std::size_t s) {
  const std::uint64_t tile_bytes = sizeof(float) * set_.shape[0] * set_.shape[1] * set_.shape[2];
  for (KeptTile& tile : kept_[s]) {
    if (tile.stage != nullptr && !tile.stage->in_host_memory()) tile.stage->release_tile(tile_bytes);
  }
  kept_[s].clear();
  for (TileStage* const stage : options_.stages) CGL_TRY(stage->trim());
  return {};
}

}  // namespace cingulum::oct
