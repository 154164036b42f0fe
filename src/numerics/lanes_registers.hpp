// The 32 lanes of the contract in registers of a host, written once over an instruction set: `Isa` has the types of one
// register of floats, words and masks, how many lanes it holds, and what is done with one register. lanes_avx2.hpp and
// lanes_avx512.hpp define such sets and are alone in including this. The primitives are those of lanes_portable.hpp,
// which states what each does. No instruction is named here, and nothing but the template, so that no two files can
// share a function that was compiled for one of them.
#pragma once

#include <cstdint>

#include "numerics/lanes_portable.hpp"

namespace cingulum::numerics {

template <class Isa, unsigned registers>
struct RegisterLanes {
  // Lanes of one register, and registers as the number that loops count with.
  static constexpr int step = Isa::lanes;
  static constexpr int parts = static_cast<int>(registers);
  static constexpr std::uint32_t width = static_cast<std::uint32_t>(step) * registers;
  using Narrow = RegisterLanes<Isa, 1>;
  using Probes = RegisterLanes<Isa, lane_count / Isa::lanes + 1>;
  static constexpr bool serial = true;
  using Wide = RegisterLanes<Isa, lane_count / Isa::lanes>;

  // part[i] holds the lanes from step * i on.
  struct Float {
    typename Isa::Float part[registers];
  };
  struct Word {
    typename Isa::Word part[registers];
  };
  struct Mask {
    typename Isa::Mask part[registers];
  };

  static Float broadcast(float value) {
    const auto v = Isa::broadcast(value);
    return each<Float>([&](int) { return v; });
  }
  static Word broadcast(std::uint32_t value) {
    const auto v = Isa::broadcast(value);
    return each<Word>([&](int) { return v; });
  }
  static Float load(const float* first) {
    return each<Float>([&](int i) { return Isa::load(first + step * i); });
  }
  static Float load_float16(const std::uint16_t* first) {
    return each<Float>([&](int i) { return Isa::load_float16(first + step * i); });
  }
  static Float load_row(const float* slots, std::uint32_t row, std::uint32_t count) {
    const std::uint32_t first = lane_count * row;
    if (first + lane_count <= count) return load(slots + first);
    const auto wanted = Isa::wanted_of_row(first, count);
    return each<Float>([&](int i) { return Isa::load_wanted(slots + first + step * i, wanted, i); });
  }
  static void store(float* first, const Float& a) {
    for (int i = 0; i < parts; ++i) Isa::store(first + step * i, a.part[i]);
  }
  static Float gather(const float* table, const Word& index) {
    return each<Float>([&](int i) { return Isa::gather(table, index.part[i]); });
  }
  static Word gather(const std::uint32_t* table, const Word& index) {
    return each<Word>([&](int i) { return Isa::gather(table, index.part[i]); });
  }
  static Float gather_number(const float* table, const Word& row, std::uint32_t stride, const Word& column,
                             bool small) {
    if (small) return gather(table, add(multiply(row, broadcast(stride)), column));
    float lanes[width];
    for (std::uint32_t l = 0; l < width; ++l) {
      lanes[l] = table[static_cast<std::uint64_t>(get(row, l)) * stride + get(column, l)];
    }
    return load(lanes);
  }
  static Float gather_float16(const std::uint16_t* table, const Word& row, std::uint32_t stride, const Word& column,
                              bool small) {
    if (small) {
      const Word index = add(multiply(row, broadcast(stride)), column);
      return each<Float>([&](int i) { return Isa::gather_float16(table, index.part[i]); });
    }
    float lanes[width];
    for (std::uint32_t l = 0; l < width; ++l) {
      lanes[l] = finite_float16_to_float(table[static_cast<std::uint64_t>(get(row, l)) * stride + get(column, l)]);
    }
    return load(lanes);
  }
  template <class Function>
  static Float map(const Float& a, Function&& function) {
    alignas(4 * step) float lanes[width];
    store(lanes, a);
    for (std::uint32_t l = 0; l < width; ++l) lanes[l] = function(lanes[l]);
    return load(lanes);
  }
  template <class Body>
  static void each_lane(const Mask& mask, Body&& body) {
    for (int i = 0; i < parts; ++i) {
      const std::uint32_t bits = Isa::bits(mask.part[i]);
      for (std::uint32_t l = 0; l < step; ++l) {
        if (((bits >> l) & 1u) != 0u) body(static_cast<std::uint32_t>(step * i) + l);
      }
    }
  }
  static float own(const Float& a, std::uint32_t lane) { return get(a, lane); }
  static void barrier() {}
  static Word slots_of_row(std::uint32_t row) {
    const auto low = Isa::add(Isa::lane_numbers(), Isa::broadcast(lane_count * row));
    return each<Word>([&](int i) { return Isa::add(low, Isa::broadcast(static_cast<std::uint32_t>(step * i))); });
  }

