#include "tract/field/fit_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.hpp"
#include "base/json_view.hpp"
#include "formats/byte_stream.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Arrays are stored as they lie in memory.
static_assert(std::endian::native == std::endian::little);

// A file is this line, the hash of all that follows it with a line end, the number of bytes of the description as eight
// bytes, the description (JSON), and the arrays in the order of `for_each_array`.
constexpr std::string_view magic = "cingulum fit 1\n";
constexpr std::size_t hex_digits = 32;
constexpr std::uint64_t description_at = magic.size() + hex_digits + 1 + sizeof(std::uint64_t);
constexpr std::uint64_t largest_description_bytes = std::uint64_t{16} << 20U;

template <class Fit, class Visit>
Status for_each_array(Fit& fit, Visit&& visit) {
  CGL_TRY(visit("mask", fit.mask));
  CGL_TRY(visit("stop_map", fit.stop_map));
  auto& field = fit.prepared.field;
  CGL_TRY(visit("record_of_voxel", field.record_of_voxel));
  CGL_TRY(visit("records", field.records));
  CGL_TRY(visit("boot_basis", field.bootstrap.basis));
  CGL_TRY(visit("boot_fit", field.bootstrap.fit));
  return visit("boot_residual_scale", field.bootstrap.residual_scale);
}

Json description_of(const Json& key, const Json& about, const FitView& fit) {
  const Field& field = fit.prepared.field;
  Json json = {{"key", key},
               {"about", about},
               {"facts", fit.prepared.facts},
               {"warnings", fit.prepared.warnings},
               {"min_signal", fit.prepared.min_signal},
               {"field",
                {{"kind", static_cast<std::uint32_t>(field.kind)},
                 {"degree", field.degree},
                 {"channels", field.channels},
                 {"stride", field.stride},
                 {"replaced", field.replaced},
                 {"boot_csa", field.bootstrap.csa},
                 {"boot_gradients", field.bootstrap.gradients},
                 {"boot_coefficients", field.bootstrap.coefficients}}}};
  Json& counts = json["counts"];
  const Status counted = for_each_array(fit, [&](const char* name, const auto& array) -> Status {
    counts[name] = array.size();
    return {};
  });
  static_cast<void>(counted);
  return json;
}

auto damage(std::string_view what) {
  return fail(ErrorKind::corrupt, "{}", what);
}

Result<std::uint64_t> number_at(const Json& object, const char* name, std::uint64_t largest) {
  const auto found = JsonView(object)[name].count();
  if (!found || *found > largest) return fail(ErrorKind::corrupt, "its description has no number '{}'", name);
  return *found;
}

Status read_exactly(const InputFile& file, std::uint64_t offset, std::span<std::byte> to) {
  CGL_TRY_ASSIGN(const std::size_t bytes, file.read_at(offset, to));
  if (bytes != to.size()) return damage("it ends too early");
  return {};
}

// Checks what needs no array: the frame of the file and the description.
Result<Json> read_description(const InputFile& file, std::string& hash, std::uint64_t& arrays_at) {
  std::array<char, description_at> head{};
  if (file.size() < head.size()) return damage("it is too short");
  CGL_TRY(read_exactly(file, 0, std::as_writable_bytes(std::span(head))));
  if (std::string_view(head.data(), magic.size()) != magic || head[magic.size() + hex_digits] != '\n') {
    return damage("it does not begin as one");
  }
  hash.assign(head.data() + magic.size(), hex_digits);
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, head.data() + description_at - sizeof bytes, sizeof bytes);
  if (bytes > largest_description_bytes || bytes > file.size() - description_at) {
    return fail(ErrorKind::corrupt, "its description cannot have {} bytes", bytes);
  }
  std::string text(bytes, '\0');
  CGL_TRY(read_exactly(file, description_at, std::as_writable_bytes(std::span(text))));
  CGL_TRY_ASSIGN(Json json, parse_json(text));
  for (const char* member : {"key", "about", "facts", "field", "counts"}) {
    if (JsonView(json)[member].object() == nullptr) return damage("its description is not complete");
  }
  arrays_at = description_at + bytes;
  return json;
}

// Whether the arrays fit each other: a kernel reads records by their numbers without looking again.
Status check_shapes(const KeptFit& fit) {
  const Field& field = fit.prepared.field;
  const auto voxels = static_cast<std::size_t>(field.geometry.voxel_count());
  if (fit.mask.size() != voxels || fit.stop_map.size() != voxels || field.record_of_voxel.size() != voxels) {
    return damage("its maps are not of the size of the image");
  }
  if (field.stride <= field.channels || field.records.size() < Field::record_padding + field.stride ||
      (field.records.size() - Field::record_padding) % field.stride != 0) {
    return damage("its records do not fill their array");
  }
  const std::size_t records = field.record_count();
  if (std::any_of(field.record_of_voxel.begin(), field.record_of_voxel.end(),
                  [&](std::uint32_t record) { return record >= records; })) {
    return damage("a voxel has a record that is not there");
  }
  const BootstrapTables& tables = field.bootstrap;
  const std::size_t products = std::size_t{tables.gradients} * tables.coefficients;
  if (tables.basis.size() != products || tables.fit.size() != products ||
      tables.residual_scale.size() != tables.gradients) {
    return damage("its bootstrap matrices are not of the size that is said");
  }
  return {};
}

