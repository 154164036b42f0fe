#include "streamlines/sphere_text.hpp"

#include <array>

#include "base/quantity.hpp"

namespace cingulum {

std::optional<WorldSphere> parse_sphere(std::string_view text) {
  std::array<double, 4> numbers{};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t comma = text.find(',');
    if ((comma == std::string_view::npos) != (i == 3)) return std::nullopt;
    const Result<double> number = parse_real(trim(text.substr(0, comma)));
    if (!number) return std::nullopt;
    numbers[i] = *number;
    if (i < 3) text.remove_prefix(comma + 1);
  }
  return WorldSphere{{numbers[0], numbers[1], numbers[2]}, numbers[3]};
}

}  // namespace cingulum
