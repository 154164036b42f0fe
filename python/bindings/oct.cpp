// What OCT reconstruction does with voxels, from NumPy's memory to NumPy's memory: the kernels that the verbs use, on
// any device, with the same bits. Volumes are float32 (z, y, x), C order; the package brings them into this form.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "base/json_text.hpp"
#include "job.hpp"
#include "native_error.hpp"
#include "oct/fits/focal_curvature.hpp"
#include "oct/oct_kernels.hpp"
#include "open_devices.hpp"
#include "parts.hpp"
#include "request_parts.hpp"
#include "runs/oct/oct_fields.hpp"
#include "runs/oct/oct_run.hpp"

namespace cingulum::python {
namespace {

using Volume = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Volumes = nb::ndarray<const float, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

oct::VolumeShape shape_of(const Volume& volume) {
  return {static_cast<std::uint32_t>(volume.shape(0)), static_cast<std::uint32_t>(volume.shape(1)),
          static_cast<std::uint32_t>(volume.shape(2))};
}

oct::VolumeShape shape_from(const std::array<std::uint32_t, 3>& sizes) {
  return {sizes[0], sizes[1], sizes[2]};
}

nb::object array_of(const std::vector<float>& voxels, oct::VolumeShape shape) {
  GrowingBytes bytes;
  bytes.append(std::as_bytes(std::span(voxels)));
  return bytes.release_as<float>({shape.z, shape.y, shape.x});
}

// The kernels on one device. One caller at a time.
class OctStage {
 public:
  explicit OctStage(const std::string& device) {
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      CGL_TRY_ASSIGN(home_, open_device(device));
      CGL_TRY_ASSIGN(kernels_, oct::OctKernels::create(*home_->device));
      return {};
    });
  }
  OctStage(const OctStage&) = delete;
  OctStage& operator=(const OctStage&) = delete;

  [[nodiscard]] std::string device() const { return home_->device->id(); }

  nb::object resize(const Volume& from, const std::array<std::uint32_t, 3>& sizes, int order, bool anti_aliasing,
                    bool corner, bool compat_edge_zero) {
    return made_of(from, shape_from(sizes), [&](const oct::DeviceVolume& there, oct::DeviceVolume& to) {
      return kernels_->resize(queue(), there, to,
                              {.order = order,
                               .anti_aliasing = anti_aliasing,
                               .alignment = corner ? oct::Alignment::corner : oct::Alignment::center,
                               .compat_edge_zero = compat_edge_zero});
    });
  }

  nb::object filter_gaussian(const Volume& from, const std::array<double, 3>& sigma,
                             const std::array<std::uint32_t, 3>& orders) {
    return made_of(from, shape_of(from), [&](const oct::DeviceVolume& there, oct::DeviceVolume& to) {
      return kernels_->filter_gaussian(queue(), there, to, sigma, orders, {});
    });
  }

  nb::object transform_affine(const Volume& from, const std::array<std::array<double, 4>, 3>& matrix,
                              const std::array<std::uint32_t, 3>& sizes, int order) {
    return made_of(from, shape_from(sizes), [&](const oct::DeviceVolume& there, oct::DeviceVolume& to) {
      return kernels_->transform_affine(queue(), there, to, matrix, {.order = order});
    });
  }

  // `places`: three volumes of the output's shape, z, y and x one after the other, as one of three times its planes.
  nb::object sample(const Volume& from, const Volume& places, int order, bool displacements) {
    oct::VolumeShape shape = shape_of(places);
    shape.z /= 3;
    return made_of(from, shape, [&](const oct::DeviceVolume& there, oct::DeviceVolume& to) -> Status {
      CGL_TRY_ASSIGN(const oct::DeviceVolume at, upload(places));
      if (displacements) return kernels_->displace(queue(), there, at, to, {.order = order});
      return kernels_->map_coordinates(queue(), there, at, to, {.order = order});
    });
  }

  nb::object project_mean(const Volume& from) {
    return made_of(from, {1, shape_of(from).y, shape_of(from).x},
                   [&](const oct::DeviceVolume& there, oct::DeviceVolume& to) {
                     return kernels_->project(queue(), there, to, oct::Projection::mean);
                   });
  }

