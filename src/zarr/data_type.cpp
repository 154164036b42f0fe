#include "zarr/data_type.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"
#include "formats/tractogram_batch.hpp"
#include "numerics/float16.hpp"
#include "zarr/json_values.hpp"

namespace cingulum::zarr {
namespace {

using Code = ElementType::Code;

bool is_known_size(Code code, std::size_t bytes) {
  switch (code) {
    case Code::boolean: return bytes == 1;
    case Code::integer:
    case Code::unsigned_integer: return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case Code::floating: return bytes == 2 || bytes == 4 || bytes == 8;
    case Code::complex: return bytes == 8 || bytes == 16;
  }
  return false;
}

template <class T>
FillValue value_of(T number) {
  FillValue value{};
  std::memcpy(value.data(), &number, sizeof(T));
  return value;
}

tl::unexpected<Error> not_of_type(const Json& value, ElementType type) {
  return corrupt("fill value {} is not a {}", json_excerpt(value), type.name());
}

std::optional<std::uint64_t> hexadecimal(std::string_view text, std::size_t bytes) {
  if (!text.starts_with("0x") || text.size() != 2 + 2 * bytes) return std::nullopt;
  std::uint64_t bits = 0;
  const auto parsed = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return bits;
}

// `bytes` is 2, 4 or 8; the bits are in the low ones.
std::optional<std::uint64_t> parse_real_bits(const Json& value, std::size_t bytes) {
  double number = 0;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (const auto bits = hexadecimal(text, bytes)) return bits;
    if (text == "NaN") {
      number = std::numeric_limits<double>::quiet_NaN();
    } else if (text == "Infinity") {
      number = std::numeric_limits<double>::infinity();
    } else if (text == "-Infinity") {
      number = -std::numeric_limits<double>::infinity();
    } else {
      return std::nullopt;
    }
  } else if (value.is_number()) {
    number = value.get<double>();
  } else {
    return std::nullopt;
  }
  if (bytes == 8) return std::bit_cast<std::uint64_t>(number);
  const auto single = static_cast<float>(number);
  if (std::isinf(single) && !std::isinf(number)) return std::nullopt;
  if (bytes == 4) return std::bit_cast<std::uint32_t>(single);
  // Once from float64 to half, as numpy: through float32 the rounding to nearest would happen twice.
  const std::uint16_t half = double_to_float16(number);
  if ((half & 0x7fffU) == 0x7c00U && !std::isinf(number)) return std::nullopt;
  return half;
}

template <class T>
std::optional<T> parse_whole(const Json& value) {
  // A number that is not negative may be held as either kind, by who made the JSON.
  if (value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0)) {
    const auto number = value.get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (std::is_signed_v<T> && number >= static_cast<std::int64_t>(std::numeric_limits<T>::min())) {
      return static_cast<T>(number);
    }
  } else if (value.is_number_float()) {
    // 0.0 for a whole number: writers in use do that.
    const auto number = value.get<double>();
    const auto lowest = static_cast<double>(std::numeric_limits<T>::min());
    const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (number == std::floor(number) && number >= lowest && number < above) return static_cast<T>(number);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_whole_bits(const Json& value, Code code, std::size_t bytes) {
  const bool is_signed = code == Code::integer;
  const auto bits_of = [](auto number) -> std::optional<std::uint64_t> {
    if (!number) return std::nullopt;
    return static_cast<std::uint64_t>(*number);
  };
  switch (bytes) {
    case 1: return is_signed ? bits_of(parse_whole<std::int8_t>(value)) : bits_of(parse_whole<std::uint8_t>(value));
    case 2: return is_signed ? bits_of(parse_whole<std::int16_t>(value)) : bits_of(parse_whole<std::uint16_t>(value));
    case 4: return is_signed ? bits_of(parse_whole<std::int32_t>(value)) : bits_of(parse_whole<std::uint32_t>(value));
    default: return is_signed ? bits_of(parse_whole<std::int64_t>(value)) : bits_of(parse_whole<std::uint64_t>(value));
  }
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0 || text.size() > 64) return std::nullopt;
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::vector<std::byte> bytes;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool padded = i >= text.size() - padding;
    const std::size_t digit = padded ? 0 : alphabet.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16U, 8U, 0U}) bytes.push_back(static_cast<std::byte>((bits >> shift) & 0xffU));
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

Json real_json(std::span<const std::byte> bytes) {
  double number = 0;
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  std::uint64_t usual_nan = 0;
  if (bytes.size() == 2) {
    number = static_cast<double>(numerics::float16_to_float(static_cast<std::uint16_t>(bits)));
    usual_nan = 0x7e00;
  } else if (bytes.size() == 4) {
    number = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    usual_nan = 0x7fc00000;
  } else {
    number = std::bit_cast<double>(bits);
    usual_nan = 0x7ff8000000000000;
  }
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  if (!std::isnan(number)) return number;
  if (bits == usual_nan) return "NaN";
  return fmt::format("0x{:0{}x}", bits, 2 * bytes.size());
}

}  // namespace

