// The policy of ring/atomics.hpp for CUDA code: cuda::atomic_ref with the scope of the ring. System scope for rings in
// mapped host memory (loads and stores only: spec 8.1), device scope for rings between blocks.
#pragma once

#include <cuda/atomic>

namespace cingulum::ring {

template <cuda::thread_scope scope>
struct CudaAtomics {
  static __device__ void pause() { __nanosleep(20); }
  template <class T>
  static __device__ T load_relaxed(const T& word) {
    return cuda::atomic_ref<T, scope>(const_cast<T&>(word)).load(cuda::memory_order_relaxed);
  }
  template <class T>
  static __device__ T load_acquire(const T& word) {
    return cuda::atomic_ref<T, scope>(const_cast<T&>(word)).load(cuda::memory_order_acquire);
  }
  template <class T>
  static __device__ void store_relaxed(T& word, T value) {
    cuda::atomic_ref<T, scope>(word).store(value, cuda::memory_order_relaxed);
  }
  template <class T>
  static __device__ void store_release(T& word, T value) {
    cuda::atomic_ref<T, scope>(word).store(value, cuda::memory_order_release);
  }
  template <class T>
  static __device__ bool compare_exchange(T& word, T& expected, T desired) {
    return cuda::atomic_ref<T, scope>(word).compare_exchange_weak(expected, desired, cuda::memory_order_acq_rel,
                                                                  cuda::memory_order_relaxed);
  }
  template <class T>
  static __device__ void set_bits(T& word, T bits) {
    cuda::atomic_ref<T, scope>(word).fetch_or(bits, cuda::memory_order_acq_rel);
  }
  template <class T>
  static __device__ T add(T& word, T by) {
    return cuda::atomic_ref<T, scope>(word).fetch_add(by, cuda::memory_order_acq_rel);
  }
};

using SystemAtomics = CudaAtomics<cuda::thread_scope_system>;
using DeviceAtomics = CudaAtomics<cuda::thread_scope_device>;

}  // namespace cingulum::ring
