// NIfTI: header and voxels, plain or in gzip.
#include <cstring>

#include "formats/nifti.hpp"
#include "formats/samples.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file_layer.hpp"

namespace {

using namespace cingulum;

struct Volumes {
  ImageGeometry geometry;
  std::int64_t count = 0;
  std::vector<double> values;
};

Result<Volumes> read_all(NiftiReader& reader) {
  Volumes volumes{reader.header().geometry, reader.header().volume_count(), {}};
  const auto voxels = static_cast<std::size_t>(volumes.geometry.voxel_count());
  while (reader.volumes_read() < volumes.count) {
    volumes.values.resize(volumes.values.size() + voxels);
    CGL_TRY(reader.next_volume(std::span(volumes.values).last(voxels)));
  }
  return volumes;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

void write_and_compare(const Volumes& volumes, const char* path, int version, ElementType type) {
  fuzz::MemoryFileLayer layer;
  NiftiWriteOptions options;
  options.file.layer = &layer;
  options.file.buffer_bytes = 4096;
  options.version = version;
  options.type = type;
  auto writer = fuzz::expect(NiftiWriter::create(path, volumes.geometry, {volumes.count}, options), "writing again");
  fuzz::require(writer.append(std::span<const double>(volumes.values)).has_value(), "writing again");
  fuzz::require(writer.commit().has_value(), "writing again");
  auto reader = fuzz::expect(NiftiReader::open_memory(layer.content(path), "again"), "reading again");
  const Volumes again = fuzz::expect(read_all(reader), "reading again");
  fuzz::require(again.geometry == volumes.geometry, "the geometry has changed");
  fuzz::require(again.count == volumes.count, "the number of volumes has changed");
  fuzz::require(same_bits(again.values, volumes.values), "the values have changed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto reader = NiftiReader::open_memory(fuzz::as_bytes(data, size), "input");
  if (!reader) return 0;
  const NiftiHeader header = reader->header();
  const auto volumes = read_all(*reader);
  if (!volumes) return 0;
  // NIfTI-2 and float64 hold everything that was read.
  write_and_compare(*volumes, "/again.nii.gz", 2, element_type_of<double>());
  const bool unscaled = header.slope == 1 && header.intercept == 0;
  const bool exact = header.type.bits <= 32 || header.type.code == ElementType::Code::floating;
  if (unscaled && exact) write_and_compare(*volumes, "/again.nii", 2, header.type);
  return 0;
}
