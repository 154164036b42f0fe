#include "formats/nifti_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "numerics/vec3.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

// Where the fields lie: nifti1.h and nifti2.h of the NIfTI Data Format Working Group (2003, 2011).
struct FieldOffsets {
  std::size_t magic, dim_info, dim, intent_code, datatype, bitpix, pixdim, vox_offset, slope, intercept, xyzt_units,
      description, qform_code, sform_code, quatern, qoffset, srow, intent_name;
};
constexpr FieldOffsets offsets_1 = {344, 39, 40, 68, 70, 72, 76, 108, 112, 116, 123, 148, 252, 254, 256, 268, 280, 328};
constexpr FieldOffsets offsets_2 = {4,   524, 16,  504, 12,  14,  104, 168, 176,
                                    184, 500, 240, 344, 348, 352, 376, 400, 508};
constexpr std::size_t description_bytes = 80, intent_name_bytes = 16;
constexpr std::uint64_t largest_size = std::numeric_limits<std::int64_t>::max();

template <class T>
T swap_bytes(T value) {
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

constexpr bool machine_is_big_endian = std::endian::native == std::endian::big;

// Reads numbers at byte offsets; those of version 1 are narrower than those of version 2.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, int version, bool big_endian)
      : bytes_(bytes), version_(version), swapped_(big_endian != machine_is_big_endian) {}

  template <class T>
  [[nodiscard]] T get(std::size_t offset) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return swapped_ ? swap_bytes(value) : value;
  }
  [[nodiscard]] double real(std::size_t offset, std::size_t index = 0) const {
    return version_ == 1 ? static_cast<double>(get<float>(offset + 4 * index)) : get<double>(offset + 8 * index);
  }
  [[nodiscard]] std::int64_t dim(std::size_t offset, std::size_t index) const {
    return version_ == 1 ? get<std::int16_t>(offset + 2 * index) : get<std::int64_t>(offset + 8 * index);
  }
  [[nodiscard]] int code(std::size_t offset) const {
    return version_ == 1 ? get<std::int16_t>(offset) : get<std::int32_t>(offset);
  }
  [[nodiscard]] std::string text(std::size_t offset, std::size_t bytes) const {
    const auto* begin = reinterpret_cast<const char*>(bytes_.data() + offset);
    return {begin, std::find(begin, begin + bytes, '\0')};
  }

 private:
  std::span<const std::byte> bytes_;
  int version_;
  bool swapped_;
};

struct Datatype {
  int code;
  std::string_view name;
  int bits;
  ElementType type;
};
using TypeCode = ElementType::Code;
constexpr std::array datatypes = {
    Datatype{1, "binary", 1, {TypeCode::unsigned_integer, 1}},
    Datatype{2, "uint8", 8, {TypeCode::unsigned_integer, 8}},
    Datatype{4, "int16", 16, {TypeCode::integer, 16}},
    Datatype{8, "int32", 32, {TypeCode::integer, 32}},
    Datatype{16, "float32", 32, {TypeCode::floating, 32}},
    Datatype{32, "complex64", 64, {TypeCode::complex, 64}},
    Datatype{64, "float64", 64, {TypeCode::floating, 64}},
    Datatype{128, "rgb24", 24, {TypeCode::unsigned_integer, 24}},
    Datatype{256, "int8", 8, {TypeCode::integer, 8}},
    Datatype{512, "uint16", 16, {TypeCode::unsigned_integer, 16}},
    Datatype{768, "uint32", 32, {TypeCode::unsigned_integer, 32}},
    Datatype{1024, "int64", 64, {TypeCode::integer, 64}},
    Datatype{1280, "uint64", 64, {TypeCode::unsigned_integer, 64}},
    Datatype{1536, "float128", 128, {TypeCode::floating, 128}},
    Datatype{1792, "complex128", 128, {TypeCode::complex, 128}},
    // 256 bits do not fit ElementType; the type is refused by its code before anything is sized by it.
    Datatype{2048, "complex256", 256, {TypeCode::complex, 0}},
    // Four samples of 8 bits, not one of 32.
    Datatype{2304, "rgba32", 32, {TypeCode::unsigned_integer, 0}},
};

const Datatype* find_datatype(int code) {
  const auto found =
      std::find_if(datatypes.begin(), datatypes.end(), [&](const Datatype& d) { return d.code == code; });
  return found == datatypes.end() ? nullptr : &*found;
}

struct Kind {
  int version;
  bool big_endian;
  bool size_is_odd;  // sizeof_hdr is not what it should be, but all else is
};

