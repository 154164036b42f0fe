// Fields in half precision: every number of a record rounded once to IEEE binary16 (nearest, ties to even), so that a
// field takes half of the memory on every device. Each half is a float32 as well, and all devices compute with that, so
// the result is the same on each; it differs from that of the field in float32. Called by `cingulum track
// --field-precision half` when the field is complete.
#pragma once

#include "base/result.hpp"
#include "tract/field/field.hpp"

namespace cingulum {

// Replaces `records` by `halves`. Refused, with the field as it was: kinds of fields for which it is not sensible, and
// numbers beyond the range of a half or all so small that halves do not tell them apart.
[[nodiscard]] Status store_in_half_precision(Field& field);

}  // namespace cingulum
