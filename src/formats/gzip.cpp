#include "formats/gzip.hpp"

#include <isa-l.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/byte_order.hpp"
#include "formats/crc32.hpp"
#include "formats/deflate_pieces.hpp"

namespace cingulum {
namespace {

constexpr std::byte magic_1{0x1f}, magic_2{0x8b};
constexpr std::uint8_t method_deflate = 8;
constexpr std::uint8_t flag_header_crc = 2, flag_extra = 4, flag_name = 8, flag_comment = 16, flags_reserved = 0xe0;

std::string_view inflate_failure(int code) {
  switch (code) {
    case ISAL_INVALID_BLOCK: return "an invalid block";
    case ISAL_INVALID_SYMBOL: return "an invalid symbol";
    case ISAL_INVALID_LOOKBACK: return "a reference to before the beginning";
    default: return "damaged data";
  }
}

class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<ByteStream> compressed)
      : compressed_(std::move(compressed)), input_(input_bytes), inflate_(std::make_unique<inflate_state>()) {}

  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> to) override {
    if (failure_) return tl::make_unexpected(*failure_);
    if (ended_ || to.empty()) return std::size_t{0};
    std::size_t filled = 0;
    while (filled == 0 && !ended_) {
      if (auto status = step(to, filled); !status) {
        failure_ = std::move(status.error());
        if (filled > 0) break;  // what came before the failure is given first
        return tl::make_unexpected(*failure_);
      }
    }
    return filled;
  }

 private:
  static constexpr std::size_t input_bytes = std::size_t{256} << 10U;
  // The decoder takes up to 8 bytes in advance; at the end of a member they are read again.
  static constexpr std::size_t held_bytes = 8;

  [[nodiscard]] Status step(std::span<std::byte> to, std::size_t& filled) {
    if (!in_member_) {
      CGL_TRY(begin_member());
      if (ended_) return {};
    }
    return inflate(to, filled);
  }

  // The file's offset of the next byte that was not used.
  [[nodiscard]] std::uint64_t offset() const { return input_offset_ + used_; }

  // At least `count` unused bytes in input_, fewer only at the end of the file.
  [[nodiscard]] Status provide(std::size_t count) {
    while (filled_ - used_ < count && !input_ended_) {
      if (used_ > held_bytes) {
        const std::size_t dropped = used_ - held_bytes;
        std::memmove(input_.data(), input_.data() + dropped, filled_ - dropped);
        input_offset_ += dropped;
        filled_ -= dropped;
        used_ -= dropped;
      }
      CGL_TRY_ASSIGN(const std::size_t got, compressed_->read(std::span(input_).subspan(filled_)));
      filled_ += got;
      input_ended_ = got == 0;
    }
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> ends_early(std::string_view where, std::size_t missing) const {
    return fail(ErrorKind::corrupt,
                "gzip: the file ends at byte {} inside {}: at least {} more expected, {} bytes decompressed",
                input_offset_ + filled_, where, missing == 1 ? "1 byte" : fmt::format("{} bytes", missing),
                total_decompressed_);
  }

  // Bytes of a member's header, which count for its CRC.
  [[nodiscard]] Result<std::uint8_t> header_byte() {
    CGL_TRY(provide(1));
    if (used_ == filled_) return ends_early("the header of a member", 1);
    const std::byte value = input_[used_++];
    header_crc_ = cingulum::crc32(std::span(&value, 1), header_crc_);
    return std::to_integer<std::uint8_t>(value);
  }

  [[nodiscard]] Status skip_text() {
    while (true) {
      CGL_TRY_ASSIGN(const std::uint8_t value, header_byte());
      if (value == 0) return {};
    }
  }

  [[nodiscard]] Status begin_member() {
    CGL_TRY(provide(2));
    if (members_ > 0 && (used_ == filled_ || input_[used_] == std::byte{0})) return finish_with_zeros();
    if (filled_ - used_ < 2) return ends_early("the header of a member", 2 - (filled_ - used_));
    if (input_[used_] != magic_1 || input_[used_ + 1] != magic_2) {
      return fail(ErrorKind::corrupt, "gzip: byte {} begins neither a member nor padding with zeros", offset());
    }
    const std::uint64_t begin = offset();
    header_crc_ = 0;
    std::array<std::uint8_t, 10> fixed{};
    for (std::uint8_t& byte : fixed) {
      CGL_TRY_ASSIGN(byte, header_byte());
    }
    if (fixed[2] != method_deflate) {
      return fail(ErrorKind::corrupt, "gzip: byte {}: compression method {} is not deflate (8)", begin + 2, fixed[2]);
    }
    const std::uint8_t flags = fixed[3];
    if ((flags & flags_reserved) != 0) {
      return fail(ErrorKind::corrupt, "gzip: byte {}: the reserved flags of 0x{:02x} are set", begin + 3, flags);
    }
    if ((flags & flag_extra) != 0) {
      CGL_TRY_ASSIGN(const std::uint8_t low, header_byte());
      CGL_TRY_ASSIGN(const std::uint8_t high, header_byte());
      for (unsigned i = 0; i < (low | (unsigned{high} << 8U)); ++i) {
        CGL_TRY(header_byte());
      }
    }
    if ((flags & flag_name) != 0) CGL_TRY(skip_text());
    if ((flags & flag_comment) != 0) CGL_TRY(skip_text());
    if ((flags & flag_header_crc) != 0) {
      const unsigned expected = header_crc_ & 0xffffU;
      CGL_TRY_ASSIGN(const std::uint8_t low, header_byte());
      CGL_TRY_ASSIGN(const std::uint8_t high, header_byte());
      const unsigned stored = low | (unsigned{high} << 8U);
      if (stored != expected) {
        return fail(ErrorKind::corrupt, "gzip: byte {}: the header's CRC is 0x{:04x}, its bytes give 0x{:04x}",
                    offset() - 2, stored, expected);
      }
    }
    isal_inflate_init(inflate_.get());
    inflate_->crc_flag = ISAL_DEFLATE;
    member_crc_ = 0;
    member_size_ = 0;
    in_member_ = true;
    return {};
  }

  [[nodiscard]] Status finish_with_zeros() {
    while (true) {
      const auto rest = std::span(input_).subspan(used_, filled_ - used_);
      const auto other = std::find_if(rest.begin(), rest.end(), [](std::byte value) { return value != std::byte{0}; });
      used_ += static_cast<std::size_t>(other - rest.begin());
      if (other != rest.end()) {
        return fail(ErrorKind::corrupt, "gzip: byte {}: what follows the last member is not zero", offset());
      }
      if (input_ended_) break;
      CGL_TRY(provide(1));
    }
    ended_ = true;
    return {};
  }

  [[nodiscard]] Status inflate(std::span<std::byte> to, std::size_t& filled) {
    CGL_TRY(provide(1));
    inflate_->next_in = reinterpret_cast<std::uint8_t*>(input_.data() + used_);
    inflate_->avail_in = static_cast<std::uint32_t>(filled_ - used_);
    inflate_->next_out = reinterpret_cast<std::uint8_t*>(to.data());
    const std::size_t room = std::min<std::size_t>(to.size(), std::size_t{1} << 30U);
    inflate_->avail_out = static_cast<std::uint32_t>(room);
    const int code = isal_inflate(inflate_.get());
    const std::size_t made = room - inflate_->avail_out;
    used_ = filled_ - inflate_->avail_in;
    member_crc_ = cingulum::crc32(to.first(made), member_crc_);
    member_size_ += made;
    total_decompressed_ += made;
    filled += made;
    if (code < 0) {
      return fail(ErrorKind::corrupt, "gzip: {} near byte {}, after {} decompressed bytes", inflate_failure(code),
                  offset(), total_decompressed_);
    }
    if (inflate_->block_state == ISAL_BLOCK_FINISH) return end_member();
    if (made == 0 && used_ == filled_ && input_ended_) return ends_early("compressed data", 1);
    return {};
  }

  [[nodiscard]] Status end_member() {
    // The decoder holds whole bytes that it read too far; they are still in front of used_.
    const std::size_t held = static_cast<std::size_t>(inflate_->read_in_length) / 8;
    if (held > used_) return fail(ErrorKind::corrupt, "gzip: damaged data near byte {}", offset());
    used_ -= held;
    constexpr std::size_t trailer_bytes = 8;
    CGL_TRY(provide(trailer_bytes));
    if (filled_ - used_ < trailer_bytes)
      return ends_early("the trailer of a member", trailer_bytes - (filled_ - used_));
    const std::uint32_t stored_crc = load<std::uint32_t>(input_, used_);
    const std::uint32_t stored_size = load<std::uint32_t>(input_, used_ + 4);
    if (stored_crc != member_crc_) {
      return fail(ErrorKind::corrupt,
                  "gzip: byte {}: the CRC-32 is 0x{:08x}, the data give 0x{:08x}: the file is damaged", offset(),
                  stored_crc, member_crc_);
    }
    if (stored_size != static_cast<std::uint32_t>(member_size_)) {
      return fail(ErrorKind::corrupt, "gzip: byte {}: {} decompressed bytes (modulo 2^32) expected, {} found",
                  offset() + 4, stored_size, member_size_);
    }
    used_ += trailer_bytes;
    ++members_;
    in_member_ = false;
    return {};
  }

  std::unique_ptr<ByteStream> compressed_;
  std::vector<std::byte> input_;
  std::uint64_t input_offset_ = 0;  // of input_[0] in the file
  std::size_t filled_ = 0;
  std::size_t used_ = 0;
  bool input_ended_ = false;
  bool in_member_ = false;
  bool ended_ = false;
  std::uint64_t members_ = 0;
  std::uint32_t header_crc_ = 0;
  std::uint32_t member_crc_ = 0;
  std::uint64_t member_size_ = 0;
  std::uint64_t total_decompressed_ = 0;
  std::unique_ptr<inflate_state> inflate_;
  std::optional<Error> failure_;
};

}  // namespace