  nb::object find_interface(const Volume& from, const nb::object& mask_or_none, std::uint32_t box_xy, double sigma_z,
                            std::uint32_t order, bool use_log, bool detect_cutting_errors, bool sub_voxel) {
    Volume mask;
    const bool has_mask = !mask_or_none.is_none();
    if (has_mask) mask = nb::cast<Volume>(mask_or_none);
    const oct::InterfaceOptions options = {box_xy, sigma_z, order, use_log, detect_cutting_errors, sub_voxel};
    std::vector<float> voxels;
    run([&]() -> Status {
      CGL_TRY_ASSIGN(const oct::DeviceVolume there, upload(from));
      oct::DeviceVolume mask_there;
      if (has_mask) {
        CGL_TRY_ASSIGN(mask_there, upload(mask));
      }
      CGL_TRY_ASSIGN(const oct::DeviceVolume map,
                     kernels_->find_interface(queue(), there, options, has_mask ? &mask_there : nullptr));
      CGL_TRY_ASSIGN(voxels, kernels_->download(queue(), map));
      return {};
    });
    return array_of(voxels, {1, shape_of(from).y, shape_of(from).x});
  }

  // Planes, correlation, correlations from `lowest` on.
  std::tuple<std::int64_t, double, std::vector<double>> find_z_overlap(const Volume& fixed, const Volume& moving,
                                                                       std::int64_t expected, std::int64_t lowest,
                                                                       std::int64_t highest) {
    oct::OverlapFound found;
    run([&]() -> Status {
      CGL_TRY_ASSIGN(const oct::DeviceVolume a, upload(fixed));
      CGL_TRY_ASSIGN(const oct::DeviceVolume b, upload(moving));
      CGL_TRY_ASSIGN(found, kernels_->find_z_overlap(queue(), a, b, {expected, lowest, highest}));
      return {};
    });
    return {found.planes, found.correlation, std::move(found.correlations)};
  }

  // The tiles without the curvature that they share, and the curvature in planes.
  nb::tuple flatten_tiles(const Volumes& tiles, std::uint32_t box_xy, double sigma_z, bool use_log, bool basic,
                          bool detect_cutting_errors) {
    const oct::VolumeShape shape = {static_cast<std::uint32_t>(tiles.shape(1)),
                                    static_cast<std::uint32_t>(tiles.shape(2)),
                                    static_cast<std::uint32_t>(tiles.shape(3))};
    oct::HostImage curvature;
    GrowingBytes flat;
    run([&]() -> Status {
      const auto tile = [&](std::size_t number) {
        return std::span(tiles.data() + number * shape.voxels(), shape.voxels());
      };
      oct::InterfaceOptions options = {box_xy, sigma_z, 1, use_log, detect_cutting_errors, true};
      std::vector<oct::HostImage> interfaces;
      for (std::size_t t = 0; t < tiles.shape(0); ++t) {
        CGL_TRY_ASSIGN(const oct::DeviceVolume there, kernels_->upload(queue(), shape, tile(t)));
        CGL_TRY_ASSIGN(const oct::DeviceVolume map, kernels_->find_interface(queue(), there, options));
        CGL_TRY_ASSIGN(const std::vector<float> values, kernels_->download(queue(), map));
        oct::HostImage& image = interfaces.emplace_back(shape.y, shape.x);
        std::copy(values.begin(), values.end(), image.values.begin());
      }
      CGL_TRY_ASSIGN(curvature, basic ? oct::fit_curvature_basic(interfaces, shape.z) : oct::fit_curvature(interfaces));
      std::vector<float> lines(curvature.values.size());
      std::transform(curvature.values.begin(), curvature.values.end(), lines.begin(),
                     [](double value) { return static_cast<float>(value); });
      CGL_TRY_ASSIGN(const oct::DeviceVolume by, kernels_->upload(queue(), {1, shape.y, shape.x}, lines));
      for (std::size_t t = 0; t < tiles.shape(0); ++t) {
        CGL_TRY_ASSIGN(const oct::DeviceVolume there, kernels_->upload(queue(), shape, tile(t)));
        CGL_TRY_ASSIGN(oct::DeviceVolume to, kernels_->allocate(shape));
        CGL_TRY(kernels_->roll_lines(queue(), there, by, to, {.circular = false}));
        CGL_TRY_ASSIGN(const std::vector<float> voxels, kernels_->download(queue(), to));
        flat.append(std::as_bytes(std::span(voxels)));
      }
      return {};
    });
    GrowingBytes map;
    map.append(std::as_bytes(std::span(curvature.values)));
    return nb::make_tuple(flat.release_as<float>({tiles.shape(0), shape.z, shape.y, shape.x}),
                          map.release_as<double>({curvature.rows, curvature.columns}));
  }

  std::vector<double> percentiles(const Volume& from, const std::vector<double>& percents, bool positive_only) {
    std::vector<double> found;
    run([&]() -> Status {
      CGL_TRY_ASSIGN(const oct::DeviceVolume there, upload(from));
      CGL_TRY_ASSIGN(found, kernels_->percentiles(queue(), there, percents, positive_only));
      return {};
    });
    return found;
  }

