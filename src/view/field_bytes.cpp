#include "view/field_bytes.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cingulum::view {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are written as they lie in memory");

constexpr std::uint32_t field_magic = 0x31464743;  // "CGF1"
// No page could load more, and what is exported is smaller (view/view_export.cpp).
constexpr std::uint64_t most_record_bytes = std::uint64_t{1} << 30U;

struct FieldHead {
  std::uint32_t magic = field_magic;
  std::uint32_t kind = 0;
  std::int32_t degree = 0;
  std::uint32_t channels = 0;
  std::uint32_t stride = 0;
  std::uint32_t is_float16 = 0;
  std::uint32_t is_hemisphere = 0;
  std::uint32_t mirror_symmetric = 0;
  std::uint32_t csa = 0;
  std::uint32_t gradients = 0;
  std::uint32_t coefficients = 0;
  std::uint32_t zero = 0;
  std::int64_t size[3] = {};
  double affine[12] = {};
  std::uint64_t numbers = 0;  // of the records, padding included
};
static_assert(std::is_trivially_copyable_v<FieldHead> && sizeof(FieldHead) % 8 == 0);

// Every array of a field but the records, in the order of the bytes.
template <class AnyField, class Visit>
void each_array(AnyField& field, Visit&& visit) {
  visit(field.sphere.directions);
  visit(field.sphere.edges);
  visit(field.sphere.neighbour_offsets);
  visit(field.sphere.neighbours);
  visit(field.sphere.orbits);
  visit(field.sphere.slots);
  visit(field.record_of_voxel);
  visit(field.bootstrap.basis);
  visit(field.bootstrap.fit);
  visit(field.bootstrap.residual_scale);
}

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  bool read(T* values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count > rest_.size() / sizeof(T)) return false;
    if (count > 0) std::memcpy(values, rest_.data(), count * sizeof(T));
    rest_ = rest_.subspan(count * sizeof(T));
    return true;
  }
  template <class T>
  bool read_array(std::vector<T>& values) {
    std::uint64_t count = 0;
    if (!read(&count, 1) || count > rest_.size() / sizeof(T)) return false;
    values.resize(static_cast<std::size_t>(count));
    return read(values.data(), values.size());
  }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

bool counts_agree(const FieldHead& head, const Field& field) {
  const Sphere& sphere = field.sphere;
  const std::size_t vertices = sphere.size();
  if (head.kind > static_cast<std::uint32_t>(FieldKind::tensor)) return false;
  if (head.stride == 0 || head.channels >= head.stride || head.numbers < head.stride + Field::record_padding ||
      (head.numbers - Field::record_padding) % head.stride != 0) {
    return false;
  }
  const std::uint64_t number_bytes = head.is_float16 != 0 ? sizeof(std::uint16_t) : sizeof(float);
  if (head.numbers > most_record_bytes / number_bytes) return false;
  std::uint64_t voxels = 1;
  for (const std::int64_t size : head.size) {
    if (size < 1 || size > 0xffff) return false;
    voxels *= static_cast<std::uint64_t>(size);
  }
  if (field.record_of_voxel.size() != voxels) return false;
  const auto is_vertex = [&](std::uint32_t vertex) { return vertex < vertices; };
  for (const auto& [a, b] : sphere.edges) {
    if (!is_vertex(a) || !is_vertex(b)) return false;
  }
  if (vertices > 0) {
    if (sphere.neighbour_offsets.size() != vertices + 1 || sphere.neighbour_offsets.front() != 0 ||
        sphere.neighbour_offsets.back() != sphere.neighbours.size()) {
      return false;
    }
    for (std::size_t i = 0; i < vertices; ++i) {
      if (sphere.neighbour_offsets[i] > sphere.neighbour_offsets[i + 1]) return false;
    }
  }
  for (const std::uint32_t neighbour : sphere.neighbours) {
    if (!is_vertex(neighbour)) return false;
  }
  for (const std::uint32_t slot : sphere.slots) {
    if (slot != no_vertex && !is_vertex(slot)) return false;
  }
  // Four members of each orbit, in groups of 32 orbits.
  return !sphere.mirror_symmetric || sphere.slots.size() == (sphere.orbits.size() + 31) / 32 * 128;
}

}  // namespace

std::vector<std::byte> field_head_bytes(const Field& field) {
  FieldHead head;
  head.kind = static_cast<std::uint32_t>(field.kind);
  head.degree = field.degree;
  head.channels = field.channels;
  head.stride = field.stride;
  head.is_float16 = field.is_float16() ? 1 : 0;
  head.is_hemisphere = field.sphere.is_hemisphere ? 1 : 0;
  head.mirror_symmetric = field.sphere.mirror_symmetric ? 1 : 0;
  head.csa = field.bootstrap.csa ? 1 : 0;
  head.gradients = field.bootstrap.gradients;
  head.coefficients = field.bootstrap.coefficients;
  for (std::size_t axis = 0; axis < 3; ++axis) head.size[axis] = field.geometry.size[axis];
  for (std::size_t i = 0; i < 12; ++i) head.affine[i] = field.geometry.voxel_to_world.rows[i];
  head.numbers = field.number_count();

  std::vector<std::byte> bytes;
  const auto append = [&bytes](const auto* values, std::size_t count) {
    const std::size_t at = bytes.size(), size = count * sizeof *values;
    bytes.resize(at + size);
    if (size > 0) std::memcpy(bytes.data() + at, values, size);
  };
  append(&head, 1);
  each_array(field, [&](const auto& values) {
    const std::uint64_t count = values.size();
    append(&count, 1);
    append(values.data(), values.size());
  });
  return bytes;
}

Result<Field> field_of_head_bytes(std::span<const std::byte> bytes) {
  FieldReader reader(bytes);
  FieldHead head;
  if (!reader.read(&head, 1) || head.magic != field_magic) {
    return fail(ErrorKind::corrupt, "the field does not begin with CGF1");
  }
  Field field;
  field.kind = static_cast<FieldKind>(head.kind);
  field.degree = head.degree;
  field.channels = head.channels;
  field.stride = head.stride;
  field.sphere.is_hemisphere = head.is_hemisphere != 0;
  field.sphere.mirror_symmetric = head.mirror_symmetric != 0;
  field.bootstrap.csa = head.csa != 0;
  field.bootstrap.gradients = head.gradients;
  field.bootstrap.coefficients = head.coefficients;
  for (std::size_t axis = 0; axis < 3; ++axis) field.geometry.size[axis] = head.size[axis];
  for (std::size_t i = 0; i < 12; ++i) field.geometry.voxel_to_world.rows[i] = head.affine[i];
  bool whole = true;
  each_array(field, [&](auto& values) { whole = whole && reader.read_array(values); });
  if (!whole || !reader.at_end()) {
    return fail(ErrorKind::corrupt, "the field's {} bytes are not those that its counts say", bytes.size());
  }
  if (!counts_agree(head, field)) return fail(ErrorKind::corrupt, "the counts of the field contradict each other");
  if (head.is_float16 != 0) {
    field.float16_records.resize(static_cast<std::size_t>(head.numbers));
  } else {
    field.records.resize(static_cast<std::size_t>(head.numbers));
  }
  return field;
}

std::span<std::byte> record_memory(Field& field) {
  return field.is_float16() ? std::as_writable_bytes(std::span(field.float16_records))
                            : std::as_writable_bytes(std::span(field.records));
}

}  // namespace cingulum::view
