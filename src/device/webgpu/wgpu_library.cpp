#include "device/webgpu/wgpu_library.hpp"

#include "base/log.hpp"

namespace cingulum {
namespace {

std::string version_text(std::uint32_t version) {
  return fmt::format("{}.{}.{}.{}", version >> 24, (version >> 16) & 0xff, (version >> 8) & 0xff, version & 0xff);
}

void forward_log(WGPULogLevel level, WGPUStringView message, void*) {
  // Its errors also reach the caller through error scopes; here they serve --verbose.
  if (level <= WGPULogLevel_Warn) log_debug("wgpu-native: {}", wgpu_text(message));
}

Result<WgpuLibrary> open_library(const std::optional<std::filesystem::path>& override_path) {
  CGL_TRY_ASSIGN(const SharedLibrary file,
                 SharedLibrary::open(override_path, {"libwgpu_native.so", "libwgpu_native.dylib"}));
  WgpuLibrary library;
  library.path = file.path();
  CGL_TRY(file.find("wgpuGetVersion", library.wgpuGetVersion));
  // The C interface changes between releases without notice; a library of another release would crash, not fail.
  const std::uint32_t found = library.wgpuGetVersion();
  constexpr std::uint32_t expected = CINGULUM_WGPU_NATIVE_VERSION;
  library.version = version_text(found);
  if (found >> 16 != expected >> 16) {
    return fail(ErrorKind::unavailable, "{} is wgpu-native {}, this build needs {}", file.path(), library.version,
                version_text(expected));
  }
#define CGL_FIND(name) CGL_TRY(file.find(#name, library.name));
  CGL_WGPU_FUNCTIONS(CGL_FIND)
#undef CGL_FIND
  library.wgpuSetLogCallback(forward_log, nullptr);
  library.wgpuSetLogLevel(WGPULogLevel_Warn);
  return library;
}

}  // namespace

const Result<WgpuLibrary>& WgpuLibrary::get(const std::optional<std::filesystem::path>& override_path) {
  static const Result<WgpuLibrary> library = open_library(override_path);
  return library;
}

}  // namespace cingulum
