#include "device/shader_library.hpp"

namespace cingulum {
namespace {

constexpr std::string_view numerics_files[] = {
    "exact.wgsl",      "classify.wgsl", "half.wgsl",       "philox.wgsl",    "random.wgsl",
    "elementary.wgsl", "vec3.wgsl",     "rotation.wgsl",   "trilinear.wgsl", "spherical_harmonics.wgsl",
    "lane_sum.wgsl",   "choose.wgsl",   "mirror_sum.wgsl", "lane_rotation.wgsl",
};

}  // namespace

std::string numerics_wgsl(LaneForm form) {
  std::string text;
  for (const std::string_view file : numerics_files) text += embedded_shader(file);
  text += embedded_shader(form == LaneForm::workgroup ? "lanes_workgroup.wgsl" : "lanes_subgroup.wgsl");
  return text;
}

}  // namespace cingulum
