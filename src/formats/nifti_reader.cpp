#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/cancel.hpp"
#include "formats/byte_stream.hpp"
#include "formats/gzip.hpp"
#include "formats/nifti.hpp"
#include "formats/nifti_header.hpp"
#include "formats/samples.hpp"

namespace cingulum {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20U;
// Below this a thread that decompresses ahead costs more than it saves.
constexpr std::uint64_t smallest_read_ahead_bytes = std::uint64_t{4} << 20U;

// As many bytes as there are, up to to.size().
Result<std::size_t> read_up_to(ByteStream& stream, std::span<std::byte> to) {
  std::size_t filled = 0;
  while (filled < to.size()) {
    CGL_TRY_ASSIGN(const std::size_t got, stream.read(to.subspan(filled)));
    if (got == 0) break;
    filled += got;
  }
  return filled;
}

}  // namespace

struct NiftiReader::State {
  std::string name;
  CancelToken cancel;
  NiftiHeader header;
  std::unique_ptr<ByteStream> stream;
  std::uint64_t data_bytes = 0;
  std::uint64_t position = 0;  // in the decompressed file
  std::int64_t volumes_read = 0;
  bool ended = false;  // the end of the stream was seen, and everything before it was right
  std::vector<std::byte> block;

  [[nodiscard]] Status read_header(std::uint64_t file_bytes);
  [[nodiscard]] Status skip_to_data(bool has_extensions);
  [[nodiscard]] Status check_size(std::uint64_t file_bytes) const;
  [[nodiscard]] Status skip_to(std::uint64_t target);
  [[nodiscard]] Status read_data(std::span<std::byte> to);
  [[nodiscard]] Status finish();
  template <class Value>
  [[nodiscard]] Status next_volume(std::span<Value> values);
  [[nodiscard]] tl::unexpected<Error> ends_early() const;
};

tl::unexpected<Error> NiftiReader::State::ends_early() const {
  const std::uint64_t found = position > header.data_offset ? position - header.data_offset : 0;
  return fail(ErrorKind::corrupt,
              "the {} at byte {}: {} bytes of voxels expected from byte {} on ({} in all), {} found; the file is not "
              "complete",
              header.compressed ? "decompressed data end" : "file ends", position, data_bytes, header.data_offset,
              header.data_offset + data_bytes, found);
}

Status NiftiReader::State::read_header(std::uint64_t file_bytes) {
  std::vector<std::byte> bytes(nifti1_header_bytes);
  CGL_TRY_ASSIGN(std::size_t got, read_up_to(*stream, bytes));
  bytes.resize(got);
  CGL_TRY_ASSIGN(const std::size_t header_bytes, nifti_header_size(bytes));
  bytes.resize(header_bytes);
  if (got < header_bytes) {
    CGL_TRY_ASSIGN(const std::size_t more, read_up_to(*stream, std::span(bytes).subspan(got)));
    got += more;
    bytes.resize(got);
  }
  const bool compressed = header.compressed;
  CGL_TRY_ASSIGN(header, parse_nifti_header(bytes));
  header.compressed = compressed;
  position = got;
  CGL_TRY_ASSIGN(data_bytes, nifti_data_bytes(header));
  CGL_TRY(check_size(file_bytes));
  std::array<std::byte, nifti_extension_flag_bytes> flag{};
  CGL_TRY_ASSIGN(const std::size_t flag_bytes, read_up_to(*stream, flag));
  position += flag_bytes;
  if (flag_bytes < flag.size()) return ends_early();
  return skip_to_data(flag[0] != std::byte{0});
}

// Before anything is sized by the header.
Status NiftiReader::State::check_size(std::uint64_t file_bytes) const {
  const std::uint64_t needed = header.data_offset + data_bytes;
  if (!header.compressed) {
    if (needed <= file_bytes) return {};
    return fail(
        ErrorKind::corrupt,
        "the file ends at byte {}: {} bytes of voxels ({} of {}) expected from byte {} on ({} in all), {} found; "
        "the file is not complete",
        file_bytes, data_bytes, fmt::join(header.shape, " x "), nifti_datatype_name(header.datatype),
        header.data_offset, needed, file_bytes > header.data_offset ? file_bytes - header.data_offset : 0);
  }
  if (needed / largest_deflate_ratio <= file_bytes) return {};
  return fail(ErrorKind::corrupt,
              "the header promises {} bytes ({} of {}), and {} compressed bytes cannot hold more than {}: the file is "
              "damaged or not complete",
              needed, fmt::join(header.shape, " x "), nifti_datatype_name(header.datatype), file_bytes,
              file_bytes * largest_deflate_ratio);
}

