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

// The address sanitizer watches what malloc gives, and no maps.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

namespace {

constexpr std::size_t least_bytes_of_map = std::size_t{1} << 20;

std::uintptr_t round_to_large_pages(std::uintptr_t bytes) {
  return (bytes + large_page_bytes - 1) / large_page_bytes * large_page_bytes;
}

}  // namespace

void* map_bulk_memory(std::size_t bytes) {
  if (bytes < least_bytes_of_map) return allocate_bulk_memory(bytes);
  if (bytes > static_cast<std::size_t>(-1) - 2 * large_page_bytes) throw std::bad_alloc();
  // One page more than is needed, for the alignment; what is before and behind the memory goes back at once.
  const std::size_t whole = round_to_large_pages(bytes);
  void* const mapping =
      ::mmap(nullptr, whole + large_page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping);
  const std::size_t before = round_to_large_pages(begin) - begin;
  auto* const memory = static_cast<std::byte*>(mapping) + before;
  if (before > 0) ::munmap(mapping, before);
  ::munmap(memory + whole, large_page_bytes - before);
  ask_for_large_pages(memory, bytes);
  return memory;
}

void unmap_bulk_memory(void* memory, std::size_t bytes) noexcept {
  if (bytes < least_bytes_of_map) return free_bulk_memory(memory, bytes);
  ::munmap(memory, round_to_large_pages(bytes));
}

#else

void* map_bulk_memory(std::size_t bytes) {
  return allocate_bulk_memory(bytes);
}

void unmap_bulk_memory(void* memory, std::size_t bytes) noexcept {
  free_bulk_memory(memory, bytes);
}

#endif

}  // namespace cingulum
