#include "zarr/ome_units.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace cingulum::zarr {

Result<double> length_unit_in_mm(std::string_view word) {
  struct Unit {
    std::string_view name;
    double mm;
  };
  static constexpr std::array<Unit, 33> units = {{{"angstrom", 1e-7},
                                                  {"attometer", 1e-15},
                                                  {"centimeter", 10},
                                                  {"decimeter", 100},
                                                  {"exameter", 1e21},
                                                  {"femtometer", 1e-12},
                                                  {"foot", 304.8},
                                                  {"gigameter", 1e12},
                                                  {"hectometer", 1e5},
                                                  {"inch", 25.4},
                                                  {"kilometer", 1e6},
                                                  {"megameter", 1e9},
                                                  {"meter", 1e3},
                                                  {"micrometer", 1e-3},
                                                  {"mile", 1609344},
                                                  {"millimeter", 1},
                                                  {"nanometer", 1e-6},
                                                  {"parsec", 3.0856775814913673e19},
                                                  {"petameter", 1e18},
                                                  {"picometer", 1e-9},
                                                  {"terameter", 1e15},
                                                  {"yard", 914.4},
                                                  {"yoctometer", 1e-21},
                                                  {"yottameter", 1e27},
                                                  {"zeptometer", 1e-18},
                                                  {"zettameter", 1e24},
                                                  {"micron", 1e-3},
                                                  {"nm", 1e-6},
                                                  {"um", 1e-3},
                                                  {"µm", 1e-3},
                                                  {"mm", 1},
                                                  {"cm", 10},
                                                  {"m", 1e3}}};
  const auto* const found =
      std::find_if(units.begin(), units.end(), [&](const Unit& unit) { return unit.name == word; });
  if (found != units.end()) return found->mm;
  return fail(ErrorKind::invalid_argument, "'{}' is no unit of length (such as millimeter, micrometer, nanometer)",
              word);
}

Result<AxisMillimetres> axes_in_mm(std::span<const OmeAxis> axes, std::span<const double> scale) {
  AxisMillimetres result{std::vector<double>(axes.size(), 1.0), false};
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].is_space()) smallest = std::min(smallest, std::abs(scale[d]));
  }
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (!axes[d].is_space()) continue;
    if (axes[d].unit.empty()) {
      result.guessed = true;
      result.factors[d] = smallest < 1 ? 1 : 1e-3;
      continue;
    }
    CGL_TRY_ASSIGN(result.factors[d], add_context(length_unit_in_mm(axes[d].unit), "axis {}", axes[d].name));
  }
  return result;
}

}  // namespace cingulum::zarr
