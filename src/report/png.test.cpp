#include "report/png.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace cingulum {
namespace {

std::string base64_of(std::string_view text) {
  return encode_base64(std::as_bytes(std::span(text)));
}

TEST(Png, base64_is_that_of_rfc_4648) {
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64_of("\xff\xfe\xfd"), "//79");
}

// tests/report/test_report.py decodes pictures of every size; here the frame is looked at.
TEST(Png, one_pixel_is_a_file_of_known_parts) {
  const auto file = encode_png(Picture(1, 1, {10, 20, 30}));
  ASSERT_TRUE(file.has_value());
  const std::string_view bytes(reinterpret_cast<const char*>(file->data()), file->size());
  EXPECT_EQ(bytes.substr(0, 8), std::string_view("\x89PNG\r\n\x1a\n", 8));
  EXPECT_EQ(bytes.substr(8, 8), std::string_view("\0\0\0\x0dIHDR", 8));
  EXPECT_EQ(bytes.substr(16, 13), std::string_view("\0\0\0\1\0\0\0\1\x08\x02\0\0\0", 13));
  // The CRC of this IHDR is that of the well-known smallest RGB files.
  EXPECT_EQ(bytes.substr(29, 4), std::string_view("\x90\x77\x53\xde", 4));
  EXPECT_EQ(bytes.substr(bytes.size() - 12), std::string_view("\0\0\0\0IEND\xae\x42\x60\x82", 12));
  const std::size_t data = bytes.find("IDAT") + 4;
  std::array<Bytef, 4> pixels{};
  uLongf size = pixels.size();
  ASSERT_EQ(::uncompress(pixels.data(), &size, reinterpret_cast<const Bytef*>(bytes.data()) + data,
                         static_cast<uLong>(bytes.size() - 16 - data)),
            Z_OK);
  EXPECT_EQ(size, 4U);
  EXPECT_EQ(pixels, (std::array<Bytef, 4>{0, 10, 20, 30})) << "no filter, then red, green and blue";
}

TEST(Png, a_picture_without_pixels_is_refused) {
  EXPECT_FALSE(encode_png(Picture()).has_value());
  EXPECT_FALSE(png_data_uri(Picture(0, 4)).has_value());
}

// A decoder after section 9 of the specification, written apart from the encoder: the filter of each row is undone on
// bytes modulo 256. `filters` counts how often each was used.
std::vector<std::uint8_t> decode(const std::vector<std::byte>& file, int width, int height,
                                 std::array<int, 5>& filters) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t data = bytes.find("IDAT") + 4;
  const std::size_t stride = 3 * static_cast<std::size_t>(width);
  std::vector<Bytef> stream((stride + 1) * static_cast<std::size_t>(height));
  uLongf size = static_cast<uLongf>(stream.size());
  EXPECT_EQ(::uncompress(stream.data(), &size, reinterpret_cast<const Bytef*>(bytes.data()) + data,
                         static_cast<uLong>(bytes.size() - 16 - data)),
            Z_OK);
  EXPECT_EQ(size, stream.size());
  std::vector<std::uint8_t> pixels(stride * static_cast<std::size_t>(height));
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    const int filter = stream[y * (stride + 1)];
    ++filters.at(static_cast<std::size_t>(filter));
    for (std::size_t x = 0; x < stride; ++x) {
      const int a = x < 3 ? 0 : pixels[y * stride + x - 3];
      const int b = y == 0 ? 0 : pixels[(y - 1) * stride + x];
      const int c = x < 3 || y == 0 ? 0 : pixels[(y - 1) * stride + x - 3];
      const int p = a + b - c;
      const std::array<int, 3> miss = {std::abs(p - a), std::abs(p - b), std::abs(p - c)};
      // The first of left, above, corner that misses least.
      const auto least = std::min_element(miss.begin(), miss.end()) - miss.begin();
      const std::array<int, 5> guess = {0, a, b, (a + b) / 2,
                                        std::array<int, 3>{a, b, c}[static_cast<std::size_t>(least)]};
      pixels[y * stride + x] =
          static_cast<std::uint8_t>(stream[y * (stride + 1) + 1 + x] + guess[static_cast<std::size_t>(filter)]);
    }
  }
  return pixels;
}

TEST(Png, rows_of_every_filter_decode_to_the_picture) {
  constexpr int width = 60, height = 150;
  Picture picture(width, height);
  std::uint32_t noise = 1;
  const auto next = [&] { return static_cast<std::uint8_t>((noise = noise * 1664525U + 1013904223U) >> 24U); };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const std::size_t i = picture.offset(x, y);
      for (std::size_t c = 0; c < 3; ++c) {
        const auto small = static_cast<std::uint8_t>(next() % 9);
        const std::size_t channel = i + c;
        switch (y / 30) {
          case 0: picture.rgb[channel] = next() < 128 ? 0 : 2; break;                       // no filter
          case 1: picture.rgb[channel] = static_cast<std::uint8_t>(x * 4 + y * 97); break;  // the pixel before
          case 2: picture.rgb[channel] = static_cast<std::uint8_t>(x * 91 + y); break;      // the pixel above
          case 3:                                                                           // the mean of both
            picture.rgb[channel] =
                x == 0
                    ? next()
                    : static_cast<std::uint8_t>(
                          (picture.rgb[channel - 3] + picture.rgb[channel - 3 * static_cast<std::size_t>(width)]) / 2 +
                          small);
            break;
          default:
            picture.rgb[channel] = static_cast<std::uint8_t>(x * x / 9 + y * 5 + small * (x / 20));
            break;  // Paeth
        }
      }
    }
  }
  std::array<int, 5> filters{};
  const auto file = encode_png(picture);
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(decode(*file, width, height, filters), picture.rgb);
  for (const int used : filters) EXPECT_GT(used, 0);
}

TEST(Png, equal_pictures_are_equal_bytes) {
  Picture picture(50, 40);
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = static_cast<std::uint8_t>(i * i % 251);
  EXPECT_EQ(*encode_png(picture), *encode_png(picture));
}

}  // namespace
}  // namespace cingulum
