#include "oct/tiles/galvo_band.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace cingulum::oct {
namespace {

// Mean over planes, for each B-scan and line.
std::vector<double> mean_lines(const HostVolume& tile) {
  std::vector<double> mean(tile.plane_size(), 0.0);
  for (std::size_t z = 0; z < tile.planes; ++z) {
    const std::span<const float> plane = tile.plane(z);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += static_cast<double>(plane[i]);
  }
  for (double& value : mean) value /= static_cast<double>(tile.planes);
  return mean;
}

std::vector<double> median_of_five(const std::vector<double>& profile) {
  std::vector<double> result(profile.size());
  const auto last = static_cast<std::ptrdiff_t>(profile.size()) - 1;
  for (std::ptrdiff_t i = 0; i <= last; ++i) {
    std::array<double, 5> window{};
    for (std::ptrdiff_t d = -2; d <= 2; ++d) {
      window[static_cast<std::size_t>(d + 2)] =
          profile[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(i + d, 0, last))];
    }
    std::nth_element(window.begin(), window.begin() + 2, window.end());
    result[static_cast<std::size_t>(i)] = window[2];
  }
  return result;
}

double mean_between(const double* line, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += line[i];
  return sum / static_cast<double>(end - begin);
}

// How dark the band is against its sides, over at most 20 B-scans.
double band_confidence(const std::vector<double>& lines, std::size_t rows, std::size_t columns, std::size_t extra,
                       std::size_t last) {
  constexpr std::size_t most_scans = 20;
  const std::size_t scans = std::min(rows, most_scans);
  double darker = 0, clearly = 0, drop = 0;
  for (std::size_t s = 0; s < scans; ++s) {
    const double* const line = lines.data() + (s * rows / scans) * columns;
    const double band = mean_between(line, last + 1, last + 1 + extra);
    const double before = mean_between(line, last + 1 - std::min(extra, last + 1), last + 1);
    const double behind = mean_between(line, last + 1 + extra, std::min(columns, last + 1 + 2 * extra));
    const double side = 0.5 * (before + behind);
    if (!(side > 0)) continue;
    const double lost = 1.0 - band / side;
    darker += lost > 0 ? 1 : 0;
    clearly += lost > 0.1 ? 1 : 0;
    drop += std::max(0.0, lost);
  }
  const double n = static_cast<double>(scans);
  if (darker / n < 0.5) return 0.3 * darker / n;
  return 0.40 * darker / n + 0.35 * clearly / n + 0.25 * std::min(drop / n / 0.3, 1.0);
}

}  // namespace

GalvoVote vote_for_band(const HostVolume& tile, std::size_t extra) {
  const std::vector<double> lines = mean_lines(tile);
  std::vector<double> profile(tile.columns, 0.0);
  for (std::size_t row = 0; row < tile.rows; ++row) {
    for (std::size_t c = 0; c < tile.columns; ++c) profile[c] += lines[row * tile.columns + c];
  }
  for (double& value : profile) value /= static_cast<double>(tile.rows);
  const std::vector<double> smooth = median_of_five(profile);
  GalvoVote vote;
  double best = -1;
  for (std::size_t i = 0; i + extra + 1 < tile.columns; ++i) {
    const double product = std::abs(smooth[i + 1] - smooth[i]) * std::abs(smooth[i + extra + 1] - smooth[i + extra]);
    if (product > best) {
      best = product;
      vote.last_line = i;
    }
  }
  vote.confidence = band_confidence(lines, tile.rows, tile.columns, extra, vote.last_line);
  return vote;
}

GalvoBand count_votes(std::span<const GalvoVote> votes) {
  std::map<std::size_t, std::pair<std::size_t, double>> lines;
  for (const GalvoVote& vote : votes) {
    auto& [count, sum] = lines[vote.last_line];
    ++count;
    sum += vote.confidence;
  }
  GalvoBand band;
  band.votes = votes.size();
  for (const auto& [line, found] : lines) {
    if (found.first <= band.agreeing) continue;
    band.agreeing = found.first;
    band.last_line = line;
    band.confidence = found.second / static_cast<double>(found.first);
  }
  if (band.votes > 0) {
    band.confidence *= std::sqrt(static_cast<double>(band.agreeing) / static_cast<double>(band.votes));
  }
  return band;
}

HostVolume without_band(const HostVolume& tile, std::size_t extra, std::size_t last_line) {
  HostVolume result(tile.planes, tile.rows, tile.columns - extra);
  for (std::size_t line = 0; line < tile.planes * tile.rows; ++line) {
    const float* const from = tile.values.data() + line * tile.columns;
    float* const to = result.values.data() + line * result.columns;
    for (std::size_t c = 0; c < result.columns; ++c) to[c] = from[(last_line + 1 + extra + c) % tile.columns];
  }
  return result;
}

}  // namespace cingulum::oct
