// Arrays of NumPy in and out. What comes in is read where it lies, or was brought to the type and order that is asked
// for here by the package (cingulum/_arrays.py), which copies only where it must; what goes out owns its memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/hash.hpp"
#include "formats/image_geometry.hpp"
#include "formats/volume_array.hpp"
#include "numerics/vec3.hpp"

namespace cingulum::python {

namespace nb = nanobind;

// Elements of any type, in any layout.
using Volumes = nb::ndarray<nb::ro, nb::ndim<4>, nb::device::cpu>;
// x fastest.
using ByteImage = nb::ndarray<const std::uint8_t, nb::f_contig, nb::device::cpu>;
using DoubleRows = nb::ndarray<const double, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using DoubleAffine = nb::ndarray<const double, nb::shape<4, 4>, nb::c_contig, nb::device::cpu>;

[[nodiscard]] inline VolumeArray volumes_of(const Volumes& array) {
  const nb::dlpack::dtype type = array.dtype();
  std::array<std::size_t, 4> shape;
  std::array<std::int64_t, 4> steps;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    shape[axis] = array.shape(axis);
    steps[axis] = array.stride(axis);
  }
  return {array.data(), {static_cast<ElementType::Code>(type.code), type.bits}, shape, steps};
}

template <class Array>
[[nodiscard]] auto span_of(const Array& array) {
  return std::span(array.data(), array.size());
}

[[nodiscard]] inline std::vector<numerics::Vec3d> rows_of(const DoubleRows& rows) {
  std::vector<numerics::Vec3d> result;
  result.reserve(rows.shape(0));
  for (std::size_t i = 0; i < rows.shape(0); ++i) result.push_back({rows(i, 0), rows(i, 1), rows(i, 2)});
  return result;
}

[[nodiscard]] inline Affine affine_of(const DoubleAffine& matrix) {
  Affine affine;
  for (std::size_t i = 0; i < 12; ++i) affine.rows[i] = matrix(i / 4, i % 4);
  return affine;
}

// Bytes that grow in place: realloc moves pages of large blocks instead of copying them, so that a tractogram of some
// gigabytes is never there twice.
class GrowingBytes {
 public:
  GrowingBytes() = default;
  GrowingBytes(GrowingBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  GrowingBytes(const GrowingBytes&) = delete;
  GrowingBytes& operator=(const GrowingBytes&) = delete;
  GrowingBytes& operator=(GrowingBytes&&) = delete;
  ~GrowingBytes() { std::free(data_); }

  // Room for `count` more bytes, which the caller fills. Throws std::bad_alloc.
  [[nodiscard]] std::span<std::byte> grow(std::size_t count) {
    if (size_ + count > capacity_) reserve(std::max(size_ + count, capacity_ + capacity_ / 2));
    size_ += count;
    return {data_ + size_ - count, count};
  }
  void append(std::span<const std::byte> bytes) {
    const std::span<std::byte> to = grow(bytes.size());
    if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // The memory as an array of NumPy, which frees it.
  template <class T>
  [[nodiscard]] nb::object release_as(std::initializer_list<std::size_t> shape) {
    reserve(size_ == 0 ? 1 : size_);
    nb::capsule owner(data_, [](void* memory) noexcept { std::free(memory); });
    T* const data = reinterpret_cast<T*>(std::exchange(data_, nullptr));
    size_ = capacity_ = 0;
    return nb::cast(nb::ndarray<nb::numpy, T>(data, shape, owner));
  }

 private:
  void reserve(std::size_t capacity) {
    auto* const moved = static_cast<std::byte*>(std::realloc(data_, capacity));
    if (moved == nullptr) throw std::bad_alloc();
    if (capacity > capacity_) ask_for_large_pages(moved, capacity);
    data_ = moved;
    capacity_ = capacity;
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace cingulum::python
