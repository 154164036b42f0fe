#include "formats/element_number.hpp"

#include <cstdint>
#include <cstring>

#include "numerics/float16.hpp"

namespace cingulum {

float float_of_element(const std::byte* at, ElementType type) {
  const auto value = [&]<class T>(T) {
    T number;
    std::memcpy(&number, at, sizeof(number));
    return number;
  };
  if (type.code == ElementType::Code::floating) {
    if (type.bits == 16) return numerics::float16_to_float(value(std::uint16_t{}));
    return type.bits == 32 ? value(float{}) : static_cast<float>(value(double{}));
  }
  if (type.code == ElementType::Code::integer) {
    switch (type.bits) {
      case 8: return static_cast<float>(value(std::int8_t{}));
      case 16: return static_cast<float>(value(std::int16_t{}));
      case 32: return static_cast<float>(value(std::int32_t{}));
      default: return static_cast<float>(value(std::int64_t{}));
    }
  }
  switch (type.bits) {
    case 8: return static_cast<float>(value(std::uint8_t{}));
    case 16: return static_cast<float>(value(std::uint16_t{}));
    case 32: return static_cast<float>(value(std::uint32_t{}));
    default: return static_cast<float>(value(std::uint64_t{}));
  }
}

}  // namespace cingulum
