// Memory of large arrays: it begins on a cache line and lies in large pages where the system has them, and its numbers
// are not set before they are written, so that the threads that fill an array also touch its pages first (a page that
// is touched for the first time costs more than computing what is in it). Called by fits, signals and fields.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace cingulum {

[[nodiscard]] void* allocate_bulk_memory(std::size_t bytes);  // throws std::bad_alloc
void free_bulk_memory(void* memory, std::size_t bytes) noexcept;

// A wish: where the system refuses it, small pages do.
void ask_for_large_pages(void* memory, std::size_t bytes) noexcept;

// Room in large pages for arrays that are plain vectors. What the vector held is kept.
template <class T>
void reserve_in_large_pages(std::vector<T>& numbers, std::size_t count) {
  if (numbers.capacity() >= count) return;
  numbers.reserve(count);
  ask_for_large_pages(numbers.data(), numbers.capacity() * sizeof(T));
}

template <class T>
struct BulkAllocator {
  using value_type = T;

  BulkAllocator() = default;
  template <class U>
  BulkAllocator(const BulkAllocator<U>&) noexcept {}
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_bulk_memory(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { free_bulk_memory(memory, count * sizeof(T)); }
  // Without arguments a number is left as it is.
  template <class U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }
  template <class U>
  friend bool operator==(const BulkAllocator&, const BulkAllocator<U>&) noexcept {
    return true;
  }
};

// resize(n) and BulkVector(n) leave new numbers unset.
template <class T>
using BulkVector = std::vector<T, BulkAllocator<T>>;

}  // namespace cingulum
