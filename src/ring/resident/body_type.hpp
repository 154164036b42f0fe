// The type of a body of a resident program, kept so that a body of another type is not launched by its name.
#pragma once

#include <cstdint>
#include <string>

namespace cingulum::ring {

// Empty and 0 where it was compiled from text.
struct BodyType {
  std::string type;         // typeid(Body).name()
  std::uint64_t bytes = 0;  // sizeof(Body)
};

}  // namespace cingulum::ring
