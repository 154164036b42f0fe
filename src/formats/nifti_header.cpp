#include "formats/nifti_header.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "formats/byte_order.hpp"
#include "formats/nifti_fields.hpp"
#include "numerics/vec3.hpp"

namespace cingulum {
namespace {

constexpr std::uint64_t largest_size = std::numeric_limits<std::int64_t>::max();

// Reads numbers at byte offsets; those of version 1 are narrower than those of version 2.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, int version, bool big_endian)
      : bytes_(bytes), version_(version), big_endian_(big_endian) {}

  template <class T>
  [[nodiscard]] T get(std::size_t offset) const {
    return load<T>(bytes_, offset, big_endian_);
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
  bool big_endian_;
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
  const bool pair = has_text(bytes, nifti1_offsets.magic, "ni1\0"sv);
  const bool single = has_text(bytes, nifti1_offsets.magic, "n+1\0"sv);
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
      if (is_dimension_count(Fields(bytes, 1, big_endian).dim(nifti1_offsets.dim, 0))) return Kind{1, big_endian, true};
    }
  }
  return fail(ErrorKind::corrupt, "it is not a NIfTI image: the first four bytes are {:02x} {:02x} {:02x} {:02x}",
              std::to_integer<unsigned>(bytes[0]), std::to_integer<unsigned>(bytes[1]),
              std::to_integer<unsigned>(bytes[2]), std::to_integer<unsigned>(bytes[3]));
}

Status read_shape(const Fields& fields, const NiftiOffsets& offsets, NiftiHeader& header) {
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

void read_type(const Fields& fields, const NiftiOffsets& offsets, NiftiHeader& header) {
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

Status read_data_offset(const Fields& fields, const NiftiOffsets& offsets, NiftiHeader& header) {
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

Status read_scaling(const Fields& fields, const NiftiOffsets& offsets, NiftiHeader& header) {
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
Affine affine_of_quaternion(const Fields& fields, const NiftiOffsets& offsets, const std::array<double, 3>& edges,
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

Affine scaled(Affine affine, double factor) {
  if (factor != 1) {
    for (double& value : affine.rows) value *= factor;
  }
  return affine;
}

Status read_geometry(const Fields& fields, const NiftiOffsets& offsets, NiftiHeader& header) {
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
    if (is_usable_map(header.geometry.voxel_to_world)) return {};
    header.warnings.push_back("the sform cannot be inverted: it is ignored");
  }
  if (header.qform_code > 0) {
    header.affine_source = AffineSource::qform;
    header.geometry.voxel_to_world = scaled(header.qform, to_mm);
    if (is_usable_map(header.geometry.voxel_to_world)) return {};
    header.warnings.push_back("the qform cannot be inverted: it is ignored");
  }
  header.affine_source = AffineSource::pixdim;
  header.geometry.voxel_to_world = scaled(by_pixdim, to_mm);
  header.warnings.push_back(
      "neither sform nor qform says where the voxels lie: only their size is known, the axes are taken as right, "
      "anterior, superior");
  if (is_usable_map(header.geometry.voxel_to_world)) return {};
  return fail(ErrorKind::corrupt, "the voxel size {} x {} x {} cannot be used", edges[0], edges[1], edges[2]);
}

}  // namespace

bool is_usable_map(const Affine& affine) {
  if (!affine.is_finite()) return false;
  for (int c = 0; c < 3; ++c) {
    const double square = dot(numerics::Vec3d{affine.at(0, c), affine.at(1, c), affine.at(2, c)},
                              numerics::Vec3d{affine.at(0, c), affine.at(1, c), affine.at(2, c)});
    if (!(square > 0 && std::isfinite(square))) return false;
  }
  const double determinant = affine.determinant();
  return std::isfinite(determinant) && determinant != 0;
}

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
    const NiftiOffsets& offsets = kind.version == 1 ? nifti1_offsets : nifti2_offsets;
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
    header.intent_name = fields.text(offsets.intent_name, nifti_intent_name_bytes);
    header.description = fields.text(offsets.description, nifti_description_bytes);
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

}  // namespace cingulum
