// Memory of devices as Python's Buffer, and kernels from text that take it. Every call returns when its work is done,
// so that memory given to others (DLPack, __cuda_array_interface__) needs no order with our queue.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device_memory.hpp"
#include "job.hpp"
#include "native_error.hpp"
#include "open_devices.hpp"
#include "parts.hpp"

namespace cingulum::python {
namespace {

Result<ParameterKind> kind_named(const std::string& name) {
  constexpr std::pair<const char*, ParameterKind> kinds[] = {
      {"in", ParameterKind::buffer_in}, {"out", ParameterKind::buffer_out}, {"inout", ParameterKind::buffer_inout},
      {"i32", ParameterKind::i32},      {"u32", ParameterKind::u32},        {"f32", ParameterKind::f32},
      {"i64", ParameterKind::i64},      {"u64", ParameterKind::u64},        {"f64", ParameterKind::f64}};
  for (const auto& [known, kind] : kinds) {
    if (name == known) return kind;
  }
  return fail(ErrorKind::invalid_argument,
              "parameters: '{}' is no kind (known: in, out, inout, i32, u32, f32, i64, u64, f64)", name);
}

class DeviceKernel {
 public:
  DeviceKernel(const std::string& device, const std::string& name, const std::string& text,
               const std::vector<std::tuple<std::string, std::string>>& parameters,
               const std::vector<std::string>& options) {
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      CGL_TRY_ASSIGN(home_, open_device(device));
      KernelSource source;
      source.name = name;
      source.text = text;
      source.options = options;
      switch (home_->device->description().backend) {
        case Backend::cuda: source.language = KernelLanguage::cuda_cpp; break;
        case Backend::webgpu: source.language = KernelLanguage::wgsl; break;
        case Backend::cpu:
          return fail(ErrorKind::unavailable,
                      "device {} runs no kernels from text: CUDA takes CUDA C++, WebGPU takes WGSL",
                      home_->device->id());
      }
      for (const auto& [parameter, kind] : parameters) {
        CGL_TRY_ASSIGN(const ParameterKind known, kind_named(kind));
        source.parameters.push_back({parameter, known});
      }
      CGL_TRY_ASSIGN(kernel_, home_->device->compile(source));
      return {};
    });
  }
  DeviceKernel(const DeviceKernel&) = delete;
  DeviceKernel& operator=(const DeviceKernel&) = delete;

  [[nodiscard]] std::string device() const { return home_->device->id(); }
  [[nodiscard]] std::string backend() const { return std::string(backend_name(home_->device->description().backend)); }
  [[nodiscard]] std::tuple<bool, double, std::string, std::string> report() const {
    const CompilationReport& known = kernel_->report();
    return {known.from_cache, known.milliseconds, known.target, known.log};
  }
  [[nodiscard]] std::vector<std::uint32_t> fixed_block() const {
    return {kernel_->fixed_block().begin(), kernel_->fixed_block().end()};
  }

  // Memory or a number for each parameter.
  void launch(const std::vector<std::uint32_t>& grid, const std::vector<std::uint32_t>& block,
              std::uint32_t shared_bytes, const nb::list& given) {
    LaunchShape shape;
    std::copy_n(grid.begin(), std::min<std::size_t>(grid.size(), 3), shape.grid.begin());
    std::copy_n(block.begin(), std::min<std::size_t>(block.size(), 3), shape.block.begin());
    shape.shared_bytes = shared_bytes;
    const std::vector<KernelArgument> arguments = arguments_of(given);
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      const std::lock_guard lock(home_->mutex);
      CGL_TRY(home_->queue->launch(*kernel_, shape, arguments));
      return home_->queue->synchronise();
    });
  }

 private:
  [[nodiscard]] std::vector<KernelArgument> arguments_of(const nb::list& given) const {
    const std::vector<KernelParameter>& wanted = kernel_->parameters();
    if (given.size() != wanted.size()) {
      throw NativeError(Error(ErrorKind::invalid_argument, fmt::format("kernel '{}' takes {} arguments, {} were given",
                                                                       kernel_->name(), wanted.size(), given.size())));
    }
    std::vector<KernelArgument> arguments;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const nb::handle value = given[i];
      switch (wanted[i].kind) {
        case ParameterKind::i32: arguments.emplace_back(nb::cast<std::int32_t>(value)); break;
        case ParameterKind::u32: arguments.emplace_back(nb::cast<std::uint32_t>(value)); break;
        case ParameterKind::f32: arguments.emplace_back(nb::cast<float>(value)); break;
        case ParameterKind::i64: arguments.emplace_back(nb::cast<std::int64_t>(value)); break;
        case ParameterKind::u64: arguments.emplace_back(nb::cast<std::uint64_t>(value)); break;
        case ParameterKind::f64: arguments.emplace_back(nb::cast<double>(value)); break;
        default: arguments.push_back(argument(nb::cast<const DeviceMemory&>(value).buffer()));
      }
    }
    return arguments;
  }

  std::shared_ptr<OpenDevice> home_;
  std::unique_ptr<Kernel> kernel_;
};

// What __dlpack__ of the memory gives: an object of DLPack that keeps `owner`.
nb::object dlpack_of(const DeviceMemory& memory, const nb::object& owner, const std::vector<std::size_t>& shape,
                     int type_code, int bits) {
  const auto [device_type, device_id] = memory.dlpack_device();
  const nb::dlpack::dtype type{static_cast<std::uint8_t>(type_code), static_cast<std::uint8_t>(bits), 1};
  return nb::cast(nb::ndarray<>(reinterpret_cast<void*>(memory.address()), shape.size(), shape.data(), owner, nullptr,
                                type, device_type, device_id));
}

}  // namespace

void bind_device_memory(nb::module_& module) {
  nb::class_<DeviceMemory>(module, "DeviceMemory")
      .def(nb::init<const std::string&, std::uint64_t>(), nb::arg("device"), nb::arg("bytes"))
      .def("device", &DeviceMemory::device)
      .def("backend", &DeviceMemory::backend)
      .def("address", &DeviceMemory::address)
      .def("dlpack_device", &DeviceMemory::dlpack_device)
      .def("upload", &DeviceMemory::upload, nb::arg("from_"))
      .def("download", &DeviceMemory::download, nb::arg("to"))
      .def("copy_from_address", &DeviceMemory::copy_from_address, nb::arg("address"), nb::arg("bytes"));
  nb::class_<DeviceKernel>(module, "DeviceKernel")
      .def(nb::init<const std::string&, const std::string&, const std::string&,
                    const std::vector<std::tuple<std::string, std::string>>&, const std::vector<std::string>&>(),
           nb::arg("device"), nb::arg("name"), nb::arg("text"), nb::arg("parameters"), nb::arg("options"))
      .def("device", &DeviceKernel::device)
      .def("backend", &DeviceKernel::backend)
      .def("report", &DeviceKernel::report)
      .def("fixed_block", &DeviceKernel::fixed_block)
      .def("launch", &DeviceKernel::launch, nb::arg("grid"), nb::arg("block"), nb::arg("shared_bytes"),
           nb::arg("arguments"));
  module.def("dlpack_of", dlpack_of, nb::arg("memory"), nb::arg("owner"), nb::arg("shape"), nb::arg("type_code"),
             nb::arg("bits"));
}

}  // namespace cingulum::python