bool is_gzip(std::span<const std::byte> begin) noexcept {
  return begin.size() >= 2 && begin[0] == magic_1 && begin[1] == magic_2;
}

Result<std::unique_ptr<ByteStream>> open_gzip(std::unique_ptr<ByteStream> compressed) {
  return catch_out_of_memory(
      [&]() -> Result<std::unique_ptr<ByteStream>> { return std::make_unique<GzipStream>(std::move(compressed)); });
}

struct GzipWriter::State {
  AtomicFile& file;
  int level;
  DeflatePieces pieces;

  [[nodiscard]] Status write_header() {
    constexpr std::byte none{0}, unknown_system{255};
    // RFC 1952: 2 says slowest, 4 fastest algorithm.
    const std::byte effort{static_cast<std::uint8_t>(level == 9 ? 2 : (level == 1 ? 4 : 0))};
    const std::array header = {magic_1, magic_2,       std::byte{method_deflate}, none, none, none, none, none,
                               effort,  unknown_system};
    return file.append(header);
  }

  [[nodiscard]] DeflatePieces::Output output() {
    return {.take = [this](std::span<const std::byte> packed, std::size_t) { return file.append(packed); }};
  }
};

GzipWriter::GzipWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
GzipWriter::GzipWriter(GzipWriter&&) noexcept = default;
GzipWriter& GzipWriter::operator=(GzipWriter&&) noexcept = default;
GzipWriter::~GzipWriter() = default;

Result<GzipWriter> GzipWriter::create(AtomicFile& file, int level, ThreadPool* pool, DeflateSearch search) {
  CGL_TRY_ASSIGN(DeflatePieces pieces, DeflatePieces::create(level, pool, search));
  return catch_out_of_memory([&]() -> Result<GzipWriter> {
    auto state = std::make_unique<State>(State{file, level, std::move(pieces)});
    CGL_TRY(state->write_header());
    return GzipWriter(std::move(state));
  });
}

Status GzipWriter::append(std::span<const std::byte> bytes) {
  return state_->pieces.append(bytes, state_->output());
}

Status GzipWriter::finish() {
  CGL_TRY(state_->pieces.finish(state_->output()));
  std::array<std::byte, 8> trailer{};
  for (unsigned i = 0; i < 4; ++i) {
    trailer[i] = static_cast<std::byte>(state_->pieces.crc() >> (8 * i));
    trailer[4 + i] = static_cast<std::byte>(state_->pieces.size() >> (8 * i));
  }
  return state_->file.append(trailer);
}

}  // namespace cingulum
