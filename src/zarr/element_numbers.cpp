#include "zarr/element_numbers.hpp"

#include <cstdint>
#include <cstring>

#include "formats/samples.hpp"
#include "numerics/float16.hpp"

namespace cingulum::zarr {
namespace {

bool is_float16(ElementType type) {
  return type.code == ElementType::Code::floating && type.bits == 16;
}

SampleFormat format_of(ElementType type) {
  if (type.code == ElementType::Code::complex) {
    type = {ElementType::Code::floating, static_cast<std::uint8_t>(type.bits / 2)};
  } else if (type.code == ElementType::Code::boolean) {
    type = {ElementType::Code::unsigned_integer, type.bits};
  }
  return {.type = type};
}

}  // namespace

std::size_t numbers_of_element(ElementType type) {
  return type.code == ElementType::Code::complex ? 2 : 1;
}

void decode_numbers(ElementType type, std::span<const std::byte> bytes, std::span<double> values) {
  if (!is_float16(type)) return decode_samples(format_of(type), bytes, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t stored = 0;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    values[i] = numerics::float16_to_float(stored);
  }
}

void encode_numbers(ElementType type, std::span<const double> values, std::span<std::byte> bytes) {
  if (!is_float16(type)) return encode_samples(format_of(type), values, bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t stored = numerics::float_to_float16(static_cast<float>(values[i]));
    std::memcpy(bytes.data() + i * sizeof stored, &stored, sizeof stored);
  }
}

}  // namespace cingulum::zarr
