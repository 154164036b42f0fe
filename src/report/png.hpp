// Pictures as PNG (ISO/IEC 15948): 8-bit RGB or 16-bit grey, one stream by zlib, the filter of each row chosen by the
// smallest sum of differences. Nothing but the pixels is in the file, so equal pictures are equal bytes under one
// version of zlib.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "report/picture.hpp"

namespace cingulum {

[[nodiscard]] Result<std::vector<std::byte>> encode_png(const Picture& picture);

// 16 bits of grey, rows from the top.
struct GreyPicture {
  int width = 0;
  int height = 0;
  std::vector<std::uint16_t> grey;  // width * height
};
[[nodiscard]] Result<std::vector<std::byte>> encode_png(const GreyPicture& picture);

// RFC 4648, with padding.
[[nodiscard]] std::string encode_base64(std::span<const std::byte> bytes);

// "data:image/png;base64,...": the picture inside a page.
[[nodiscard]] Result<std::string> png_data_uri(const Picture& picture);

}  // namespace cingulum
