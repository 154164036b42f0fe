// The band of A-lines that a galvanometer's mirror records on its way back: where it lies among the lines of raw tiles,
// and tiles without it. A single tile may mislead, so all of them vote.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// What one raw tile says.
struct GalvoVote {
  std::size_t last_line = 0;  // the last good line before the band
  double confidence = 0;      // 0 to 1
};
// `tile` holds (z, y, lines), `extra` of the lines are the band; 1 <= extra < lines - 2.
[[nodiscard]] GalvoVote vote_for_band(const HostVolume& tile, std::size_t extra);

struct GalvoBand {
  std::size_t last_line = 0;
  double confidence = 0;  // mean of those who agree, times the root of their share
  std::size_t agreeing = 0, votes = 0;
};
inline constexpr double galvo_confidence_needed = 0.6;
// The line that most tiles vote for, among equals the lower one; the confidences of its votes count.
[[nodiscard]] GalvoBand count_votes(std::span<const GalvoVote> votes);

// Lines behind the band come first, then those before it; `columns - extra` stay.
[[nodiscard]] HostVolume without_band(const HostVolume& tile, std::size_t extra, std::size_t last_line);

}  // namespace cingulum::oct
