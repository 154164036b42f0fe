// The 32 lanes of the contract in plain C++, and the list of primitives that every kind of lanes offers: lane_sum.hpp,
// choose.hpp and mirror_sum.hpp are written on them once. This is the reference; lanes_avx2.hpp is the fast one for
// hosts, lanes_warp.cuh the one for CUDA, wgsl/lanes_workgroup.wgsl and wgsl/lanes_subgroup.wgsl those for WebGPU.
// A `Float` or `Word` holds one number per lane; plain float and uint32 are the same for all lanes.
#pragma once

#include <cstdint>

#include "numerics/float16.hpp"
#include "numerics/portable.hpp"

namespace cingulum::numerics {

inline constexpr std::uint32_t lane_count = 32;

// How many rows of 32 slots hold `slots` slots; slot 32 row + lane belongs to that lane.
CGL_HD constexpr std::uint32_t row_count(std::uint32_t slots) {
  return (slots + (lane_count - 1u)) / lane_count;
}

// `count` is 32 but for work that each lane does alone (ptt): there a kind offers Narrow, as many lanes as one register
// holds, and (where lanes are serial) Probes, 32 lanes and a narrow group beside them; both without the primitives that
// cross lanes, Probes without those that take or give bits, too.
template <std::uint32_t count>
struct PortableLanesOf {
  static constexpr std::uint32_t width = count;
  using Narrow = PortableLanesOf<8>;
  using Probes = PortableLanesOf<lane_count + 8>;
  // Lanes of a warp run together; elsewhere each_lane is a loop, whose body may use all lanes for the one.
  static constexpr bool serial = true;
  using Wide = PortableLanesOf<32>;

  struct Float {
    float lane[count];
  };
  struct Word {
    std::uint32_t lane[count];
  };
  struct Mask {
    bool lane[count];
  };

  static CGL_HD Float broadcast(float value) {
    return each<Float>([&](std::uint32_t) { return value; });
  }
  static CGL_HD Word broadcast(std::uint32_t value) {
    return each<Word>([&](std::uint32_t) { return value; });
  }

  // Contiguous floats, one per lane.
  static CGL_HD Float load(const float* first) {
    return each<Float>([&](std::uint32_t l) { return first[l]; });
  }
  // Contiguous finite float16, one per lane.
  static CGL_HD Float load_float16(const std::uint16_t* first) {
    return each<Float>([&](std::uint32_t l) { return finite_float16_to_float(first[l]); });
  }
  // Row `row` of `slots`; slots from `end` on are not read and hold +0.0.
  static CGL_HD Float load_row(const float* slots, std::uint32_t row, std::uint32_t end) {
    const std::uint32_t first = lane_count * row;
    return each<Float>([&](std::uint32_t l) { return first + l < end ? slots[first + l] : 0.0f; });
  }
  static CGL_HD void store(float* first, const Float& a) {
    for (std::uint32_t l = 0; l < count; ++l) first[l] = a.lane[l];
  }
  // table[index] of each lane.
  static CGL_HD Float gather(const float* table, const Word& index) {
    return each<Float>([&](std::uint32_t l) { return table[index.lane[l]]; });
  }
  static CGL_HD Word gather(const std::uint32_t* table, const Word& index) {
    return each<Word>([&](std::uint32_t l) { return table[index.lane[l]]; });
  }
  // table[row * stride + column] of each lane; `small` says that the table has fewer than 2^31 numbers.
  static CGL_HD Float gather_number(const float* table, const Word& row, std::uint32_t stride, const Word& column,
                                    bool) {
    return each<Float>(
        [&](std::uint32_t l) { return table[static_cast<std::uint64_t>(row.lane[l]) * stride + column.lane[l]]; });
  }
  // The same for a table of finite float16, of which one more than is asked for may be read.
  static CGL_HD Float gather_float16(const std::uint16_t* table, const Word& row, std::uint32_t stride,
                                     const Word& column, bool) {
    return each<Float>([&](std::uint32_t l) {
      return finite_float16_to_float(table[static_cast<std::uint64_t>(row.lane[l]) * stride + column.lane[l]]);
    });
  }
  // A scalar function of each lane's number.
  CGL_HD_GENERIC
  template <class Function>
  static CGL_HD Float map(const Float& a, Function&& function) {
    return each<Float>([&](std::uint32_t l) { return function(a.lane[l]); });
  }
  // Calls body(lane) for each lane of the mask; own(a, lane) is that lane's number.
  CGL_HD_GENERIC
  template <class Body>
  static CGL_HD void each_lane(const Mask& mask, Body&& body) {
    for (std::uint32_t l = 0; l < count; ++l) {
      if (mask.lane[l]) body(l);
    }
  }
  static CGL_HD float own(const Float& a, std::uint32_t lane) { return a.lane[lane]; }
  // What one lane stored before, every lane may load after. Stands where lanes exchange through memory.
  static CGL_HD void barrier() {}
  // The numbers of the slots of a row.
  static CGL_HD Word slots_of_row(std::uint32_t row) {
    return each<Word>([&](std::uint32_t l) { return lane_count * row + l; });
  }

