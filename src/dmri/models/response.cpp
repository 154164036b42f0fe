#include "dmri/models/response.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/argument_name.hpp"
#include "base/quantity.hpp"
#include "base/read_file.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/tensor.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/spherical_harmonics.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

constexpr std::uint64_t response_limit_bytes = std::uint64_t{1} << 20U;
// Free water at body temperature has 3e-3 mm^2/s; signals in any unit in use are larger than this.
constexpr double largest_diffusivity = 0.02;

Result<std::vector<std::vector<double>>> parse_rows(std::string_view text) {
  std::vector<std::vector<double>> rows;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    line = line.substr(0, line.find('#'));
    std::vector<double> row;
    while (true) {
      const std::size_t begin = line.find_first_not_of(" \t\r,");
      if (begin == std::string_view::npos) break;
      line.remove_prefix(begin);
      const std::size_t length = std::min(line.find_first_of(" \t\r,"), line.size());
      double value = 0;
      const auto [stop, error] = std::from_chars(line.data(), line.data() + length, value);
      if (error != std::errc() || stop != line.data() + length || !numerics::is_finite(value)) {
        return fail(ErrorKind::corrupt, "line {}: '{}' is not a number", line_number, line.substr(0, length));
      }
      row.push_back(value);
      line.remove_prefix(length);
    }
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

bool is_tensor_row(const std::vector<double>& row) {
  if (row.size() != 4) return false;
  const bool diffusivities =
      std::all_of(row.begin(), row.begin() + 3, [](double value) { return value > 0 && value < largest_diffusivity; });
  return diffusivities && row[3] >= largest_diffusivity;
}

struct Box {
  std::array<std::int64_t, 3> centre;
  std::array<std::int64_t, 3> radius;
};

// The radius along an axis on which the box would leave the image shrinks until it does not, on both sides.
Box cut_to_image(const ResponseBox& box, const ImageGeometry& geometry) {
  Box result = {};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t size = geometry.size[axis];
    const std::int64_t centre = box.centre ? (*box.centre)[axis] : size / 2;
    const bool leaves = centre - box.radius < 0 || centre + box.radius >= size;
    result.centre[axis] = centre;
    result.radius[axis] = leaves ? std::min(centre, size - centre) : box.radius;
  }
  return result;
}

// The signals of the voxels in the box.
DwiSignals signals_inside(const DwiSignals& signals, const Box& box) {
  DwiSignals inside;
  inside.geometry = signals.geometry;
  inside.volumes = signals.volumes;
  for (std::size_t v = 0; v < signals.voxels.size(); ++v) {
    const std::int64_t index = signals.voxels[v];
    const std::array<std::int64_t, 3> position = {index % signals.geometry.size[0],
                                                  index / signals.geometry.size[0] % signals.geometry.size[1],
                                                  index / (signals.geometry.size[0] * signals.geometry.size[1])};
    bool in_box = true;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t distance = position[axis] - box.centre[axis];
      in_box = in_box && distance >= -box.radius[axis] && distance <= box.radius[axis];
    }
    if (!in_box) continue;
    const auto record = signals.record(v);
    inside.voxels.push_back(signals.voxels[v]);
    inside.values.insert(inside.values.end(), record.begin(), record.end());
  }
  return inside;
}

// What would find voxels enough: in words, to be said behind the failure, and as a box where there is one.
struct ResponseAdvice {
  std::string words;
  std::optional<ResponseBox> box;
};

