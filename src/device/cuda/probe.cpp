// Finds the CUDA driver and the devices behind it. The driver library is looked at with our own eyes first, so that a
// driver that is missing, damaged, too old or without a GPU is a reason, and the CUDA runtime is only asked once it can
// answer.
#include "device/backends.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_status.hpp"
#include "device/shared_library.hpp"

namespace cingulum {
namespace {

// The result type of the driver's C interface. CUresult is an enumeration; 100 is CUDA_ERROR_NO_DEVICE.
using DriverResult = int;
constexpr DriverResult driver_success = 0;
constexpr DriverResult driver_no_device = 100;

struct Driver {
  std::string path;
  int version = 0;
};

Result<Driver> open_driver(const std::optional<std::filesystem::path>& override_path) {
  // A library named by a setting is found again by the runtime, because the loader knows it by its own name
  // (libcuda.so.1) once it is loaded.
  CGL_TRY_ASSIGN(const SharedLibrary file, SharedLibrary::open(override_path, {"libcuda.so.1"}));
  DriverResult (*driver_version)(int*) = nullptr;
  DriverResult (*init)(unsigned) = nullptr;
  DriverResult (*error_string)(DriverResult, const char**) = nullptr;
  DriverResult (*get_proc_address)(...) = nullptr;
  CGL_TRY(file.find("cuDriverGetVersion", driver_version));
  CGL_TRY(file.find("cuInit", init));
  CGL_TRY(file.find("cuGetErrorString", error_string));
  CGL_TRY(file.find("cuGetProcAddress_v2", get_proc_address));
  Driver driver;
  driver.path = file.path();
  if (driver_version(&driver.version) != driver_success) {
    return fail(ErrorKind::unavailable, "{} does not tell its version", file.path());
  }
  // Minor versions are compatible; an older major version is not.
  constexpr int needed_version = CUDART_VERSION / 1000 * 1000;
  if (driver.version < needed_version) {
    return fail(ErrorKind::unavailable, "the driver ({}) is for CUDA {}, {} or newer is needed: update the driver",
                file.path(), cuda_version_text(driver.version), cuda_version_text(needed_version));
  }
  if (const DriverResult code = init(0); code != driver_success) {
    if (code == driver_no_device) return fail(ErrorKind::unavailable, "the driver finds no GPU");
    const char* text = nullptr;
    if (error_string(code, &text) != driver_success || text == nullptr) text = "unknown error";
    return fail(ErrorKind::unavailable, "the driver does not start: {} ({})", text, code);
  }
  return driver;
}

}  // namespace

BackendReport probe_cuda(const ProbeOptions& options) {
  BackendReport report{.backend = Backend::cuda, .absent_reason = {}, .library = {}, .devices = {}};
  const auto driver = open_driver(options.cuda_library);
  if (!driver) {
    report.absent_reason = driver.error().message();
    return report;
  }
  report.library = fmt::format("{} (CUDA {})", driver->path, cuda_version_text(driver->version));
  int count = 0;
  if (const Status counted = cuda_status(cudaGetDeviceCount(&count), "counting GPUs"); !counted) {
    report.absent_reason = counted.error().message();
    return report;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto device = CudaDevice::create(ordinal, driver->version, options);
    if (device) {
      report.devices.push_back(std::move(*device));
    } else {
      report.failures.push_back(device.error().message());
    }
  }
  if (count == 0) report.absent_reason = "the driver finds no GPU";
  if (report.devices.empty() && !report.failures.empty()) report.absent_reason = report.failures.front();
  return report;
}

}  // namespace cingulum