Status NiftiReader::State::skip_to(std::uint64_t target) {
  std::array<std::byte, 4096> skipped;
  while (position < target) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(target - position, skipped.size()));
    CGL_TRY_ASSIGN(const std::size_t got, stream->read(std::span(skipped).first(count)));
    if (got == 0) return ends_early();
    position += got;
  }
  return {};
}

// Extensions are not used; their chain of sizes is followed so that a broken one is reported.
Status NiftiReader::State::skip_to_data(bool has_extensions) {
  constexpr std::uint64_t smallest_extension = 8;
  while (has_extensions && position + smallest_extension <= header.data_offset) {
    std::array<std::byte, 4> stored{};
    const std::uint64_t begin = position;
    CGL_TRY_ASSIGN(const std::size_t got, read_up_to(*stream, stored));
    position += got;
    if (got < stored.size()) return ends_early();
    if (header.big_endian) std::reverse(stored.begin(), stored.end());
    std::uint32_t size = 0;
    for (std::size_t i = 4; i-- > 0;) size = (size << 8U) | std::to_integer<std::uint32_t>(stored[i]);
    if (size < smallest_extension || size > header.data_offset - begin) {
      header.warnings.push_back(fmt::format("the extension at byte {} says that it has {} bytes, {} are there: skipped",
                                            begin, static_cast<std::int32_t>(size), header.data_offset - begin));
      break;
    }
    CGL_TRY(skip_to(begin + size));
  }
  return skip_to(header.data_offset);
}

Status NiftiReader::State::read_data(std::span<std::byte> to) {
  std::size_t filled = 0;
  while (filled < to.size()) {
    auto got = stream->read(to.subspan(filled));
    if (!got && got.error().kind() == ErrorKind::corrupt) {
      return add_context(Status(tl::make_unexpected(std::move(got.error()))),
                         "{} bytes of voxels expected from byte {} on, {} found", data_bytes, header.data_offset,
                         position - header.data_offset);
    }
    if (!got) return tl::make_unexpected(std::move(got.error()));
    if (*got == 0) return ends_early();
    filled += *got;
    position += *got;
  }
  return {};
}

// gzip's checksum comes behind the data.
Status NiftiReader::State::finish() {
  if (ended) return {};
  std::uint64_t further = 0;
  std::vector<std::byte> skipped(64 * 1024);
  while (true) {
    CGL_TRY(cancel.check());
    CGL_TRY_ASSIGN(const std::size_t got, stream->read(skipped));
    if (got == 0) break;
    further += got;
  }
  if (further > 0) header.warnings.push_back(fmt::format("{} bytes follow the voxels: ignored", further));
  ended = true;
  return {};
}

template <class Value>
Status NiftiReader::State::next_volume(std::span<Value> values) {
  if (!is_real_sample(header.type)) {
    return fail(ErrorKind::invalid_argument,
                "voxels of type {} are not read; convert them to an integer type, float32 or float64 first",
                nifti_datatype_name(header.datatype));
  }
  if (volumes_read == header.volume_count()) {
    return fail(ErrorKind::invalid_state, "all {} volumes were read already", volumes_read);
  }
  const auto count = static_cast<std::size_t>(header.geometry.voxel_count());
  if (values.size() != count) {
    return fail(ErrorKind::invalid_argument, "room for {} values was given, a volume has {}", values.size(), count);
  }
  const SampleFormat format{header.type, header.big_endian != (std::endian::native == std::endian::big), header.slope,
                            header.intercept};
  const std::size_t sample_bytes = header.type.bytes();
  const std::size_t samples_per_block = block_bytes / sample_bytes;
  if (block.empty()) block.resize(std::min(count, samples_per_block) * sample_bytes);
  for (std::size_t done = 0; done < count;) {
    CGL_TRY(cancel.check());
    const std::size_t samples = std::min(count - done, samples_per_block);
    const auto bytes = std::span(block).first(samples * sample_bytes);
    CGL_TRY(read_data(bytes));
    decode_samples(format, bytes, values.subspan(done, samples));
    done += samples;
  }
  ++volumes_read;
  return volumes_read == header.volume_count() ? finish() : Status{};
}

