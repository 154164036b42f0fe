// What is tracked: one record of float32 numbers per voxel, the value of the stopping map last. Built from model fits
// or from files (field_builders.hpp), read by every tracker, the same bytes for each. Voxels that are not stored read
// as zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bulk_memory.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/image_geometry.hpp"

namespace cingulum {

enum class FieldKind : std::uint32_t {
  amplitudes,  // SF: a number per direction of the sphere, in slot order (empty slots of mirror spheres not stored)
  harmonics,   // even SH in descoteaux07_legacy, image axes, sorted by mirror class when the sphere is mirror-symmetric
  bootstrap,   // coefficients, b0 mean, residuals
  peaks,       // x y z of each peak, length = amplitude
  tensor,      // Dxx Dyy Dzz Dxy Dxz Dyz in image axes
};

// The matrices of the bootstrap getter, float32, the set-up in float64 (docs/design/models.md).
struct BootstrapTables {
  bool csa = false;  // else OPDT
  std::uint32_t gradients = 0;
  std::uint32_t coefficients = 0;
  std::vector<float> basis;  // B: gradients x coefficients
  std::vector<float> fit;    // coefficients x gradients: F invB (OPDT: c = fit u_l; CSA: c = fit ln(-ln s))
  // sqrt(1 - h_ii) of each gradient: from it and the record the signal itself comes back, which the seed needs (see
  // kernel/boot.hpp).
  std::vector<float> residual_scale;
};

struct Field {
  FieldKind kind = FieldKind::amplitudes;
  ImageGeometry geometry;
  Sphere sphere;                               // not for peaks and tensor
  int degree = 0;                              // harmonics, bootstrap
  std::uint32_t channels = 0;                  // numbers per record before the stopping value
  std::uint32_t stride = 0;                    // floats from record to record, at least channels + 1
  std::vector<std::uint32_t> record_of_voxel;  // 0: not stored, reads as the first record, which is all zero
  // record_count() * stride numbers and then record_padding more, so that kernels may read whole rows of lanes. It
  // begins on a cache line, so that no register's worth of a record lies on two, and in large pages, since streamlines
  // jump.
  MappedVector<float> records;
  // Used instead of `records`: the same numbers as float16 (float16_field.hpp).
  MappedVector<std::uint16_t> float16_records;
  BootstrapTables bootstrap;
  std::uint64_t replaced = 0;  // numbers that were not finite or too small and became zero

  [[nodiscard]] bool is_float16() const { return !float16_records.empty(); }
  [[nodiscard]] std::size_t number_count() const { return is_float16() ? float16_records.size() : records.size(); }
  [[nodiscard]] std::size_t number_bytes() const { return is_float16() ? sizeof(std::uint16_t) : sizeof(float); }
  [[nodiscard]] std::size_t record_count() const { return (number_count() - record_padding) / stride; }
  // The memory of all records, padding included, as it goes to devices.
  [[nodiscard]] const void* stored_records() const {
    return is_float16() ? static_cast<const void*>(float16_records.data()) : static_cast<const void*>(records.data());
  }
  [[nodiscard]] std::span<const std::byte> stored_bytes() const {
    return {static_cast<const std::byte*>(stored_records()), number_count() * number_bytes()};
  }
  static constexpr std::size_t record_padding = 32;
};

}  // namespace cingulum
