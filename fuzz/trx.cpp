// TRX archives: zip, JSON, arrays. Each input is tried as it is and with its CRCs put right, or no mutant would come
// further than the checksums.
#include "formats/trx.hpp"

#include "formats/byte_order.hpp"
#include "formats/crc32.hpp"
#include "formats/zip_archive.hpp"
#include "fuzz/tractogram_round_trip.hpp"

namespace {

using namespace cingulum;

std::size_t bytes_per_row(const std::vector<DataField>& fields) {
  std::size_t bytes = 0;
  for (const DataField& field : fields) bytes += field.type.bytes() * static_cast<std::size_t>(field.columns);
  return bytes;
}

void try_file(std::span<const std::byte> file) {
  auto reader = open_trx("input", fuzz::copy_of(file));
  if (!reader) return;
  const TractogramLayout& layout = (*reader)->layout();
  const auto points = static_cast<std::size_t>(layout.point_count);
  const auto streamlines = static_cast<std::size_t>(layout.streamline_count);
  if (points * (24 + bytes_per_row(layout.point_fields)) + streamlines * (8 + bytes_per_row(layout.streamline_fields)) >
      fuzz::most_bytes_to_write) {
    (void)(*reader)->verify();
    return;
  }
  const auto whole = read_tractogram(**reader, 7, false);
  if (!whole) {
    fuzz::require(!(*reader)->verify(), "verify accepts what cannot be read");
    return;
  }
  const auto bytes = fuzz::write_whole(*whole, whole->layout, "/again.trx");
  auto again = fuzz::expect(open_trx("again", fuzz::copy_of(bytes)), "reading again");
  const auto read = fuzz::expect(read_tractogram(*again, 1000, false), "reading again");
  fuzz::require_same(*whole, read);
  fuzz::require(read.layout.reference == whole->layout.reference, "the reference has changed");
  fuzz::require(read.layout.position_type == whole->layout.position_type, "the type has changed");
  fuzz::require(again->verify().has_value(), "verifying again");
}

// In every header that has the name of a stored entry.
std::vector<std::byte> with_right_crcs(std::span<const std::byte> file, const std::vector<ZipEntry>& entries) {
  std::vector<std::byte> bytes(file.begin(), file.end());
  const auto repair = [&](std::size_t at, std::size_t header, std::size_t crc_at, const ZipEntry& entry) {
    if (bytes.size() - at < header + entry.name.size()) return;
    if (std::memcmp(bytes.data() + at + header, entry.name.data(), entry.name.size()) != 0) return;
    store(bytes, at + crc_at, crc32(packed_bytes(file, entry)));
  };
  for (std::size_t at = 0; at + 4 <= bytes.size(); ++at) {
    const auto signature = load<std::uint32_t>(bytes, at);
    if (signature != 0x04034b50 && signature != 0x02014b50) continue;
    for (const ZipEntry& entry : entries) {
      if (entry.deflated) continue;
      if (signature == 0x04034b50) {
        repair(at, 30, 14, entry);
      } else {
        repair(at, 46, 16, entry);
      }
    }
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = fuzz::as_bytes(data, size);
  try_file(file);
  if (const auto entries = read_zip_directory(file); entries && entries->size() < 100) {
    try_file(with_right_crcs(file, *entries));
  }
  return 0;
}
