#include "device/cuda/nvrtc_library.hpp"

#include <cstdlib>

#include "device/shared_library.hpp"

namespace cingulum {
namespace {

// Folders of a toolkit that is installed but not in the loader's search path.
std::vector<std::filesystem::path> toolkit_folders() {
  std::vector<std::filesystem::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* const home = std::getenv(variable); home != nullptr && *home != '\0') {
      folders.push_back(std::filesystem::path(home) / "lib64");
    }
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

// NVRTC opens its built-ins by their bare name. When it was itself found outside the loader's search path, they are
// loaded here first, after which the loader knows the name.
void preload_builtins(const std::filesystem::path& nvrtc, const std::string& version) {
  std::error_code error;
  const auto folder = std::filesystem::canonical(nvrtc, error).parent_path();
  const auto builtins = folder / ("libnvrtc-builtins.so." + version);
  if (!error && std::filesystem::exists(builtins, error)) static_cast<void>(SharedLibrary::open(builtins, {}));
}

Result<NvrtcLibrary> open_library(const std::optional<std::filesystem::path>& override_path) {
  CGL_TRY_ASSIGN(const SharedLibrary file,
                 SharedLibrary::open(override_path, {"libnvrtc.so.13", "libnvrtc.so"}, toolkit_folders()));
  NvrtcLibrary library;
  library.path = file.path();
#define CGL_FIND(name) CGL_TRY(file.find(#name, library.name))
  CGL_FIND(nvrtcVersion);
  CGL_FIND(nvrtcGetErrorString);
  CGL_FIND(nvrtcCreateProgram);
  CGL_FIND(nvrtcDestroyProgram);
  CGL_FIND(nvrtcAddNameExpression);
  CGL_FIND(nvrtcCompileProgram);
  CGL_FIND(nvrtcGetLoweredName);
  CGL_FIND(nvrtcGetProgramLogSize);
  CGL_FIND(nvrtcGetProgramLog);
  CGL_FIND(nvrtcGetCUBINSize);
  CGL_FIND(nvrtcGetCUBIN);
#undef CGL_FIND
  int major = 0;
  int minor = 0;
  if (library.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) {
    return fail(ErrorKind::unavailable, "{} does not tell its version", file.path());
  }
  library.version = fmt::format("{}.{}", major, minor);
  preload_builtins(file.path(), library.version);
  return library;
}

class Program {
 public:
  explicit Program(const NvrtcLibrary& nvrtc) : nvrtc_(nvrtc) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (program_ != nullptr) nvrtc_.nvrtcDestroyProgram(&program_);
  }

  Status check(nvrtcResult code, std::string_view doing) const {
    if (code == NVRTC_SUCCESS) return {};
    return fail(ErrorKind::compilation, "{}: {}", doing, nvrtc_.nvrtcGetErrorString(code));
  }
  [[nodiscard]] std::string log() const {
    std::size_t size = 0;
    if (nvrtc_.nvrtcGetProgramLogSize(program_, &size) != NVRTC_SUCCESS || size <= 1) return {};
    std::string text(size, '\0');
    if (nvrtc_.nvrtcGetProgramLog(program_, text.data()) != NVRTC_SUCCESS) return {};
    text.resize(size - 1);  // the terminating zero
    return text;
  }
  [[nodiscard]] nvrtcProgram* address() { return &program_; }
  [[nodiscard]] nvrtcProgram get() const { return program_; }

 private:
  const NvrtcLibrary& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

const Result<NvrtcLibrary>& NvrtcLibrary::get(const std::optional<std::filesystem::path>& override_path) {
  static const Result<NvrtcLibrary> library = open_library(override_path);
  return library;
}

const std::vector<std::string>& contract_nvrtc_options() {
  static const std::vector<std::string> options = {"--fmad=false", "--prec-div=true", "--prec-sqrt=true",
                                                   "--ftz=false"};
  return options;
}

std::vector<std::string> nvrtc_options(const KernelSource& source, const std::string& architecture) {
  std::vector<std::string> options = {"--std=c++20", "--gpu-architecture=" + architecture,
                                      "--extra-device-vectorization"};
  options.insert(options.end(), source.options.begin(), source.options.end());
  // Last, so that nothing before can loosen them.
  if (source.contract_arithmetic) {
    options.insert(options.end(), contract_nvrtc_options().begin(), contract_nvrtc_options().end());
  }
  return options;
}

Result<CompiledCuda> compile_cuda_source(const NvrtcLibrary& nvrtc, const KernelSource& source,
                                         const std::string& architecture) {
  const std::string doing = fmt::format("compiling {} for {}", source.name, architecture);
  for (const std::string& option : source.options) {
    const bool loosens = option.find("fmad") != std::string::npos || option.find("fast") != std::string::npos ||
                         option.find("prec-") != std::string::npos || option.find("ftz") != std::string::npos;
    if (source.contract_arithmetic && loosens) {
      return fail(ErrorKind::invalid_argument, "{}: option {} contradicts contract_arithmetic", doing, option);
    }
  }
  Program program(nvrtc);
  const std::string file_name = source.name + ".cu";
  CGL_TRY(program.check(
      nvrtc.nvrtcCreateProgram(program.address(), source.text.c_str(), file_name.c_str(), 0, nullptr, nullptr), doing));
  CGL_TRY(program.check(nvrtc.nvrtcAddNameExpression(program.get(), source.name.c_str()), doing));
  const std::vector<std::string> options = nvrtc_options(source, architecture);
  std::vector<const char*> option_texts;
  for (const std::string& option : options) option_texts.push_back(option.c_str());
  const nvrtcResult compiled =
      nvrtc.nvrtcCompileProgram(program.get(), static_cast<int>(option_texts.size()), option_texts.data());
  CompiledCuda result;
  result.log = program.log();
  if (compiled != NVRTC_SUCCESS) {
    return fail(ErrorKind::compilation, "{}: {}\n{}", doing, nvrtc.nvrtcGetErrorString(compiled), result.log);
  }
  const char* lowered = nullptr;
  CGL_TRY(program.check(nvrtc.nvrtcGetLoweredName(program.get(), source.name.c_str(), &lowered), doing));
  result.symbol = lowered;
  std::size_t size = 0;
  CGL_TRY(program.check(nvrtc.nvrtcGetCUBINSize(program.get(), &size), doing));
  if (size == 0) {
    return fail(ErrorKind::compilation, "{}: nvrtc {} makes no code for {}", doing, nvrtc.version, architecture);
  }
  result.code.resize(size);
  CGL_TRY(program.check(nvrtc.nvrtcGetCUBIN(program.get(), reinterpret_cast<char*>(result.code.data())), doing));
  return result;
}

}  // namespace cingulum
