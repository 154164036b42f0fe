#include "tract/paged/device_tables.hpp"

#include <cstring>
#include <type_traits>

namespace cingulum {
namespace {

constexpr std::size_t alignment_words = 32;

template <class Table>
std::uint32_t append(std::vector<std::uint32_t>& words, const Table& table) {
  using T = typename Table::value_type;
  static_assert(sizeof(T) == sizeof(std::uint32_t) && std::is_trivially_copyable_v<T>);
  if (table.empty()) return 0;
  const std::size_t at = words.size();
  words.resize((at + table.size() + alignment_words - 1) / alignment_words * alignment_words);
  std::memcpy(words.data() + at, table.data(), table.size() * sizeof(T));
  return static_cast<std::uint32_t>(at);
}

}  // namespace

Result<DeviceTables> make_device_tables(const TrackingPlan& plan, const Field& field) {
  CGL_TRY_ASSIGN(const KernelTables tables, make_kernel_tables(plan, field));
  DeviceTables result;
  result.input = make_tracking_input(plan, field, tables);
  std::vector<std::uint32_t>& words = result.words;
  words.resize(alignment_words);
  result.offsets = {.occupied = append(words, tables.occupied),
                    .sphere_x = append(words, tables.x),
                    .sphere_y = append(words, tables.y),
                    .sphere_z = append(words, tables.z),
                    .neighbours = append(words, tables.neighbours),
                    .harmonics = append(words, tables.harmonics),
                    .record_index = append(words, tables.record_index),
                    .recurrence = append(words, tables.recurrence),
                    .boot_basis = append(words, tables.boot_basis),
                    .boot_fit = append(words, tables.boot_fit),
                    .boot_level = append(words, tables.level),
                    .residual_scale = append(words, tables.residual_scale),
                    .disc_k1 = append(words, tables.disc_k1),
                    .disc_k2 = append(words, tables.disc_k2),
                    .nearest = append(words, tables.nearest)};
  // What points into `tables` must not outlive them.
  result.input = with_pointers(result, nullptr, nullptr, nullptr);
  return result;
}

TrackingInput with_pointers(const DeviceTables& tables, const std::uint32_t* words,
                            const std::uint32_t* record_of_voxel, const void* records) {
  TrackingInput input = tables.input;
  const TableOffsets& at = tables.offsets;
  const auto whole = [&](std::uint32_t offset) { return words == nullptr ? nullptr : words + offset; };
  // Floats lie in the same memory; kernels read each table as what it is.
  const auto real = [&](std::uint32_t offset) { return reinterpret_cast<const float*>(whole(offset)); };
  input.field.record_of_voxel = record_of_voxel;
  input.field.records = static_cast<const float*>(records);
  input.sphere.occupied = whole(at.occupied);
  input.sphere.x = real(at.sphere_x);
  input.sphere.y = real(at.sphere_y);
  input.sphere.z = real(at.sphere_z);
  input.sphere.neighbours = whole(at.neighbours);
  input.harmonics.matrix = real(at.harmonics);
  input.harmonics.record_index = whole(at.record_index);
  input.harmonics.recurrence = real(at.recurrence);
  input.bootstrap.basis = real(at.boot_basis);
  input.bootstrap.fit = real(at.boot_fit);
  input.bootstrap.level = whole(at.boot_level);
  input.bootstrap.residual_scale = real(at.residual_scale);
  input.disc.k1 = real(at.disc_k1);
  input.disc.k2 = real(at.disc_k2);
  input.nearest.slots = whole(at.nearest);
  return input;
}

}  // namespace cingulum
