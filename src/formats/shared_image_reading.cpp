#include "formats/shared_image_reading.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/first_failure.hpp"
#include "formats/samples.hpp"

namespace cingulum {
namespace {

constexpr std::size_t image_block_bytes = std::size_t{1} << 20U;
// Below this one thread is as fast.
constexpr std::uint64_t least_shared_bytes = std::uint64_t{16} << 20U;

}  // namespace

Result<SharedImageReader> SharedImageReader::open(const std::filesystem::path& path, ThreadPool* pool,
                                                  const CancelToken& cancel) {
  CGL_TRY_ASSIGN(NiftiReader opened, NiftiReader::open(path, cancel));
  SharedImageReader reader(std::move(opened), path.native(), pool, cancel);
  const NiftiHeader& header = reader.header();
  const std::uint64_t data_bytes = static_cast<std::uint64_t>(header.geometry.voxel_count()) *
                                   static_cast<std::uint64_t>(header.volume_count()) * header.type.bytes();
  // What NiftiReader refuses, it says itself.
  if (pool == nullptr || header.compressed || data_bytes < least_shared_bytes || !is_real_sample(header.type))
    return reader;
  CGL_TRY_ASSIGN(reader.file_, add_file_context(InputFile::open(path), "reading", path.native()));
  return reader;
}

Status SharedImageReader::next_volumes(std::span<float> values) {
  if (file_) return add_file_context(catch_out_of_memory([&] { return read_shared(values); }), "reading", name_);
  const auto count = static_cast<std::size_t>(header().geometry.voxel_count());
  for (std::size_t first = 0; first < values.size(); first += count) {
    CGL_TRY(reader_.next_volume(values.subspan(first, count)));
  }
  return {};
}

Status SharedImageReader::read_shared(std::span<float> values) {
  const SampleFormat format{header().type, header().big_endian != (std::endian::native == std::endian::big),
                            header().slope, header().intercept};
  const std::size_t sample_bytes = header().type.bytes();
  const std::uint64_t begin = header().data_offset + numbers_read_ * sample_bytes;
  const std::size_t block_samples = image_block_bytes / sample_bytes;
  FirstFailure failure;
  std::atomic<bool> failed = false;
  pool_->parallel_for((values.size() + block_samples - 1) / block_samples, 1, [&](std::size_t block, std::size_t) {
    if (failed) return;
    thread_local std::vector<std::byte> stored;
    const std::size_t first = block * block_samples;
    const std::span<float> numbers = values.subspan(first, std::min(block_samples, values.size() - first));
    stored.resize(numbers.size() * sample_bytes);
    const auto read = [&]() -> Status {
      CGL_TRY(cancel_.check());
      CGL_TRY_ASSIGN(const std::size_t got, file_->read_at(begin + first * sample_bytes, stored));
      if (got < stored.size()) return fail(ErrorKind::io, "the file became shorter while it was read");
      decode_samples(format, stored, numbers);
      return {};
    };
    Status status = read();
    if (!status) failed = true;
    failure.note(block, std::move(status));
  });
  CGL_TRY(failure.take());
  numbers_read_ += values.size();
  return {};
}

Result<Image> SharedImageReader::read_all() {
  // How much a compressed file holds is known at its end only.
  if (header().compressed) return read_image(reader_);
  return catch_out_of_memory([&]() -> Result<Image> {
    Image image;
    image.geometry = header().geometry;
    image.volumes = header().volume_count();
    const std::size_t numbers =
        static_cast<std::size_t>(image.geometry.voxel_count()) * static_cast<std::size_t>(image.volumes);
    reserve_in_large_pages(image.values, numbers);
    image.values.resize(numbers);
    CGL_TRY(next_volumes(image.values));
    return image;
  });
}

}  // namespace cingulum
