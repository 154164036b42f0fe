#include "base/bulk_memory.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace cingulum {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t large_page_bytes = std::size_t{1} << 21;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= 2 * large_page_bytes ? large_page_bytes : line_bytes};
}

}  // namespace

void* allocate_bulk_memory(std::size_t bytes) {
  void* memory = ::operator new(bytes, alignment_of(bytes));
#if defined(__linux__)
  // A wish: where it is refused, small pages do.
  if (bytes >= 2 * large_page_bytes) ::madvise(memory, bytes / large_page_bytes * large_page_bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void free_bulk_memory(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, alignment_of(bytes));
}

}  // namespace cingulum
