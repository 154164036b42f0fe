#include "dmri/series/dwi_signals.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>

#include "base/shared_pieces.hpp"
#include "formats/shared_image_reading.hpp"
#include "numerics/classify.hpp"

namespace cingulum {

namespace {

// Volumes that are read before they go to the records, at most: sixteen floats are a cache line.
constexpr std::size_t volumes_at_once = 16;

Result<std::vector<std::size_t>> chosen_volumes(std::span<const std::size_t> volumes, std::size_t available) {
  std::vector<std::size_t> chosen(volumes.begin(), volumes.end());
  if (chosen.empty()) {
    for (std::size_t i = 0; i < available; ++i) chosen.push_back(i);
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] >= available) {
      return fail(ErrorKind::invalid_argument, "volume {} is asked for, the series has {}", chosen[i], available);
    }
    if (i > 0 && chosen[i] <= chosen[i - 1]) {
      return fail(ErrorKind::invalid_argument, "volumes must ascend, but {} follows {}", chosen[i], chosen[i - 1]);
    }
  }
  return chosen;
}

// The voxels of the mask, without their numbers. `task` begins the messages.
Result<DwiSignals> list_voxels(const std::string& task, const ImageGeometry& geometry,
                               std::span<const std::uint8_t> mask) {
  DwiSignals signals;
  signals.geometry = geometry;
  const auto voxel_count = static_cast<std::size_t>(geometry.voxel_count());
  if (mask.size() != voxel_count) {
    return fail(ErrorKind::invalid_argument, "{}: the mask has {} voxels, the series {}", task, mask.size(),
                voxel_count);
  }
  if (voxel_count > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorKind::invalid_argument, "{}: {} voxels; at most 2^32 - 1 can be fitted", task, voxel_count);
  }
  for (std::size_t voxel = 0; voxel < voxel_count; ++voxel) {
    if (mask[voxel] != 0) signals.voxels.push_back(static_cast<std::uint32_t>(voxel));
  }
  if (signals.voxels.empty()) return fail(ErrorKind::invalid_argument, "{}: no voxel is in the mask", task);
  return signals;
}

void allocate_values(DwiSignals& signals, std::size_t volumes) {
  signals.volumes = volumes;
  signals.replaced_of_volume.assign(volumes, 0);
  signals.values.resize(signals.voxels.size() * volumes);
}

// Numbers that are not finite become 0, and are counted.
void make_finite(DwiSignals& signals, std::size_t begin, std::size_t end, std::mutex& mutex) {
  const std::span<float> values =
      std::span(signals.values).subspan(begin * signals.volumes, (end - begin) * signals.volumes);
  // One pass without a branch first: there are hardly ever any.
  std::uint32_t bad = 0;
  for (const float value : values) bad |= numerics::is_finite(value) ? 0U : 1U;
  if (bad == 0) return;
  std::vector<std::size_t> replaced(signals.volumes, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (numerics::is_finite(values[i])) continue;
    values[i] = 0.0f;
    ++replaced[i % signals.volumes];
  }
  const std::lock_guard lock(mutex);
  for (std::size_t volume = 0; volume < signals.volumes; ++volume) {
    signals.replaced_of_volume[volume] += replaced[volume];
    signals.replaced += replaced[volume];
  }
}

// `read_volumes(first, count)` gives the numbers of so many volumes from `first` on, which stay until it is asked for
// the next; it is asked for one after the other.
template <class ReadVolumes>
Result<DwiSignals> take_signals(const std::string& task, const ImageGeometry& geometry, std::size_t available,
                                ReadVolumes&& read_volumes, std::span<const std::uint8_t> mask,
                                std::span<const std::size_t> volumes, ThreadPool* pool, const CancelToken& cancel) {
  CGL_TRY_ASSIGN(const auto chosen, add_context(chosen_volumes(volumes, available), "{}", task));
  CGL_TRY_ASSIGN(DwiSignals signals, list_voxels(task, geometry, mask));
  const auto voxel_count = static_cast<std::size_t>(geometry.voxel_count());
  allocate_values(signals, chosen.size());
  // Fewer volumes of large images are read at once.
  constexpr std::size_t most_numbers_at_once = std::size_t{1} << 26U;
  const std::size_t at_once =
      std::clamp<std::size_t>(most_numbers_at_once / std::max<std::size_t>(voxel_count, 1), 1, volumes_at_once);
  std::mutex mutex;
  std::size_t next = 0;  // of the chosen volumes
  // All volumes are read, wanted or not: the checksum of a compressed file stands at its end.
  for (std::size_t first = 0; first < available; first += at_once) {
    CGL_TRY(cancel.check());
    const std::size_t count = std::min(at_once, available - first);
    CGL_TRY_ASSIGN(const std::span<const float> block, read_volumes(first, count));
    std::array<const float*, volumes_at_once> wanted{};
    std::size_t taken = 0;
    while (next + taken < chosen.size() && chosen[next + taken] < first + count) {
      wanted[taken] = block.data() + (chosen[next + taken] - first) * voxel_count;
      ++taken;
    }
    share_pieces(pool, signals.voxels.size(), 4096, [&](std::size_t begin, std::size_t end) {
      std::array<std::size_t, volumes_at_once> replaced{};
      for (std::size_t i = begin; i < end; ++i) {
        float* const record = signals.values.data() + i * signals.volumes + next;
        for (std::size_t j = 0; j < taken; ++j) {
          const float value = wanted[j][signals.voxels[i]];
          const bool good = numerics::is_finite(value);
          record[j] = good ? value : 0.0f;
          replaced[j] += good ? 0 : 1;
        }
      }
      const std::lock_guard lock(mutex);
      for (std::size_t j = 0; j < taken; ++j) {
        signals.replaced_of_volume[next + j] += replaced[j];
        signals.replaced += replaced[j];
      }
    });
    next += taken;
  }
  return signals;
}

}  // namespace

