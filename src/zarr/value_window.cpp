#include "zarr/value_window.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/first_failure.hpp"
#include "numerics/float16.hpp"
#include "zarr/chunk_boxes.hpp"
#include "zarr/row_major.hpp"

namespace cingulum::zarr {
namespace {

constexpr unsigned digit_bits = 16;
constexpr std::size_t digit_values = std::size_t{1} << digit_bits;

template <class Bits>
Bits load_bits(const std::byte* bytes) {
  Bits bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}

// Values and whole numbers of the same order.
class OrderedKeys {
 public:
  explicit OrderedKeys(ElementType type) : type_(type), sign_(std::uint64_t{1} << (type.bits - 1U)) {}

  // False where it is not finite.
  [[nodiscard]] bool key_of(const std::byte* element, std::uint64_t& key) const {
    switch (type_.bytes()) {
      case 1: key = load_bits<std::uint8_t>(element); break;
      case 2: key = load_bits<std::uint16_t>(element); break;
      case 4: key = load_bits<std::uint32_t>(element); break;
      default: key = load_bits<std::uint64_t>(element); break;
    }
    if (type_.code == ElementType::Code::integer) key ^= sign_;
    if (type_.code != ElementType::Code::floating) return true;
    const std::uint64_t infinity = infinity_bits();
    if ((key & infinity) == infinity) return false;
    // Of negative numbers the larger bits are the smaller value.
    key = (key & sign_) != 0 ? ~key & (sign_ | (sign_ - 1)) : key | sign_;
    return true;
  }

  [[nodiscard]] double value_of(std::uint64_t key) const {
    if (type_.code == ElementType::Code::integer) {
      const unsigned unused = 64U - type_.bits;
      return static_cast<double>(static_cast<std::int64_t>((key ^ sign_) << unused) >> unused);
    }
    if (type_.code != ElementType::Code::floating) return static_cast<double>(key);
    const std::uint64_t bits = (key & sign_) != 0 ? key ^ sign_ : ~key & (sign_ | (sign_ - 1));
    if (type_.bits == 16) return numerics::float16_to_float(static_cast<std::uint16_t>(bits));
    if (type_.bits == 32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return std::bit_cast<double>(bits);
  }

 private:
  [[nodiscard]] std::uint64_t infinity_bits() const {
    if (type_.bits == 16) return 0x7c00;
    return type_.bits == 32 ? 0x7f800000 : 0x7ff0000000000000;
  }

  ElementType type_;
  std::uint64_t sign_;
};

// The value looked for at one share: the digits that are known, and its place among the values that have them.
struct Search {
  std::uint64_t prefix = 0;
  std::uint64_t rank = 0;
  std::vector<std::uint64_t> counts = std::vector<std::uint64_t>(digit_values);
};

struct Extremes {
  std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t largest = 0;
  std::uint64_t count = 0;
};

}  // namespace

int value_window_passes(ElementType type) {
  if (type.code == ElementType::Code::complex) return 0;
  return std::max(1, type.bits / static_cast<int>(digit_bits));
}

Result<std::optional<ValueWindow>> find_value_window(const ElementSource& source, const Shape& tile,
                                                     const ValueWindowOptions& options) {
  using Found = std::optional<ValueWindow>;
  const ElementType type = source.type();
  const int passes = value_window_passes(type);
  if (passes == 0) return Found();
  const OrderedKeys keys(type);
  const ChunkBoxes tiles(source.shape(), tile, {}, {}, type.bytes(), 0);
  return catch_out_of_memory([&]() -> Result<Found> {
    std::array<Search, 2> searches;
    Extremes all;
    for (int pass = 0; pass < passes; ++pass) {
      const unsigned shift = static_cast<unsigned>(passes - 1 - pass) * digit_bits;
      // Both searches look at one set of counts while their known digits are the same.
      const bool apart = searches[0].prefix != searches[1].prefix;
      for (Search& search : searches) std::fill(search.counts.begin(), search.counts.end(), 0);
      std::mutex mutex;
      FirstFailure failure;
      const auto count_tiles = [&](std::size_t begin, std::size_t end) {
        const auto count = [&]() -> Status {
          std::array<std::vector<std::uint64_t>, 2> counts;
          for (std::size_t s = 0; s < (apart ? 2U : 1U); ++s) counts[s].resize(digit_values);
          Extremes extremes;
          BulkVector<std::byte> elements;
          for (std::size_t t = begin; t < end; ++t) {
            CGL_TRY(options.cancel.check());
            const Region box = tiles.at(t);
            elements.resize(elements_of(box.shape) * type.bytes());
            CGL_TRY(source.read(box, elements));
            for (std::size_t at = 0; at < elements.size(); at += type.bytes()) {
              std::uint64_t key = 0;
              if (!keys.key_of(elements.data() + at, key)) continue;
              if (pass == 0) {
                extremes.smallest = std::min(extremes.smallest, key);
                extremes.largest = std::max(extremes.largest, key);
                ++extremes.count;
              }
              const std::uint64_t known = shift + digit_bits < 64 ? key >> (shift + digit_bits) : 0;
              for (std::size_t s = 0; s < (apart ? 2U : 1U); ++s) {
                if (pass == 0 || known == searches[s].prefix) ++counts[s][(key >> shift) & (digit_values - 1)];
              }
            }
            if (options.progress != nullptr) options.progress->advance(elements_of(box.shape));
          }
          const std::lock_guard lock(mutex);
          all.smallest = std::min(all.smallest, extremes.smallest);
          all.largest = std::max(all.largest, extremes.largest);
          all.count += extremes.count;
          for (std::size_t s = 0; s < (apart ? 2U : 1U); ++s) {
            for (std::size_t digit = 0; digit < digit_values; ++digit) searches[s].counts[digit] += counts[s][digit];
          }
          return {};
        };
        failure.note(begin, catch_out_of_memory(count));
      };
      if (options.pool != nullptr) {
        const std::size_t pieces = static_cast<std::size_t>(options.pool->threads()) * 4;
        options.pool->parallel_for(tiles.count(), tiles.count() / pieces + 1, count_tiles);
      } else {
        count_tiles(0, tiles.count());
      }
      CGL_TRY(failure.take());
      if (all.count == 0) return Found();
      if (pass == 0) {
        const auto last = static_cast<double>(all.count - 1);
        searches[0].rank = static_cast<std::uint64_t>(std::floor(options.low_share * last));
        searches[1].rank = static_cast<std::uint64_t>(std::floor(options.high_share * last));
      }
      const std::vector<std::uint64_t> shared = apart ? std::vector<std::uint64_t>() : searches[0].counts;
      for (Search& search : searches) {
        const std::vector<std::uint64_t>& counts = apart ? search.counts : shared;
        std::uint64_t digit = 0;
        while (digit + 1 < digit_values && search.rank >= counts[digit]) search.rank -= counts[digit++];
        search.prefix = search.prefix << digit_bits | digit;
      }
    }
    return Found(ValueWindow{keys.value_of(all.smallest), keys.value_of(all.largest), keys.value_of(searches[0].prefix),
                             keys.value_of(searches[1].prefix)});
  });
}

}  // namespace cingulum::zarr
