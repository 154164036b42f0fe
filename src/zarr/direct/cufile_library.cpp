#include "zarr/direct/cufile_library.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "base/file_layer.hpp"
#include "device/shared_library.hpp"

namespace cingulum::zarr {
namespace {

// The part of cuFile's C interface that is used (cuFile 1.14 and later).
struct CufileError {
  int operation;  // 0, or 5000 and a number
  int cuda;
};
struct CufileDescription {
  int type;
  union {
    int descriptor;
    void* pointer;
  } handle;
  const void* file_system_operations;
};
constexpr int linux_descriptor = 1;
struct CufileProperties {
  struct {
    unsigned major_version;
    unsigned minor_version;
    std::size_t poll_threshold;
    std::size_t most_direct_bytes;
    unsigned status_flags;
    unsigned control_flags;
  } nvfs;
  unsigned feature_flags;
  unsigned most_cache;
  unsigned buffer_cache;
  unsigned most_pinned;
  unsigned most_batch;
  unsigned batch_timeout;
  unsigned room[32];  // for what later versions add
};
constexpr unsigned nvme_status = 1u << 4;
constexpr unsigned p2pdma_feature = 1u << 4;
// Switches, by their numbers in cuFileSetParameterBool.
constexpr int allow_compatibility_switch = 1;
constexpr int force_compatibility_switch = 2;
constexpr int fallback_switch = 13;
constexpr int oldest_version = 1140;  // the first whose switches are functions

// What people need of the codes; cuFile has the texts in its header alone.
std::string_view error_text(int operation) {
  switch (operation - 5000) {
    case 1: return "the module nvidia-fs is not loaded, and p2pdma is not usable";
    case 4: return "nvidia-fs is of another version than cuFile";
    case 5: return "the version of nvidia-fs could not be read";
    case 7: return "GPUDirect Storage is not supported on this machine";
    case 8: return "the file system of the file is not supported";
    case 9: return "the GPU is not supported";
    case 10: return "nvidia-fs reported a failure";
    case 11: return "the CUDA driver reported a failure";
    case 16: return "more than may be pinned";
    case 18: return "not a regular file";
    case 19: return "opened with flags that are not supported";
    case 20: return "the file is not open past the page cache";
    case 22: return "an argument is not accepted";
    case 25: return "no permission";
    case 33: return "nvidia-fs could not be set up";
    case 34: return "switched off for this file by cufile.json";
    case 36: return "device memory could not be pinned";
    default: return "see the header of cuFile";
  }
}

Status cufile_status(const CufileError& error, std::string_view doing) {
  if (error.operation == 0) return {};
  return fail(ErrorKind::unavailable, "cuFile: {}: {} (code {})", doing, error_text(error.operation), error.operation);
}

}  // namespace

struct CufileLibrary::Functions {
  SharedLibrary file;
  CufileDriver driver;
  CufileError (*cuFileGetVersion)(int*) = nullptr;
  CufileError (*cuFileSetParameterBool)(int, bool) = nullptr;
  CufileError (*cuFileDriverOpen)() = nullptr;
  CufileError (*cuFileDriverGetProperties)(CufileProperties*) = nullptr;
  CufileError (*cuFileHandleRegister)(void**, CufileDescription*) = nullptr;
  void (*cuFileHandleDeregister)(void*) = nullptr;
  CufileError (*cuFileBufRegister)(const void*, std::size_t, int) = nullptr;
  CufileError (*cuFileBufDeregister)(const void*) = nullptr;
  ssize_t (*cuFileRead)(void*, void*, std::size_t, off_t, off_t) = nullptr;

  [[nodiscard]] Status find_all() {
#define CGL_FIND(name) CGL_TRY(file.find(#name, name))
    CGL_FIND(cuFileGetVersion);
    CGL_FIND(cuFileSetParameterBool);
    CGL_FIND(cuFileDriverOpen);
    CGL_FIND(cuFileDriverGetProperties);
    CGL_FIND(cuFileHandleRegister);
    CGL_FIND(cuFileHandleDeregister);
    CGL_FIND(cuFileBufRegister);
    CGL_FIND(cuFileBufDeregister);
    CGL_FIND(cuFileRead);
#undef CGL_FIND
    return {};
  }

