#include "device/shader_library.hpp"

namespace cingulum {
namespace {

constexpr std::string_view numerics_files[] = {
    "exact.wgsl",      "classify.wgsl", "half.wgsl",       "philox.wgsl",        "random.wgsl",
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

}  // namespace

std::string numerics_wgsl(LaneForm form, std::string_view negative_zero, bool int64) {
  std::string text;
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
