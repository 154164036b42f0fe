#include "parity/scalar_cases.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace cingulum::parity {
namespace {

// Any float result but these is the same on every device: WGSL may flush subnormal numbers and assume there is no
// infinity.
bool normal_or_zero(float value) {
  return numerics::is_finite(value) && !numerics::is_subnormal(value);
}

class ArgumentSource {
 public:
  ArgumentSource(std::uint64_t seed, bool special) : generator_(seed), special_(special) {}

  std::uint32_t word() { return static_cast<std::uint32_t>(generator_()); }
  std::uint32_t below(std::uint32_t count) { return word() % count; }
  double unit() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }

  // Fills the words of one input, random within its domain.
  template <class Case>
  void draw(std::uint32_t* item) {
    for (int i = 0; i < Case::in_words; ++i) draw_word(Case::domain[i], item + i);
  }

  void draw_word(const WordDomain& domain, std::uint32_t* word_out) {
    switch (domain.kind) {
      case WordDomain::Kind::floating: *word_out = float_bits(static_cast<float>(draw_number(domain))); return;
      case WordDomain::Kind::any_floating:
        if (below(4) != 0u) {
          *word_out = float_bits(static_cast<float>(draw_number(domain)));
        } else {
          // Any exponent of normal numbers, or zero's and infinity's where special values are wanted.
          const std::uint32_t exponent = special_ ? below(256) : 1u + below(254);
          *word_out = (word() & 0x807fffffu) | (exponent << 23);
        }
        return;
      case WordDomain::Kind::word: *word_out = word(); return;
      case WordDomain::Kind::below: *word_out = domain.first + below(domain.count); return;
      case WordDomain::Kind::wide: store_wide(draw_number(domain), word_out); return;
      case WordDomain::Kind::wide_high: return;  // written with the low word
    }
  }

  // All values of one word that deserve a try; for `wide`, pairs of words.
  std::vector<std::uint32_t> edges(const WordDomain& domain) const {
    std::vector<std::uint32_t> values;
    switch (domain.kind) {
      case WordDomain::Kind::floating: add_float_edges(domain, false, values); break;
      case WordDomain::Kind::any_floating: add_float_edges(domain, true, values); break;
      case WordDomain::Kind::word:
        for (std::uint32_t bit = 0; bit < 32u; ++bit) {
          for (const std::uint32_t value : {(1u << bit) - 1u, 1u << bit, (1u << bit) + 1u, ~(1u << bit)}) {
            values.push_back(value);
          }
        }
        values.push_back(0xffffffffu);
        break;
      case WordDomain::Kind::below:
        for (std::uint32_t i = 0; i < std::min(domain.count, 65536u); ++i) values.push_back(domain.first + i);
        values.push_back(domain.first + domain.count - 1u);
        break;
      case WordDomain::Kind::wide:
        for (int exponent = -1022; exponent <= 1023; ++exponent) {
          const double power = std::ldexp(1.0, exponent);
          for (const double value : {power, std::nextafter(power, 0.0), std::nextafter(power, 4 * power)}) {
            if (value >= domain.least && value <= domain.most) add_wide(value, values);
          }
        }
        add_wide(0.0, values);
        add_wide(domain.most, values);
        break;
      case WordDomain::Kind::wide_high: break;
    }
    return values;
  }

 private:
  // Half of the draws even over the values, half even over the exponents; either sign; some zeros and ends.
  double draw_number(const WordDomain& domain) {
    const double sign = below(2) == 0u ? 1 : -1;
    const std::uint32_t kind = below(64);
    if (kind == 0u) return sign * 0.0;
    if (kind == 1u) return sign * domain.most;
    if (kind < 32u) return sign * std::max(domain.least, unit() * domain.most);
    const double low = std::log2(domain.least), high = std::log2(domain.most);
    return sign * std::clamp(std::exp2(low + unit() * (high - low)), domain.least, domain.most);
  }

  static void store_wide(double value, std::uint32_t* words) { double_to_words(value, words); }

  static void add_wide(double value, std::vector<std::uint32_t>& values) {
    for (const double signed_value : {value, -value}) {
      std::uint32_t words[2];
      double_to_words(signed_value, words);
      values.insert(values.end(), {words[0], words[1]});
    }
  }

