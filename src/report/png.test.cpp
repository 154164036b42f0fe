#include "report/png.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
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
  EXPECT_EQ(pixels[1], 10);
  EXPECT_EQ(pixels[3], 30);
}

TEST(Png, a_picture_without_pixels_is_refused) {
  EXPECT_FALSE(encode_png(Picture()).has_value());
  EXPECT_FALSE(png_data_uri(Picture(0, 4)).has_value());
}

TEST(Png, equal_pictures_are_equal_bytes) {
  Picture picture(50, 40);
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = static_cast<std::uint8_t>(i * i % 251);
  EXPECT_EQ(*encode_png(picture), *encode_png(picture));
}

}  // namespace
}  // namespace cingulum
