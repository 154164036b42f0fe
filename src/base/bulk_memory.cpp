#include "base/bulk_memory.hpp"

#include <cstdint>

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
  ask_for_large_pages(memory, bytes);
  return memory;
}

void ask_for_large_pages(void* memory, std::size_t bytes) noexcept {
#if defined(__linux__)
  // Whole ones alone: what shares a page at either end is not ours.
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + large_page_bytes - 1) / large_page_bytes * large_page_bytes;
  const std::uintptr_t last = (begin + bytes) / large_page_bytes * large_page_bytes;
  if (last >= first + 2 * large_page_bytes) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

void free_bulk_memory(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, alignment_of(bytes));
}

}  // namespace cingulum
