// Conversion of the numbers that a tractogram's data hold, whatever their type.
#pragma once

#include <cstddef>

#include "base/element_type.hpp"

namespace cingulum {

// Rounded once. Real types of 8 to 64 bits; booleans are read as unsigned integers.
[[nodiscard]] float float_of_element(const std::byte* at, ElementType type);

}  // namespace cingulum