NiftiReader::NiftiReader(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
NiftiReader::NiftiReader(NiftiReader&&) noexcept = default;
NiftiReader& NiftiReader::operator=(NiftiReader&&) noexcept = default;
NiftiReader::~NiftiReader() = default;

Result<NiftiReader> NiftiReader::open_stream(std::unique_ptr<ByteStream> stream, bool compressed,
                                             std::uint64_t file_bytes, std::string name, CancelToken cancel) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->cancel = std::move(cancel);
  state->header.compressed = compressed;
  state->stream = std::move(stream);
  if (compressed) {
    CGL_TRY_ASSIGN(state->stream, open_gzip(std::move(state->stream)));
  }
  CGL_TRY(state->read_header(file_bytes));
  if (compressed && state->data_bytes >= smallest_read_ahead_bytes)
    state->stream = read_ahead(std::move(state->stream));
  return NiftiReader(std::move(state));
}

Result<NiftiReader> NiftiReader::open(const std::filesystem::path& path, CancelToken cancel) {
  return add_file_context(catch_out_of_memory([&]() -> Result<NiftiReader> {
                            CGL_TRY_ASSIGN(InputFile file, InputFile::open(path));
                            std::array<std::byte, 2> begin{};
                            CGL_TRY_ASSIGN(const std::size_t got, file.read_at(0, begin));
                            const bool compressed = is_gzip(std::span(begin).first(got));
                            const std::uint64_t size = file.size();
                            return open_stream(std::make_unique<FileStream>(std::move(file)), compressed, size,
                                               path.native(), std::move(cancel));
                          }),
                          "reading", path.native());
}

Result<NiftiReader> NiftiReader::open_memory(std::span<const std::byte> bytes, std::string name, CancelToken cancel) {
  const std::string shown = name;
  return add_file_context(catch_out_of_memory([&]() -> Result<NiftiReader> {
                            return open_stream(std::make_unique<MemoryStream>(bytes), is_gzip(bytes), bytes.size(),
                                               std::move(name), std::move(cancel));
                          }),
                          "reading", shown);
}

const NiftiHeader& NiftiReader::header() const noexcept {
  return state_->header;
}

std::int64_t NiftiReader::volumes_read() const noexcept {
  return state_->volumes_read;
}

Status NiftiReader::next_volume(std::span<float> values) {
  return add_file_context(catch_out_of_memory([&] { return state_->next_volume(values); }), "reading", state_->name);
}

Status NiftiReader::next_volume(std::span<double> values) {
  return add_file_context(catch_out_of_memory([&] { return state_->next_volume(values); }), "reading", state_->name);
}

Status NiftiReader::verify() {
  return add_file_context(
      catch_out_of_memory([&]() -> Status {
        State& state = *state_;
        const std::uint64_t end = state.header.data_offset + state.data_bytes;
        std::vector<std::byte> skipped(64 * 1024);
        while (state.position < end) {
          CGL_TRY(state.cancel.check());
          const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(skipped.size(), end - state.position));
          CGL_TRY(state.read_data(std::span(skipped).first(count)));
        }
        state.volumes_read = state.header.volume_count();
        return state.finish();
      }),
      "reading", state_->name);
}

Result<Image> read_image(NiftiReader& reader) {
  return catch_out_of_memory([&]() -> Result<Image> {
    const NiftiHeader& header = reader.header();
    Image image;
    image.geometry = header.geometry;
    image.volumes = header.volume_count() - reader.volumes_read();
    const auto count = static_cast<std::size_t>(header.geometry.voxel_count());
    // A header cannot make us allocate for volumes that do not come: the vector grows with those that came.
    for (std::int64_t volume = 0; volume < image.volumes; ++volume) {
      const std::size_t begin = image.values.size();
      if (begin == image.values.capacity()) {
        const auto all = static_cast<std::size_t>(image.volumes) * count;
        image.values.reserve(std::min(all, std::max(2 * begin, begin + std::max(count, std::size_t{1} << 22U))));
      }
      image.values.resize(begin + count);
      CGL_TRY(reader.next_volume(std::span(image.values).subspan(begin)));
    }
    return image;
  });
}

Result<Image> read_image(const std::filesystem::path& path, CancelToken cancel) {
  CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(path, std::move(cancel)));
  return read_image(reader);
}

Result<std::vector<std::uint8_t>> read_mask(const std::filesystem::path& path, ImageGeometry& geometry,
                                            CancelToken cancel) {
  return catch_out_of_memory([&]() -> Result<std::vector<std::uint8_t>> {
    CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(path, std::move(cancel)));
    if (reader.header().volume_count() != 1) {
      return fail_file(path.native(), ErrorKind::invalid_argument,
                       "reading {}: a mask has one volume, this image has {}", path.native(),
                       reader.header().volume_count());
    }
    CGL_TRY_ASSIGN(const Image image, read_image(reader));
    geometry = image.geometry;
    std::vector<std::uint8_t> mask(image.values.size());
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = image.values[i] > 0 ? 1 : 0;
    return mask;
  });
}

}  // namespace cingulum