  static CGL_HD Float add(const Float& a, const Float& b) {
    return each<Float>([&](std::uint32_t l) { return a.lane[l] + b.lane[l]; });
  }
  static CGL_HD Float subtract(const Float& a, const Float& b) {
    return each<Float>([&](std::uint32_t l) { return a.lane[l] - b.lane[l]; });
  }
  static CGL_HD Float multiply(const Float& a, const Float& b) {
    return each<Float>([&](std::uint32_t l) { return a.lane[l] * b.lane[l]; });
  }
  static CGL_HD Float divide(const Float& a, const Float& b) {
    return each<Float>([&](std::uint32_t l) { return a.lane[l] / b.lane[l]; });
  }
  static CGL_HD Float square_root(const Float& a) {
    return each<Float>([&](std::uint32_t l) { return root(a.lane[l]); });
  }
  static CGL_HD Float floor_of_lanes(const Float& a) {
    return each<Float>([&](std::uint32_t l) { return floor_of(a.lane[l]); });
  }
  // The number without its sign bit.
  static CGL_HD Float magnitude(const Float& a) {
    return each<Float>([&](std::uint32_t l) { return bits_float(float_bits(a.lane[l]) & 0x7fffffffu); });
  }

  // a where a > b, else b; and the same for a < b.
  static CGL_HD Float greater_of(const Float& a, const Float& b) {
    return each<Float>([&](std::uint32_t l) { return a.lane[l] > b.lane[l] ? a.lane[l] : b.lane[l]; });
  }
  static CGL_HD Float lesser_of(const Float& a, const Float& b) {
    return each<Float>([&](std::uint32_t l) { return a.lane[l] < b.lane[l] ? a.lane[l] : b.lane[l]; });
  }

