#include "formats/content_kind.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "formats/byte_stream.hpp"
#include "formats/gzip.hpp"
#include "formats/nifti_header.hpp"

namespace cingulum {
namespace {

constexpr std::size_t looked_at_bytes = std::size_t{64} << 10U;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<std::vector<std::byte>> first_bytes(ByteStream& stream) {
  std::vector<std::byte> bytes(looked_at_bytes);
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const auto got = stream.read(std::span(bytes).subspan(filled));
    // A damaged file is reported by its reader; here it is enough to know which one that is.
    if (!got && got.error().kind() == ErrorKind::corrupt) break;
    if (!got) return tl::make_unexpected(got.error());
    if (*got == 0) break;
    filled += *got;
  }
  bytes.resize(filled);
  return bytes;
}

// The smallest and largest count of numbers in a line, and the number of lines that have any; no lines for other texts.
struct TableShape {
  std::size_t lines = 0;
  std::size_t fewest = 0;
  std::size_t most = 0;
};

TableShape shape_of_table(std::string_view text) {
  TableShape shape;
  const bool complete = text.size() < looked_at_bytes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    // A line that was cut off says nothing, unless it is the only one.
    if (end == text.size() && !complete && shape.lines > 0) break;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    std::size_t numbers = 0;
    while (true) {
      const std::size_t begin = line.find_first_not_of(" \t\r,;");
      if (begin == std::string_view::npos) break;
      line.remove_prefix(begin);
      const std::string_view word = line.substr(0, line.find_first_of(" \t\r,;"));
      const char* first = word.data() + (word.starts_with('+') ? 1 : 0);
      double value = 0;
      const auto parsed = std::from_chars(first, word.data() + word.size(), value);
      const bool cut_off = !complete && text.empty() && word.size() == line.size();
      if (!cut_off && (parsed.ec == std::errc::invalid_argument || parsed.ptr != word.data() + word.size())) return {};
      ++numbers;
      line.remove_prefix(word.size());
    }
    if (numbers == 0) continue;
    shape.fewest = shape.lines == 0 ? numbers : std::min(shape.fewest, numbers);
    shape.most = std::max(shape.most, numbers);
    ++shape.lines;
  }
  return shape;
}

ContentKind kind_of_table(const TableShape& shape, const std::string& name) {
  if (shape.lines == 0) return ContentKind::unknown;
  if (name.find("bval") != std::string::npos) return ContentKind::b_values;
  if (name.find("bvec") != std::string::npos) return ContentKind::b_vectors;
  if (shape.lines == 1 || shape.most == 1) return ContentKind::b_values;
  if (shape.fewest == 4 && shape.most == 4) return ContentKind::mrtrix_table;
  if (shape.lines == 3 || (shape.fewest == 3 && shape.most == 3)) return ContentKind::b_vectors;
  return shape.fewest >= 4 ? ContentKind::mrtrix_table : ContentKind::unknown;
}

ContentKind kind_of_bytes(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text = as_text(bytes);
  if (text.starts_with(std::string_view("TRACK\0", 6)) || text.starts_with("mrtrix tracks") || text.starts_with("PK")) {
    return ContentKind::tractogram;
  }
  if (text.starts_with("mrtrix image")) return ContentKind::mrtrix_image;
  const auto header = nifti_header_size(bytes.first(std::min(bytes.size(), nifti2_header_bytes)));
  // What is refused as an argument is known: a pair.
  if (header || header.error().kind() == ErrorKind::invalid_argument) return ContentKind::nifti;
  constexpr std::byte low_348{0x5c}, low_540{0x1c};  // 348 and 540 are 0x15c and 0x21c
  const auto starts_with_size = [&](std::byte low, std::byte high) {
    if (bytes.size() < 4) return false;
    return (bytes[0] == low && bytes[1] == high && bytes[2] == std::byte{0} && bytes[3] == std::byte{0}) ||
           (bytes[3] == low && bytes[2] == high && bytes[1] == std::byte{0} && bytes[0] == std::byte{0});
  };
  if (starts_with_size(low_348, std::byte{1}) || starts_with_size(low_540, std::byte{2})) return ContentKind::nifti;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && (text[begin] == '{' || text[begin] == '[')) return ContentKind::json;
  if (text.find('\0') != std::string_view::npos) return ContentKind::unknown;
  return kind_of_table(shape_of_table(text), name);
}

}  // namespace

Result<ContentKind> find_content_kind(const std::filesystem::path& path) {
  return add_file_context(catch_out_of_memory([&]() -> Result<ContentKind> {
                            std::error_code ignored;
                            if (std::filesystem::is_directory(path, ignored)) {
                              return std::filesystem::exists(path / "header.json", ignored) ? ContentKind::tractogram
                                                                                            : ContentKind::folder;
                            }
                            CGL_TRY_ASSIGN(InputFile file, InputFile::open(path));
                            std::array<std::byte, 2> begin{};
                            CGL_TRY_ASSIGN(const std::size_t got, file.read_at(0, begin));
                            const bool compressed = is_gzip(std::span(begin).first(got));
                            std::unique_ptr<ByteStream> stream = std::make_unique<FileStream>(std::move(file));
                            if (compressed) {
                              CGL_TRY_ASSIGN(stream, open_gzip(std::move(stream)));
                            }
                            CGL_TRY_ASSIGN(const std::vector<std::byte> bytes, first_bytes(*stream));
                            const ContentKind kind = kind_of_bytes(bytes, path.filename().native());
                            return compressed && kind != ContentKind::nifti && kind != ContentKind::tractogram &&
                                           kind != ContentKind::mrtrix_image
                                       ? ContentKind::gzip
                                       : kind;
                          }),
                          "reading", path.native());
}

std::string_view content_kind_name(ContentKind kind) {
  switch (kind) {
    case ContentKind::nifti: return "NIfTI image";
    case ContentKind::tractogram: return "tractogram";
    case ContentKind::b_values: return "b-values";
    case ContentKind::b_vectors: return "b-vectors";
    case ContentKind::mrtrix_table: return "MRtrix gradient table";
    case ContentKind::mrtrix_image: return "MRtrix image";
    case ContentKind::json: return "JSON";
    case ContentKind::gzip: return "gzip";
    case ContentKind::folder: return "folder";
    case ContentKind::unknown: return "unknown";
  }
  return "unknown";
}

}  // namespace cingulum
