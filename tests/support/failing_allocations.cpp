#include "support/failing_allocations.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace cingulum::testing {

FailingAllocations& failing_allocations() {
  thread_local FailingAllocations state;
  return state;
}

namespace {

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  FailingAllocations& state = failing_allocations();
  if (state.counting) {
    ++state.allocations;
    if (state.allocations == state.failing) return nullptr;
  }
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (state.counting && memory != nullptr) ++state.live;
  return memory;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

void release(void* memory) noexcept {
  FailingAllocations& state = failing_allocations();
  if (state.counting && memory != nullptr) --state.live;
  std::free(memory);
}

constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace
}  // namespace cingulum::testing

using cingulum::testing::allocate;
using cingulum::testing::allocate_or_throw;
using cingulum::testing::release;
using cingulum::testing::usual;

void* operator new(std::size_t size) {
  return allocate_or_throw(size, usual);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size, usual);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, usual);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, usual);
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
