#include "zarr/direct/nvcomp_library.hpp"

#include <map>
#include <mutex>

#include "device/shared_library.hpp"

namespace cingulum::zarr {
namespace {

struct NvcompProperties {
  std::uint32_t version;  // 6012 is 6.0.12
  std::uint32_t cuda_version;
};
constexpr std::uint32_t known_major = 6;

}  // namespace

Result<std::shared_ptr<const NvcompLibrary>> NvcompLibrary::open(
    const std::optional<std::filesystem::path>& override_path) {
  using Opened = Result<std::shared_ptr<const NvcompLibrary>>;
  static std::mutex mutex;
  static std::map<std::string, Opened> opened;
  const std::string name = override_path ? override_path->native() : std::string();
  const std::lock_guard lock(mutex);
  if (const auto found = opened.find(name); found != opened.end()) return found->second;
  Opened result = [&]() -> Opened {
    CGL_TRY_ASSIGN(const SharedLibrary file, SharedLibrary::open(override_path, {"libnvcomp.so.6"}));
    std::shared_ptr<NvcompLibrary> library(new NvcompLibrary);
    library->path_ = file.path();
    int (*properties_of)(NvcompProperties*) = nullptr;
    CGL_TRY(file.find("nvcompGetProperties", properties_of));
    CGL_TRY(file.find("nvcompGetStatusString", library->text_));
    NvcompProperties properties{};
    if (const int status = properties_of(&properties); status != 0) {
      return fail(ErrorKind::unavailable, "nvCOMP does not tell its version: {}", library->status_text(status));
    }
    library->version_ = fmt::format("{}.{}", properties.version / 1000, properties.version % 1000 / 100);
    if (properties.version / 1000 != known_major) {
      return fail(ErrorKind::unavailable, "nvCOMP {}: {}.x is needed", library->version_, known_major);
    }
    CGL_TRY(file.find("nvcompBatchedZstdDecompressGetTempSize", library->zstd_.temp_size));
    CGL_TRY(file.find("nvcompBatchedZstdDecompressAsync", library->zstd_.decode));
    CGL_TRY(file.find("nvcompBatchedLZ4DecompressGetTempSize", library->lz4_.temp_size));
    CGL_TRY(file.find("nvcompBatchedLZ4DecompressAsync", library->lz4_.decode));
    CGL_TRY(file.find("nvcompBatchedGzipDecompressGetTempSize", library->gzip_.temp_size));
    CGL_TRY(file.find("nvcompBatchedGzipDecompressAsync", library->gzip_.decode));
    return std::shared_ptr<const NvcompLibrary>(std::move(library));
  }();
  opened.emplace(name, result);
  return result;
}

const NvcompDecoder* NvcompLibrary::decoder(CodecKind kind) const {
  switch (kind) {
    case CodecKind::zstd: return &zstd_;
    case CodecKind::lz4: return &lz4_;
    case CodecKind::gzip: return &gzip_;
    default: return nullptr;
  }
}

std::string NvcompLibrary::status_text(int status) const {
  return fmt::format("{} (code {})", text_(status), status);
}

}  // namespace cingulum::zarr
