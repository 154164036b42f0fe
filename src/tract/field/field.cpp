#include "tract/field/field.hpp"

#include "base/bulk_memory.hpp"

namespace cingulum {

void* allocate_record_memory(std::size_t bytes) {
  return allocate_bulk_memory(bytes);
}

void free_record_memory(void* memory, std::size_t bytes) noexcept {
  free_bulk_memory(memory, bytes);
}

}  // namespace cingulum