  [[nodiscard]] Status start(bool compatibility) {
    CGL_TRY(cufile_status(cuFileGetVersion(&driver.version), "asking for its version"));
    if (driver.version < oldest_version) {
      return fail(ErrorKind::unavailable,
                  "cuFile {} cannot be told to leave its compatibility mode; 1.14 or later is needed",
                  driver.version_text());
    }
    CGL_TRY(cufile_status(cuFileSetParameterBool(allow_compatibility_switch, compatibility),
                          "leaving its compatibility mode"));
    CGL_TRY(cufile_status(cuFileSetParameterBool(force_compatibility_switch, compatibility),
                          "leaving its compatibility mode"));
    // Not known to older versions, which do not fall back either.
    static_cast<void>(cuFileSetParameterBool(fallback_switch, compatibility));
    CGL_TRY(cufile_status(cuFileDriverOpen(), "opening its driver"));
    CufileProperties properties{};
    CGL_TRY(cufile_status(cuFileDriverGetProperties(&properties), "asking for its properties"));
    driver.nvfs_major = properties.nvfs.major_version;
    driver.nvfs_minor = properties.nvfs.minor_version;
    driver.nvme = (properties.nvfs.status_flags & nvme_status) != 0;
    driver.p2pdma = (properties.feature_flags & p2pdma_feature) != 0;
    if (!compatibility && driver.nvfs_major == 0 && !driver.p2pdma) {
      return fail(ErrorKind::unavailable, "cuFile {}: neither nvidia-fs nor p2pdma is usable", driver.version_text());
    }
    return {};
  }
};

std::string CufileDriver::version_text() const {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

CufileLibrary::CufileLibrary(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
CufileLibrary::~CufileLibrary() = default;

const std::string& CufileLibrary::path() const {
  return functions_->file.path();
}
const CufileDriver& CufileLibrary::driver() const {
  return functions_->driver;
}

Result<std::shared_ptr<const CufileLibrary>> CufileLibrary::open(const CufileOptions& options) {
  using Opened = Result<std::shared_ptr<const CufileLibrary>>;
  static std::mutex mutex;
  static std::map<std::string, Opened> opened;
  const std::string name = (options.library ? options.library->native() : std::string()) +
                           (options.allow_compatibility ? " in compatibility mode" : "");
  const std::lock_guard lock(mutex);
  if (const auto found = opened.find(name); found != opened.end()) return found->second;
  Opened result = [&]() -> Opened {
    auto functions = std::make_unique<Functions>();
    CGL_TRY_ASSIGN(functions->file,
                   SharedLibrary::open(options.library, {"libcufile.so.0", "libcufile.so"},
                                       {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"}));
    CGL_TRY(functions->find_all());
    CGL_TRY(functions->start(options.allow_compatibility));
    return std::shared_ptr<const CufileLibrary>(new CufileLibrary(std::move(functions)));
  }();
  opened.emplace(name, result);
  return result;
}

Result<std::unique_ptr<CufileFile>> CufileLibrary::register_file(int descriptor) const {
  // The same file whatever has become of its name.
  const std::string same = fmt::format("/proc/self/fd/{}", descriptor);
  const int own = ::open(same.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (own < 0) {
    return fail(ErrorKind::unavailable, "cuFile: opening a file past the page cache: {}", system_error_text(errno));
  }
  CufileDescription description{};
  description.type = linux_descriptor;
  description.handle.descriptor = own;
  void* handle = nullptr;
  if (Status status = cufile_status(functions_->cuFileHandleRegister(&handle, &description), "registering a file");
      !status) {
    ::close(own);
    return tl::make_unexpected(std::move(status.error()));
  }
  return std::make_unique<CufileFile>(*this, own, handle);
}

Result<std::unique_ptr<CufileMemory>> CufileLibrary::register_memory(void* device_memory, std::size_t bytes) const {
  CGL_TRY(cufile_status(functions_->cuFileBufRegister(device_memory, bytes, 0), "registering device memory"));
  return std::make_unique<CufileMemory>(*this, device_memory);
}

CufileMemory::~CufileMemory() {
  static_cast<void>(library_.functions_->cuFileBufDeregister(memory_));
}

CufileFile::~CufileFile() {
  library_.functions_->cuFileHandleDeregister(handle_);
  ::close(descriptor_);
}

Result<std::size_t> CufileFile::read(const CufileMemory& to, std::uint64_t to_offset, std::uint64_t file_offset,
                                     std::size_t bytes) const {
  const ssize_t count = library_.functions_->cuFileRead(handle_, to.address(), bytes, static_cast<off_t>(file_offset),
                                                        static_cast<off_t>(to_offset));
  if (count >= 0) return static_cast<std::size_t>(count);
  if (count == -1) return fail(ErrorKind::io, "cuFile: reading: {}", system_error_text(errno));
  return fail(ErrorKind::io, "cuFile: reading: {} (code {})", error_text(static_cast<int>(-count)), -count);
}

}  // namespace cingulum::zarr
