#include "formats/tractogram_batch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "numerics/float16.hpp"

namespace cingulum {
namespace {

constexpr std::uint64_t magnitude_bits64 = 0x7fffffffffffffffU;
constexpr std::uint64_t infinity_bits64 = 0x7ff0000000000000U;

bool is_finite(double value) {
  return (std::bit_cast<std::uint64_t>(value) & magnitude_bits64) < infinity_bits64;
}

// The same bits as numerics::float16_to_float, without a branch, so that the compiler uses vectors. The exponent is
// moved by an exact product, which makes subnormal float16 normal too; infinity and NaN get theirs back.
void decode_float16(const std::byte* in, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t float16;
    std::memcpy(&float16, in + i * sizeof(float16), sizeof(float16));
    const std::uint32_t magnitude = (std::uint32_t{float16} & 0x7fffU) << 13U;
    const std::uint32_t sign = (std::uint32_t{float16} & 0x8000U) << 16U;
    const auto moved = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
    const std::uint32_t is_special = 0U - static_cast<std::uint32_t>(magnitude >= 0x0f800000U);
    const std::uint32_t bits = sign | moved | (is_special & 0x7f800000U);
    std::memcpy(out + i, &bits, sizeof(bits));
  }
}

constexpr std::size_t float16_block = 16;

// A block of numbers that are all normal as float16: the middle part of numerics::float_bits_to_float16. False, and
// nothing that counts is written, where one is not.
bool encode_normal_float16(const float* values, std::byte* out) {
  std::array<std::uint32_t, float16_block> bits;
  std::memcpy(bits.data(), values, sizeof(bits));
  std::array<std::uint16_t, float16_block> float16s;
  std::uint32_t outside = 0;
  for (std::size_t i = 0; i < float16_block; ++i) {
    const std::uint32_t magnitude = bits[i] & 0x7fffffffU;
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13U) & 1U);
    float16s[i] = static_cast<std::uint16_t>(((bits[i] >> 16U) & 0x8000U) | ((rounded - 0x38000000U) >> 13U));
    outside |= static_cast<std::uint32_t>(magnitude - 0x38800000U >= 0x477ff000U - 0x38800000U);
  }
  std::memcpy(out, float16s.data(), sizeof(float16s));
  return outside == 0;
}

Status check_fields(std::string_view kind, const std::vector<DataField>& fields,
                    const std::vector<std::vector<std::byte>>& data, std::size_t rows) {
  if (fields.size() != data.size()) {
    return fail(ErrorKind::invalid_argument, "a batch has {} {} fields, the layout {}", data.size(), kind,
                fields.size());
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t row_bytes = fields[i].type.bytes() * static_cast<std::size_t>(fields[i].columns);
    if (row_bytes == 0 || data[i].size() % row_bytes != 0 || data[i].size() / row_bytes != rows) {
      return fail(ErrorKind::invalid_argument, "a batch's {} field '{}' has {} bytes, {} rows of {} were expected",
                  kind, fields[i].name, data[i].size(), rows, row_bytes);
    }
  }
  return {};
}

}  // namespace

Status check_batch(const TractogramLayout& layout, const TractogramBatch& batch) {
  if (batch.offsets.empty() || batch.offsets.front() != 0) {
    return fail(ErrorKind::invalid_argument, "a batch's offsets must start with 0");
  }
  for (std::size_t i = 1; i < batch.offsets.size(); ++i) {
    if (batch.offsets[i] < batch.offsets[i - 1]) {
      return fail(ErrorKind::invalid_argument, "a batch's offset {} decreases from {} to {}", i, batch.offsets[i - 1],
                  batch.offsets[i]);
    }
  }
  if (!batch.positions.empty() && !batch.positions64.empty()) {
    return fail(ErrorKind::invalid_argument, "a batch has positions as float and as double");
  }
  const std::size_t numbers = batch.positions.size() + batch.positions64.size();
  if (batch.make_positions) {
    if (numbers > 0) return fail(ErrorKind::invalid_argument, "a batch has positions, and makes them");
  } else if (numbers % 3 != 0 || numbers / 3 != batch.offsets.back()) {
    return fail(ErrorKind::invalid_argument, "a batch has {} coordinates for {} points", numbers, batch.offsets.back());
  }
  CGL_TRY(check_fields("per-point", layout.point_fields, batch.point_data, batch.point_count()));
  return check_fields("per-streamline", layout.streamline_fields, batch.streamline_data, batch.streamline_count());
}

std::uint16_t double_to_float16(double value) noexcept {
  auto nearest = static_cast<float>(value);
  if (is_finite(value) && static_cast<double>(nearest) != value) {
    // Rounding to odd keeps in the last place that something was cut off, so that the second rounding is the only one.
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    const bool away_from_zero = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
    if (away_from_zero) bits -= 1;
    nearest = std::bit_cast<float>(bits | 1U);
  }
  return numerics::float_to_float16(nearest);
}

