// Volumes of an image read by all threads of a pool: of a file that is not compressed each reads and converts blocks of
// its own. Used where images of hundreds of megabytes are read (series, fields); everything else reads volume by volume
// (nifti.hpp). The numbers, warnings and failures are those of NiftiReader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/byte_stream.hpp"
#include "formats/nifti.hpp"

namespace cingulum {

// one caller at a time
class SharedImageReader {
 public:
  // Without a pool, and of compressed or small files, the calling thread reads. The pool outlives this.
  [[nodiscard]] static Result<SharedImageReader> open(const std::filesystem::path& path, ThreadPool* pool,
                                                      const CancelToken& cancel = {});

  [[nodiscard]] const NiftiHeader& header() const noexcept { return reader_.header(); }
  // Reads as many of the next volumes as `values` has room for.
  [[nodiscard]] Status next_volumes(std::span<float> values);
  // The whole image, as read_image(path). Before any volume was read.
  [[nodiscard]] Result<Image> read_all();

 private:
  SharedImageReader(NiftiReader reader, std::string name, ThreadPool* pool, CancelToken cancel)
      : reader_(std::move(reader)), name_(std::move(name)), pool_(pool), cancel_(std::move(cancel)) {}
  [[nodiscard]] Status read_shared(std::span<float> values);

  NiftiReader reader_;
  std::string name_;
  ThreadPool* pool_;
  CancelToken cancel_;
  std::optional<InputFile> file_;  // where the threads read it themselves
  std::uint64_t numbers_read_ = 0;
};

}  // namespace cingulum
