// The shim of nvCOMP, NVIDIA's library of compressors on the GPU: batches of zstd, lz4 and gzip chunks are decoded
// where they lie. Opened at run time; its functions take streams of CUDA as plain pointers, so that a build needs
// neither.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "zarr/codec.hpp"

namespace cingulum::zarr {

// Options of every decoder, passed by value: zeros are the defaults.
struct NvcompOptions {
  char bytes[64] = {};
};

// The two functions of a decoder. All pointers but temp_bytes are of device memory.
struct NvcompDecoder {
  int (*temp_size)(std::size_t chunks, std::size_t most_chunk_bytes, NvcompOptions options, std::size_t* temp_bytes,
                   std::size_t all_bytes, void* stream) = nullptr;
  int (*decode)(const void* const* encoded, const std::size_t* encoded_bytes, const std::size_t* room_bytes,
                std::size_t* decoded_bytes, std::size_t chunks, void* temp, std::size_t temp_bytes,
                void* const* decoded, NvcompOptions options, int* statuses, void* stream) = nullptr;
};

// any thread
class NvcompLibrary {
 public:
  // Once in a process for each file that is named. Other versions than the one whose interface is declared here are
  // refused.
  [[nodiscard]] static Result<std::shared_ptr<const NvcompLibrary>> open(
      const std::optional<std::filesystem::path>& override_path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& version() const { return version_; }
  // Null where it does not decode such chunks.
  [[nodiscard]] const NvcompDecoder* decoder(CodecKind kind) const;
  [[nodiscard]] std::string status_text(int status) const;

 private:
  NvcompLibrary() = default;
  std::string path_;
  std::string version_;
  NvcompDecoder zstd_, lz4_, gzip_;
  const char* (*text_)(int) = nullptr;
};

}  // namespace cingulum::zarr