Status encode_positions(const TractogramBatch& batch, std::size_t first, ElementType type, std::span<std::byte> out) {
  const bool doubles = !batch.positions64.empty();
  const std::size_t count = out.size() / type.bytes();
  const auto put = [&](std::size_t i, auto value) {
    std::memcpy(out.data() + i * sizeof(value), &value, sizeof(value));
  };
  if (count == 0) return {};
  if (type == float32_type && !doubles) {
    std::memcpy(out.data(), batch.positions.data() + first, out.size());
    return {};
  }
  if (type == float64_type && doubles) {
    std::memcpy(out.data(), batch.positions64.data() + first, out.size());
    return {};
  }
  const auto too_large = [](double value) {
    return fail(ErrorKind::invalid_argument, "the coordinate {} mm is too large for float16 (65504); use float32",
                value);
  };
  constexpr std::uint16_t float16_infinity = 0x7c00;
  if (type == float16_type && !doubles) {
    for (std::size_t i = 0; i < count;) {
      const float* const values = batch.positions.data() + first + i;
      if (count - i >= float16_block && encode_normal_float16(values, out.data() + i * sizeof(std::uint16_t))) {
        i += float16_block;
        continue;
      }
      const std::size_t end = std::min(count, i + float16_block);
      for (; i < end; ++i) {
        const float value = batch.positions[first + i];
        const std::uint16_t float16 = numerics::float_to_float16(value);
        if ((float16 & 0x7fffU) == float16_infinity && is_finite(static_cast<double>(value))) {
          return too_large(static_cast<double>(value));
        }
        put(i, float16);
      }
    }
    return {};
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double value = doubles ? batch.positions64[first + i] : static_cast<double>(batch.positions[first + i]);
    if (type == float64_type) {
      put(i, value);
    } else if (type == float32_type) {
      put(i, static_cast<float>(value));
    } else {
      const std::uint16_t float16 = double_to_float16(value);
      if ((float16 & 0x7fffU) == float16_infinity && is_finite(value)) return too_large(value);
      put(i, float16);
    }
  }
  return {};
}

Status encode_streamlines(const TractogramBatch& batch, std::size_t first, std::size_t last, ElementType type,
                          std::span<std::byte> out) {
  if (!batch.make_positions) {
    return encode_positions(batch, 3 * static_cast<std::size_t>(batch.offsets[first]), type, out);
  }
  const std::size_t numbers = out.size() / type.bytes();
  if (type == float32_type && reinterpret_cast<std::uintptr_t>(out.data()) % alignof(float) == 0) {
    batch.make_positions(first, last, {reinterpret_cast<float*>(out.data()), numbers});
    return {};
  }
  TractogramBatch made;
  made.positions.resize(numbers);
  batch.make_positions(first, last, made.positions);
  return encode_positions(made, 0, type, out);
}

void decode_positions(std::span<const std::byte> bytes, ElementType type, bool as_float, std::size_t first,
                      TractogramBatch& batch) {
  const std::size_t count = bytes.size() / type.bytes();
  const bool doubles = type == float64_type && !as_float;
  // Resizing without clearing first: what is overwritten next is not set to zero before.
  batch.positions64.resize(doubles ? first + count : 0);
  batch.positions.resize(doubles ? 0 : first + count);
  if (count == 0) return;
  if (doubles) {
    std::memcpy(batch.positions64.data() + first, bytes.data(), bytes.size());
    return;
  }
  float* const out = batch.positions.data() + first;
  if (type == float32_type) {
    std::memcpy(out, bytes.data(), bytes.size());
  } else if (type == float64_type) {
    for (std::size_t i = 0; i < count; ++i) {
      double value;
      std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
      out[i] = static_cast<float>(value);
    }
  } else {
    decode_float16(bytes.data(), count, out);
  }
}

std::optional<ElementType> element_type_from_name(std::string_view name) {
  using Code = ElementType::Code;
  if (name == "bit" || name == "bool") return ElementType{Code::unsigned_integer, 8};
  for (const int bits : {8, 16, 32, 64, 128}) {
    for (const Code code : {Code::integer, Code::unsigned_integer, Code::floating, Code::complex}) {
      const bool exists = code == Code::complex    ? bits >= 64
                          : code == Code::floating ? bits >= 16 && bits <= 64
                                                   : bits <= 64;
      const ElementType type{code, static_cast<std::uint8_t>(bits)};
      if (exists && type.name() == name) return type;
    }
  }
  return std::nullopt;
}

}  // namespace cingulum