Result<KeptFit> read_checked(const fs::path& path, const Json& key, const ImageGeometry& geometry,
                             const Sphere& sphere) {
  CGL_TRY_ASSIGN(const InputFile file, InputFile::open(path));
  std::string stored_hash;
  std::uint64_t offset = 0;
  CGL_TRY_ASSIGN(const Json json, read_description(file, stored_hash, offset));
  if (json["key"].dump() != key.dump()) return damage("it is that of another run");

  // The counts are held against the size of the file before memory is taken for them.
  KeptFit fit;
  const Json& counts = json["counts"];
  std::uint64_t expected = offset;
  const Status arrays_counted = for_each_array(fit, [&](const char* name, auto& array) -> Status {
    constexpr std::uint64_t item_bytes = sizeof(array[0]);
    CGL_TRY_ASSIGN(const std::uint64_t count, number_at(counts, name, (file.size() - expected) / item_bytes));
    expected += count * item_bytes;
    return {};
  });
  CGL_TRY(arrays_counted);
  if (expected != file.size()) return damage("its size is not that of its arrays");

  Hash128 hash;
  {
    std::vector<std::byte> description(offset - (description_at - sizeof(std::uint64_t)));
    CGL_TRY(read_exactly(file, description_at - sizeof(std::uint64_t), description));
    hash.add(description);
  }
  const Status arrays_read = for_each_array(fit, [&](const char* name, auto& array) -> Status {
    array.resize(counts[name].template get<std::size_t>());
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(array));
    CGL_TRY(read_exactly(file, offset, bytes));
    hash.add(bytes);
    offset += bytes.size();
    return {};
  });
  CGL_TRY(arrays_read);
  if (hash.hex() != stored_hash) return damage("its checksum is wrong");

  const Json& stored = json["field"];
  Field& field = fit.prepared.field;
  constexpr std::uint64_t word = 0xffffffffU;
  CGL_TRY_ASSIGN(const std::uint64_t kind, number_at(stored, "kind", static_cast<std::uint64_t>(FieldKind::tensor)));
  CGL_TRY_ASSIGN(const std::uint64_t degree, number_at(stored, "degree", 64));
  CGL_TRY_ASSIGN(const std::uint64_t channels, number_at(stored, "channels", word));
  CGL_TRY_ASSIGN(const std::uint64_t stride, number_at(stored, "stride", word));
  CGL_TRY_ASSIGN(field.replaced, number_at(stored, "replaced", ~std::uint64_t{0}));
  CGL_TRY_ASSIGN(const std::uint64_t gradients, number_at(stored, "boot_gradients", word));
  CGL_TRY_ASSIGN(const std::uint64_t coefficients, number_at(stored, "boot_coefficients", word));
  field.kind = static_cast<FieldKind>(kind);
  field.degree = static_cast<int>(degree);
  field.channels = static_cast<std::uint32_t>(channels);
  field.stride = static_cast<std::uint32_t>(stride);
  field.geometry = geometry;
  if (field.kind != FieldKind::tensor && field.kind != FieldKind::peaks) field.sphere = sphere;
  field.bootstrap.csa = JsonView(stored)["boot_csa"].flag().value_or(false);
  field.bootstrap.gradients = static_cast<std::uint32_t>(gradients);
  field.bootstrap.coefficients = static_cast<std::uint32_t>(coefficients);
  fit.prepared.facts = json["facts"];
  fit.prepared.warnings = JsonView(json)["warnings"].texts();
  const auto min_signal = JsonView(json)["min_signal"].number();
  if (!min_signal) return damage("it has no smallest signal");
  fit.prepared.min_signal = *min_signal;
  CGL_TRY(check_shapes(fit));
  return fit;
}

}  // namespace

Result<FitDescription> read_fit_description(const fs::path& path) {
  return catch_out_of_memory([&]() -> Result<FitDescription> {
    CGL_TRY_ASSIGN(const InputFile file, InputFile::open(path));
    std::string hash;
    std::uint64_t arrays_at = 0;
    CGL_TRY_ASSIGN(const Json json, read_description(file, hash, arrays_at));
    return FitDescription{json["key"], json["about"]};
  });
}

Result<KeptFit> read_fit_file(const fs::path& path, const Json& key, const ImageGeometry& geometry,
                              const Sphere& sphere) {
  return catch_out_of_memory([&] { return read_checked(path, key, geometry, sphere); });
}

Status write_fit_file(const fs::path& path, const FitDescription& said, const FitView& fit,
                      const WriteOptions& options) {
  const std::string description =
      description_of(said.key, said.about, fit).dump(-1, ' ', false, Json::error_handler_t::replace);
  CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, options));
  Hash128 hash;
  const auto append = [&](std::span<const std::byte> bytes) {
    hash.add(bytes);
    return file.append(bytes);
  };
  CGL_TRY(file.append(magic));
  CGL_TRY(file.append(std::string(hex_digits, '0') + "\n"));
  const std::uint64_t bytes = description.size();
  CGL_TRY(append(std::as_bytes(std::span(&bytes, 1))));
  CGL_TRY(append(std::as_bytes(std::span(description))));
  CGL_TRY(for_each_array(
      fit, [&](const char*, const auto& array) -> Status { return append(std::as_bytes(std::span(array))); }));
  const std::string hex = hash.hex();
  CGL_TRY(file.write_at(magic.size(), std::as_bytes(std::span(hex))));
  return file.commit();
}

}  // namespace cingulum
