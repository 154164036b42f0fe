#include "tract/field/float16_field.hpp"

#include <algorithm>

#include "numerics/classify.hpp"
#include "numerics/float16.hpp"

namespace cingulum {
namespace {

constexpr float largest_float16 = 65504.0f;
// Halves below 2^-14 lose digits. What is below 2^-4 of the largest number hardly matters to a getter; above it every
// number shall keep its eleven digits.
constexpr float least_largest = 0x1p-10f;

Status check_kind(const Field& field) {
  const auto refuse = [](std::string_view why) {
    return fail_argument("field_precision", "half precision: {}; use {} float", why, argument_name("field_precision"));
  };
  switch (field.kind) {
    case FieldKind::amplitudes:
    case FieldKind::harmonics: return {};
    case FieldKind::bootstrap:
      return refuse("the bootstrap adds residuals to signals, whose digits halves do not have");
    case FieldKind::peaks: return refuse("peaks are a few numbers per voxel, of which nothing is gained");
    case FieldKind::tensor:
      return refuse("diffusion tensors are a few numbers per voxel, too small for the range of halves");
  }
  return refuse("unknown kind of field");
}

Status check_range(float largest, float largest_stop) {
  if (largest > largest_float16 || largest_stop > largest_float16) {
    return fail_argument("field_precision",
                         "half precision: {} holds {}, the largest half is {}; scale it or use {} float",
                         largest > largest_float16 ? "the field" : "the stopping map", std::max(largest, largest_stop),
                         largest_float16, argument_name("field_precision"));
  }
  if (largest > 0.0f && largest < least_largest) {
    return fail_argument(
        "field_precision",
        "half precision: the largest number of the field is {}, below {} halves lose their digits; scale it or "
        "use {} float",
        largest, least_largest, argument_name("field_precision"));
  }
  return {};
}

}  // namespace

Status store_as_float16(Field& field) {
  return catch_out_of_memory([&]() -> Status {
    if (field.is_float16()) return {};
    CGL_TRY(check_kind(field));
    float largest = 0.0f, largest_stop = 0.0f;
    for (std::size_t record = 0; record < field.record_count(); ++record) {
      const float* const numbers = field.records.data() + record * field.stride;
      for (std::uint32_t c = 0; c < field.channels; ++c) largest = std::max(largest, numerics::absolute(numbers[c]));
      largest_stop = std::max(largest_stop, numerics::absolute(numbers[field.channels]));
    }
    CGL_TRY(check_range(largest, largest_stop));
    field.float16_records.resize(field.records.size());
    std::transform(field.records.begin(), field.records.end(), field.float16_records.begin(),
                   numerics::float_to_float16);
    field.records = {};
    return {};
  });
}

}  // namespace cingulum
