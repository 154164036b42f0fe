// Which volumes of a series a model is fitted to: all of them, or the b0 volumes and one shell, with every volume of
// that shell (b = 1005 belongs to 1000). Called by `cingulum fit` and by trackers that start from raw data.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/gradient_table.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

struct VolumeSelection {
  std::vector<std::size_t> volumes;     // of the series, ascending: what read_dwi_signals takes
  std::vector<double> b_values;         // of these volumes
  std::vector<std::uint32_t> b0;        // positions in `volumes`
  std::vector<std::uint32_t> weighted;  // positions of the diffusion-weighted ones
  std::optional<GradientShell> shell;   // the one that was taken; none when all volumes were
  std::vector<GradientShell> unused;    // the others
  std::vector<std::string> warnings;    // of shells that are not used, where none was named
  std::vector<std::string> notes;       // of shells that are not used, where one was named

  // The entries of the diffusion-weighted volumes, from a list with an entry per volume of the selection.
  template <class T>
  [[nodiscard]] std::vector<T> of_weighted(const std::vector<T>& list) const {
    std::vector<T> result;
    for (const std::uint32_t position : weighted) result.push_back(list[position]);
    return result;
  }
};

enum class ShellChoice {
  all_volumes,  // unless a shell is named
  one_shell,    // the highest unless a shell is named: angular contrast grows with b (MRtrix3's choice too)
};

// For sidecars: b-value and number of volumes of each.
[[nodiscard]] nlohmann::ordered_json shells_json(std::span<const GradientShell> shells);

// `named` is a b-value; the shell whose range it lies in, or at most 80 s/mm^2 from.
[[nodiscard]] Result<VolumeSelection> select_volumes(const GradientTable& table, ShellChoice choice,
                                                     std::optional<double> named, double b0_threshold);

}  // namespace cingulum
