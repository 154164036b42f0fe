// Runs one OCT kernel on volumes from files, for the Python tests that compare with SciPy and scikit-image.
//   oct_probe DEVICE REQUEST.json
//     REQUEST: "operation", "inputs" [{"file", "shape" [z, y, x]}], "out" {"file", "shape"}, and the operation's
//     options by name. Files: float32. Prints what the operation finds, as JSON.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/read_file.hpp"
#include "base/settings.hpp"
#include "device/registry.hpp"
#include "oct/oct_kernels.hpp"

namespace cingulum::oct {
namespace {

using Json = nlohmann::json;

VolumeShape shape_of(const Json& json) {
  return {json.at(0).get<std::uint32_t>(), json.at(1).get<std::uint32_t>(), json.at(2).get<std::uint32_t>()};
}

Boundary boundary_named(const std::string& name) {
  if (name == "mirror") return Boundary::mirror;
  if (name == "nearest") return Boundary::nearest;
  if (name == "constant") return Boundary::constant;
  if (name == "wrap") return Boundary::wrap;
  return Boundary::reflect;
}

Status probe(const std::string& device_name, const Json& request) {
  CGL_TRY_ASSIGN(const Settings settings, Settings::from_environment());
  CGL_TRY_ASSIGN(const DeviceRegistry registry, open_devices(settings));
  CGL_TRY_ASSIGN(Device* const device, registry.select_one(device_name));
  CGL_TRY_ASSIGN(const auto queue, device->create_queue());
  CGL_TRY_ASSIGN(const auto kernels, OctKernels::create(*device));

  std::vector<DeviceVolume> inputs;
  for (const Json& input : request.at("inputs")) {
    CGL_TRY_ASSIGN(const auto bytes, read_file(input.at("file").get<std::string>(), std::uint64_t{8} << 30U));
    std::vector<float> voxels(bytes.size() / sizeof(float));
    std::memcpy(voxels.data(), bytes.data(), voxels.size() * sizeof(float));
    CGL_TRY_ASSIGN(DeviceVolume volume, kernels->upload(*queue, shape_of(input.at("shape")), voxels));
    inputs.push_back(std::move(volume));
  }
  CGL_TRY_ASSIGN(DeviceVolume out, kernels->allocate(shape_of(request.at("out").at("shape"))));
  const auto operation = request.at("operation").get<std::string>();
  const FilterBoundary boundary{boundary_named(request.value("mode", "reflect")), request.value("cval", 0.0f)};
  const SampleOptions sample{request.value("order", 1), boundary.mode, boundary.value};
  Json found = Json::object();
  if (operation == "gaussian") {
    CGL_TRY(kernels->filter_gaussian(*queue, inputs.at(0), out, request.at("sigma").get<std::array<double, 3>>(),
                                     request.at("orders").get<std::array<std::uint32_t, 3>>(), boundary));
  } else if (operation == "box") {
    CGL_TRY(kernels->filter_box(*queue, inputs.at(0), out, request.at("size").get<std::array<std::uint32_t, 3>>(),
                                boundary));
  } else if (operation == "resize") {
    ResizeOptions resize;
    resize.order = request.value("order", 1);
    resize.anti_aliasing = request.value("anti_aliasing", true);
    resize.alignment =
        request.value("align", "center") == std::string("corner") ? Alignment::corner : Alignment::center;
    resize.compat_edge_zero = request.value("compat_edge_zero", false);
    CGL_TRY(kernels->resize(*queue, inputs.at(0), out, resize));
  } else if (operation == "interface") {
    InterfaceOptions interface;
    interface.box_xy = request.value("s_xy", 15u);
    interface.sigma_z = request.value("s_z", 2.0);
    interface.use_log = request.value("use_log", true);
    interface.detect_cutting_errors = request.value("detect_cutting_errors", false);
    interface.derivative_order = request.value("derivative", 1u);
    CGL_TRY_ASSIGN(out,
                   kernels->find_interface(*queue, inputs.at(0), interface, inputs.size() > 1 ? &inputs[1] : nullptr));
  } else if (operation == "affine") {
    CGL_TRY(kernels->transform_affine(*queue, inputs.at(0), out,
                                      request.at("matrix").get<std::array<std::array<double, 4>, 3>>(), sample));
  } else if (operation == "map_coordinates") {
    CGL_TRY(kernels->map_coordinates(*queue, inputs.at(0), inputs.at(1), out, sample));
  } else if (operation == "displace") {
    CGL_TRY(kernels->displace(*queue, inputs.at(0), inputs.at(1), out, sample));
  } else if (operation == "median") {
    CGL_TRY(kernels->filter_median(*queue, inputs.at(0), out, request.at("size").get<std::array<std::uint32_t, 3>>()));
  } else if (operation == "percentiles") {
    const auto percents = request.at("percents").get<std::vector<double>>();
    CGL_TRY_ASSIGN(const std::vector<double> values, kernels->percentiles(*queue, inputs.at(0), percents));
    found = {{"values", values}};
  } else if (operation == "overlap") {
    const auto search = request.at("search").get<std::array<std::int64_t, 3>>();
    CGL_TRY_ASSIGN(const OverlapFound overlap,
                   kernels->find_z_overlap(*queue, inputs.at(0), inputs.at(1), {search[0], search[1], search[2]}));
    found = {{"planes", overlap.planes}, {"correlation", overlap.correlation}, {"correlations", overlap.correlations}};
  } else {
    return fail(ErrorKind::invalid_argument, "operation '{}' is not known", operation);
  }
  CGL_TRY_ASSIGN(const std::vector<float> result, kernels->download(*queue, out));
  std::ofstream file(request.at("out").at("file").get<std::string>(), std::ios::binary);
  file.write(reinterpret_cast<const char*>(result.data()), static_cast<std::streamsize>(result.size() * sizeof(float)));
  fmt::print("{}\n", found.dump());
  return {};
}

}  // namespace
}  // namespace cingulum::oct

int main(int count, char** words) {
  if (count != 3) return 2;
  std::ifstream file(words[2]);
  const auto done = cingulum::oct::probe(words[1], nlohmann::json::parse(file));
  if (!done) fmt::print(stderr, "{}\n", done.error().message());
  return done ? 0 : 1;
}
