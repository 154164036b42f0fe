#include "dmri/series/dwi_signals.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/interrupt.hpp"
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

Result<DwiSignals> read_signals(const std::string& series, NiftiReader reader, std::span<const std::uint8_t> mask,
                                std::span<const std::size_t> volumes) {
  const NiftiHeader& header = reader.header();
  DwiSignals signals;
  signals.geometry = header.geometry;
  const auto voxel_count = static_cast<std::size_t>(header.geometry.voxel_count());
  if (mask.size() != voxel_count) {
    return fail(ErrorKind::invalid_argument, "taking signals from {}: the mask has {} voxels, the series {}", series,
                mask.size(), voxel_count);
  }
  if (voxel_count > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorKind::invalid_argument, "taking signals from {}: {} voxels; at most 2^32 - 1 can be fitted",
                series, voxel_count);
  }
  CGL_TRY_ASSIGN(const auto chosen,
                 add_context(chosen_volumes(volumes, static_cast<std::size_t>(header.volume_count())),
                             "taking signals from {}", series));
  for (std::size_t voxel = 0; voxel < voxel_count; ++voxel) {
    if (mask[voxel] != 0) signals.voxels.push_back(static_cast<std::uint32_t>(voxel));
  }
  if (signals.voxels.empty()) {
    return fail(ErrorKind::invalid_argument, "taking signals from {}: no voxel is in the mask", series);
  }
  signals.volumes = chosen.size();
  signals.values.resize(signals.voxels.size() * signals.volumes);
  std::vector<float> volume(voxel_count);
  std::vector<float> gathered(signals.voxels.size() * std::min(volumes_at_once, signals.volumes));
  std::size_t written = 0;  // volumes in the records
  std::size_t waiting = 0;  // volumes in `gathered`, one after the other
  // All volumes are read, wanted or not: the checksum of a compressed file stands at its end.
  for (std::size_t index = 0; index < static_cast<std::size_t>(header.volume_count()); ++index) {
    CGL_TRY(check_interrupt());
    CGL_TRY(reader.next_volume(std::span(volume)));
    const std::size_t next = written + waiting;
    if (next >= chosen.size() || chosen[next] != index) continue;
    for (std::size_t i = 0; i < signals.voxels.size(); ++i) {
      float value = volume[signals.voxels[i]];
      if (!numerics::is_finite(value)) {
        value = 0.0f;
        ++signals.replaced;
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
                                    std::span<const std::size_t> volumes) {
  return catch_out_of_memory([&]() -> Result<DwiSignals> {
    CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(series));
    return read_signals(series.string(), std::move(reader), mask, volumes);
  });
}

}  // namespace cingulum