  static Float add(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return Isa::add(a.part[i], b.part[i]); });
  }
  static Float subtract(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return Isa::subtract(a.part[i], b.part[i]); });
  }
  static Float multiply(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return Isa::multiply(a.part[i], b.part[i]); });
  }
  static Float divide(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return Isa::divide(a.part[i], b.part[i]); });
  }
  static Float square_root(const Float& a) {
    return each<Float>([&](int i) { return Isa::square_root(a.part[i]); });
  }
  static Float floor_of_lanes(const Float& a) {
    return each<Float>([&](int i) { return Isa::floor_of_lanes(a.part[i]); });
  }
  static Float magnitude(const Float& a) {
    return each<Float>([&](int i) { return Isa::magnitude(a.part[i]); });
  }
  static Float greater_of(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return Isa::greater_of(a.part[i], b.part[i]); });
  }
  static Float lesser_of(const Float& a, const Float& b) {
    return each<Float>([&](int i) { return Isa::lesser_of(a.part[i], b.part[i]); });
  }

  static Word add(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return Isa::add(a.part[i], b.part[i]); });
  }
  static Word subtract(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return Isa::subtract(a.part[i], b.part[i]); });
  }
  static Word multiply(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return Isa::multiply(a.part[i], b.part[i]); });
  }
  static Word high_product_with(const Word& a, std::uint32_t b) {
    const auto factor = Isa::broadcast(b);
    return each<Word>([&](int i) { return Isa::high_product(a.part[i], factor); });
  }
  static Word bits_and(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return Isa::bits_and(a.part[i], b.part[i]); });
  }
  static Word bits_or(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return Isa::bits_or(a.part[i], b.part[i]); });
  }
  static Word bits_xor(const Word& a, const Word& b) {
    return each<Word>([&](int i) { return Isa::bits_xor(a.part[i], b.part[i]); });
  }
  template <int by>
  static Word shift_left(const Word& a) {
    return each<Word>([&](int i) { return Isa::template shift_left<by>(a.part[i]); });
  }
  template <int by>
  static Word shift_right(const Word& a) {
    return each<Word>([&](int i) { return Isa::template shift_right<by>(a.part[i]); });
  }
  static Word bits_of(const Float& a) {
    return each<Word>([&](int i) { return Isa::bits_of(a.part[i]); });
  }
  static Float float_of_bits(const Word& a) {
    return each<Float>([&](int i) { return Isa::float_of_bits(a.part[i]); });
  }
  static Float float_of_integer(const Word& a) {
    return each<Float>([&](int i) { return Isa::float_of_integer(a.part[i]); });
  }
  static Word integer_of_float(const Float& a) {
    return each<Word>([&](int i) { return Isa::integer_of_float(a.part[i]); });
  }

  static Mask at_least(const Float& a, const Float& b) {
    return each<Mask>([&](int i) { return Isa::at_least(a.part[i], b.part[i]); });
  }
  static Mask greater(const Float& a, const Float& b) {
    return each<Mask>([&](int i) { return Isa::greater(a.part[i], b.part[i]); });
  }
  static Mask equal(const Float& a, const Float& b) {
    return each<Mask>([&](int i) { return Isa::equal(a.part[i], b.part[i]); });
  }
  static Mask less(const Word& a, const Word& b) {
    return each<Mask>([&](int i) { return Isa::less(a.part[i], b.part[i]); });
  }
  static Mask both(const Mask& a, const Mask& b) {
    return each<Mask>([&](int i) { return Isa::both(a.part[i], b.part[i]); });
  }
  static Mask either(const Mask& a, const Mask& b) {
    return each<Mask>([&](int i) { return Isa::either(a.part[i], b.part[i]); });
  }
  static Float select(const Mask& mask, const Float& if_set, const Float& otherwise) {
    return each<Float>([&](int i) { return Isa::select(mask.part[i], if_set.part[i], otherwise.part[i]); });
  }
  static Word select(const Mask& mask, const Word& if_set, const Word& otherwise) {
    return each<Word>([&](int i) { return Isa::select(mask.part[i], if_set.part[i], otherwise.part[i]); });
  }
  static Mask mask_of_bits(std::uint32_t bits) {
    return each<Mask>([&](int i) { return Isa::mask_of_bits(bits, i); });
  }
  template <class Predicate>
  static std::uint32_t filter(std::uint32_t bits, Predicate&& predicate) {
    std::uint32_t kept = 0;
    for (std::uint32_t left = bits; left != 0u; left &= left - 1u) {
      const std::uint32_t lane = lowest_set_bit(left);
      kept |= (predicate(lane) ? 1u : 0u) << lane;
    }
    return kept;
  }
  static bool any(const Mask& mask) { return Isa::any(mask.part); }
  static std::uint32_t ballot(const Mask& mask) {
    std::uint32_t bits = 0;
    for (int i = 0; i < parts; ++i) bits |= Isa::bits(mask.part[i]) << (step * i);
    return bits;
  }

  template <std::uint32_t distance>
  static Float exchange(const Float& a) {
    if constexpr (distance >= step) {
      return each<Float>([&](int i) { return a.part[i ^ static_cast<int>(distance / step)]; });
    } else {
      return each<Float>([&](int i) { return Isa::template exchange<distance>(a.part[i]); });
    }
  }
  template <std::uint32_t distance>
  static Word exchange(const Word& a) {
    return bits_of(exchange<distance>(float_of_bits(a)));
  }
  template <std::uint32_t distance>
  static Float add_from_below(const Float& a) {
    if constexpr (distance >= step) {
      constexpr int below = static_cast<int>(distance / step);
      return each<Float>([&](int i) { return i >= below ? Isa::add(a.part[i - below], a.part[i]) : a.part[i]; });
    } else {
      return Isa::template add_from_below<distance, Float>(a.part);
    }
  }
  static float get(const Float& a, std::uint32_t lane) {
    alignas(4 * step) float lanes[width];
    store(lanes, a);
    return lanes[lane];
  }
  static std::uint32_t get(const Word& a, std::uint32_t lane) {
    alignas(4 * step) std::uint32_t lanes[width];
    for (int i = 0; i < parts; ++i) Isa::store(lanes + step * i, a.part[i]);
    return lanes[lane];
  }
  static float fold_sum(const Float& partial) { return Isa::fold_sum(partial.part); }

 private:
  template <class Result, class Part>
  static Result each(Part&& part) {
    Result result;
    for (int i = 0; i < parts; ++i) result.part[i] = part(i);
    return result;
  }
};

}  // namespace cingulum::numerics
