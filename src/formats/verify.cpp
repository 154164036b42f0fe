#include "formats/verify.hpp"

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/json_view.hpp"
#include "base/read_file.hpp"
#include "formats/byte_stream.hpp"
#include "formats/content_kind.hpp"
#include "formats/gzip.hpp"
#include "formats/nifti.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

Result<bool> compare_in_rounds(const fs::path& path, const CancelToken& cancel, int rounds) {
  const auto sidecar = read_sidecar(path);
  if (!sidecar && sidecar.error().kind() == ErrorKind::not_found) return false;
  if (!sidecar) return tl::make_unexpected(sidecar.error());
  const std::string where = sidecar_path(path).native();
  const JsonView said(*sidecar);
  if (!said["xxh3_128"].is_there()) return false;
  const std::string* const stored = said["xxh3_128"].text();
  if (stored == nullptr) return fail(ErrorKind::corrupt, "{}: xxh3_128 is not a text", where);
  CGL_TRY_ASSIGN(const std::string found, hash_of_file(path, cancel));
  if (*stored == found) return true;
  // A run may have replaced both between the two looks; then its sidecar is another than a moment ago.
  const auto again = read_sidecar(path);
  if (rounds > 1 && (!again || *again != *sidecar)) return compare_in_rounds(path, cancel, rounds - 1);
  std::string sizes;
  std::error_code error;
  if (const auto bytes = said["bytes"].count(); bytes && !fs::is_directory(path, error)) {
    sizes = fmt::format("; {} bytes then, {} now", *bytes, fs::file_size(path, error));
  }
  return fail(ErrorKind::corrupt, "{}: it is not the file that was written: its hash is {}, {} says {}{}",
              path.native(), found, where, *stored, sizes);
}

Result<bool> begins_as_gzip(const fs::path& path) {
  CGL_TRY_ASSIGN(const InputFile file, InputFile::open(path));
  std::array<std::byte, 2> begin{};
  CGL_TRY_ASSIGN(const std::size_t got, file.read_at(0, begin));
  return is_gzip(std::span(begin).first(got));
}

Status read_gzip_to_its_end(const fs::path& path, const CancelToken& cancel) {
  CGL_TRY_ASSIGN(InputFile file, InputFile::open(path));
  CGL_TRY_ASSIGN(const auto stream, open_gzip(std::make_unique<FileStream>(std::move(file))));
  std::vector<std::byte> block(std::size_t{1} << 20U);
  while (true) {
    CGL_TRY(cancel.check());
    CGL_TRY_ASSIGN(const std::size_t got, stream->read(block));
    if (got == 0) return {};
  }
}

Status read_tractogram_to_its_end(TractogramReader& reader, const CancelToken& cancel) {
  CGL_TRY(reader.verify());
  TractogramBatch batch;
  while (true) {
    CGL_TRY(cancel.check());
    CGL_TRY_ASSIGN(const bool more, reader.next(batch, default_batch_points, true));
    if (!more) return {};
  }
}

}  // namespace

Result<bool> compare_with_sidecar(const fs::path& path, const CancelToken& cancel) {
  return compare_in_rounds(path, cancel, 3);
}

Result<Verification> verify_file(const fs::path& path, const CancelToken& cancel) {
  return catch_out_of_memory([&]() -> Result<Verification> {
    Verification found;
    CGL_TRY_ASSIGN(const bool by_sidecar, compare_with_sidecar(path, cancel));
    if (by_sidecar) found.checksums.push_back("sidecar XXH3-128");
    CGL_TRY_ASSIGN(const ContentKind kind, find_content_kind(path));
    if (kind == ContentKind::folder) return found;
    std::error_code ignored;
    bool compressed = false;
    if (!fs::is_directory(path, ignored)) {
      CGL_TRY_ASSIGN(compressed, begins_as_gzip(path));
    }
    switch (kind) {
      case ContentKind::nifti: {
        CGL_TRY_ASSIGN(NiftiReader reader, NiftiReader::open(path, cancel));
        CGL_TRY(reader.verify());
        found.complete = true;
        break;
      }
      case ContentKind::tractogram: {
        CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(path));
        CGL_TRY(read_tractogram_to_its_end(*reader, cancel));
        if (reader->layout().format == TractogramFormat::trx) found.checksums.push_back("zip CRC-32");
        found.complete = true;
        break;
      }
      case ContentKind::json: {
        CGL_TRY_ASSIGN(const std::string text, read_text_file(path));
        CGL_TRY(add_file_context(parse_json(text), "reading", path.native()));
        found.complete = true;
        break;
      }
      default:
        if (compressed) CGL_TRY(add_file_context(read_gzip_to_its_end(path, cancel), "reading", path.native()));
        break;
    }
    if (compressed) found.checksums.push_back("gzip CRC-32");
    return found;
  });
}

}  // namespace cingulum