  // Words modulo 2^32.
  static CGL_HD Word add(const Word& a, const Word& b) {
    return each<Word>([&](std::uint32_t l) { return a.lane[l] + b.lane[l]; });
  }
  static CGL_HD Word subtract(const Word& a, const Word& b) {
    return each<Word>([&](std::uint32_t l) { return a.lane[l] - b.lane[l]; });
  }
  static CGL_HD Word multiply(const Word& a, const Word& b) {
    return each<Word>([&](std::uint32_t l) { return a.lane[l] * b.lane[l]; });
  }
  // The upper 32 bits of the product with one number.
  static CGL_HD Word high_product_with(const Word& a, std::uint32_t b) {
    return each<Word>([&](std::uint32_t l) { return high_product(a.lane[l], b); });
  }
  static CGL_HD Word bits_and(const Word& a, const Word& b) {
    return each<Word>([&](std::uint32_t l) { return a.lane[l] & b.lane[l]; });
  }
  static CGL_HD Word bits_or(const Word& a, const Word& b) {
    return each<Word>([&](std::uint32_t l) { return a.lane[l] | b.lane[l]; });
  }
  static CGL_HD Word bits_xor(const Word& a, const Word& b) {
    return each<Word>([&](std::uint32_t l) { return a.lane[l] ^ b.lane[l]; });
  }
  template <int by>
  static CGL_HD Word shift_left(const Word& a) {
    return each<Word>([&](std::uint32_t l) { return a.lane[l] << by; });
  }
  template <int by>
  static CGL_HD Word shift_right(const Word& a) {
    return each<Word>([&](std::uint32_t l) { return a.lane[l] >> by; });
  }
  static CGL_HD Word bits_of(const Float& a) {
    return each<Word>([&](std::uint32_t l) { return float_bits(a.lane[l]); });
  }
  static CGL_HD Float float_of_bits(const Word& a) {
    return each<Float>([&](std::uint32_t l) { return bits_float(a.lane[l]); });
  }
  // The word as a signed integer, rounded to float; and a float of magnitude below 2^31 as such an integer, towards
  // zero.
  static CGL_HD Float float_of_integer(const Word& a) {
    return each<Float>([&](std::uint32_t l) { return static_cast<float>(static_cast<std::int32_t>(a.lane[l])); });
  }
  static CGL_HD Word integer_of_float(const Float& a) {
    return each<Word>(
        [&](std::uint32_t l) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(a.lane[l])); });
  }

  static CGL_HD Mask greater(const Float& a, const Float& b) {
    return each<Mask>([&](std::uint32_t l) { return a.lane[l] > b.lane[l]; });
  }
  static CGL_HD Mask at_least(const Float& a, const Float& b) {
    return each<Mask>([&](std::uint32_t l) { return a.lane[l] >= b.lane[l]; });
  }
  static CGL_HD Mask equal(const Float& a, const Float& b) {
    return each<Mask>([&](std::uint32_t l) { return a.lane[l] == b.lane[l]; });
  }
  static CGL_HD Mask less(const Word& a, const Word& b) {
    return each<Mask>([&](std::uint32_t l) { return a.lane[l] < b.lane[l]; });
  }
  static CGL_HD Mask both(const Mask& a, const Mask& b) {
    return each<Mask>([&](std::uint32_t l) { return a.lane[l] && b.lane[l]; });
  }
  static CGL_HD Mask either(const Mask& a, const Mask& b) {
    return each<Mask>([&](std::uint32_t l) { return a.lane[l] || b.lane[l]; });
  }
  static CGL_HD Float select(const Mask& mask, const Float& if_set, const Float& otherwise) {
    return each<Float>([&](std::uint32_t l) { return mask.lane[l] ? if_set.lane[l] : otherwise.lane[l]; });
  }
  static CGL_HD Word select(const Mask& mask, const Word& if_set, const Word& otherwise) {
    return each<Word>([&](std::uint32_t l) { return mask.lane[l] ? if_set.lane[l] : otherwise.lane[l]; });
  }
  // The mask whose ballot is `bits`.
  static CGL_HD Mask mask_of_bits(std::uint32_t bits) {
    return each<Mask>([&](std::uint32_t l) { return ((bits >> l) & 1u) != 0u; });
  }
  // The bits of the lanes, among those of `bits`, for which predicate(lane) holds; it is asked for no others.
  CGL_HD_GENERIC
  template <class Predicate>
  static CGL_HD std::uint32_t filter(std::uint32_t bits, Predicate&& predicate) {
    std::uint32_t kept = 0;
    for (std::uint32_t left = bits; left != 0u; left &= left - 1u) {
      const std::uint32_t lane = lowest_set_bit(left);
      kept |= (predicate(lane) ? 1u : 0u) << lane;
    }
    return kept;
  }
  // Writes the words of the lanes of `bits`, one after the other.
  static CGL_HD void pack(std::uint32_t bits, const Word& words, std::uint32_t* to) {
    for (; bits != 0u; bits &= bits - 1u) *to++ = words.lane[lowest_set_bit(bits)];
  }
  // Whether some lane's mask is set.
  static CGL_HD bool any(const Mask& mask) {
    bool found = false;
    for (std::uint32_t l = 0; l < count; ++l) found = found || mask.lane[l];
    return found;
  }
  // Bit l is set where lane l's mask is.
  static CGL_HD std::uint32_t ballot(const Mask& mask) {
    std::uint32_t bits = 0;
    for (std::uint32_t l = 0; l < count; ++l) bits |= (mask.lane[l] ? 1u : 0u) << l;
    return bits;
  }

  // Lane l receives the value of lane l xor distance; the distance is a power of two below 32.
  template <std::uint32_t distance>
  static CGL_HD Float exchange(const Float& a) {
    return each<Float>([&](std::uint32_t l) { return a.lane[l ^ distance]; });
  }
  template <std::uint32_t distance>
  static CGL_HD Word exchange(const Word& a) {
    return each<Word>([&](std::uint32_t l) { return a.lane[l ^ distance]; });
  }
  // a[l - distance] + a[l] where that lane exists, else a[l].
  template <std::uint32_t distance>
  static CGL_HD Float add_from_below(const Float& a) {
    return each<Float>([&](std::uint32_t l) { return l >= distance ? a.lane[l - distance] + a.lane[l] : a.lane[l]; });
  }
  // The value of one lane, for all.
  static CGL_HD float get(const Float& a, std::uint32_t lane) { return a.lane[lane]; }
  static CGL_HD std::uint32_t get(const Word& a, std::uint32_t lane) { return a.lane[lane]; }

  // All below but the last are for lanes in the role of a warp; those of processors do without.
  // The bits one place higher, the sign of a below them.
  static CGL_HD Word append_sign(const Word& bits, const Float& a) {
    return each<Word>([&](std::uint32_t l) { return (bits.lane[l] << 1) | (float_bits(a.lane[l]) >> 31); });
  }
  // The greater of words taken as signed integers, by lane and of all lanes. Floats that are not negative are ordered
  // as their bits are; negative ones are below all of these.
  static CGL_HD Word greater_integer(const Word& a, const Word& b) {
    return each<Word>([&](std::uint32_t l) {
      return static_cast<std::int32_t>(a.lane[l]) > static_cast<std::int32_t>(b.lane[l]) ? a.lane[l] : b.lane[l];
    });
  }
  static CGL_HD std::uint32_t greatest_integer(const Word& a) {
    std::uint32_t greatest = a.lane[0];
    for (std::uint32_t l = 1; l < count; ++l) {
      if (static_cast<std::int32_t>(a.lane[l]) > static_cast<std::int32_t>(greatest)) greatest = a.lane[l];
    }
    return greatest;
  }
  // Begins to copy `numbers` floats, a multiple of four, to the memory that lanes share; both addresses are multiples
  // of 16 bytes. All that has begun is there, for every lane, after await_copies.
  template <std::uint32_t numbers>
  static CGL_HD void begin_copy(float* to, const float* from) {
    for (std::uint32_t i = 0; i < numbers; ++i) to[i] = from[i];
  }
  static CGL_HD void await_copies() {}

  // The tree of the lane sum. Only lane 0's result is wanted, so each level needs only the lower lanes.
  static CGL_HD float fold_sum(const Float& partial) {
    Float p = partial;
    for (std::uint32_t distance = 16; distance != 0u; distance /= 2u) {
      for (std::uint32_t l = 0; l < distance; ++l) p.lane[l] = p.lane[l] + p.lane[l ^ distance];
    }
    return p.lane[0];
  }

 private:
  CGL_HD_GENERIC
  template <class Result, class Value>
  static CGL_HD Result each(Value&& value) {
    Result result;
    for (std::uint32_t l = 0; l < count; ++l) result.lane[l] = value(l);
    return result;
  }
};

using PortableLanes = PortableLanesOf<lane_count>;

}  // namespace cingulum::numerics