Result<DwiSignals> read_dwi_signals(const std::filesystem::path& series, std::span<const std::uint8_t> mask,
                                    std::span<const std::size_t> volumes, const CancelToken& cancel, ThreadPool* pool) {
  return catch_out_of_memory([&]() -> Result<DwiSignals> {
    CGL_TRY_ASSIGN(SharedImageReader reader, SharedImageReader::open(series, pool, cancel));
    const auto voxels = static_cast<std::size_t>(reader.header().geometry.voxel_count());
    MappedVector<float> block;
    const auto read_volumes = [&](std::size_t, std::size_t count) -> Result<std::span<const float>> {
      block.resize(std::max(block.size(), count * voxels));
      const std::span<float> numbers = std::span(block).first(count * voxels);
      CGL_TRY(reader.next_volumes(numbers));
      return numbers;
    };
    return take_signals(fmt::format("taking signals from {}", series.string()), reader.header().geometry,
                        static_cast<std::size_t>(reader.header().volume_count()), read_volumes, mask, volumes, pool,
                        cancel);
  });
}

Result<DwiSignals> take_dwi_signals(const ImageGeometry& geometry, const VolumeArray& series,
                                    std::span<const std::uint8_t> mask, const CancelToken& cancel, ThreadPool* pool) {
  const std::string task = "taking signals";
  if (series.voxels() != static_cast<std::size_t>(geometry.voxel_count()) || series.empty()) {
    return fail(ErrorKind::invalid_argument, "{}: {} volumes of {} voxels for an image of {}", task, series.volumes(),
                series.voxels(), geometry.voxel_count());
  }
  return catch_out_of_memory([&]() -> Result<DwiSignals> {
    CGL_TRY_ASSIGN(DwiSignals signals, list_voxels(task, geometry, mask));
    allocate_values(signals, series.volumes());
    std::mutex mutex;
    // Records that stay in a core's cache while their volumes pass.
    constexpr std::size_t records_at_once = 1024;
    share_pieces(pool, signals.voxels.size(), records_at_once, [&](std::size_t begin, std::size_t end) {
      for (std::size_t first = begin; first < end && !cancel.cancelled(); first += records_at_once) {
        const std::size_t count = std::min(records_at_once, end - first);
        series.read_records(std::span(signals.voxels).subspan(first, count),
                            std::span(signals.values).subspan(first * signals.volumes, count * signals.volumes));
        make_finite(signals, first, first + count, mutex);
      }
    });
    CGL_TRY(cancel.check());
    return signals;
  });
}

void restrict_signals(DwiSignals& signals, std::span<const std::size_t> volumes, std::span<const std::uint8_t> voxels) {
  const bool all_volumes = volumes.size() == signals.volumes;  // they ascend
  std::size_t kept = 0;
  for (std::size_t v = 0; v < signals.voxels.size(); ++v) {
    const std::uint32_t voxel = signals.voxels[v];
    if (!voxels.empty() && voxels[voxel] == 0) continue;
    float* const to = signals.values.data() + kept * volumes.size();
    const float* const from = signals.values.data() + v * signals.volumes;
    // Ascending, so that nothing is overwritten that is still to be read.
    if (!all_volumes) {
      for (std::size_t i = 0; i < volumes.size(); ++i) to[i] = from[volumes[i]];
    } else if (to != from) {
      std::memmove(to, from, volumes.size() * sizeof(float));
    }
    signals.voxels[kept++] = voxel;
  }
  if (!signals.replaced_of_volume.empty()) {
    signals.replaced = 0;
    for (std::size_t i = 0; i < volumes.size(); ++i) {
      signals.replaced_of_volume[i] = signals.replaced_of_volume[volumes[i]];
      signals.replaced += signals.replaced_of_volume[i];
    }
    signals.replaced_of_volume.resize(volumes.size());
  }
  signals.voxels.resize(kept);
  signals.volumes = volumes.size();
  signals.values.resize(kept * volumes.size());
  signals.values.shrink_to_fit();
}

}  // namespace cingulum
