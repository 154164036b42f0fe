#include "formats/deflate_pieces.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "formats/crc32.hpp"

namespace cingulum {
namespace {

// The unit of parallel work, part of the meaning of "the same bytes": changing it changes every file.
constexpr std::size_t piece_bytes = std::size_t{512} << 10U;
constexpr std::size_t window_bytes = std::size_t{32} << 10U;
constexpr std::size_t pieces_per_thread = 2;

// One deflate encoder and its output; used again and again.
class Encoder {
 public:
  Encoder() = default;
  ~Encoder() {
    if (open_) ::deflateEnd(&stream_);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // `level` and `search` are the same at every call.
  [[nodiscard]] Status compress(std::span<const std::byte> window, std::span<const std::byte> piece, bool last,
                                int level, DeflateSearch search) {
    constexpr int raw_window_bits = -15, memory_level = 8;
    if (!open_) {
      const int strategy = search == DeflateSearch::runs ? Z_RLE : Z_DEFAULT_STRATEGY;
      if (::deflateInit2(&stream_, level, Z_DEFLATED, raw_window_bits, memory_level, strategy) != Z_OK) {
        return fail(ErrorKind::out_of_memory, "out of memory");
      }
      open_ = true;
      // Room for the flush marker (5 bytes and bits before it) besides the compressed bytes.
      output_.resize(::deflateBound(&stream_, piece_bytes) + 64);
    } else {
      ::deflateReset(&stream_);
    }
    if (!window.empty()) {
      ::deflateSetDictionary(&stream_, reinterpret_cast<const Bytef*>(window.data()), static_cast<uInt>(window.size()));
    }
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
    stream_.avail_out = static_cast<uInt>(output_.size());
    const int code = ::deflate(&stream_, last ? Z_FINISH : Z_SYNC_FLUSH);
    if (code != (last ? Z_STREAM_END : Z_OK) || stream_.avail_in != 0 || stream_.avail_out == 0) {
      return fail(ErrorKind::invalid_state, "compressing: zlib answered {} with {} bytes left", code, stream_.avail_in);
    }
    made_ = output_.size() - stream_.avail_out;
    crc_ = cingulum::crc32(piece);
    return {};
  }

  [[nodiscard]] std::span<const std::byte> output() const { return std::span(output_).first(made_); }
  [[nodiscard]] std::uint32_t crc() const { return crc_; }

 private:
  z_stream stream_{};
  bool open_ = false;
  std::vector<std::byte> output_;
  std::size_t made_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace

struct DeflatePieces::State {
  int level = 1;
  DeflateSearch search = DeflateSearch::matches;
  ThreadPool* pool = nullptr;
  std::vector<std::byte> buffer;  // the window of what was written, then bytes to be written
  std::size_t window = 0;         // its first bytes are the window
  std::size_t filled = 0;
  std::vector<std::unique_ptr<Encoder>> encoders = {};
  Encoder plain = {};  // stored blocks
  std::uint32_t crc = 0;
  std::uint64_t size = 0;

  // Compresses all that is in the buffer; its length is a whole number of pieces unless `last`.
  [[nodiscard]] Status flush(bool last, const Output& output) {
    const std::size_t bytes = filled - window;
    const std::size_t pieces = std::max<std::size_t>((bytes + piece_bytes - 1) / piece_bytes, last ? 1 : 0);
    std::vector<Status> outcomes(pieces);
    const auto piece_at = [&](std::size_t index) {
      const std::size_t begin = window + index * piece_bytes;
      return std::span<const std::byte>(buffer).subspan(begin, std::min(piece_bytes, filled - begin));
    };
    const auto compress = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t start = window + i * piece_bytes;
        const std::size_t history = std::min(start, window_bytes);
        outcomes[i] = encoders[i]->compress(std::span<const std::byte>(buffer).subspan(start - history, history),
                                            piece_at(i), last && i + 1 == pieces, level, search);
      }
    };
    if (pool != nullptr && pieces > 1) {
      pool->parallel_for(pieces, 1, compress);
    } else {
      compress(0, pieces);
    }
    for (std::size_t i = 0; i < pieces; ++i) {
      CGL_TRY(outcomes[i]);
      const Encoder* encoder = encoders[i].get();
      // Asked piece by piece, in order: the answer does not depend on how many are compressed at once.
      if (output.keep_plain && output.keep_plain(piece_at(i).size(), encoder->output().size())) {
        CGL_TRY(plain.compress({}, piece_at(i), last && i + 1 == pieces, 0, DeflateSearch::matches));
        encoder = &plain;
      }
      CGL_TRY(output.take(encoder->output(), piece_at(i).size()));
      crc = static_cast<std::uint32_t>(::crc32_combine(crc, encoder->crc(), static_cast<z_off_t>(piece_at(i).size())));
    }
    size += bytes;
    const std::size_t kept = std::min(filled, window_bytes);
    std::memmove(buffer.data(), buffer.data() + (filled - kept), kept);
    window = filled = kept;
    return {};
  }
};

DeflatePieces::DeflatePieces(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
DeflatePieces::DeflatePieces(DeflatePieces&&) noexcept = default;
DeflatePieces& DeflatePieces::operator=(DeflatePieces&&) noexcept = default;
DeflatePieces::~DeflatePieces() = default;

Result<DeflatePieces> DeflatePieces::create(int level, ThreadPool* pool, DeflateSearch search) {
  if (level < 1 || level > 9) {
    return fail(ErrorKind::invalid_argument, "compression level {} is not one of 1 to 9", level);
  }
  return catch_out_of_memory([&]() -> Result<DeflatePieces> {
    const std::size_t threads = pool != nullptr ? static_cast<std::size_t>(pool->threads()) : 1;
    const std::size_t pieces = threads == 1 ? 1 : threads * pieces_per_thread;
    auto state = std::make_unique<State>();
    state->level = level;
    state->search = search;
    state->pool = pool;
    state->buffer.resize(window_bytes + pieces * piece_bytes);
    for (std::size_t i = 0; i < pieces; ++i) state->encoders.push_back(std::make_unique<Encoder>());
    return DeflatePieces(std::move(state));
  });
}

Status DeflatePieces::append(std::span<const std::byte> bytes, const Output& output) {
  return catch_out_of_memory([&]() -> Status {
    State& state = *state_;
    while (!bytes.empty()) {
      // A full buffer is compressed only when more comes: the last piece is closed differently.
      const std::size_t capacity = state.window + state.encoders.size() * piece_bytes;
      if (state.filled == capacity) {
        CGL_TRY(state.flush(false, output));
        continue;
      }
      const std::size_t count = std::min(bytes.size(), capacity - state.filled);
      std::memcpy(state.buffer.data() + state.filled, bytes.data(), count);
      state.filled += count;
      bytes = bytes.subspan(count);
    }
    return {};
  });
}

Status DeflatePieces::finish(const Output& output) {
  return catch_out_of_memory([&] { return state_->flush(true, output); });
}

std::uint32_t DeflatePieces::crc() const noexcept {
  return state_->crc;
}

std::uint64_t DeflatePieces::size() const noexcept {
  return state_->size;
}

}  // namespace cingulum
