#include "dmri/series/gradient_frame.hpp"

#include <array>
#include <utility>

namespace cingulum {
namespace {

// Names in the order of WantedFrame.
constexpr std::array<std::string_view, 5> wanted_frame_names = {"", "auto", "fsl", "voxel", "world"};

}  // namespace

std::string_view wanted_frame_name(WantedFrame wanted) {
  return wanted_frame_names[static_cast<std::size_t>(wanted)];
}

Result<WantedFrame> parse_wanted_frame(std::string_view name) {
  for (std::size_t i = 0; i < wanted_frame_names.size(); ++i) {
    if (wanted_frame_names[i] == name) return static_cast<WantedFrame>(i);
  }
  return fail(ErrorKind::invalid_argument, "the frame of the b-vectors '{}': accepted is fsl, voxel, world or auto",
              name);
}

GradientFrame unchecked_frame(WantedFrame wanted, GradientFrame of_format) {
  switch (wanted) {
    case WantedFrame::fsl: return GradientFrame::fsl;
    case WantedFrame::voxel: return GradientFrame::voxel;
    case WantedFrame::world: return GradientFrame::world;
    case WantedFrame::of_format:
    case WantedFrame::automatic: break;
  }
  return of_format;
}

Result<SettledFrame> settle_gradient_frame(const DwiSignals& signals, const GradientTable& table, WantedFrame wanted,
                                           const FitMachine& machine) {
  SettledFrame settled;
  const bool given = wanted != WantedFrame::of_format && wanted != WantedFrame::automatic;
  settled.frame = unchecked_frame(wanted, table.frame);
  auto checked = check_gradients(signals, table, settled.frame, machine);
  if (!checked) {
    const bool of_the_data = checked.error().kind() == ErrorKind::invalid_argument;
    if (!given || !of_the_data) return tl::make_unexpected(std::move(checked.error()));
    settled.not_checked = checked.error().marked_message();
    return settled;
  }
  settled.check = std::move(*checked);
  if (settled.check->verdict != GradientVerdict::another_is_better) return settled;
  if (given) {
    settled.warning = settled.check->message;
    return settled;
  }
  if (wanted == WantedFrame::of_format || !settled.check->better_frame) {
    return fail(ErrorKind::corrupt, "{}", settled.check->message);
  }
  settled.frame = *settled.check->better_frame;
  return settled;
}

}  // namespace cingulum
