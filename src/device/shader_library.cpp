#include "device/shader_library.hpp"

#include <fmt/format.h>

#include "numerics/choose.hpp"
#include "numerics/classify.hpp"
#include "numerics/elementary.hpp"
#include "numerics/random.hpp"
#include "numerics/rotation.hpp"
#include "numerics/spherical_harmonics.hpp"

namespace cingulum {
namespace {

constexpr std::string_view numerics_files[] = {
    "exact.wgsl",      "classify.wgsl", "float16.wgsl",    "philox.wgsl",        "random.wgsl",
    "elementary.wgsl", "vec3.wgsl",     "rotation.wgsl",   "trilinear.wgsl",     "spherical_harmonics.wgsl",
    "lane_sum.wgsl",   "choose.wgsl",   "mirror_sum.wgsl", "lane_rotation.wgsl",
};

// exact.wgsl with its private variable replaced by an expression.
std::string with_negative_zero(std::string text, std::string_view expression) {
  constexpr std::string_view name = "negative_zero";
  const std::string declaration = "var<private> negative_zero: f32;";
  text.erase(text.find(declaration), declaration.size());
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + expression.size())) {
    text.replace(at, name.size(), expression);
  }
  return text;
}

// What the headers of numerics define and their mirrors read.
std::string numerics_constants() {
  std::string text;
  const auto add = [&](std::string_view name, auto value) { text += wgsl_constant(name, value); };
  const auto code = [](auto value) { return static_cast<std::uint32_t>(value); };
  add("sign_bit", numerics::sign_bit);
  add("infinity_bits", numerics::infinity_bits);
  add("smallest_normal_bits", numerics::smallest_normal_bits);
  add("largest_finite_bits", numerics::largest_finite_bits);
  add("largest_angle", numerics::largest_angle);
  add("smallest_curvature", numerics::smallest_curvature);
  add("no_slot", numerics::no_slot);
  add("empty_slot_value", numerics::empty_slot_value);
  add("draw_purpose_seed_position", code(numerics::DrawPurpose::seed_position));
  add("draw_purpose_initial_direction", code(numerics::DrawPurpose::initial_direction));
  add("draw_purpose_step", code(numerics::DrawPurpose::step));
  add("draw_purpose_phantom_noise", code(numerics::DrawPurpose::phantom_noise));
  add("draw_purpose_score", code(numerics::DrawPurpose::score));
  add("draw_purpose_shuffle", code(numerics::DrawPurpose::shuffle));
  add("draw_purpose_first_free", code(numerics::DrawPurpose::first_free));
  add("descoteaux07_legacy", code(numerics::HarmonicConvention::descoteaux07_legacy));
  add("descoteaux07", code(numerics::HarmonicConvention::descoteaux07));
  add("tournier07", code(numerics::HarmonicConvention::tournier07));
  add("largest_coefficient_count", code(numerics::largest_coefficient_count));
  return text;
}

}  // namespace

std::string wgsl_constant(std::string_view name, std::uint32_t value) {
  return fmt::format("const {} = {}u;\n", name, value);
}
std::string wgsl_constant(std::string_view name, std::int32_t value) {
  return fmt::format("const {} = {}i;\n", name, value);
}
// In hexadecimal: no digit is lost.
std::string wgsl_constant(std::string_view name, float value) {
  return fmt::format("const {} = {:a}f;\n", name, value);
}

std::string numerics_wgsl(LaneForm form, std::string_view negative_zero, bool int64) {
  std::string text = numerics_constants();
  for (const std::string_view file : numerics_files) {
    const bool replaces = file == "exact.wgsl" && !negative_zero.empty();
    text += replaces ? with_negative_zero(std::string(embedded_shader(file)), negative_zero)
                     : std::string(embedded_shader(file));
  }
  text += embedded_shader(int64 ? "high_product_64.wgsl" : "high_product.wgsl");
  text += embedded_shader(form == LaneForm::workgroup ? "lanes_workgroup.wgsl" : "lanes_subgroup.wgsl");
  return text;
}

}  // namespace cingulum
