#include "formats/tractogram.hpp"

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "formats/byte_stream.hpp"
#include "formats/file_bytes.hpp"
#include "formats/gzip.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/tck.hpp"
#include "formats/trk.hpp"
#include "formats/trx.hpp"
#include "formats/zip_archive.hpp"

namespace cingulum {

void TractogramBatch::clear() {
  offsets.assign(1, 0);
  positions.clear();
  positions64.clear();
  make_positions = {};
  for (auto& data : point_data) data.clear();
  for (auto& data : streamline_data) data.clear();
}

void TractogramBatch::append(const TractogramBatch& next) {
  const std::uint64_t base = offsets.back();
  for (std::size_t i = 1; i < next.offsets.size(); ++i) offsets.push_back(base + next.offsets[i]);
  positions.insert(positions.end(), next.positions.begin(), next.positions.end());
  positions64.insert(positions64.end(), next.positions64.begin(), next.positions64.end());
  const auto join = [](std::vector<std::vector<std::byte>>& all, const std::vector<std::vector<std::byte>>& more) {
    all.resize(more.size());
    for (std::size_t f = 0; f < more.size(); ++f) all[f].insert(all[f].end(), more[f].begin(), more[f].end());
  };
  join(point_data, next.point_data);
  join(streamline_data, next.streamline_data);
}

namespace {

// The unpacked bytes, in memory. Tractograms hardly shrink: what grows beyond this bound is damaged or means harm.
Result<FileBytes> unpack_gzip(const FileBytes& file) {
  constexpr std::uint64_t free_of_ratio = std::uint64_t{64} << 20U;
  constexpr std::uint64_t largest_ratio = 16;
  const std::uint64_t limit = free_of_ratio + largest_ratio * file.bytes().size();
  CGL_TRY_ASSIGN(const std::unique_ptr<ByteStream> stream, open_gzip(std::make_unique<MemoryStream>(file.bytes())));
  std::vector<std::byte> content;
  std::size_t filled = 0;
  while (true) {
    constexpr std::size_t least_room = std::size_t{1} << 20U;
    if (filled == content.size()) content.resize(std::max(least_room, filled + filled / 2));
    CGL_TRY_ASSIGN(const std::size_t got, stream->read(std::span(content).subspan(filled)));
    if (got == 0) break;
    filled += got;
    if (filled > limit) {
      return fail(ErrorKind::corrupt, "gzip: {} bytes unpack to more than {}; unpack it with gunzip if this is meant",
                  file.bytes().size(), limit);
    }
  }
  content.resize(filled);
  return FileBytes::own(std::move(content));
}

}  // namespace

Result<std::unique_ptr<TractogramReader>> TractogramReader::open(const std::filesystem::path& path) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TractogramReader>> {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return open_trx_folder(path);
    CGL_TRY_ASSIGN(FileBytes file, FileBytes::map(path));
    if (is_gzip(file.bytes())) {
      CGL_TRY_ASSIGN(file, add_file_context(unpack_gzip(file), "reading", path.native()));
    }
    if (looks_like_zip(file.bytes())) return open_trx(path.native(), std::move(file));
    if (looks_like_trk(file.bytes())) return open_trk(path.native(), std::move(file));
    if (looks_like_tck(file.bytes())) return open_tck(path.native(), std::move(file));
    return fail_file(path.native(), ErrorKind::corrupt,
                     "reading {}: it is neither TRX nor TRK nor TCK (the first bytes are of none of them)",
                     path.native());
  });
}

Result<Tractogram> read_tractogram(const std::filesystem::path& path) {
  CGL_TRY_ASSIGN(const std::unique_ptr<TractogramReader> reader, TractogramReader::open(path));
  Tractogram result;
  // One batch is everything; its checksums are verified with its last byte.
  CGL_TRY(reader->next(result.streamlines, std::numeric_limits<std::size_t>::max(), true));
  CGL_TRY_ASSIGN(result.groups, reader->groups());
  result.layout = reader->layout();
  return result;
}

Result<Tractogram> read_tractogram(TractogramReader& reader, std::size_t max_points, bool as_float) {
  return catch_out_of_memory([&]() -> Result<Tractogram> {
    Tractogram result;
    result.layout = reader.layout();
    result.streamlines.point_data.resize(result.layout.point_fields.size());
    result.streamlines.streamline_data.resize(result.layout.streamline_fields.size());
    TractogramBatch batch;
    while (true) {
      CGL_TRY_ASSIGN(const bool more, reader.next(batch, max_points, as_float));
      if (!more) break;
      result.streamlines.append(batch);
    }
    CGL_TRY_ASSIGN(result.groups, reader.groups());
    result.layout = reader.layout();  // what is known at the end only: counts, warnings
    return result;
  });
}

Result<std::unique_ptr<TractogramWriter>> TractogramWriter::create(const std::filesystem::path& path,
                                                                   const TractogramLayout& layout,
                                                                   const WriteOptions& options) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TractogramWriter>> {
    const WriteOptions own = without_sidecar(path, options);
    switch (layout.format) {
      case TractogramFormat::trx:
      case TractogramFormat::trx_folder: return create_trx_writer(path, layout, own);
      case TractogramFormat::trk: return create_trk_writer(path, layout, own);
      case TractogramFormat::tck: return create_tck_writer(path, layout, own);
    }
    return fail_file(path.native(), ErrorKind::invalid_argument, "writing {}: no such format", path.native());
  });
}

Result<TractogramFormat> format_of_name(const std::filesystem::path& path) {
  const std::string& name = path.native();
  if (name.ends_with(".trk")) return TractogramFormat::trk;
  if (name.ends_with(".tck")) return TractogramFormat::tck;
  if (name.ends_with(".trx")) return TractogramFormat::trx;
  if (name.ends_with("/") || name.ends_with(".trx.d")) return TractogramFormat::trx_folder;
  return fail(ErrorKind::invalid_argument,
              "{}: the name of a tractogram ends in .trk, .tck, .trx, or in / or .trx.d for a TRX folder", name);
}

std::string_view tractogram_format_name(TractogramFormat format) {
  switch (format) {
    case TractogramFormat::trk: return "TRK";
    case TractogramFormat::tck: return "TCK";
    case TractogramFormat::trx: return "TRX";
    case TractogramFormat::trx_folder: return "TRX folder";
  }
  return "unknown";
}

}  // namespace cingulum