// A box as large as the image, and where that does not suffice a lower threshold in steps of 0.05.
Result<ResponseAdvice> advice_for_response(const DwiSignals& signals, const VolumeSelection& selection,
                                           std::span<const Vec3d> directions, const ResponseBox& box,
                                           const FitMachine& machine) {
  // MRtrix3 takes so many of the most anisotropic voxels; fewer suffice where the mask is small.
  constexpr std::size_t good_number = 300;
  const std::string give_one = fmt::format("give a response by {}", argument_name("response"));
  ResponseBox wide = box;
  wide.widen = false;
  wide.radius = *std::max_element(signals.geometry.size.begin(), signals.geometry.size.end());
  const DwiSignals inside = signals_inside(signals, cut_to_image(wide, signals.geometry));
  if (inside.voxels.size() < least_response_voxels) {
    return ResponseAdvice{fmt::format("move the box by {}, or {}", argument_name("response_centre"), give_one), {}};
  }
  CGL_TRY_ASSIGN(TensorFit fit, fit_tensors(inside, selection.b_values, directions, {}, machine));
  const auto above = [&](double threshold) {
    return static_cast<std::size_t>(std::count_if(fit.fa.begin(), fit.fa.end(),
                                                  [&](float value) { return static_cast<double>(value) > threshold; }));
  };
  if (const std::size_t found = above(box.least_fa); found >= least_response_voxels) {
    return ResponseAdvice{
        fmt::format("{} {} finds {}, or {}", argument_name("response_radius"), wide.radius, found, give_one), wide};
  }
  for (int percent = static_cast<int>(box.least_fa * 100); percent > 0; percent -= 5) {
    const double threshold = static_cast<double>(percent - percent % 5) / 100;
    const std::size_t found = above(threshold);
    if (found < std::min(good_number, inside.voxels.size() / 100 + least_response_voxels)) continue;
    wide.least_fa = threshold;
    return ResponseAdvice{fmt::format("{} {} with {} {} finds {}, or {}", argument_name("response_fa"), threshold,
                                      argument_name("response_radius"), wide.radius, found, give_one),
                          wide};
  }
  return ResponseAdvice{fmt::format("no {} finds enough: {}", argument_name("response_fa"), give_one), {}};
}

}  // namespace

Result<FibreResponse> estimate_response(const DwiSignals& signals, const VolumeSelection& selection,
                                        std::span<const Vec3d> directions, const ResponseBox& box,
                                        const FitMachine& machine) {
  const Box cut = cut_to_image(box, signals.geometry);
  const DwiSignals inside = signals_inside(signals, cut);
  FibreResponse response;
  double l1 = 0, l2 = 0, s0 = 0;
  if (!inside.voxels.empty()) {
    CGL_TRY_ASSIGN(const TensorFit fit, fit_tensors(inside, selection.b_values, directions, {}, machine));
    for (std::size_t v = 0; v < inside.voxels.size(); ++v) {
      if (!(static_cast<double>(fit.fa[v]) > box.least_fa)) continue;
      ++response.voxels;
      l1 += static_cast<double>(fit.eigenvalues[3 * v]);
      l2 += static_cast<double>(fit.eigenvalues[3 * v + 1]);
      for (const std::uint32_t position : selection.b0) s0 += static_cast<double>(inside.record(v)[position]);
    }
  }
  if (response.voxels < least_response_voxels) {
    CGL_TRY_ASSIGN(const ResponseAdvice advice, advice_for_response(signals, selection, directions, box, machine));
    if (box.widen && advice.box) return estimate_response(signals, selection, directions, *advice.box, machine);
    return fail(
        ErrorKind::not_found,
        "estimating the response: {} of the {} voxels of the mask in the box of radius {} around voxel ({}) have "
        "FA above {}, at least {} are needed; {}",
        response.voxels, inside.voxels.size(), box.radius, fmt::join(cut.centre, ", "), box.least_fa,
        least_response_voxels, advice.words);
  }
  if (selection.b0.empty()) {
    return fail(ErrorKind::invalid_argument,
                "estimating the response: there is no b0 volume; a response can be given instead");
  }
  const auto count = static_cast<double>(response.voxels);
  response.box = box;
  response.eigenvalues = {l1 / count, l2 / count, l2 / count};
  response.s0 = s0 / (count * static_cast<double>(selection.b0.size()));
  return response;
}

std::string widened_text(const ResponseBox& asked, const FibreResponse& response) {
  if (asked.radius == response.box.radius && asked.least_fa == response.box.least_fa) return {};
  return fmt::format(
      "the middle of the image has less than {} voxels with FA above {}: the response is that of the {} in the whole "
      "mask with FA above {}",
      least_response_voxels, asked.least_fa, format_count(response.voxels), response.box.least_fa);
}

