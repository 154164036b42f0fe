#include "oct/tiles/motor_shifts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/quantity.hpp"
#include "oct/tiles/csv_cells.hpp"

namespace cingulum::oct {
namespace {

struct SliceEdges {
  std::array<double, 2> low = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  std::array<double, 2> high = {std::numeric_limits<double>::lowest(), std::numeric_limits<double>::lowest()};
  std::array<std::size_t, 2> first = {SIZE_MAX, SIZE_MAX};
  std::array<std::size_t, 2> last = {0, 0};

  [[nodiscard]] std::array<std::size_t, 2> grid() const { return {last[0] - first[0], last[1] - first[1]}; }
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

}  // namespace

std::vector<SliceShift> motor_shifts(const TileSet& set) {
  std::map<std::size_t, SliceEdges> slices;
  for (const TileRecord& tile : set.tiles) {
    SliceEdges& edges = slices[tile.slice];
    const std::array<std::size_t, 2> ids = {tile.row, tile.column};
    for (std::size_t d = 0; d < 2; ++d) {
      edges.low[d] = std::min(edges.low[d], tile.stage_mm[d + 1]);
      edges.high[d] = std::max(edges.high[d], tile.stage_mm[d + 1]);
      edges.first[d] = std::min(edges.first[d], ids[d]);
      edges.last[d] = std::max(edges.last[d], ids[d]);
    }
  }
  std::vector<SliceShift> shifts;
  for (auto fixed = slices.begin(); fixed != slices.end(); ++fixed) {
    const auto moving = std::next(fixed);
    if (moving == slices.end()) break;
    SliceShift shift{.fixed = fixed->first, .moving = moving->first};
    for (std::size_t d = 0; d < 2; ++d) {
      const double low = fixed->second.low[d] - moving->second.low[d];
      const double high = fixed->second.high[d] - moving->second.high[d];
      shift.shift_mm[d] = std::abs(low) <= std::abs(high) ? low : high;
    }
    shift.reliable = fixed->second.grid() == moving->second.grid();
    shifts.push_back(shift);
  }
  return shifts;
}

std::size_t replace_spikes(std::span<SliceShift> shifts) {
  constexpr double spike_mm = 0.5;
  constexpr double taken_back = 0.4;
  std::vector<std::array<bool, 2>> spiked(shifts.size(), {false, false});
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t i = 0; i < shifts.size(); ++i) {
      const double step = shifts[i].shift_mm[d];
      if (!(std::abs(step) > spike_mm)) continue;
      const auto undone_by = [&](std::size_t neighbour) {
        return std::abs(step + shifts[neighbour].shift_mm[d]) < taken_back * std::abs(step);
      };
      spiked[i][d] = (i > 0 && undone_by(i - 1)) || (i + 1 < shifts.size() && undone_by(i + 1));
    }
  }
  std::size_t replaced = 0;
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t i = 0; i < shifts.size(); ++i) {
      if (!spiked[i][d]) continue;
      std::vector<double> sound;
      for (std::size_t distance = 1; distance < shifts.size() && sound.size() < 4; ++distance) {
        if (i >= distance && !spiked[i - distance][d]) sound.push_back(shifts[i - distance].shift_mm[d]);
        if (sound.size() < 4 && i + distance < shifts.size() && !spiked[i + distance][d]) {
          sound.push_back(shifts[i + distance].shift_mm[d]);
        }
      }
      shifts[i].shift_mm[d] = sound.empty() ? 0.0 : median_of(sound);
      if (!shifts[i].spike) ++replaced;
      shifts[i].spike = true;
    }
  }
  return replaced;
}

std::string shifts_csv(std::span<const SliceShift> shifts, const VoxelSize& voxel_um) {
  std::string text = "fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm,reliable,spike\n";
  for (const SliceShift& shift : shifts) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", shift.fixed, shift.moving,
                        shift.shift_mm[1] * 1000.0 / voxel_um[2], shift.shift_mm[0] * 1000.0 / voxel_um[1],
                        shift.shift_mm[1], shift.shift_mm[0], shift.reliable ? 1 : 0, shift.spike ? 1 : 0);
  }
  return text;
}

Result<std::vector<SliceShift>> parse_shifts(std::string_view text) {
  std::vector<SliceShift> shifts;
  std::map<std::string_view, std::size_t> columns;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    const std::vector<std::string_view> cells = csv_cells(line);
    if (columns.empty()) {
      for (std::size_t i = 0; i < cells.size(); ++i) columns.emplace(cells[i], i);
      for (const char* name : {"fixed_id", "moving_id", "x_shift_mm", "y_shift_mm"}) {
        if (!columns.contains(name)) return fail(ErrorKind::corrupt, "its first line has no column '{}'", name);
      }
      continue;
    }
    const auto cell = [&](const char* name) -> Result<double> {
      const std::size_t at = columns.find(name)->second;
      if (at >= cells.size()) return fail(ErrorKind::corrupt, "line {} has no {}", number, name);
      const auto value = parse_real(cells[at]);
      if (!value) return fail(ErrorKind::corrupt, "line {}: {} '{}' is no number", number, name, cells[at]);
      return *value;
    };
    SliceShift shift;
    CGL_TRY_ASSIGN(const double fixed, cell("fixed_id"));
    CGL_TRY_ASSIGN(const double moving, cell("moving_id"));
    if (!(fixed >= 0 && moving > fixed && moving < 1e6)) {
      return fail(ErrorKind::corrupt, "line {}: slices {} and {} are no pair in ascending order", number, fixed,
                  moving);
    }
    shift.fixed = static_cast<std::size_t>(fixed);
    shift.moving = static_cast<std::size_t>(moving);
    CGL_TRY_ASSIGN(shift.shift_mm[1], cell("x_shift_mm"));
    CGL_TRY_ASSIGN(shift.shift_mm[0], cell("y_shift_mm"));
    if (columns.contains("reliable")) {
      CGL_TRY_ASSIGN(const double reliable, cell("reliable"));
      shift.reliable = reliable != 0;
    }
    if (!shifts.empty() && shift.fixed != shifts.back().moving) {
      return fail(ErrorKind::corrupt, "line {}: slice {} does not follow slice {}: the shifts do not pair", number,
                  shift.fixed, shifts.back().moving);
    }
    shifts.push_back(shift);
  }
  return shifts;
}

}  // namespace cingulum::oct
