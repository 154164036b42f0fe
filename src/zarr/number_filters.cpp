#include "zarr/number_filters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "formats/byte_order.hpp"
#include "formats/tractogram_batch.hpp"  // double_to_float16
#include "numerics/float16.hpp"
#include "zarr/byte_filters.hpp"
#include "zarr/codec_failure.hpp"

namespace cingulum::zarr {
namespace {

// float16 as numpy computes with it: each operation in float32, its result rounded.
struct Half {
  std::uint16_t bits = 0;

  Half() = default;
  explicit Half(float value) : bits(numerics::float_to_float16(value)) {}
  explicit operator float() const { return numerics::float16_to_float(bits); }
  friend Half operator-(Half a, Half b) { return Half(static_cast<float>(a) - static_cast<float>(b)); }
  friend Half operator+(Half a, Half b) { return Half(static_cast<float>(a) + static_cast<float>(b)); }
  friend Half operator*(Half a, Half b) { return Half(static_cast<float>(a) * static_cast<float>(b)); }
  friend Half operator/(Half a, Half b) { return Half(static_cast<float>(a) / static_cast<float>(b)); }
};

template <class To>
To integer_of(double value) {
  constexpr double two_to_63 = 0x1p63;
  if (!(value >= -two_to_63)) return static_cast<To>(std::numeric_limits<std::int64_t>::min());  // NaN, too
  if (value < two_to_63) return static_cast<To>(static_cast<std::int64_t>(value));
  if (value < 2 * two_to_63) return static_cast<To>(static_cast<std::uint64_t>(value));
  return static_cast<To>(std::numeric_limits<std::uint64_t>::max());
}

template <class To, class From>
To number_cast(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half>) {
    return number_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Half>) {
    To half;
    half.bits = double_to_float16(static_cast<double>(value));  // rounded once
    return half;
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return integer_of<To>(static_cast<double>(value));
  } else {
    return static_cast<To>(value);
  }
}

// A complex number is two floating ones.
ElementType component_of(ElementType type) {
  if (type.code != ElementType::Code::complex) return type;
  return {ElementType::Code::floating, static_cast<std::uint8_t>(type.bits / 2)};
}

template <class Visitor>
bool visit_floating(ElementType type, Visitor&& visitor) {
  if (type.code != ElementType::Code::floating) return false;
  switch (type.bits) {
    case 16: visitor(Half{}); return true;
    case 32: visitor(float{}); return true;
    case 64: visitor(double{}); return true;
    default: return false;
  }
}
// Calls visitor(T{}) for the type of the numbers; false where they are of none that filters take.
template <class Visitor>
bool visit_numbers(ElementType type, Visitor&& visitor) {
  switch (type.code) {
    case ElementType::Code::integer:
      switch (type.bits) {
        case 8: visitor(std::int8_t{}); return true;
        case 16: visitor(std::int16_t{}); return true;
        case 32: visitor(std::int32_t{}); return true;
        case 64: visitor(std::int64_t{}); return true;
        default: return false;
      }
    case ElementType::Code::unsigned_integer:
      switch (type.bits) {
        case 8: visitor(std::uint8_t{}); return true;
        case 16: visitor(std::uint16_t{}); return true;
        case 32: visitor(std::uint32_t{}); return true;
        case 64: visitor(std::uint64_t{}); return true;
        default: return false;
      }
    default: return visit_floating(type, visitor);
  }
}

// Filters work on blocks: read as numbers of the type in which they compute, changed, and written in the other type.
constexpr std::size_t block_numbers = 512;
using NumberBlock = std::array<std::byte, block_numbers * sizeof(double)>;

// `count` numbers of `from` at `in` become numbers of `to` at `out`, both in the machine's byte order.
void cast_numbers(ElementType from, ElementType to, std::size_t count, const std::byte* in, std::byte* out) {
  if (from == to) {
    std::memcpy(out, in, count * from.bytes());
    return;
  }
  visit_numbers(from, [&](auto source) {
    visit_numbers(to, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      for (std::size_t i = 0; i < count; ++i) {
        From value;
        std::memcpy(&value, in + i * sizeof(From), sizeof(From));
        const To cast = number_cast<To>(value);
        std::memcpy(out + i * sizeof(To), &cast, sizeof(To));
      }
    });
  });
}