  void add_float_edges(const WordDomain& domain, bool any, std::vector<std::uint32_t>& values) const {
    const float least = any ? 0x1p-126f : static_cast<float>(domain.least);
    const float most = any ? 0x1.fffffep127f : static_cast<float>(domain.most);
    std::vector<float> magnitudes{0.0f, least, most, static_cast<float>(domain.most), 0.5f, 1.0f, 1.5f, 2.0f, 3.0f};
    for (int exponent = -126; exponent <= 127; ++exponent) {
      const float power = std::ldexp(1.0f, exponent);
      magnitudes.insert(magnitudes.end(),
                        {power, bits_float(float_bits(power) - 1u), bits_float(float_bits(power) + 1u),
                         bits_float(float_bits(power) | 0x400000u)});
    }
    // Odd multiples of pi/4 and of ln 2 / 2, where reductions change their branch.
    for (int i = 1; i < 330; ++i) {
      for (const double value : {i * 0.78539816339744831, i * 0.34657359027997265}) {
        const std::uint32_t bits = float_bits(static_cast<float>(value));
        magnitudes.insert(magnitudes.end(), {bits_float(bits - 1u), bits_float(bits), bits_float(bits + 1u)});
      }
    }
    for (const float magnitude : magnitudes) {
      if (magnitude != 0.0f && (magnitude < least || magnitude > most)) continue;
      values.push_back(float_bits(magnitude));
      values.push_back(float_bits(-magnitude));
    }
    if (!any || !special_) return;
    for (const std::uint32_t bits : {1u, 0x7fffffu, 0x400000u, 0x7f800000u, 0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
      values.push_back(bits);
      values.push_back(bits | 0x80000000u);
    }
  }

  std::mt19937_64 generator_;
  bool special_;
};

template <class Case>
bool accepted(const std::uint32_t* item, bool allow_nonfinite) {
  if constexpr (requires { Case::wgsl_accepts(item); }) {
    return allow_nonfinite || Case::wgsl_accepts(item);
  } else {
    return true;
  }
}

template <class Case>
std::vector<std::uint32_t> make_arguments(std::size_t count, std::uint64_t seed, bool allow_nonfinite) {
  constexpr auto words = static_cast<std::size_t>(Case::in_words);
  static_assert(Case::in_words <= most_case_words && Case::out_words <= most_case_words);
  static_assert(std::size(Case::domain) == words);
  ArgumentSource source(seed, allow_nonfinite || Case::tests_bits);
  std::vector<std::uint32_t> arguments;
  std::uint32_t item[most_case_words];
  const auto keep = [&] {
    if (accepted<Case>(item, allow_nonfinite)) arguments.insert(arguments.end(), item, item + words);
  };

  while (arguments.size() < count * words) {
    source.draw<Case>(item);
    keep();
  }
  std::vector<std::vector<std::uint32_t>> edges;
  for (const WordDomain& domain : Case::domain) edges.push_back(source.edges(domain));
  const auto place = [&](std::size_t at, std::size_t edge) {
    const std::size_t width = Case::domain[at].kind == WordDomain::Kind::wide ? 2 : 1;
    std::copy_n(edges[at].begin() + static_cast<std::ptrdiff_t>(edge * width), width, item + at);
  };
  const auto number_of = [&](std::size_t at) {
    return edges[at].size() / (Case::domain[at].kind == WordDomain::Kind::wide ? 2 : 1);
  };
  for (std::size_t at = 0; at < words; ++at) {
    for (std::size_t edge = 0; edge < number_of(at); ++edge) {
      source.draw<Case>(item);
      place(at, edge);
      keep();
    }
  }
  for (int tuple = 0; tuple < 20000 && words > 1; ++tuple) {
    for (std::size_t at = 0; at < words; ++at) {
      if (number_of(at) != 0) place(at, source.below(static_cast<std::uint32_t>(number_of(at))));
    }
    keep();
  }
  return arguments;
}

template <class Case>
ScalarCaseEntry make_entry() {
  return {Case::name,          Case::in_words, Case::out_words,      Case::has_wgsl,
          Case::float_outputs, &Case::run,     &make_arguments<Case>};
}

template <std::size_t... index>
std::vector<ScalarCaseEntry> make_entries(std::index_sequence<index...>) {
  return {make_entry<std::tuple_element_t<index, ScalarCases>>()...};
}

}  // namespace

bool ProductThenSum::wgsl_accepts(const std::uint32_t* in) {
  const float product = bits_float(in[0]) * bits_float(in[1]);
  return normal_or_zero(product) && normal_or_zero(product + bits_float(in[2])) &&
         (product != 0.0f || bits_float(in[0]) == 0.0f || bits_float(in[1]) == 0.0f);
}

bool Quotient::wgsl_accepts(const std::uint32_t* in) {
  const float quotient = bits_float(in[0]) / bits_float(in[1]);
  return bits_float(in[1]) != 0.0f && normal_or_zero(quotient) && (quotient != 0.0f || bits_float(in[0]) == 0.0f);
}

bool Root::wgsl_accepts(const std::uint32_t* in) {
  return bits_float(in[0]) >= 0.0f;
}

const std::vector<ScalarCaseEntry>& scalar_cases() {
  static const std::vector<ScalarCaseEntry> entries = make_entries(std::make_index_sequence<scalar_case_count>());
  return entries;
}

std::string wgsl_entry(const ScalarCaseEntry& entry) {
  const std::string in_words = std::to_string(entry.in_words) + "u";
  const std::string out_words = std::to_string(entry.out_words) + "u";
  return R"(
struct CaseUniforms {
  count: u32,
  negative_zero: f32,
}

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> uniforms: CaseUniforms;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let item = id.x;
  if (item >= uniforms.count) {
    return;
  }
  negative_zero = uniforms.negative_zero;
  var arguments: array<u32, 16>;
  for (var i = 0u; i < )" +
         in_words + R"(; i++) {
    arguments[i] = input[item * )" +
         in_words + R"( + i];
  }
  var results = case_)" +
         entry.name + R"((arguments);
  for (var i = 0u; i < )" +
         out_words + R"(; i++) {
    output[item * )" +
         out_words + R"( + i] = results[i];
  }
}
)";
}

}  // namespace cingulum::parity
