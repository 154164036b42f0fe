#include "dmri/series/volume_selection.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace cingulum {

namespace {

constexpr double named_shell_tolerance = 80;  // s/mm^2, as wide as find_shells joins neighbours

double distance_to(const GradientShell& shell, double b) {
  if (b < shell.smallest) return shell.smallest - b;
  if (b > shell.largest) return b - shell.largest;
  return 0;
}

std::string list_of(std::span<const GradientShell> shells) {
  std::vector<std::string> words;
  for (const GradientShell& shell : shells) {
    words.push_back(fmt::format("{:.0f} ({} {})", shell.b_value, shell.volumes.size(),
                                shell.volumes.size() == 1 ? "volume" : "volumes"));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

nlohmann::ordered_json shells_json(std::span<const GradientShell> shells) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const GradientShell& shell : shells) {
    list.push_back({{"b_value", shell.b_value}, {"volumes", shell.volumes.size()}});
  }
  return list;
}

Result<VolumeSelection> select_volumes(const GradientTable& table, ShellChoice choice, std::optional<double> named,
                                       double b0_threshold) {
  std::vector<GradientShell> shells = find_shells(table, b0_threshold);
  std::vector<std::size_t> b0;
  if (!shells.empty() && shells.front().largest <= b0_threshold) {
    b0 = shells.front().volumes;
    shells.erase(shells.begin());
  }
  if (shells.empty()) {
    return fail(ErrorKind::invalid_argument,
                "none of the {} b-values is above the b0 threshold of {} s/mm^2: there is no diffusion weighting",
                table.size(), b0_threshold);
  }
  VolumeSelection selection;
  if (named) {
    const auto nearest = std::min_element(shells.begin(), shells.end(), [&](const auto& a, const auto& b) {
      return distance_to(a, *named) < distance_to(b, *named);
    });
    if (distance_to(*nearest, *named) > named_shell_tolerance) {
      return fail_argument("shell", "there is no shell at b = {:.0f} s/mm^2; the table has {}", *named,
                           list_of(shells));
    }
    selection.shell = *nearest;
  } else if (choice == ShellChoice::one_shell) {
    selection.shell = shells.back();
  }
  if (selection.shell) {
    for (const GradientShell& shell : shells) {
      if (shell.volumes != selection.shell->volumes) selection.unused.push_back(shell);
    }
  }
  if (!selection.unused.empty()) {
    const std::string said = fmt::format("not used: b = {}; the model takes one shell, b = {}",
                                         list_of(selection.unused), list_of({&*selection.shell, 1}));
    if (named) {
      selection.notes.push_back(said);
    } else {
      selection.warnings.push_back(fmt::format("{}, the highest; {} B takes another", said, argument_name("shell")));
    }
  }
  selection.volumes = b0;
  if (selection.shell) {
    selection.volumes.insert(selection.volumes.end(), selection.shell->volumes.begin(), selection.shell->volumes.end());
  } else {
    for (const GradientShell& shell : shells) {
      selection.volumes.insert(selection.volumes.end(), shell.volumes.begin(), shell.volumes.end());
    }
  }
  std::sort(selection.volumes.begin(), selection.volumes.end());
  for (std::size_t i = 0; i < selection.volumes.size(); ++i) {
    const double b = table.b_values[selection.volumes[i]];
    selection.b_values.push_back(b);
    (b <= b0_threshold ? selection.b0 : selection.weighted).push_back(static_cast<std::uint32_t>(i));
  }
  return selection;
}

}  // namespace cingulum