 private:
  [[nodiscard]] Queue& queue() { return *home_->queue; }
  [[nodiscard]] Result<oct::DeviceVolume> upload(const Volume& volume) {
    return kernels_->upload(queue(), shape_of(volume), span_of(volume));
  }
  void run(const std::function<Status()>& work) {
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      const std::lock_guard lock(home_->mutex);
      return work();
    });
  }
  nb::object made_of(const Volume& from, oct::VolumeShape shape,
                     const std::function<Status(const oct::DeviceVolume&, oct::DeviceVolume&)>& work) {
    std::vector<float> voxels;
    run([&]() -> Status {
      CGL_TRY_ASSIGN(const oct::DeviceVolume there, upload(from));
      CGL_TRY_ASSIGN(oct::DeviceVolume to, kernels_->allocate(shape));
      CGL_TRY(work(there, to));
      CGL_TRY_ASSIGN(voxels, kernels_->download(queue(), to));
      return {};
    });
    return array_of(voxels, shape);
  }

  std::shared_ptr<OpenDevice> home_;
  std::unique_ptr<oct::OctKernels> kernels_;
};

// From tiles to a volume in a file; answers what was found, as JSON.
std::string run_reconstruction(const std::vector<GivenArgument>& given, const nb::object& progress) {
  nlohmann::ordered_json json;
  run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
    std::vector<ArgumentText> texts = argument_texts(given);
    PythonMachine python_machine;
    CGL_TRY(python_machine.open(texts));
    python_machine.machine->set_run(job.cancel, job.observer);
    OctRequest request;
    CGL_TRY(set_given(oct_fields(), texts, request));
    CGL_TRY_ASSIGN(OctOutcome outcome, reconstruct(std::move(request), *python_machine.machine));
    json = outcome_json(std::move(outcome));
    return {};
  });
  return json_text(json);
}

}  // namespace

void bind_oct(nb::module_& module) {
  nb::class_<OctStage>(module, "OctStage")
      .def(nb::init<const std::string&>(), nb::arg("device"))
      .def("device", &OctStage::device)
      .def("resize", &OctStage::resize, nb::arg("volume"), nb::arg("sizes"), nb::arg("order"), nb::arg("anti_aliasing"),
           nb::arg("corner"), nb::arg("compat_edge_zero"))
      .def("filter_gaussian", &OctStage::filter_gaussian, nb::arg("volume"), nb::arg("sigma"), nb::arg("orders"))
      .def("transform_affine", &OctStage::transform_affine, nb::arg("volume"), nb::arg("matrix"), nb::arg("sizes"),
           nb::arg("order"))
      .def("sample", &OctStage::sample, nb::arg("volume"), nb::arg("places"), nb::arg("order"),
           nb::arg("displacements"))
      .def("project_mean", &OctStage::project_mean, nb::arg("volume"))
      .def("find_interface", &OctStage::find_interface, nb::arg("volume"), nb::arg("mask").none(), nb::arg("box_xy"),
           nb::arg("sigma_z"), nb::arg("order"), nb::arg("use_log"), nb::arg("detect_cutting_errors"),
           nb::arg("sub_voxel"))
      .def("find_z_overlap", &OctStage::find_z_overlap, nb::arg("fixed"), nb::arg("moving"), nb::arg("expected"),
           nb::arg("lowest"), nb::arg("highest"))
      .def("flatten_tiles", &OctStage::flatten_tiles, nb::arg("tiles"), nb::arg("box_xy"), nb::arg("sigma_z"),
           nb::arg("use_log"), nb::arg("basic"), nb::arg("detect_cutting_errors"))
      .def("percentiles", &OctStage::percentiles, nb::arg("volume"), nb::arg("percents"), nb::arg("positive_only"));
  module.def("oct_run", run_reconstruction, nb::arg("given"), nb::arg("progress").none());
  module.def("oct_rescaled_shape", [](const std::array<std::uint32_t, 3>& shape, const std::array<double, 3>& scale) {
    const oct::VolumeShape made = oct::rescaled_shape(shape_from(shape), scale);
    return std::array<std::uint32_t, 3>{made.z, made.y, made.x};
  });
  module.def("oct_resampled_shape", [](const std::array<std::uint32_t, 3>& shape, const std::array<double, 3>& spacing,
                                       const std::array<double, 3>& target) {
    const oct::VolumeShape made = oct::resampled_shape(shape_from(shape), spacing, target);
    return std::array<std::uint32_t, 3>{made.z, made.y, made.x};
  });
}

}  // namespace cingulum::python