// At most block_numbers numbers, from how they are stored to `work` and back.
void read_numbers(FilterType stored, ElementType work, std::size_t count, const std::byte* in, std::byte* numbers) {
  const ElementType type = component_of(stored.type);
  if (!stored.big_endian || type.bytes() == 1) return cast_numbers(type, work, count, in, numbers);
  NumberBlock swapped;
  const std::size_t bytes = count * type.bytes();
  swap_elements(type.bytes(), std::span(in, bytes), std::span(swapped).first(bytes));
  cast_numbers(type, work, count, swapped.data(), numbers);
}

void write_numbers(ElementType work, FilterType stored, std::size_t count, const std::byte* numbers, std::byte* out) {
  const ElementType type = component_of(stored.type);
  if (!stored.big_endian || type.bytes() == 1) return cast_numbers(work, type, count, numbers, out);
  NumberBlock native;
  const std::size_t bytes = count * type.bytes();
  cast_numbers(work, type, count, numbers, native.data());
  swap_elements(type.bytes(), std::span<const std::byte>(native).first(bytes), std::span(out, bytes));
}

// Runs change(numbers) on blocks of `work`, the type of Number, between `in` (numbers of `from`) and `out` (of `to`).
template <class Number, class Change>
void change_blocks(FilterType from, FilterType to, ElementType work, std::span<const std::byte> in,
                   std::span<std::byte> out, Change&& change) {
  const std::size_t from_bytes = component_of(from.type).bytes();
  const std::size_t to_bytes = component_of(to.type).bytes();
  const std::size_t count = in.size() / from_bytes;
  std::array<Number, block_numbers> numbers;
  auto* const bytes = reinterpret_cast<std::byte*>(numbers.data());
  for (std::size_t begin = 0; begin < count; begin += block_numbers) {
    const std::size_t here = std::min(block_numbers, count - begin);
    read_numbers(from, work, here, in.data() + begin * from_bytes, bytes);
    change(std::span(numbers).first(here));
    write_numbers(work, to, here, bytes, out.data() + begin * to_bytes);
  }
}

// Integers go round at their ends; signed ones by way of unsigned ones, where that is defined.
template <class Number>
Number difference(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    using Unsigned = std::make_unsigned_t<Number>;
    return static_cast<Number>(static_cast<Unsigned>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b)));
  } else {
    return a - b;
  }
}
template <class Number>
Number total(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    using Unsigned = std::make_unsigned_t<Number>;
    return static_cast<Number>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

bool is_complex(FilterType type) {
  return type.type.code == ElementType::Code::complex;
}

tl::unexpected<Error> refused_types(const Codec& codec) {
  return codec_failure(codec, ErrorKind::invalid_argument, "numbers of {} as {} are not among those it takes",
                       codec.decoded.type.name(), codec.encoded.type.name());
}

Status check_delta_types(const Codec& codec) {
  const auto any = [](auto) {};
  if (is_complex(codec.decoded) != is_complex(codec.encoded) || !visit_numbers(component_of(codec.decoded.type), any) ||
      !visit_numbers(component_of(codec.encoded.type), any)) {
    return refused_types(codec);
  }
  return {};
}

// The type in which numpy computes with an array of `type` and a Python float.
ElementType arithmetic_type(ElementType type) {
  return type.code == ElementType::Code::floating ? type : element_type_of<double>();
}

Status check_scaled_types(const Codec& codec) {
  const auto any = [](auto) {};
  if (!visit_numbers(codec.decoded.type, any) || !visit_numbers(codec.encoded.type, any)) return refused_types(codec);
  return {};
}

template <class Number>
Number rounded_to_even(Number value) {
  if constexpr (std::is_same_v<Number, Half>) {
    return Half(std::nearbyint(static_cast<float>(value)));
  } else {
    return std::nearbyint(value);
  }
}

template <class Bits>
void round_fractions(FilterType type, int dropped_bits, std::span<const std::byte> in, std::span<std::byte> out) {
  const auto mask = static_cast<Bits>(static_cast<Bits>(~Bits{0}) << dropped_bits);
  const auto below_half = static_cast<Bits>((Bits{1} << (dropped_bits - 1)) - 1);
  for (std::size_t at = 0; at + sizeof(Bits) <= in.size(); at += sizeof(Bits)) {
    const auto bits = load<Bits>(in, at, type.big_endian);
    const auto last_kept = static_cast<Bits>((bits >> dropped_bits) & 1U);
    const auto rounded = static_cast<Bits>((bits + below_half + last_kept) & mask);
    store(out, at, type.big_endian ? swap_bytes(rounded) : rounded);
  }
}

// Every number by one formula, in the arithmetic of those that come in.
template <class Formula>
Status change_scaled(const Codec& codec, FilterType from, FilterType to, std::span<const std::byte> in,
                     std::span<std::byte> out, Formula formula) {
  CGL_TRY(check_scaled_types(codec));
  const ElementType work = arithmetic_type(from.type);
  visit_floating(work, [&](auto number) {
    using Number = decltype(number);
    const auto scale = number_cast<Number>(codec.scale);
    const auto offset = number_cast<Number>(codec.offset);
    change_blocks<Number>(from, to, work, in, out, [&](std::span<Number> numbers) {
      for (Number& value : numbers) value = formula(value, scale, offset);
    });
  });
  return {};
}

}  // namespace

