#include "formats/samples.hpp"

#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "numerics/pack.hpp"

namespace cingulum {
namespace {

template <class T>
CGL_INLINE T load_sample(const std::byte* from, bool swapped) {
  if constexpr (sizeof(T) == 1) {
    T value;
    std::memcpy(&value, from, 1);
    return value;
  } else {
    using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
    Bits bits;
    std::memcpy(&bits, from, sizeof(T));
    if (swapped) {
      if constexpr (sizeof(T) == 2) bits = __builtin_bswap16(bits);
      if constexpr (sizeof(T) == 4) bits = __builtin_bswap32(bits);
      if constexpr (sizeof(T) == 8) bits = __builtin_bswap64(bits);
    }
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
}

template <class Stored, bool swapped, class Value>
CGL_INLINE void decode_in_order(const SampleFormat& format, const std::byte* stored, std::size_t count, Value* values) {
  const double slope = format.slope, intercept = format.intercept;
  if (slope == 1.0 && intercept == 0.0) {
    for (std::size_t i = 0; i < count; ++i)
      values[i] = static_cast<Value>(load_sample<Stored>(stored + i * sizeof(Stored), swapped));
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<Value>(
          static_cast<double>(load_sample<Stored>(stored + i * sizeof(Stored), swapped)) * slope + intercept);
    }
  }
}

template <class Stored, class Value>
CGL_INLINE void decode_type(const SampleFormat& format, const std::byte* stored, std::size_t count, Value* values) {
  if (format.swapped) {
    decode_in_order<Stored, true>(format, stored, count, values);
  } else {
    decode_in_order<Stored, false>(format, stored, count, values);
  }
}

template <class Value>
CGL_INLINE void decode_any(const SampleFormat& format, const std::byte* stored, std::size_t count, Value* values) {
  using Code = ElementType::Code;
  switch (format.type.code) {
    case Code::integer:
      switch (format.type.bits) {
        case 8: return decode_type<std::int8_t>(format, stored, count, values);
        case 16: return decode_type<std::int16_t>(format, stored, count, values);
        case 32: return decode_type<std::int32_t>(format, stored, count, values);
        default: return decode_type<std::int64_t>(format, stored, count, values);
      }
    case Code::unsigned_integer:
      switch (format.type.bits) {
        case 8: return decode_type<std::uint8_t>(format, stored, count, values);
        case 16: return decode_type<std::uint16_t>(format, stored, count, values);
        case 32: return decode_type<std::uint32_t>(format, stored, count, values);
        default: return decode_type<std::uint64_t>(format, stored, count, values);
      }
    default:
      if (format.type.bits == 32) return decode_type<float>(format, stored, count, values);
      return decode_type<double>(format, stored, count, values);
  }
}

CGL_SIMD_CLONES void decode_to_float(const SampleFormat& format, const std::byte* stored, std::size_t count,
                                     float* values) {
  decode_any(format, stored, count, values);
}

CGL_SIMD_CLONES void decode_to_double(const SampleFormat& format, const std::byte* stored, std::size_t count,
                                      double* values) {
  decode_any(format, stored, count, values);
}

// To nearest even: adding and subtracting 2^52 leaves no fraction; numbers from there on have none.
CGL_INLINE double rounded(double x) {
  constexpr double shift = 0x1p52;
  const double magnitude = x < 0 ? -x : x;
  if (!(magnitude < shift)) return x;
  const double whole = (magnitude + shift) - shift;
  return x < 0 ? -whole : whole;
}

template <class Stored>
CGL_INLINE Stored to_stored(double value) {
  constexpr double lowest = static_cast<double>(std::numeric_limits<Stored>::lowest());
  if constexpr (std::is_floating_point_v<Stored>) {
    return static_cast<Stored>(value);
  } else if constexpr (sizeof(Stored) <= 4) {
    // Without branches, so that it is done for many at once. The ends are whole numbers: clamping first is the same.
    constexpr double highest = static_cast<double>(std::numeric_limits<Stored>::max());
    constexpr double shift = 0x1.8p52;  // as in rounded(), for either sign
    double whole = value == value ? value : 0.0;
    whole = whole < lowest ? lowest : whole;
    whole = whole > highest ? highest : whole;
    whole = (whole + shift) - shift;
    return static_cast<Stored>(static_cast<std::conditional_t<sizeof(Stored) < 4, std::int32_t, std::int64_t>>(whole));
  } else {
    // One above the largest is a power of two, which a double holds exactly.
    constexpr double above = 2.0 * static_cast<double>(std::uint64_t{1} << (std::numeric_limits<Stored>::digits - 1));
    const double whole = rounded(value);
    if (!(whole >= lowest)) return whole < lowest ? std::numeric_limits<Stored>::lowest() : Stored{0};  // else NaN
    if (whole >= above) return std::numeric_limits<Stored>::max();
    return static_cast<Stored>(whole);
  }
}

template <class Stored, class Value>
CGL_INLINE void encode_type(const SampleFormat& format, const Value* values, std::size_t count, std::byte* stored) {
  const double slope = format.slope, intercept = format.intercept;
  const auto put = [&](std::size_t i, Stored number) {
    std::memcpy(stored + i * sizeof(Stored), &number, sizeof(Stored));
  };
  if (slope != 1.0 || intercept != 0.0) {
    for (std::size_t i = 0; i < count; ++i) {
      put(i, to_stored<Stored>((static_cast<double>(values[i]) - intercept) / slope));
    }
  } else if constexpr (std::is_floating_point_v<Stored>) {
    for (std::size_t i = 0; i < count; ++i) put(i, static_cast<Stored>(values[i]));
  } else {
    for (std::size_t i = 0; i < count; ++i) put(i, to_stored<Stored>(static_cast<double>(values[i])));
  }
}

template <class Value>
CGL_INLINE void encode_any(const SampleFormat& format, const Value* values, std::size_t count, std::byte* stored) {
  using Code = ElementType::Code;
  switch (format.type.code) {
    case Code::integer:
      switch (format.type.bits) {
        case 8: return encode_type<std::int8_t>(format, values, count, stored);
        case 16: return encode_type<std::int16_t>(format, values, count, stored);
        case 32: return encode_type<std::int32_t>(format, values, count, stored);
        default: return encode_type<std::int64_t>(format, values, count, stored);
      }
    case Code::unsigned_integer:
      switch (format.type.bits) {
        case 8: return encode_type<std::uint8_t>(format, values, count, stored);
        case 16: return encode_type<std::uint16_t>(format, values, count, stored);
        case 32: return encode_type<std::uint32_t>(format, values, count, stored);
        default: return encode_type<std::uint64_t>(format, values, count, stored);
      }
    default:
      if (format.type.bits == 32) return encode_type<float>(format, values, count, stored);
      return encode_type<double>(format, values, count, stored);
  }
}

CGL_SIMD_CLONES void encode_from_float(const SampleFormat& format, const float* values, std::size_t count,
                                       std::byte* stored) {
  encode_any(format, values, count, stored);
}

CGL_SIMD_CLONES void encode_from_double(const SampleFormat& format, const double* values, std::size_t count,
                                        std::byte* stored) {
  encode_any(format, values, count, stored);
}

}  // namespace

bool is_real_sample(ElementType type) noexcept {
  using Code = ElementType::Code;
  if (type.code == Code::floating) return type.bits == 32 || type.bits == 64;
  if (type.code != Code::integer && type.code != Code::unsigned_integer) return false;
  return type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
}

void decode_samples(const SampleFormat& format, std::span<const std::byte> stored, std::span<float> values) {
  assert(is_real_sample(format.type) && stored.size() == values.size() * format.type.bytes());
  decode_to_float(format, stored.data(), values.size(), values.data());
}

void decode_samples(const SampleFormat& format, std::span<const std::byte> stored, std::span<double> values) {
  assert(is_real_sample(format.type) && stored.size() == values.size() * format.type.bytes());
  decode_to_double(format, stored.data(), values.size(), values.data());
}

void encode_samples(const SampleFormat& format, std::span<const float> values, std::span<std::byte> stored) {
  assert(is_real_sample(format.type) && stored.size() == values.size() * format.type.bytes());
  encode_from_float(format, values.data(), values.size(), stored.data());
}

void encode_samples(const SampleFormat& format, std::span<const double> values, std::span<std::byte> stored) {
  assert(is_real_sample(format.type) && stored.size() == values.size() * format.type.bytes());
  encode_from_double(format, values.data(), values.size(), stored.data());
}

}  // namespace cingulum
