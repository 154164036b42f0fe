#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "formats/byte_order.hpp"
#include "formats/nifti_fields.hpp"
#include "formats/nifti_header.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

// Writes numbers at byte offsets, little-endian.
class FieldWriter {
 public:
  FieldWriter(std::vector<std::byte>& bytes, int version) : bytes_(bytes), version_(version) {}

  template <class T>
  void put(std::size_t offset, T value) {
    store(bytes_, offset, value);
  }
  void real(std::size_t offset, std::size_t index, double value) {
    if (version_ == 1) {
      put(offset + 4 * index, static_cast<float>(value));
    } else {
      put(offset + 8 * index, value);
    }
  }
  void dim(std::size_t index, std::int64_t value) {
    if (version_ == 1) {
      put(nifti1_offsets.dim + 2 * index, static_cast<std::int16_t>(value));
    } else {
      put(nifti2_offsets.dim + 8 * index, value);
    }
  }
  void code(std::size_t offset, int value) {
    if (version_ == 1) {
      put(offset, static_cast<std::int16_t>(value));
    } else {
      put(offset, static_cast<std::int32_t>(value));
    }
  }
  void text(std::size_t offset, std::string_view text) {
    if (!text.empty()) std::memcpy(bytes_.data() + offset, text.data(), text.size());
  }

 private:
  std::vector<std::byte>& bytes_;
  int version_;
};

struct Quaternion {
  double a, b, c, d;
};

// The quaternion of the rotation whose columns are x, y, z (Shepperd 1978: the largest of the four is computed by a
// root).
Quaternion quaternion_of(Vec3d x, Vec3d y, Vec3d z) {
  const double trace = x.x + y.y + z.z;
  Quaternion q{};
  if (trace >= x.x && trace >= y.y && trace >= z.z) {
    q.a = 0.5 * std::sqrt(1 + trace);
    q.b = (y.z - z.y) / (4 * q.a);
    q.c = (z.x - x.z) / (4 * q.a);
    q.d = (x.y - y.x) / (4 * q.a);
  } else if (x.x >= y.y && x.x >= z.z) {
    q.b = 0.5 * std::sqrt(1 + x.x - y.y - z.z);
    q.a = (y.z - z.y) / (4 * q.b);
    q.c = (y.x + x.y) / (4 * q.b);
    q.d = (z.x + x.z) / (4 * q.b);
  } else if (y.y >= z.z) {
    q.c = 0.5 * std::sqrt(1 + y.y - x.x - z.z);
    q.a = (z.x - x.z) / (4 * q.c);
    q.b = (y.x + x.y) / (4 * q.c);
    q.d = (z.y + y.z) / (4 * q.c);
  } else {
    q.d = 0.5 * std::sqrt(1 + z.z - x.x - y.y);
    q.a = (x.y - y.x) / (4 * q.d);
    q.b = (z.x + x.z) / (4 * q.d);
    q.c = (z.y + y.z) / (4 * q.d);
  }
  if (q.a < 0) q = {-q.a, -q.b, -q.c, -q.d};  // the header holds no sign of a
  return q;
}

// False where the axes are not at right angles: a quaternion cannot say so.
bool put_qform(FieldWriter& fields, const NiftiOffsets& offsets, const ImageGeometry& geometry) {
  const Affine& affine = geometry.voxel_to_world;
  const auto edges = geometry.voxel_mm();
  const auto column = [&](int c) {
    const double scale = 1 / edges[static_cast<std::size_t>(c)];
    return Vec3d{affine.at(0, c) * scale, affine.at(1, c) * scale, affine.at(2, c) * scale};
  };
  const Vec3d x = column(0), y = column(1);
  Vec3d z = column(2);
  constexpr double tolerance = 1e-6;
  for (const double cosine : {dot(x, y), dot(x, z), dot(y, z)}) {
    if (!(std::abs(cosine) <= tolerance)) return false;
  }
  const bool mirrored = affine.determinant() < 0;
  if (mirrored) z = -z;
  const Quaternion q = quaternion_of(x, y, z);
  fields.real(offsets.pixdim, 0, mirrored ? -1 : 1);
  fields.real(offsets.quatern, 0, q.b);
  fields.real(offsets.quatern, 1, q.c);
  fields.real(offsets.quatern, 2, q.d);
  for (int row = 0; row < 3; ++row) fields.real(offsets.qoffset, static_cast<std::size_t>(row), affine.at(row, 3));
  return true;
}