// The text at `offset`, when there are so many bytes.
bool has_text(std::span<const std::byte> bytes, std::size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() && std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

bool is_dimension_count(std::int64_t value) {
  return value >= 1 && value <= 7;
}

Result<Kind> find_kind(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  const auto size_is = [&](std::uint32_t size, bool big_endian) {
    return bytes.size() >= 4 && Fields(bytes, 1, big_endian).get<std::uint32_t>(0) == size;
  };
  for (const bool big_endian : {false, true}) {
    if (!size_is(nifti2_header_bytes, big_endian)) continue;
    if (has_text(bytes, 4, "ni2\0"sv)) {
      return fail(ErrorKind::invalid_argument,
                  "it is the header of a pair of .hdr and .img files, which is not read; convert the pair to one .nii");
    }
    if (!has_text(bytes, 4, "n+2\0"sv)) break;
    if (bytes.size() < nifti1_header_bytes) {
      return fail(ErrorKind::corrupt, "it ends at byte {} inside the header of {} bytes", bytes.size(),
                  nifti2_header_bytes);
    }
    if (!has_text(bytes, 8, "\r\n\032\n"sv)) {
      return fail(ErrorKind::corrupt,
                  "byte 8: the line ends of the NIfTI-2 magic are altered, as by a transfer as text");
    }
    return Kind{2, big_endian, false};
  }
  if (bytes.size() < nifti1_header_bytes) {
    return fail(ErrorKind::corrupt, "it ends at byte {}: a NIfTI header has 348 bytes at least", bytes.size());
  }
  const bool pair = has_text(bytes, offsets_1.magic, "ni1\0"sv);
  const bool single = has_text(bytes, offsets_1.magic, "n+1\0"sv);
  if (pair) {
    return fail(ErrorKind::invalid_argument,
                "it is the header of a pair of .hdr and .img files, which is not read; convert the pair to one .nii");
  }
  for (const bool big_endian : {false, true}) {
    if (!size_is(nifti1_header_bytes, big_endian)) continue;
    if (single) return Kind{1, big_endian, false};
    return fail(ErrorKind::corrupt,
                "byte 344: a header of 348 bytes without the mark 'n+1' of NIfTI-1: an ANALYZE 7.5 image, which is not "
                "read, or a damaged file");
  }
  if (single) {
    for (const bool big_endian : {false, true}) {
      if (is_dimension_count(Fields(bytes, 1, big_endian).dim(offsets_1.dim, 0))) return Kind{1, big_endian, true};
    }
  }
  return fail(ErrorKind::corrupt, "it is not a NIfTI image: the first four bytes are {:02x} {:02x} {:02x} {:02x}",
              std::to_integer<unsigned>(bytes[0]), std::to_integer<unsigned>(bytes[1]),
              std::to_integer<unsigned>(bytes[2]), std::to_integer<unsigned>(bytes[3]));
}

Status read_shape(const Fields& fields, const FieldOffsets& offsets, NiftiHeader& header) {
  const std::int64_t count = fields.dim(offsets.dim, 0);
  if (!is_dimension_count(count)) {
    return fail(ErrorKind::corrupt, "byte {}: dim[0] = {} is not a number of axes (1 to 7)", offsets.dim, count);
  }
  for (std::int64_t axis = 1; axis <= count; ++axis) {
    std::int64_t length = fields.dim(offsets.dim, static_cast<std::size_t>(axis));
    if (length == 0 && axis > 1) {
      header.warnings.push_back(fmt::format("dim[{}] is 0: read as 1", axis));
      length = 1;
    }
    if (length <= 0) return fail(ErrorKind::corrupt, "dim[{}] = {} is not the length of an axis", axis, length);
    header.shape.push_back(length);
  }
  return {};
}

void read_type(const Fields& fields, const FieldOffsets& offsets, NiftiHeader& header) {
  header.datatype = fields.get<std::int16_t>(offsets.datatype);
  const int bits = fields.get<std::int16_t>(offsets.bitpix);
  const Datatype* datatype = find_datatype(header.datatype);
  header.type = datatype != nullptr ? datatype->type : ElementType{TypeCode::floating, 0};  // no type that is read
  if (datatype == nullptr) return;
  if (bits != datatype->bits) {
    header.warnings.push_back(
        fmt::format("bitpix is {}, the type {} has {} bits: bitpix is ignored", bits, datatype->name, datatype->bits));
  }
}

Status read_data_offset(const Fields& fields, const FieldOffsets& offsets, NiftiHeader& header) {
  const std::uint64_t smallest =
      (header.version == 1 ? nifti1_header_bytes : nifti2_header_bytes) + nifti_extension_flag_bytes;
  const double stored = header.version == 1 ? static_cast<double>(fields.get<float>(offsets.vox_offset))
                                            : static_cast<double>(fields.get<std::int64_t>(offsets.vox_offset));
  if (stored == 0) {
    header.warnings.push_back(fmt::format("vox_offset is 0: the voxels are taken from byte {}", smallest));
    header.data_offset = smallest;
    return {};
  }
  if (!(stored >= static_cast<double>(smallest) && stored < 0x1p62)) {
    return fail(ErrorKind::corrupt, "byte {}: vox_offset = {} is not a place behind the header ({} at least)",
                offsets.vox_offset, stored, smallest);
  }
  header.data_offset = header.version == 1 ? static_cast<std::uint64_t>(stored)
                                           : static_cast<std::uint64_t>(fields.get<std::int64_t>(offsets.vox_offset));
  if (static_cast<double>(header.data_offset) != stored && header.version == 1) {
    header.warnings.push_back(
        fmt::format("vox_offset = {} is not a whole number: read as {}", stored, header.data_offset));
  } else if (header.data_offset % 16 != 0) {
    header.warnings.push_back(fmt::format("vox_offset = {} is not a multiple of 16", header.data_offset));
  }
  return {};
}

Status read_scaling(const Fields& fields, const FieldOffsets& offsets, NiftiHeader& header) {
  const double slope = fields.real(offsets.slope), intercept = fields.real(offsets.intercept);
  if (!std::isfinite(slope)) {
    header.warnings.push_back(fmt::format("scl_slope is {}: the values are not scaled", slope));
    return {};
  }
  if (slope == 0) {
    header.warnings.push_back(intercept == 0 ? std::string("scl_slope is 0: the values are not scaled")
                                             : fmt::format("scl_slope is 0: the values are not scaled, and scl_inter = "
                                                           "{} is ignored",
                                                           intercept));
    return {};
  }
  if (!std::isfinite(intercept)) {
    return fail(ErrorKind::corrupt, "byte {}: scl_inter is {} beside a valid scl_slope of {}", offsets.intercept,
                intercept, slope);
  }
  header.slope = slope;
  header.intercept = intercept;
  return {};
}

double read_units(int code, NiftiHeader& header) {
  const auto time_name = [&]() -> std::string {
    switch (code & 0x38) {
      case 0: return "unknown";
      case 8: return "s";
      case 16: return "ms";
      case 24: return "us";
      case 32: return "Hz";
      case 40: return "ppm";
      case 48: return "rad/s";
      default: return fmt::format("code {}", code & 0x38);
    }
  };
  header.time_unit = time_name();
  switch (code & 0x07) {
    case 0: header.spatial_unit = "unknown"; return 1;
    case 1:
      header.spatial_unit = "m";
      header.warnings.push_back("lengths are in metres: converted to mm");
      return 1000;
    case 2: header.spatial_unit = "mm"; return 1;
    case 3:
      header.spatial_unit = "um";
      header.warnings.push_back("lengths are in micrometres: converted to mm");
      return 0.001;
    default:
      header.spatial_unit = "unknown";
      header.warnings.push_back(fmt::format("spatial unit {} is not known: taken as mm", code & 0x07));
      return 1;
  }
}

// Voxel edges from pixdim, made usable; axes that the image has not got count 1.
std::array<double, 3> usable_edges(NiftiHeader& header) {
  std::array<double, 3> edges{1, 1, 1};
  for (std::size_t axis = 0; axis < std::min<std::size_t>(3, header.shape.size()); ++axis) {
    const double stored = header.pixdim[axis + 1];
    if (std::isfinite(stored) && stored != 0) {
      edges[axis] = std::abs(stored);
      if (stored < 0) header.warnings.push_back(fmt::format("pixdim[{}] = {} is negative", axis + 1, stored));
    } else {
      header.warnings.push_back(fmt::format("pixdim[{}] is {}: where it is needed it counts 1", axis + 1, stored));
    }
  }
  return edges;
}

// nifti1.h, section "3D image (volume) orientation", method 2.
Affine affine_of_quaternion(const Fields& fields, const FieldOffsets& offsets, const std::array<double, 3>& edges,
                            NiftiHeader& header) {
  double b = fields.real(offsets.quatern, 0), c = fields.real(offsets.quatern, 1), d = fields.real(offsets.quatern, 2);
  const double square = (b * b + c * c) + d * d;
  constexpr double tolerance = 1e-7;
  double a = 0;
  if (1 - square < tolerance) {
    // A half turn, or a quaternion that is too long by rounding.
    const double scale = 1 / std::sqrt(square);
    b *= scale;
    c *= scale;
    d *= scale;
    if (square > 1 + 1e-5) {
      header.warnings.push_back(
          fmt::format("the quaternion's vector has length {:.6g}: shortened to 1", std::sqrt(square)));
    }
  } else {
    a = std::sqrt(1 - square);
  }
  const double stored_qfac = header.pixdim[0];
  double qfac = stored_qfac < 0 ? -1 : 1;
  if (header.qform_code > 0 && stored_qfac != 1 && stored_qfac != -1) {
    header.warnings.push_back(fmt::format("qfac (pixdim[0]) is {} instead of 1 or -1: read as {}", stored_qfac, qfac));
  }
  const double x = edges[0], y = edges[1], z = edges[2] * qfac;
  Affine affine;
  affine.rows = {(a * a + b * b - c * c - d * d) * x,
                 2 * (b * c - a * d) * y,
                 2 * (b * d + a * c) * z,
                 fields.real(offsets.qoffset, 0),
                 2 * (b * c + a * d) * x,
                 (a * a + c * c - b * b - d * d) * y,
                 2 * (c * d - a * b) * z,
                 fields.real(offsets.qoffset, 1),
                 2 * (b * d - a * c) * x,
                 2 * (c * d + a * b) * y,
                 (a * a + d * d - b * b - c * c) * z,
                 fields.real(offsets.qoffset, 2)};
  return affine;
}

bool is_usable(const Affine& affine) {
  if (!affine.is_finite()) return false;
  for (int c = 0; c < 3; ++c) {
    const double square = dot(Vec3d{affine.at(0, c), affine.at(1, c), affine.at(2, c)},
                              Vec3d{affine.at(0, c), affine.at(1, c), affine.at(2, c)});
    if (!(square > 0 && std::isfinite(square))) return false;
  }
  const double determinant = affine.determinant();
  return std::isfinite(determinant) && determinant != 0;
}

Affine scaled(Affine affine, double factor) {
  if (factor != 1) {
    for (double& value : affine.rows) value *= factor;
  }
  return affine;
}

Status read_geometry(const Fields& fields, const FieldOffsets& offsets, NiftiHeader& header) {
  for (std::size_t i = 0; i < 8; ++i) header.pixdim.push_back(fields.real(offsets.pixdim, i));
  header.qform_code = fields.code(offsets.qform_code);
  header.sform_code = fields.code(offsets.sform_code);
  const int units =
      header.version == 1 ? fields.get<std::uint8_t>(offsets.xyzt_units) : fields.get<std::int32_t>(offsets.xyzt_units);
  const double to_mm = read_units(units, header);
  const std::array<double, 3> edges = usable_edges(header);
  for (std::size_t i = 0; i < 12; ++i) header.sform.rows[i] = fields.real(offsets.srow, i);
  header.qform = affine_of_quaternion(fields, offsets, edges, header);
  Affine by_pixdim;
  for (int axis = 0; axis < 3; ++axis) by_pixdim.at(axis, axis) = edges[static_cast<std::size_t>(axis)];

  for (std::size_t axis = 0; axis < 3; ++axis) {
    header.geometry.size[axis] = axis < header.shape.size() ? header.shape[axis] : 1;
  }
  if (header.sform_code > 0) {
    header.affine_source = AffineSource::sform;
    header.geometry.voxel_to_world = scaled(header.sform, to_mm);
    if (is_usable(header.geometry.voxel_to_world)) return {};
    header.warnings.push_back("the sform cannot be inverted: it is ignored");
  }
  if (header.qform_code > 0) {
    header.affine_source = AffineSource::qform;
    header.geometry.voxel_to_world = scaled(header.qform, to_mm);
    if (is_usable(header.geometry.voxel_to_world)) return {};
    header.warnings.push_back("the qform cannot be inverted: it is ignored");
  }
  header.affine_source = AffineSource::pixdim;
  header.geometry.voxel_to_world = scaled(by_pixdim, to_mm);
  header.warnings.push_back(
      "neither sform nor qform says where the voxels lie: only their size is known, the axes are taken as right, "
      "anterior, superior");
  if (is_usable(header.geometry.voxel_to_world)) return {};
  return fail(ErrorKind::corrupt, "the voxel size {} x {} x {} cannot be used", edges[0], edges[1], edges[2]);
}

// Writes numbers at byte offsets, little-endian.
class FieldWriter {
 public:
  FieldWriter(std::vector<std::byte>& bytes, int version) : bytes_(bytes), version_(version) {}

  template <class T>
  void put(std::size_t offset, T value) {
    if constexpr (machine_is_big_endian) value = swap_bytes(value);
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
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
      put(offsets_1.dim + 2 * index, static_cast<std::int16_t>(value));
    } else {
      put(offsets_2.dim + 8 * index, value);
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
bool put_qform(FieldWriter& fields, const FieldOffsets& offsets, const ImageGeometry& geometry) {
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
  if (header.description.size() >= description_bytes) {
    return fail(ErrorKind::invalid_argument, "the description has {} bytes: 79 at most", header.description.size());
  }
  if (header.intent_name.size() >= intent_name_bytes) {
    return fail(ErrorKind::invalid_argument, "the intent name '{}' has {} bytes: 15 at most", header.intent_name,
                header.intent_name.size());
  }
  if (!is_usable(header.geometry.voxel_to_world)) {
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

std::int64_t NiftiHeader::volume_count() const {
  std::int64_t count = 1;
  for (std::size_t axis = 3; axis < shape.size(); ++axis) count *= shape[axis];
  return count;
}

Result<std::size_t> nifti_header_size(std::span<const std::byte> begin) {
  CGL_TRY_ASSIGN(const Kind kind, find_kind(begin));
  return kind.version == 1 ? nifti1_header_bytes : nifti2_header_bytes;
}

Result<NiftiHeader> parse_nifti_header(std::span<const std::byte> bytes) {
  return catch_out_of_memory([&]() -> Result<NiftiHeader> {
    CGL_TRY_ASSIGN(const Kind kind, find_kind(bytes));
    if (bytes.size() < (kind.version == 1 ? nifti1_header_bytes : nifti2_header_bytes)) {
      return fail(ErrorKind::corrupt, "it ends at byte {} inside the header of {} bytes", bytes.size(),
                  nifti2_header_bytes);
    }
    const FieldOffsets& offsets = kind.version == 1 ? offsets_1 : offsets_2;
    const Fields fields(bytes, kind.version, kind.big_endian);
    NiftiHeader header;
    header.version = kind.version;
    header.big_endian = kind.big_endian;
    if (kind.size_is_odd) {
      header.warnings.push_back(fmt::format("sizeof_hdr is {} instead of 348", fields.get<std::int32_t>(0)));
    }
    CGL_TRY(read_shape(fields, offsets, header));
    read_type(fields, offsets, header);
    CGL_TRY(read_data_offset(fields, offsets, header));
    CGL_TRY(read_scaling(fields, offsets, header));
    CGL_TRY(read_geometry(fields, offsets, header));
    header.intent_code = fields.code(offsets.intent_code);
    header.intent_name = fields.text(offsets.intent_name, intent_name_bytes);
    header.description = fields.text(offsets.description, description_bytes);
    CGL_TRY(nifti_data_bytes(header));
    return header;
  });
}

Result<std::uint64_t> nifti_data_bytes(const NiftiHeader& header) {
  const Datatype* datatype = find_datatype(header.datatype);
  // A type without a known size is refused when voxels are read; until then it counts one byte.
  std::uint64_t bytes = datatype != nullptr ? static_cast<std::uint64_t>(std::max(1, datatype->bits / 8)) : 1;
  for (const std::int64_t length : header.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(length), &bytes) || bytes > largest_size) {
      return fail(ErrorKind::corrupt, "axes of {} voxels hold more than 2^63 bytes", fmt::join(header.shape, " x "));
    }
  }
  if (header.data_offset > largest_size - bytes) {
    return fail(ErrorKind::corrupt, "vox_offset = {} with {} bytes of voxels is beyond 2^63", header.data_offset,
                bytes);
  }
  return bytes;
}

std::string nifti_datatype_name(int datatype) {
  const Datatype* found = find_datatype(datatype);
  return found != nullptr ? std::string(found->name) : fmt::format("unknown type {}", datatype);
}

int nifti_datatype_of(ElementType type) noexcept {
  const auto found = std::find_if(datatypes.begin(), datatypes.end(),
                                  [&](const Datatype& d) { return d.type == type && d.bits == type.bits; });
  return found == datatypes.end() || found->bits % 8 != 0 ? 0 : found->code;
}

Result<std::vector<std::byte>> encode_nifti_header(const NiftiHeader& header) {
  return catch_out_of_memory([&]() -> Result<std::vector<std::byte>> {
    CGL_TRY(check_encodable(header));
    const bool one = header.version == 1;
    const FieldOffsets& offsets = one ? offsets_1 : offsets_2;
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
