#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "formats/gzip.hpp"
#include "formats/nifti.hpp"
#include "formats/nifti_header.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/samples.hpp"

namespace cingulum {
namespace {

constexpr std::size_t block_samples = std::size_t{1} << 16U;
static_assert(std::endian::native == std::endian::little, "voxels are written in the order of the machine");
constexpr std::int64_t longest_nifti1_axis = 32767;

// The number that float32 holds instead of `value`.
double as_float32_holds(double value) {
  return static_cast<double>(static_cast<float>(value));
}

}  // namespace

struct NiftiWriter::State {
  State(AtomicFile opened, SampleFormat sample_format, std::uint64_t count, std::string path)
      : file(std::move(opened)), format(sample_format), values_expected(count), name(std::move(path)) {}

  AtomicFile file;
  std::optional<GzipWriter> gzip;  // refers to `file`
  SampleFormat format;
  std::uint64_t values_expected;
  std::uint64_t values_appended = 0;
  std::string name;
  CancelToken cancel;
  std::vector<std::byte> block;

  [[nodiscard]] Status write(std::span<const std::byte> bytes) {
    return gzip ? gzip->append(bytes) : file.append(bytes);
  }

  template <class Value>
  [[nodiscard]] Status append(std::span<const Value> values) {
    if (values.size() > values_expected - values_appended) {
      return fail_file(name, ErrorKind::invalid_argument, "writing {}: {} values beyond the {} of the image", name,
                       values.size() - (values_expected - values_appended), values_expected);
    }
    while (!values.empty()) {
      CGL_TRY(cancel.check());
      const std::size_t count = std::min(values.size(), block_samples);
      block.resize(count * format.type.bytes());
      encode_samples(format, values.first(count), block);
      CGL_TRY(write(block));
      values = values.subspan(count);
      values_appended += count;
    }
    return {};
  }
};

NiftiWriter::NiftiWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
NiftiWriter::NiftiWriter(NiftiWriter&&) noexcept = default;
NiftiWriter& NiftiWriter::operator=(NiftiWriter&&) noexcept = default;
NiftiWriter::~NiftiWriter() = default;

Result<NiftiWriter> NiftiWriter::create(const std::filesystem::path& path, const ImageGeometry& geometry,
                                        std::vector<std::int64_t> further_axes, const NiftiWriteOptions& options) {
  return catch_out_of_memory([&]() -> Result<NiftiWriter> {
    NiftiHeader header;
    header.shape.assign(geometry.size.begin(), geometry.size.end());
    header.shape.insert(header.shape.end(), further_axes.begin(), further_axes.end());
    header.version = options.version;
    if (header.version == 0) {
      const bool fits = std::all_of(header.shape.begin(), header.shape.end(),
                                    [](std::int64_t length) { return length <= longest_nifti1_axis; });
      header.version = fits ? 1 : 2;
    }
    header.type = options.type;
    header.datatype = nifti_datatype_of(options.type);
    header.geometry = geometry;
    // NIfTI-1 holds float32: what a reader will multiply by is what we divide by.
    const bool single = header.version == 1;
    header.slope = single ? as_float32_holds(options.slope) : options.slope;
    header.intercept = single ? as_float32_holds(options.intercept) : options.intercept;
    header.intent_code = options.intent_code;
    header.intent_name = options.intent_name;
    header.description = options.description;
    if (!is_real_sample(options.type)) {
      return fail_file(path.native(), ErrorKind::invalid_argument, "writing {}: voxels of type {} are not written",
                       path.native(), options.type.name());
    }
    CGL_TRY_ASSIGN(const std::vector<std::byte> bytes,
                   add_file_context(encode_nifti_header(header), "writing", path.native()));
    header.data_offset = bytes.size();
    CGL_TRY_ASSIGN(const std::uint64_t data_bytes,
                   add_file_context(nifti_data_bytes(header), "writing", path.native()));
    const bool compressed = path.extension() == ".gz";
    WriteOptions file_options = without_sidecar(path, options.file);
    if (!compressed) file_options.expected_bytes = bytes.size() + data_bytes;
    CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, file_options));
    const SampleFormat format{options.type, false, header.slope, header.intercept};
    auto state = std::make_unique<State>(std::move(file), format, data_bytes / options.type.bytes(), path.native());
    state->cancel = options.file.cancel;
    if (compressed) {
      CGL_TRY_ASSIGN(state->gzip, add_file_context(GzipWriter::create(state->file, options.compression_level,
                                                                      options.pool, options.compression_search),
                                                   "writing", path.native()));
    }
    CGL_TRY(state->write(bytes));
    return NiftiWriter(std::move(state));
  });
}

Status NiftiWriter::append(std::span<const float> values) {
  return catch_out_of_memory([&] { return state_->append(values); });
}

Status NiftiWriter::append(std::span<const double> values) {
  return catch_out_of_memory([&] { return state_->append(values); });
}

Status NiftiWriter::commit() {
  return catch_out_of_memory([&]() -> Status {
    State& state = *state_;
    if (state.values_appended != state.values_expected) {
      return fail_file(state.name, ErrorKind::invalid_state, "writing {}: {} values came, the image has {}", state.name,
                       state.values_appended, state.values_expected);
    }
    if (state.gzip) CGL_TRY(state.gzip->finish());
    return state.file.commit();
  });
}

Status write_image(const std::filesystem::path& path, const ImageGeometry& geometry, std::int64_t volumes,
                   std::span<const float> values, const NiftiWriteOptions& options) {
  return catch_out_of_memory([&]() -> Status {
    std::vector<std::int64_t> further_axes;
    if (volumes != 1) further_axes.push_back(volumes);
    CGL_TRY_ASSIGN(NiftiWriter writer, NiftiWriter::create(path, geometry, std::move(further_axes), options));
    CGL_TRY(writer.append(values));
    return writer.commit();
  });
}

}  // namespace cingulum
