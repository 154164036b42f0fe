// Fields in half precision: every number of a record rounded once to IEEE binary16 (nearest, ties to even), so that a
// field takes half of the memory on every device. Each float16 is a float32 as well, and all devices compute with that,
// so the result is the same on each; it differs from that of the field in float32. Called by `cingulum track
// --field-precision half` when the field is complete.
#pragma once

#include "base/result.hpp"
#include "tract/field/field.hpp"

namespace cingulum {

// Replaces `records` by `float16_records`. Refused, with the field as it was: kinds of fields for which it is not
// sensible, and numbers beyond the range of float16 or all so small that float16 does not tell them apart.
[[nodiscard]] Status store_as_float16(Field& field);

}  // namespace cingulum