Status encode_delta(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  CGL_TRY(check_delta_types(codec));
  const ElementType work = component_of(codec.decoded.type);
  const std::size_t lag = is_complex(codec.decoded) ? 2 : 1;
  visit_numbers(work, [&](auto number) {
    using Number = decltype(number);
    std::array<Number, 2> previous{};
    bool first = true;
    change_blocks<Number>(codec.decoded, codec.encoded, work, in, out, [&](std::span<Number> numbers) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        // Blocks have an even number of numbers: those of a complex one stay together.
        const Number value = numbers[i];
        if (!first || i >= lag) numbers[i] = difference(value, previous[i & (lag - 1)]);
        previous[i & (lag - 1)] = value;
      }
      first = false;
    });
  });
  return {};
}

Status decode_delta(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  CGL_TRY(check_delta_types(codec));
  const ElementType work = component_of(codec.decoded.type);
  const std::size_t lag = is_complex(codec.decoded) ? 2 : 1;
  visit_numbers(work, [&](auto number) {
    using Number = decltype(number);
    std::array<Number, 2> sum{};
    bool first = true;
    change_blocks<Number>(codec.encoded, codec.decoded, work, in, out, [&](std::span<Number> numbers) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        // The first is taken as it is: 0 + -0 would be 0.
        sum[i & (lag - 1)] = first && i < lag ? numbers[i] : total(sum[i & (lag - 1)], numbers[i]);
        numbers[i] = sum[i & (lag - 1)];
      }
      first = false;
    });
  });
  return {};
}

Status encode_fixed_scale_offset(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  return change_scaled(codec, codec.decoded, codec.encoded, in, out, [](auto value, auto scale, auto offset) {
    return rounded_to_even<decltype(value)>((value - offset) * scale);
  });
}

Status decode_fixed_scale_offset(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  return change_scaled(codec, codec.encoded, codec.decoded, in, out, [](auto value, auto scale, auto offset) {
    return static_cast<decltype(value)>(value / scale + offset);
  });
}

Status encode_bitround(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out) {
  const ElementType type = codec.decoded.type;
  if (type.code != ElementType::Code::floating || (type.bits != 16 && type.bits != 32 && type.bits != 64)) {
    return codec_failure(codec, ErrorKind::invalid_argument, "float16, float32 or float64 expected, found {}",
                         type.name());
  }
  const int fraction_bits = type.bits == 16 ? 10 : (type.bits == 32 ? 23 : 52);
  const int dropped = fraction_bits - codec.keep_bits;
  if (codec.keep_bits < 0 || dropped < 0) {
    return codec_failure(codec, ErrorKind::invalid_argument, "0 to {} bits of a {} can be kept, not {}", fraction_bits,
                         type.name(), codec.keep_bits);
  }
  if (dropped == 0) {
    std::copy(in.begin(), in.end(), out.begin());
    return {};
  }
  switch (type.bits) {
    case 16: round_fractions<std::uint16_t>(codec.decoded, dropped, in, out); break;
    case 32: round_fractions<std::uint32_t>(codec.decoded, dropped, in, out); break;
    default: round_fractions<std::uint64_t>(codec.decoded, dropped, in, out); break;
  }
  return {};
}

}  // namespace cingulum::zarr
