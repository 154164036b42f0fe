#include "report/png.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace cingulum {
namespace {

void append_big_endian(std::vector<std::byte>& bytes, std::uint32_t value) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes.push_back(static_cast<std::byte>((value >> shift) & 0xffU));
}

void append_chunk(std::vector<std::byte>& file, std::string_view type, std::span<const std::byte> content) {
  append_big_endian(file, static_cast<std::uint32_t>(content.size()));
  const std::size_t begin = file.size();
  for (const char letter : type) file.push_back(static_cast<std::byte>(letter));
  file.insert(file.end(), content.begin(), content.end());
  const auto* bytes = reinterpret_cast<const Bytef*>(file.data() + begin);
  append_big_endian(file, static_cast<std::uint32_t>(::crc32_z(0, bytes, file.size() - begin)));
}

// PNG specification, section 9.4: the neighbour that is nearest to left + above - upper left.
int paeth(int left, int above, int upper_left) {
  const int estimate = left + above - upper_left;
  const int by_left = std::abs(estimate - left);
  const int by_above = std::abs(estimate - above);
  const int by_corner = std::abs(estimate - upper_left);
  if (by_left <= by_above && by_left <= by_corner) return left;
  return by_above <= by_corner ? above : upper_left;
}

int predicted(int filter, int left, int above, int upper_left) {
  switch (filter) {
    case 1: return left;
    case 2: return above;
    case 3: return (left + above) / 2;
    case 4: return paeth(left, above, upper_left);
    default: return 0;
  }
}

// The row, filtered, behind the number of its filter. `above` is empty for the first row.
void append_filtered_row(std::vector<std::uint8_t>& stream, std::span<const std::uint8_t> row,
                         std::span<const std::uint8_t> above, std::size_t bytes_per_pixel) {
  std::vector<std::uint8_t> best, candidate(row.size());
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  int best_filter = 0;
  for (int filter = 0; filter < 5; ++filter) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const int left = i >= bytes_per_pixel ? row[i - bytes_per_pixel] : 0;
      const int up = above.empty() ? 0 : above[i];
      const int corner = !above.empty() && i >= bytes_per_pixel ? above[i - bytes_per_pixel] : 0;
      const auto value = static_cast<std::uint8_t>(row[i] - predicted(filter, left, up, corner));
      candidate[i] = value;
      sum += static_cast<std::uint64_t>(std::abs(static_cast<std::int8_t>(value)));
    }
    if (sum < least) {
      least = sum;
      best_filter = filter;
      best = candidate;
    }
  }
  stream.push_back(static_cast<std::uint8_t>(best_filter));
  stream.insert(stream.end(), best.begin(), best.end());
}

struct PixelForm {
  std::uint8_t bits = 8, colour_type = 2;  // of a sample; 0 is grey, 2 is RGB
  std::size_t bytes_per_pixel = 3;
};

Result<std::vector<std::byte>> encode_pixels(int width, int height, std::span<const std::uint8_t> pixels,
                                             const PixelForm& form) {
  if (width < 1 || height < 1) {
    return fail(ErrorKind::invalid_argument, "writing a PNG: a picture of {} x {} pixels has none", width, height);
  }
  const std::size_t row_bytes = form.bytes_per_pixel * static_cast<std::size_t>(width);
  std::vector<std::uint8_t> stream;
  stream.reserve((row_bytes + 1) * static_cast<std::size_t>(height));
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    const auto above = y == 0 ? std::span<const std::uint8_t>() : pixels.subspan((y - 1) * row_bytes, row_bytes);
    append_filtered_row(stream, pixels.subspan(y * row_bytes, row_bytes), above, form.bytes_per_pixel);
  }
  uLongf compressed_bytes = ::compressBound(static_cast<uLong>(stream.size()));
  std::vector<std::byte> compressed(compressed_bytes);
  if (::compress2(reinterpret_cast<Bytef*>(compressed.data()), &compressed_bytes, stream.data(),
                  static_cast<uLong>(stream.size()), Z_BEST_COMPRESSION) != Z_OK) {
    return fail(ErrorKind::out_of_memory, "writing a PNG of {} x {} pixels: zlib has no memory", width, height);
  }
  compressed.resize(compressed_bytes);

  std::vector<std::byte> file;
  for (const int byte : {0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a}) file.push_back(static_cast<std::byte>(byte));
  std::vector<std::byte> header;
  append_big_endian(header, static_cast<std::uint32_t>(width));
  append_big_endian(header, static_cast<std::uint32_t>(height));
  // Behind the depth and the colour type: the only methods there are, not interlaced.
  for (const int byte : {int{form.bits}, int{form.colour_type}, 0, 0, 0})
    header.push_back(static_cast<std::byte>(byte));
  append_chunk(file, "IHDR", header);
  append_chunk(file, "IDAT", compressed);
  append_chunk(file, "IEND", {});
  return file;
}

}  // namespace

Result<std::vector<std::byte>> encode_png(const Picture& picture) {
  return encode_pixels(picture.width, picture.height, picture.rgb, {});
}

Result<std::vector<std::byte>> encode_png(const GreyPicture& picture) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(2 * picture.grey.size());
  for (const std::uint16_t value : picture.grey) {
    bytes.push_back(static_cast<std::uint8_t>(value >> 8U));
    bytes.push_back(static_cast<std::uint8_t>(value & 0xffU));
  }
  return encode_pixels(picture.width, picture.height, bytes, {.bits = 16, .colour_type = 0, .bytes_per_pixel = 2});
}

std::string encode_base64(std::span<const std::byte> bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = (group << 8U) | (k < count ? std::to_integer<unsigned>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) {
      text.push_back(k <= count ? alphabet[(group >> (18U - 6U * static_cast<unsigned>(k))) & 63U] : '=');
    }
  }
  return text;
}

Result<std::string> png_data_uri(const Picture& picture) {
  CGL_TRY_ASSIGN(const std::vector<std::byte> file, encode_png(picture));
  return "data:image/png;base64," + encode_base64(file);
}

}  // namespace cingulum