Result<FilterType> parse_v2_type(std::string_view text) {
  const auto refuse = [&](std::string_view why) { return corrupt("data type '{}': {}", text, why); };
  if (text.size() < 2) return refuse("not a type of numpy (<f4, |u1, ...)");
  const char order = text[0];
  if (order != '<' && order != '>' && order != '|') return refuse("its byte order is none of <, > and |");
  unsigned bytes = 0;
  const auto parsed = std::from_chars(text.data() + 2, text.data() + text.size(), bytes);
  FilterType found;
  switch (text[1]) {
    case 'b': found.type.code = Code::boolean; break;
    case 'i': found.type.code = Code::integer; break;
    case 'u': found.type.code = Code::unsigned_integer; break;
    case 'f': found.type.code = Code::floating; break;
    case 'c': found.type.code = Code::complex; break;
    case 'S':
    case 'U': return refuse("strings are not supported");
    case 'O': return refuse("objects are not supported");
    case 'M':
    case 'm': return refuse("dates and times are not supported");
    case 'V': return refuse("raw bytes and records are not supported");
    default: return refuse("not a type of numpy (<f4, |u1, ...)");
  }
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || !is_known_size(found.type.code, bytes)) {
    return refuse("there is no such number");
  }
  if (order == '|' && bytes > 1) return refuse("its byte order is missing");
  found.type.bits = static_cast<std::uint8_t>(bytes * 8);
  found.big_endian = order == '>' && bytes > 1;
  return found;
}

Result<ElementType> parse_v3_type(std::string_view text) {
  for (const Code code : {Code::boolean, Code::integer, Code::unsigned_integer, Code::floating, Code::complex}) {
    for (const std::size_t bytes : {1U, 2U, 4U, 8U, 16U}) {
      const ElementType type{code, static_cast<std::uint8_t>(bytes * 8)};
      if (is_known_size(code, bytes) && type.name() == text) return type;
    }
  }
  if (text == "string") return corrupt("data type 'string': strings are not supported");
  return corrupt(
      "data type '{}' is not supported (known: bool, int8 to int64, uint8 to uint64, float16 to float64, complex64, "
      "complex128)",
      text);
}

std::string v2_type_name(ElementType type, bool big_endian) {
  const char order = type.bytes() == 1 ? '|' : big_endian ? '>' : '<';
  char kind = 'f';
  switch (type.code) {
    case Code::boolean: kind = 'b'; break;
    case Code::integer: kind = 'i'; break;
    case Code::unsigned_integer: kind = 'u'; break;
    case Code::floating: kind = 'f'; break;
    case Code::complex: kind = 'c'; break;
  }
  return fmt::format("{}{}{}", order, kind, type.bytes());
}

Result<FillValue> parse_fill_value(const Json& value, ElementType type, bool base64, bool big_endian) {
  const std::size_t bytes = type.bytes();
  if (base64 && value.is_string()) {
    if (auto raw = from_base64(value.get_ref<const std::string&>()); raw && raw->size() == bytes) {
      const std::size_t number = type.code == Code::complex ? bytes / 2 : bytes;
      if (big_endian) swap_in_place(*raw, number);
      FillValue filled{};
      std::memcpy(filled.data(), raw->data(), bytes);
      return filled;
    }
  }
  switch (type.code) {
    case Code::boolean: {
      if (value.is_boolean()) return value_of(static_cast<std::uint8_t>(value.get<bool>()));
      const auto number = parse_whole<std::uint8_t>(value);
      if (!number || *number > 1) return not_of_type(value, type);
      return value_of(*number);
    }
    case Code::integer:
    case Code::unsigned_integer: {
      const auto bits = parse_whole_bits(value, type.code, bytes);
      if (!bits) return not_of_type(value, type);
      FillValue filled{};
      std::memcpy(filled.data(), &*bits, bytes);
      return filled;
    }
    case Code::floating: {
      const auto bits = parse_real_bits(value, bytes);
      if (!bits) return not_of_type(value, type);
      FillValue filled{};
      std::memcpy(filled.data(), &*bits, bytes);
      return filled;
    }
    case Code::complex: {
      const std::size_t half = bytes / 2;
      FillValue filled{};
      if (value.is_array() && value.size() == 2) {
        for (std::size_t i = 0; i < 2; ++i) {
          const auto bits = parse_real_bits(value[i], half);
          if (!bits) return not_of_type(value, type);
          std::memcpy(filled.data() + i * half, &*bits, half);
        }
        return filled;
      }
      const auto real = parse_real_bits(value, half);
      if (!real) return not_of_type(value, type);
      std::memcpy(filled.data(), &*real, half);
      return filled;
    }
  }
  return not_of_type(value, type);
}

Json fill_value_json(const FillValue& value, ElementType type) {
  const std::size_t bytes = type.bytes();
  switch (type.code) {
    case Code::boolean: return value[0] != std::byte{0};
    case Code::integer: {
      std::int64_t number = 0;
      switch (bytes) {
        case 1: number = load<std::int8_t>(value, 0); break;
        case 2: number = load<std::int16_t>(value, 0); break;
        case 4: number = load<std::int32_t>(value, 0); break;
        default: number = load<std::int64_t>(value, 0); break;
      }
      return number;
    }
    case Code::unsigned_integer: {
      std::uint64_t number = 0;
      std::memcpy(&number, value.data(), bytes);
      return number;
    }
    case Code::floating: return real_json(std::span(value).first(bytes));
    case Code::complex:
      return Json::array(
          {real_json(std::span(value).first(bytes / 2)), real_json(std::span(value).subspan(bytes / 2, bytes / 2))});
  }
  return nullptr;
}

}  // namespace cingulum::zarr
