// The atomic operations that the rings are written on, as a policy: rings take it as a template argument, so that the
// same protocol runs on host threads (HostAtomics, here) and step by step under the exhaustive interleaver of the
// tests. Blocks of a GPU move whole slots by warps and say the same in PTX (ring/cuda/cuda_machine.cuh). Order is
// always on the word itself; there are no stand-alone fences (ThreadSanitizer does not see those).
//
// A policy has, for T = uint32_t and uint64_t, naturally aligned:
//   T load_relaxed(const T&)      T load_acquire(const T&)
//   void store_relaxed(T&, T)     void store_release(T&, T)
//   bool compare_exchange(T& word, T& expected, T desired)   acquire and release on success; may fail spuriously
//   void set_bits(T& word, T bits)                           atomically, release
//   T add(T& word, T by)                                     atomically, acquire and release; answers the value before
//   void pause()                                             inside a loop that waits for another thread's word
// compare_exchange, set_bits and add are used by the rings with many writers only, and never across a bus: over PCIe
// a host and a device share loads and stores, but often no other atomic operation.
#pragma once

#include <atomic>
#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::ring {

struct HostAtomics {
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  template <class T>
  static T load_relaxed(const T& word) {
    return std::atomic_ref<T>(const_cast<T&>(word)).load(std::memory_order_relaxed);
  }
  template <class T>
  static T load_acquire(const T& word) {
    return std::atomic_ref<T>(const_cast<T&>(word)).load(std::memory_order_acquire);
  }
  template <class T>
  static void store_relaxed(T& word, T value) {
    std::atomic_ref<T>(word).store(value, std::memory_order_relaxed);
  }
  template <class T>
  static void store_release(T& word, T value) {
    std::atomic_ref<T>(word).store(value, std::memory_order_release);
  }
  template <class T>
  static bool compare_exchange(T& word, T& expected, T desired) {
    return std::atomic_ref<T>(word).compare_exchange_weak(expected, desired, std::memory_order_acq_rel,
                                                          std::memory_order_relaxed);
  }
  template <class T>
  static void set_bits(T& word, T bits) {
    std::atomic_ref<T>(word).fetch_or(bits, std::memory_order_acq_rel);
  }
  template <class T>
  static T add(T& word, T by) {
    return std::atomic_ref<T>(word).fetch_add(by, std::memory_order_acq_rel);
  }
};

}  // namespace cingulum::ring
