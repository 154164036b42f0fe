#include "dmri/series/dwi_signals.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "formats/nifti.hpp"
#include "numerics/classify.hpp"

namespace cingulum {

namespace {

// Volumes that are gathered before they go to the records: sixteen floats are a cache line.
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

// `next_volume` fills its argument with one volume after the other; `task` begins the messages.
template <class NextVolume>
Result<DwiSignals> take_signals(const std::string& task, const ImageGeometry& geometry, std::size_t available,
                                NextVolume&& next_volume, std::span<const std::uint8_t> mask,
                                std::span<const std::size_t> volumes, const CancelToken& cancel) {
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
  CGL_TRY_ASSIGN(const auto chosen, add_context(chosen_volumes(volumes, available), "{}", task));
  for (std::size_t voxel = 0; voxel < voxel_count; ++voxel) {
    if (mask[voxel] != 0) signals.voxels.push_back(static_cast<std::uint32_t>(voxel));
  }
  if (signals.voxels.empty()) return fail(ErrorKind::invalid_argument, "{}: no voxel is in the mask", task);
  signals.volumes = chosen.size();
  signals.replaced_of_volume.assign(signals.volumes, 0);
  signals.values.resize(signals.voxels.size() * signals.volumes);
  std::vector<float> volume(voxel_count);
  std::vector<float> gathered(signals.voxels.size() * std::min(volumes_at_once, signals.volumes));
  std::size_t written = 0;  // volumes in the records
  std::size_t waiting = 0;  // volumes in `gathered`, one after the other
  // All volumes are read, wanted or not: the checksum of a compressed file stands at its end.
  for (std::size_t index = 0; index < available; ++index) {
    CGL_TRY(cancel.check());
    CGL_TRY(next_volume(std::span(volume)));
    const std::size_t next = written + waiting;
    if (next >= chosen.size() || chosen[next] != index) continue;
    for (std::size_t i = 0; i < signals.voxels.size(); ++i) {
      float value = volume[signals.voxels[i]];
      if (!numerics::is_finite(value)) {
        value = 0.0f;
        ++signals.replaced;
        ++signals.replaced_of_volume[next];
      }
      gathered[waiting * signals.voxels.size() + i] = value;
    }
    ++waiting;
    if (waiting < volumes_at_once && written + waiting < signals.volumes) continue;
    for (std::size_t i = 0; i < signals.voxels.size(); ++i) {
      float* record = signals.values.data() + i * signals.volumes + written;
      for (std::size_t j = 0; j < waiting; ++j) record[j] = gathered[j * signals.voxels.size() + i];
    }
    written += waiting;
    waiting = 0;
  }
  return signals;
}

}  // namespace

Result<DwiSignals> read_dwi_signals(const std::filesystem::path& series, std::span<const std::uint8_t> mask,
                                    std::span<const std::size_t> volumes, const CancelToken& cancel) {
  return catch_out_of_memory([&]() -> Result<DwiSignals> {
    CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(series, cancel));
    const auto next_volume = [&](std::span<float> volume) { return reader.next_volume(volume); };
    return take_signals(fmt::format("taking signals from {}", series.string()), reader.header().geometry,
                        static_cast<std::size_t>(reader.header().volume_count()), next_volume, mask, volumes, cancel);
  });
}

Result<DwiSignals> take_dwi_signals(const ImageGeometry& geometry, std::span<const float> values,
                                    std::span<const std::uint8_t> mask, const CancelToken& cancel) {
  const auto voxels = static_cast<std::size_t>(geometry.voxel_count());
  if (voxels == 0 || values.size() % voxels != 0) {
    return fail(ErrorKind::invalid_argument, "taking signals: {} numbers are not whole volumes of {} voxels",
                values.size(), voxels);
  }
  return catch_out_of_memory([&]() -> Result<DwiSignals> {
    std::size_t next = 0;
    const auto copy = [&](std::span<float> volume) -> Status {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(next), voxels, volume.begin());
      next += voxels;
      return {};
    };
    return take_signals("taking signals", geometry, values.size() / voxels, copy, mask, {}, cancel);
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
