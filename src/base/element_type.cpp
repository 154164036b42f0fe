#include "base/element_type.hpp"

#include <fmt/format.h>

namespace cingulum {

std::string ElementType::name() const {
  switch (code) {
    case Code::integer: return fmt::format("int{}", bits);
    case Code::unsigned_integer: return fmt::format("uint{}", bits);
    case Code::floating: return fmt::format("float{}", bits);
    case Code::complex: return fmt::format("complex{}", bits);
    case Code::boolean: return bits == 8 ? "bool" : fmt::format("bool{}", bits);
  }
  return fmt::format("code {} of {} bits", static_cast<int>(code), bits);
}

}  // namespace cingulum