Status check_encodable(const NiftiHeader& header) {
  if (header.version != 1 && header.version != 2) {
    return fail(ErrorKind::invalid_argument, "NIfTI version {} is neither 1 nor 2", header.version);
  }
  if (header.shape.empty() || header.shape.size() > 7) {
    return fail(ErrorKind::invalid_argument, "{} axes: NIfTI has 1 to 7", header.shape.size());
  }
  const std::int64_t longest =
      header.version == 1 ? std::numeric_limits<std::int16_t>::max() : std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t length : header.shape) {
    if (length < 1 || length > longest) {
      return fail(ErrorKind::invalid_argument, "an axis of length {}: NIfTI-{} has 1 to {}", length, header.version,
                  longest);
    }
  }
  if (nifti_datatype_of(header.type) == 0) {
    return fail(ErrorKind::invalid_argument, "NIfTI has no type {}", header.type.name());
  }
  if (header.description.size() >= nifti_description_bytes) {
    return fail(ErrorKind::invalid_argument, "the description has {} bytes: 79 at most", header.description.size());
  }
  if (header.intent_name.size() >= nifti_intent_name_bytes) {
    return fail(ErrorKind::invalid_argument, "the intent name '{}' has {} bytes: 15 at most", header.intent_name,
                header.intent_name.size());
  }
  if (!is_usable_map(header.geometry.voxel_to_world)) {
    return fail(ErrorKind::invalid_argument, "the affine map cannot be inverted (determinant {})",
                header.geometry.voxel_to_world.determinant());
  }
  if (!(std::isfinite(header.slope) && header.slope != 0 && std::isfinite(header.intercept))) {
    return fail(ErrorKind::invalid_argument, "scaling by slope {} and intercept {} cannot be undone", header.slope,
                header.intercept);
  }
  if (header.version == 1) {
    constexpr double largest = std::numeric_limits<float>::max();
    for (const double value : header.geometry.voxel_to_world.rows) {
      if (!(std::abs(value) <= largest)) {
        return fail(ErrorKind::invalid_argument, "{} in the affine map does not fit NIfTI-1", value);
      }
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> encode_nifti_header(const NiftiHeader& header) {
  return catch_out_of_memory([&]() -> Result<std::vector<std::byte>> {
    CGL_TRY(check_encodable(header));
    const bool one = header.version == 1;
    const NiftiOffsets& offsets = one ? nifti1_offsets : nifti2_offsets;
    const std::size_t size = (one ? nifti1_header_bytes : nifti2_header_bytes) + nifti_extension_flag_bytes;
    std::vector<std::byte> bytes(size);
    FieldWriter fields(bytes, header.version);
    fields.put(0, static_cast<std::int32_t>(size - nifti_extension_flag_bytes));
    fields.text(offsets.magic, one ? std::string_view("n+1") : std::string_view("n+2\0\r\n\032\n", 8));
    fields.dim(0, static_cast<std::int64_t>(header.shape.size()));
    for (std::size_t i = 0; i < 7; ++i) fields.dim(i + 1, i < header.shape.size() ? header.shape[i] : 1);
    fields.put(offsets.datatype, static_cast<std::int16_t>(nifti_datatype_of(header.type)));
    fields.put(offsets.bitpix, static_cast<std::int16_t>(header.type.bits));
    for (std::size_t i = 0; i < 8; ++i) fields.real(offsets.pixdim, i, 1);
    const auto edges = header.geometry.voxel_mm();
    for (std::size_t i = 0; i < 3; ++i) fields.real(offsets.pixdim, i + 1, edges[i]);
    if (one) {
      fields.put(offsets.vox_offset, static_cast<float>(size));
    } else {
      fields.put(offsets.vox_offset, static_cast<std::int64_t>(size));
    }
    fields.real(offsets.slope, 0, header.slope);
    fields.real(offsets.intercept, 0, header.intercept);
    constexpr std::int32_t millimetres = 2;
    if (one) {
      fields.put(offsets.xyzt_units, static_cast<std::uint8_t>(millimetres));
    } else {
      fields.put(offsets.xyzt_units, millimetres);
    }
    constexpr int scanner = 1;  // NIFTI_XFORM_SCANNER_ANAT
    fields.code(offsets.sform_code, scanner);
    for (std::size_t i = 0; i < 12; ++i) fields.real(offsets.srow, i, header.geometry.voxel_to_world.rows[i]);
    fields.code(offsets.qform_code, put_qform(fields, offsets, header.geometry) ? scanner : 0);
    fields.code(offsets.intent_code, header.intent_code);
    fields.text(offsets.intent_name, header.intent_name);
    fields.text(offsets.description, header.description);
    return bytes;
  });
}

}  // namespace cingulum
