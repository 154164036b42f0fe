// Memory of large arrays: it begins on a cache line and lies in large pages where the system has them, and its numbers
// are not set before they are written, so that the threads that fill an array also touch its pages first (a page that
// is touched for the first time costs more than computing what is in it). Called by fits, signals, fields and trackers,
// whose arrays stay for long (MappedVector), and by Zarr, whose buffers come and go (BulkVector).
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace cingulum {

[[nodiscard]] void* allocate_bulk_memory(std::size_t bytes);  // throws std::bad_alloc
void free_bulk_memory(void* memory, std::size_t bytes) noexcept;

// The same, but a megabyte and more are mapped by themselves, and go back to the system when they are freed. What
// malloc has it keeps, in an arena for each thread: buffers there that now and then are exchanged for larger ones leave
// holes, and the process grows. For arrays that are kept for long: the pages of a new map cost as much as filling it.
[[nodiscard]] void* map_bulk_memory(std::size_t bytes);  // throws std::bad_alloc
void unmap_bulk_memory(void* memory, std::size_t bytes) noexcept;

// A wish: where the system refuses it, small pages do.
void ask_for_large_pages(void* memory, std::size_t bytes) noexcept;

// Room in large pages for arrays that are plain vectors. What the vector held is kept.
template <class T, class Allocator>
void reserve_in_large_pages(std::vector<T, Allocator>& numbers, std::size_t count) {
  if (numbers.capacity() >= count) return;
  numbers.reserve(count);
  ask_for_large_pages(numbers.data(), numbers.capacity() * sizeof(T));
}

// For numbers that are overwritten next, batch after batch. Those of the batch before need not be set to zero, and
// memory has some to spare: batches are alike, but not equal.
template <class T, class Allocator>
void make_room(std::vector<T, Allocator>& numbers, std::size_t count) {
  if (numbers.capacity() < count) {
    numbers = std::vector<T, Allocator>();  // freed before there is more
    reserve_in_large_pages(numbers, count + count / 8);
  }
  numbers.resize(count);
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
  // A number constructed without arguments is left as it is.
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

template <class T>
struct MappedAllocator : BulkAllocator<T> {
  MappedAllocator() = default;
  template <class U>
  MappedAllocator(const MappedAllocator<U>&) noexcept {}
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(map_bulk_memory(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { unmap_bulk_memory(memory, count * sizeof(T)); }
};

// A BulkVector whose memory map_bulk_memory gives.
template <class T>
using MappedVector = std::vector<T, MappedAllocator<T>>;

}  // namespace cingulum
