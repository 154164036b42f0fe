// b-values and b-vectors: FSL pairs in rows or columns, MRtrix tables (x y z b per line). Counts, norms and shells are
// checked here; which frame the vectors are in is the caller's knowledge (--bvec-frame) and is applied here to give
// directions in image axes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "formats/image_geometry.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {

// fsl: x is negated when the affine's determinant is positive (the BIDS rule). voxel: image axes as they are. world:
// scanner axes RAS+, rotated into image axes. MRtrix tables are world; FSL pairs are fsl unless said otherwise.
enum class GradientFrame { fsl, voxel, world };

[[nodiscard]] std::string_view gradient_frame_name(GradientFrame frame);

struct GradientTable {
  std::vector<double> b_values;          // s/mm^2
  std::vector<numerics::Vec3d> vectors;  // as in the file, normalised; zero where the file has zero
  GradientFrame frame = GradientFrame::fsl;
  std::vector<std::string> warnings;  // vectors that were not of unit length, ...

  [[nodiscard]] std::size_t size() const { return b_values.size(); }
};

struct GradientShell {
  double b_value = 0;  // mean
  double smallest = 0;
  double largest = 0;
  std::vector<std::size_t> volumes;  // ascending
};

constexpr double default_b0_threshold = 50;  // b <= this is a b0

// A bval and a bvec file; rows and columns are told apart by their counts.
[[nodiscard]] Result<GradientTable> read_fsl_gradients(const std::filesystem::path& bvals,
                                                       const std::filesystem::path& bvecs);
// MRtrix: one "x y z b" per line, # comments.
[[nodiscard]] Result<GradientTable> read_mrtrix_gradients(const std::filesystem::path& table);
[[nodiscard]] Result<GradientTable> parse_fsl_gradients(std::string_view bvals, std::string_view bvecs);
[[nodiscard]] Result<GradientTable> parse_mrtrix_gradients(std::string_view table);
// Half of an FSL pair: b-values without vectors, each checked.
[[nodiscard]] Result<std::vector<double>> parse_bvals(std::string_view text);

[[nodiscard]] std::string format_bvals(const GradientTable& table);
[[nodiscard]] std::string format_bvecs(const GradientTable& table);         // three rows
[[nodiscard]] std::string format_mrtrix_table(const GradientTable& table);  // vectors must be `world`

// Unit vectors in image axes (i, j, k); zero where the table has no direction. `frame` replaces the table's own.
[[nodiscard]] std::vector<numerics::Vec3d> directions_in_image_axes(const GradientTable& table, GradientFrame frame,
                                                                    const Affine& voxel_to_world);

// The first is b0 where there are any. b-values that lie within `width` of their neighbour in sorted order belong to
// one shell, so b = 1005 belongs to 1000.
[[nodiscard]] std::vector<GradientShell> find_shells(const GradientTable& table,
                                                     double b0_threshold = default_b0_threshold, double width = 80);

}  // namespace cingulum