std::string response_text(const FibreResponse& response) {
  const auto& [l1, l2, l3] = response.eigenvalues.value();
  return fmt::format("response from {} voxels: eigenvalues {:.3g} {:.3g} {:.3g} mm^2/s, b0 signal {:.4g}",
                     format_count(response.voxels), l1, l2, l3, response.s0);
}

Result<FibreResponse> parse_response(std::string_view text) {
  CGL_TRY_ASSIGN(const auto rows, parse_rows(text));
  if (rows.empty()) return fail(ErrorKind::corrupt, "there are no numbers");
  FibreResponse response;
  if (rows.size() == 1 && is_tensor_row(rows[0])) {
    const std::vector<double>& row = rows[0];
    response.eigenvalues = {row[0], row[1], row[2]};
    response.s0 = row[3];
    return response;
  }
  const std::vector<double>& last = rows.back();
  if (last.size() > numerics::largest_harmonic_degree / 2 + 4) {
    return fail(ErrorKind::corrupt, "{} numbers in a row; zonal coefficients are at most 10 (degree 18)", last.size());
  }
  if (!(last[0] > 0)) {
    return fail(ErrorKind::corrupt,
                "the coefficient of l = 0 is {}, which is not positive (expected: 'l1 l2 l3 S0' or zonal coefficients "
                "l = 0, 2, 4, ...)",
                last[0]);
  }
  response.zonal = last;
  if (rows.size() > 1) {
    const std::vector<double>& first = rows.front();
    const bool mean_alone = std::all_of(first.begin() + 1, first.end(), [](double value) { return value == 0; });
    if (mean_alone) response.s0 = first[0] * 0x1.20dd750429b6dp-2;  // Y_00
  }
  return response;
}

Result<FibreResponse> read_response(const std::filesystem::path& path) {
  return add_context(
      read_text_file(path, response_limit_bytes).and_then([](const std::string& text) { return parse_response(text); }),
      "reading the response {}", path.string());
}

Result<std::vector<double>> zonal_response(const FibreResponse& response, std::span<const double> b_values,
                                           std::span<const Vec3d> directions, int degree) {
  const auto wanted = static_cast<std::size_t>(degree / 2 + 1);
  if (!response.eigenvalues) {
    if (response.zonal.size() < wanted) {
      return fail_argument("sh_order", "the response has degree {}, {} is needed; use {} {}",
                           2 * (response.zonal.size() - 1), degree, argument_name("sh_order"),
                           2 * (response.zonal.size() - 1));
    }
    return std::vector<double>(response.zonal.begin(), response.zonal.begin() + static_cast<std::ptrdiff_t>(wanted));
  }
  const auto& [along, second, third] = *response.eigenvalues;
  std::vector<double> signal;
  for (std::size_t i = 0; i < directions.size(); ++i) {
    const Vec3d g = directions[i];
    const double diffusivity = (along * (g.z * g.z) + second * (g.y * g.y)) + third * (g.x * g.x);
    signal.push_back(response.s0 * numerics::exponential(-b_values[i] * diffusivity));
  }
  const numerics::HarmonicBasis basis = {numerics::HarmonicConvention::descoteaux07_legacy, degree, false};
  const std::vector<double> fitted = least_squares(harmonic_matrix(basis, directions), signal);
  std::vector<double> zonal;
  for (int l = 0; l <= degree; l += 2) {
    zonal.push_back(fitted[static_cast<std::size_t>(numerics::coefficient_index(l, 0, false))]);
  }
  return zonal;
}

std::string format_tensor_response(const FibreResponse& response) {
  const auto& [along, second, third] = response.eigenvalues.value();
  return fmt::format("# eigenvalues in mm^2/s, first along the fibre, and the b0 signal\n{} {} {} {}\n", along, second,
                     third, response.s0);
}

std::string format_zonal_response(std::span<const double> zonal) {
  return fmt::format("# zonal spherical harmonics l = 0, 2, 4, ... of the signal of a fibre along z\n{}\n",
                     fmt::join(zonal, " "));
}

}  // namespace cingulum
