#include "zarr/value_window.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

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

std::uint64_t infinity_bits(ElementType type) {
  if (type.bits == 16) return 0x7c00;
  return type.bits == 32 ? 0x7f800000 : 0x7ff0000000000000;
}

}  // namespace

int value_window_passes(ElementType type) {
  if (type.code == ElementType::Code::complex) return 0;
  return std::max(1, type.bits / static_cast<int>(digit_bits));
}

ValueWindowSearch::ValueWindowSearch(ElementType type, double low_share, double high_share)
    : type_(type), sign_(std::uint64_t{1} << (type.bits - 1U)), passes_(value_window_passes(type)) {
  searches_[0].share = low_share;
  searches_[1].share = high_share;
  counts_ = no_counts();
}

unsigned ValueWindowSearch::shift() const {
  return static_cast<unsigned>(passes_ - 1 - pass_) * digit_bits;
}

// Values as whole numbers of the same order; false where it is not finite.
bool ValueWindowSearch::key_of(const std::byte* element, std::uint64_t& key) const {
  switch (type_.bytes()) {
    case 1: key = load_bits<std::uint8_t>(element); break;
    case 2: key = load_bits<std::uint16_t>(element); break;
    case 4: key = load_bits<std::uint32_t>(element); break;
    default: key = load_bits<std::uint64_t>(element); break;
  }
  if (type_.code == ElementType::Code::integer) key ^= sign_;
  if (type_.code != ElementType::Code::floating) return true;
  const std::uint64_t infinity = infinity_bits(type_);
  if ((key & infinity) == infinity) return false;
  // Among negative numbers the larger bits are the smaller value.
  key = (key & sign_) != 0 ? ~key & (sign_ | (sign_ - 1)) : key | sign_;
  return true;
}

double ValueWindowSearch::value_of(std::uint64_t key) const {
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

ValueWindowSearch::Counts ValueWindowSearch::no_counts() const {
  Counts counts;
  for (std::size_t s = 0; s < (apart() ? 2U : 1U); ++s) counts.digits[s].resize(digit_values);
  return counts;
}

void ValueWindowSearch::count(std::span<const std::byte> elements, Counts& counts) const {
  const unsigned low = shift();
  for (std::size_t at = 0; at < elements.size(); at += type_.bytes()) {
    std::uint64_t key = 0;
    if (!key_of(elements.data() + at, key)) continue;
    if (pass_ == 0) {
      counts.smallest = std::min(counts.smallest, key);
      counts.largest = std::max(counts.largest, key);
      ++counts.finite;
    }
    const std::uint64_t known = pass_ == 0 ? 0 : key >> (low + digit_bits);
    for (std::size_t s = 0; s < 2 && !counts.digits[s].empty(); ++s) {
      if (known == searches_[s].prefix) ++counts.digits[s][(key >> low) & (digit_values - 1)];
    }
  }
}

void ValueWindowSearch::add(const Counts& counts) {
  counts_.smallest = std::min(counts_.smallest, counts.smallest);
  counts_.largest = std::max(counts_.largest, counts.largest);
  counts_.finite += counts.finite;
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::size_t digit = 0; digit < counts.digits[s].size(); ++digit) {
      counts_.digits[s][digit] += counts.digits[s][digit];
    }
  }
}

bool ValueWindowSearch::end_pass() {
  if (pass_ == 0) {
    first_ = counts_;
    if (first_.finite == 0) return false;
    const auto last = static_cast<double>(first_.finite - 1);
    for (Search& search : searches_) search.rank = static_cast<std::uint64_t>(std::floor(search.share * last));
  }
  const bool went_apart = apart();
  for (std::size_t s = 0; s < 2; ++s) {
    Search& search = searches_[s];
    const std::vector<std::uint64_t>& digits = counts_.digits[went_apart ? s : 0];
    std::uint64_t digit = 0;
    while (digit + 1 < digit_values && search.rank >= digits[digit]) search.rank -= digits[digit++];
    search.prefix = search.prefix << digit_bits | digit;
  }
  if (++pass_ == passes_) return false;
  counts_ = no_counts();
  return true;
}

std::optional<ValueWindow> ValueWindowSearch::found() const {
  if (first_.finite == 0) return std::nullopt;
  return ValueWindow{value_of(first_.smallest), value_of(first_.largest), value_of(searches_[0].prefix),
                     value_of(searches_[1].prefix)};
}

Result<std::optional<ValueWindow>> find_value_window(const ElementSource& source, const Shape& tile,
                                                     const ValueWindowOptions& options) {
  using Found = std::optional<ValueWindow>;
  const ElementType type = source.type();
  if (value_window_passes(type) == 0) return Found();
  return catch_out_of_memory([&]() -> Result<Found> {
    ValueWindowSearch search(type);
    const ChunkBoxes tiles(source.shape(), tile, {}, {}, type.bytes(), 0);
    do {
      std::mutex mutex;
      FirstFailure failure;
      const auto count_tiles = [&](std::size_t begin, std::size_t end) {
        const auto count = [&]() -> Status {
          ValueWindowSearch::Counts counts = search.no_counts();
          BulkVector<std::byte> elements;
          for (std::size_t t = begin; t < end; ++t) {
            CGL_TRY(options.cancel.check());
            const Region box = tiles.at(t);
            elements.resize(elements_of(box.shape) * type.bytes());
            CGL_TRY(source.read(box, elements));
            search.count(elements, counts);
            if (options.progress != nullptr) options.progress->advance(elements_of(box.shape));
          }
          const std::lock_guard lock(mutex);
          search.add(counts);
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
    } while (search.end_pass());
    return search.found();
  });
}

}  // namespace cingulum::zarr
