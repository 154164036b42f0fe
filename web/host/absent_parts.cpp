// What the library asks of parts that a page does not have: images as files, deflate, and the checksums of ISA-L, whose
// place the plain definition takes here.
#include <isa-l/crc.h>

#include <array>

#include "formats/deflate_pieces.hpp"
#include "formats/nifti.hpp"

namespace cingulum {

Result<std::vector<std::uint8_t>> read_mask(const std::filesystem::path& path, ImageGeometry&, CancelToken) {
  return fail(ErrorKind::unavailable, "{}: a page reads no files; give a sphere", path.native());
}

struct DeflatePieces::State {};
DeflatePieces::DeflatePieces(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
DeflatePieces::DeflatePieces(DeflatePieces&&) noexcept = default;
DeflatePieces& DeflatePieces::operator=(DeflatePieces&&) noexcept = default;
DeflatePieces::~DeflatePieces() = default;

Result<DeflatePieces> DeflatePieces::create(int, ThreadPool*, DeflateSearch) {
  return fail(ErrorKind::unavailable, "a page writes no deflated files");
}
Status DeflatePieces::append(std::span<const std::byte>, const Output&) {
  return {};
}
Status DeflatePieces::finish(const Output&) {
  return {};
}
std::uint32_t DeflatePieces::crc() const noexcept {
  return 0;
}
std::uint64_t DeflatePieces::size() const noexcept {
  return 0;
}

}  // namespace cingulum

namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xedb88320U : 0U);
    table[i] = value;
  }
  return table;
}();

}  // namespace

extern "C" uint32_t crc32_gzip_refl(uint32_t previous, const unsigned char* bytes, uint64_t size) {
  std::uint32_t crc = ~previous;
  for (std::uint64_t i = 0; i < size; ++i) crc = crc_table[(crc ^ bytes[i]) & 0xffU] ^ (crc >> 8U);
  return ~crc;
}
