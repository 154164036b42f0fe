// Every function of numerics that runs on more than one backend, as a case: words in, words out, the same on host, CUDA
// and WGSL. The parity test draws arguments with make_arguments, runs `run` on the host, launch_scalar_case on CUDA and
// wgsl_entry (with src/numerics/wgsl and scalar_cases.wgsl) on WebGPU, and compares the output words. Two NaN are equal
// where an output is a float (`float_outputs`).
//
// Layout: item i has its in_words words at input[i in_words], its out_words at output[i out_words].
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "numerics/classify.hpp"
#include "numerics/elementary.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/float16.hpp"
#include "numerics/philox.hpp"
#include "numerics/portable.hpp"
#include "numerics/random.hpp"
#include "numerics/rotation.hpp"
#include "numerics/spherical_harmonics.hpp"
#include "numerics/trilinear.hpp"
#include "numerics/vec3.hpp"

namespace cingulum::parity {

using numerics::bits_float;
using numerics::float_bits;

inline constexpr int most_case_words = 16;

// What a word of a case's input may hold.
struct WordDomain {
  enum class Kind {
    floating,      // float32 with |x| in [least, most] or zero
    any_floating,  // most draws as `floating`, the rest any normal float32
    word,          // any uint32
    below,         // an integer in [first, first + count)
    wide,          // float64 in this word (low) and the next (high), |x| in [least, most] or zero
    wide_high,     // the second word of a float64
  };
  Kind kind;
  double least = 0;
  double most = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

constexpr WordDomain floating(double least, double most) {
  return {WordDomain::Kind::floating, least, most};
}
constexpr WordDomain any_floating(double least, double most) {
  return {WordDomain::Kind::any_floating, least, most};
}
constexpr WordDomain any_word() {
  return {WordDomain::Kind::word};
}
constexpr WordDomain below(std::uint32_t count, std::uint32_t first = 0) {
  return {WordDomain::Kind::below, 0, 0, first, count};
}
constexpr WordDomain wide(double least, double most) {
  return {WordDomain::Kind::wide, least, most};
}
constexpr WordDomain wide_high() {
  return {WordDomain::Kind::wide_high};
}

// What all cases have unless they say otherwise.
struct ScalarCase {
  static constexpr bool has_wgsl = true;
  // The function looks at bits alone before it computes: NaN, infinities and subnormal numbers go to WGSL too.
  static constexpr bool tests_bits = false;
  static constexpr bool float_outputs = true;
};

// The operations of exact.wgsl against the compiler's own.

struct ProductThenSum : ScalarCase {
  static constexpr const char* name = "product_then_sum";
  static constexpr int in_words = 3, out_words = 1;
  static constexpr WordDomain domain[] = {any_floating(0x1p-40, 0x1p40), any_floating(0x1p-40, 0x1p40),
                                          any_floating(0x1p-40, 0x1p40)};
  static bool wgsl_accepts(const std::uint32_t* in);
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(bits_float(in[0]) * bits_float(in[1]) + bits_float(in[2]));
  }
};

struct Quotient : ScalarCase {
  static constexpr const char* name = "quotient";
  static constexpr int in_words = 2, out_words = 1;
  static constexpr WordDomain domain[] = {any_floating(0x1p-40, 0x1p40), any_floating(0x1p-40, 0x1p40)};
  static bool wgsl_accepts(const std::uint32_t* in);
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(bits_float(in[0]) / bits_float(in[1]));
  }
};

struct Root : ScalarCase {
  static constexpr const char* name = "root";
  static constexpr int in_words = 1, out_words = 1;
  static constexpr WordDomain domain[] = {any_floating(0x1p-100, 0x1p100)};
  static bool wgsl_accepts(const std::uint32_t* in);
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(numerics::root(bits_float(in[0])));
  }
};

struct HighProduct : ScalarCase {
  static constexpr const char* name = "high_product";
  static constexpr int in_words = 2, out_words = 1;
  static constexpr bool float_outputs = false;
  static constexpr WordDomain domain[] = {any_word(), any_word()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) { out[0] = numerics::high_product(in[0], in[1]); }
};

// Functions of classify.hpp.

struct Classify : ScalarCase {
  static constexpr const char* name = "classify";
  static constexpr int in_words = 1, out_words = 4;
  static constexpr bool tests_bits = true;
  static constexpr bool float_outputs = false;
  static constexpr WordDomain domain[] = {any_word()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const float x = bits_float(in[0]);
    out[0] = (numerics::is_nan(x) ? 1u : 0u) | (numerics::is_infinite(x) ? 2u : 0u) |
             (numerics::is_finite(x) ? 4u : 0u) | (numerics::is_subnormal(x) ? 8u : 0u) |
             (numerics::is_negative(x) ? 16u : 0u);
    out[1] = numerics::magnitude_bits(x);
    out[2] = static_cast<std::uint32_t>(numerics::float_to_int32(x));
    out[3] = numerics::float_to_uint32(x);
  }
};

struct ConvertToInteger : ScalarCase {
  static constexpr const char* name = "convert_to_integer";
  static constexpr int in_words = 1, out_words = 2;
  static constexpr bool tests_bits = true;
  static constexpr bool float_outputs = false;
  static constexpr WordDomain domain[] = {any_floating(0x1p-4, 0x1p34)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = static_cast<std::uint32_t>(numerics::float_to_int32(bits_float(in[0])));
    out[1] = numerics::float_to_uint32(bits_float(in[0]));
  }
};

struct ClampMagnitude : ScalarCase {
  static constexpr const char* name = "clamp_magnitude";
  static constexpr int in_words = 2, out_words = 2;
  static constexpr WordDomain domain[] = {any_floating(0x1p-10, 0x1p10), floating(0x1p-10, 0x1p10)};
  static constexpr bool tests_bits = true;
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(numerics::clamp_magnitude(bits_float(in[0]), numerics::absolute(bits_float(in[1]))));
    out[1] = float_bits(numerics::absolute(bits_float(in[0])));
  }
};

struct FlushTiny : ScalarCase {
  static constexpr const char* name = "flush_tiny";
  static constexpr int in_words = 2, out_words = 1;
  static constexpr WordDomain domain[] = {any_floating(0x1p-60, 0x1p10), floating(0x1p-20, 0x1p20)};
  static constexpr bool tests_bits = true;
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(numerics::flush_tiny(bits_float(in[0]), numerics::absolute(bits_float(in[1]))));
  }
};

// Functions of float16.hpp.

struct Float16ToFloat : ScalarCase {
  static constexpr const char* name = "float16_to_float";
  static constexpr int in_words = 1, out_words = 1;
  static constexpr WordDomain domain[] = {below(65536)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = numerics::float16_to_float_bits(in[0]);
  }
};

struct FloatToFloat16 : ScalarCase {
  static constexpr const char* name = "float_to_float16";
  static constexpr int in_words = 1, out_words = 1;
  static constexpr bool tests_bits = true;
  static constexpr bool float_outputs = false;
  static constexpr WordDomain domain[] = {any_floating(0x1p-26, 0x1p17)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = numerics::float_bits_to_float16(in[0]);
  }
};

// Functions of philox.hpp and random.hpp.

struct Philox : ScalarCase {
  static constexpr const char* name = "philox";
  static constexpr int in_words = 6, out_words = 4;
  static constexpr bool float_outputs = false;
  static constexpr WordDomain domain[] = {any_word(), any_word(), any_word(), any_word(), any_word(), any_word()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::PhiloxBlock block =
        numerics::philox4x32_10({{in[0], in[1], in[2], in[3]}}, numerics::PhiloxKey{in[4], in[5]});
    for (int i = 0; i < 4; ++i) out[i] = block.word[i];
  }
};

// Words 0, 1 key; 2 index; 3 purpose; 4 initial direction; 5 half; 6 step; 7 attempt; then what each case adds.
CGL_HD constexpr numerics::DrawCounter counter_from_words(const std::uint32_t* in) {
  return {in[2], static_cast<numerics::DrawPurpose>(in[3]), in[4], in[5], in[6], in[7]};
}

struct Draw : ScalarCase {
  static constexpr const char* name = "draw";
  static constexpr int in_words = 10, out_words = 3;
  static constexpr bool float_outputs = false;
  static constexpr WordDomain domain[] = {any_word(), any_word(), any_word(),   below(256),       below(1u << 23),
                                          below(2),   any_word(), below(65536), below(4 * 65536), below(100000, 1)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const std::uint32_t word = numerics::random_word({in[0], in[1]}, counter_from_words(in), in[8]);
    out[0] = word;
    out[1] = float_bits(numerics::uniform_from_word(word));
    out[2] = numerics::integer_from_word(word, in[9]);
  }
};

struct Normals : ScalarCase {
  static constexpr const char* name = "normals";
  static constexpr int in_words = 2, out_words = 2;
  static constexpr WordDomain domain[] = {any_word(), any_word()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::NormalPair<float> pair = numerics::normals_from_words(in[0], in[1]);
    out[0] = float_bits(pair.first);
    out[1] = float_bits(pair.second);
  }
};

struct BootstrapPick : ScalarCase {
  static constexpr const char* name = "bootstrap_pick";
  static constexpr int in_words = 10, out_words = 1;
  static constexpr bool float_outputs = false;
  static constexpr WordDomain domain[] = {any_word(), any_word(), any_word(),   below(256), below(1u << 23),
                                          below(2),   any_word(), below(65536), below(400), below(400, 1)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = numerics::bootstrap_pick_of_gradient({in[0], in[1]}, counter_from_words(in), in[8], in[9]);
  }
};

// Functions of elementary.hpp.

struct Sine : ScalarCase {
  static constexpr const char* name = "sine";
  static constexpr int in_words = 1, out_words = 1;
  static constexpr bool tests_bits = true;
  static constexpr WordDomain domain[] = {any_floating(0x1p-14, 256)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(numerics::sine(bits_float(in[0])));
  }
};

struct Cosine : ScalarCase {
  static constexpr const char* name = "cosine";
  static constexpr int in_words = 1, out_words = 1;
  static constexpr bool tests_bits = true;
  static constexpr WordDomain domain[] = {any_floating(0x1p-14, 256)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(numerics::cosine(bits_float(in[0])));
  }
};

struct SineCosineTogether : ScalarCase {
  static constexpr const char* name = "sine_cosine";
  static constexpr int in_words = 1, out_words = 2;
  static constexpr bool tests_bits = true;
  static constexpr WordDomain domain[] = {any_floating(0x1p-14, 256)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::SineCosine<float> both = numerics::sine_cosine(bits_float(in[0]));
    out[0] = float_bits(both.sine);
    out[1] = float_bits(both.cosine);
  }
};

struct ArcCosine : ScalarCase {
  static constexpr const char* name = "arc_cosine";
  static constexpr int in_words = 1, out_words = 1;
  static constexpr bool tests_bits = true;
  static constexpr WordDomain domain[] = {any_floating(0x1p-26, 1)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(numerics::arc_cosine(bits_float(in[0])));
  }
};

struct Logarithm : ScalarCase {
  static constexpr const char* name = "logarithm";
  static constexpr int in_words = 1, out_words = 1;
  static constexpr bool tests_bits = true;
  static constexpr WordDomain domain[] = {any_floating(0x1p-2, 0x1p2)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(numerics::logarithm(bits_float(in[0])));
  }
};

struct Exponential : ScalarCase {
  static constexpr const char* name = "exponential";
  static constexpr int in_words = 1, out_words = 1;
  static constexpr bool tests_bits = true;
  static constexpr WordDomain domain[] = {any_floating(0x1p-26, 90)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(numerics::exponential(bits_float(in[0])));
  }
};

// Functions in float64, which host and CUDA have.

CGL_HD constexpr double double_from_words(const std::uint32_t* in) {
  return bits_float((static_cast<std::uint64_t>(in[1]) << 32) | in[0]);
}

CGL_HD constexpr void double_to_words(double value, std::uint32_t* out) {
  const std::uint64_t bits = float_bits(value);
  out[0] = static_cast<std::uint32_t>(bits);
  out[1] = static_cast<std::uint32_t>(bits >> 32);
}

struct WideCase : ScalarCase {
  static constexpr bool has_wgsl = false;
  static constexpr int in_words = 2, out_words = 2;
  static constexpr bool float_outputs = false;
};

struct Sine64 : WideCase {
  static constexpr const char* name = "sine64";
  static constexpr WordDomain domain[] = {wide(0x1p-30, 256), wide_high()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    double_to_words(numerics::sine(double_from_words(in)), out);
  }
};

struct Cosine64 : WideCase {
  static constexpr const char* name = "cosine64";
  static constexpr WordDomain domain[] = {wide(0x1p-30, 256), wide_high()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    double_to_words(numerics::cosine(double_from_words(in)), out);
  }
};

struct ArcCosine64 : WideCase {
  static constexpr const char* name = "arc_cosine64";
  static constexpr WordDomain domain[] = {wide(0x1p-60, 1), wide_high()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    double_to_words(numerics::arc_cosine(double_from_words(in)), out);
  }
};

struct Logarithm64 : WideCase {
  static constexpr const char* name = "logarithm64";
  static constexpr WordDomain domain[] = {wide(0x1p-1022, 0x1p1023), wide_high()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    double_to_words(numerics::logarithm(double_from_words(in)), out);
  }
};

struct Exponential64 : WideCase {
  static constexpr const char* name = "exponential64";
  static constexpr WordDomain domain[] = {wide(0x1p-60, 710), wide_high()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    double_to_words(numerics::exponential(double_from_words(in)), out);
  }
};

struct Root64 : WideCase {
  static constexpr const char* name = "root64";
  static constexpr WordDomain domain[] = {wide(0x1p-1000, 0x1p1000), wide_high()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    // The magnitude: the root of a negative number is a NaN whose bits are the hardware's.
    double_to_words(numerics::root(numerics::absolute(double_from_words(in))), out);
  }
};

struct Quotient64 : WideCase {
  static constexpr const char* name = "quotient64";
  static constexpr int in_words = 4, out_words = 2;
  static constexpr WordDomain domain[] = {wide(0x1p-400, 0x1p400), wide_high(), wide(0x1p-400, 0x1p400), wide_high()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const double divisor = double_from_words(in + 2);
    double_to_words(divisor == 0.0 ? 0.0 : double_from_words(in) / divisor, out);
  }
};

struct Normals64 : WideCase {
  static constexpr const char* name = "normals64";
  static constexpr int in_words = 2, out_words = 4;
  static constexpr WordDomain domain[] = {any_word(), any_word()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::NormalPair<double> pair = numerics::normals64_from_words(in[0], in[1]);
    double_to_words(pair.first, out);
    double_to_words(pair.second, out + 2);
  }
};

// Functions of vec3.hpp and rotation.hpp.

CGL_HD constexpr numerics::Vec3 vec3_from_words(const std::uint32_t* in) {
  return {bits_float(in[0]), bits_float(in[1]), bits_float(in[2])};
}

CGL_HD constexpr void vec3_to_words(numerics::Vec3 v, std::uint32_t* out) {
  out[0] = float_bits(v.x);
  out[1] = float_bits(v.y);
  out[2] = float_bits(v.z);
}

CGL_HD constexpr void frame_to_words(const numerics::Frame& frame, std::uint32_t* out) {
  vec3_to_words(frame.tangent, out);
  vec3_to_words(frame.normal, out + 3);
  vec3_to_words(frame.binormal, out + 6);
}

constexpr WordDomain component() {
  return floating(0x1p-20, 4);
}

struct DotAndCross : ScalarCase {
  static constexpr const char* name = "dot_and_cross";
  static constexpr int in_words = 6, out_words = 5;
  static constexpr WordDomain domain[] = {component(), component(), component(), component(), component(), component()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::Vec3 a = vec3_from_words(in), b = vec3_from_words(in + 3);
    out[0] = float_bits(dot(a, b));
    out[1] = float_bits(length(a));
    vec3_to_words(cross(a, b), out + 2);
  }
};

struct Normalise : ScalarCase {
  static constexpr const char* name = "normalise";
  static constexpr int in_words = 3, out_words = 3;
  static constexpr WordDomain domain[] = {floating(0x1p-62, 0x1p20), floating(0x1p-62, 0x1p20),
                                          floating(0x1p-62, 0x1p20)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    vec3_to_words(numerics::normalise(vec3_from_words(in)), out);
  }
};

struct AnyPerpendicular : ScalarCase {
  static constexpr const char* name = "any_perpendicular";
  static constexpr int in_words = 3, out_words = 9;
  static constexpr WordDomain domain[] = {component(), component(), component()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    frame_to_words(numerics::frame_with_tangent(vec3_from_words(in)), out);
  }
};

struct QuaternionRotation : ScalarCase {
  static constexpr const char* name = "quaternion_rotation";
  static constexpr int in_words = 8, out_words = 11;
  static constexpr WordDomain domain[] = {
      component(), component(), component(), floating(0x1p-10, 500), floating(0x1p-10, 500),
      component(), component(), component()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::Vec3 axis = numerics::normalise(vec3_from_words(in)), v = vec3_from_words(in + 5);
    const numerics::Quaternion first = numerics::quaternion_about(axis, bits_float(in[3]));
    const numerics::Quaternion second = numerics::quaternion_about(numerics::normalise(v), bits_float(in[4]));
    const numerics::Quaternion both = numerics::multiply(second, first);
    out[0] = float_bits(first.w);
    out[1] = float_bits(first.x);
    out[2] = float_bits(first.y);
    out[3] = float_bits(first.z);
    out[4] = float_bits(both.w);
    out[5] = float_bits(both.x);
    out[6] = float_bits(both.y);
    out[7] = float_bits(both.z);
    vec3_to_words(numerics::rotate(both, v), out + 8);
  }
};

struct TransportFrame : ScalarCase {
  static constexpr const char* name = "transport_frame";
  static constexpr int in_words = 6, out_words = 9;
  static constexpr WordDomain domain[] = {component(), component(), component(), component(), component(), component()};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::Frame frame = numerics::frame_with_tangent(numerics::normalise(vec3_from_words(in)));
    frame_to_words(numerics::transport_frame(frame, numerics::normalise(vec3_from_words(in + 3))), out);
  }
};

struct PropagateFrame : ScalarCase {
  static constexpr const char* name = "propagate_frame";
  static constexpr int in_words = 6, out_words = 12;
  static constexpr WordDomain domain[] = {component(),          component(),          component(),
                                          floating(0x1p-16, 8), floating(0x1p-16, 8), floating(0x1p-8, 2)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::Frame frame = numerics::frame_with_tangent(numerics::normalise(vec3_from_words(in)));
    const numerics::FrameStep step =
        numerics::propagate_frame(frame, bits_float(in[3]), bits_float(in[4]), bits_float(in[5]));
    vec3_to_words(step.displacement, out);
    frame_to_words(step.frame, out + 3);
  }
};

// Near one WGSL has a short way.
struct InverseRoot : ScalarCase {
  static constexpr const char* name = "inverse_root";
  static constexpr int in_words = 1, out_words = 1;
  static constexpr WordDomain domain[] = {below(8192, 0x3f800000u - 4096u)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    out[0] = float_bits(1.0f / numerics::root(bits_float(in[0])));
  }
};

// The functions of lane_rotation.hpp: each lane has the bits of propagate_frame, for tangents that are not zero.
struct LanePropagate : ScalarCase {
  static constexpr const char* name = "lane_propagate";
  static constexpr int in_words = 6, out_words = 12;
  static constexpr WordDomain domain[] = {component(),          component(),          component(),
                                          floating(0x1p-16, 8), floating(0x1p-16, 8), floating(0x1p-8, 2)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::Vec3 given = numerics::normalise(vec3_from_words(in));
    const numerics::Vec3 tangent = numerics::dot(given, given) > 0.5f ? given : numerics::Vec3{0.0f, 0.0f, 1.0f};
    const numerics::FrameStep step = numerics::propagate_frame(numerics::frame_with_tangent(tangent), bits_float(in[3]),
                                                               bits_float(in[4]), bits_float(in[5]));
    vec3_to_words(step.displacement, out);
    frame_to_words(step.frame, out + 3);
  }
};

// Functions of trilinear.hpp.

constexpr WordDomain coordinate() {
  return floating(0x1p-20, 310);
}

struct TrilinearCellCase : ScalarCase {
  static constexpr const char* name = "trilinear_cell";
  static constexpr int in_words = 7, out_words = 15;
  static constexpr WordDomain domain[] = {coordinate(),  coordinate(),  coordinate(), below(300, 1),
                                          below(300, 1), below(300, 1), below(8)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const numerics::Vec3 position = vec3_from_words(in);
    const numerics::GridSize size{in[3], in[4], in[5]};
    const numerics::TrilinearCell cell = numerics::trilinear_cell(position, size);
    out[0] = numerics::is_outside(position, size) ? 1u : 0u;
    const numerics::AxisCell axes[3] = {cell.x, cell.y, cell.z};
    for (int axis = 0; axis < 3; ++axis) {
      out[1 + 4 * axis] = axes[axis].low;
      out[2 + 4 * axis] = axes[axis].high;
      out[3 + 4 * axis] = float_bits(axes[axis].low_weight);
      out[4 + 4 * axis] = float_bits(axes[axis].high_weight);
    }
    out[13] = numerics::corner_voxel(cell, size, in[6]);
    out[14] = float_bits(numerics::corner_weight(cell, in[6]));
  }
};

// A grid of 2 x 2 x 2 voxels, whose values are words 3 to 10.
struct TrilinearSample : ScalarCase {
  static constexpr const char* name = "trilinear_sample";
  static constexpr int in_words = 11, out_words = 1;
  static constexpr WordDomain domain[] = {floating(0x1p-10, 1.5), floating(0x1p-10, 1.5), floating(0x1p-10, 1.5),
                                          floating(0x1p-40, 100), floating(0x1p-40, 100), floating(0x1p-40, 100),
                                          floating(0x1p-40, 100), floating(0x1p-40, 100), floating(0x1p-40, 100),
                                          floating(0x1p-40, 100), floating(0x1p-40, 100)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    float volume[8];
    for (int i = 0; i < 8; ++i) volume[i] = bits_float(in[3 + i]);
    out[0] = float_bits(numerics::sample_trilinear(volume, numerics::GridSize{2, 2, 2}, vec3_from_words(in)));
  }
};

// Functions of spherical_harmonics.hpp.

// Words 0 to 2 a vector, normalised here; 3 the convention; 4 the degree; 5 whether full; 6 which 16 coefficients.
struct SphericalHarmonics : ScalarCase {
  static constexpr const char* name = "spherical_harmonics";
  static constexpr int in_words = 7, out_words = 16;
  static constexpr WordDomain domain[] = {
      floating(0x1p-8, 1), floating(0x1p-8, 1), floating(0x1p-8, 1), below(3), below(13), below(2), below(11)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const bool full = in[5] != 0u;
    const int degree = static_cast<int>(full ? in[4] : in[4] & ~1u);
    const numerics::HarmonicBasis basis{static_cast<numerics::HarmonicConvention>(in[3]), degree, full};
    float values[numerics::largest_coefficient_count];
    numerics::evaluate_harmonics(basis, numerics::normalise(vec3_from_words(in)), values);
    const int count = numerics::coefficient_count(degree, full);
    for (int i = 0; i < 16; ++i) {
      const int index = 16 * static_cast<int>(in[6]) + i;
      out[i] = index < count ? float_bits(values[index]) : 0u;
    }
  }
};

struct HarmonicNumbering : ScalarCase {
  static constexpr const char* name = "harmonic_numbering";
  static constexpr int in_words = 3, out_words = 5;
  static constexpr bool float_outputs = false;
  static constexpr WordDomain domain[] = {below(91), below(3), below(2)};
  static CGL_HD void run(const std::uint32_t* in, std::uint32_t* out) {
    const bool full = in[2] != 0u;
    const auto convention = static_cast<numerics::HarmonicConvention>(in[1]);
    const numerics::HarmonicIndex at = numerics::harmonic_of_coefficient(static_cast<int>(in[0]), full);
    out[0] = static_cast<std::uint32_t>(at.l);
    out[1] = static_cast<std::uint32_t>(at.m);
    out[2] = static_cast<std::uint32_t>(numerics::coefficient_count(at.l, full));
    out[3] = static_cast<std::uint32_t>(numerics::phase_sign(convention, at.m));
    out[4] = static_cast<std::uint32_t>(numerics::mirror_class(convention, at.m));
  }
};

using ScalarCases =
    std::tuple<ProductThenSum, Quotient, Root, HighProduct, Classify, ConvertToInteger, ClampMagnitude, FlushTiny,
               Float16ToFloat, FloatToFloat16, Philox, Draw, Normals, BootstrapPick, Sine, Cosine, SineCosineTogether,
               ArcCosine, Logarithm, Exponential, Sine64, Cosine64, ArcCosine64, Logarithm64, Exponential64, Root64,
               Quotient64, Normals64, DotAndCross, Normalise, AnyPerpendicular, QuaternionRotation, TransportFrame,
               PropagateFrame, InverseRoot, LanePropagate, TrilinearCellCase, TrilinearSample, SphericalHarmonics,
               HarmonicNumbering>;

inline constexpr int scalar_case_count = static_cast<int>(std::tuple_size_v<ScalarCases>);

// What harnesses use.

// A case without its type. Defined in scalar_cases.cpp, in the order of ScalarCases.
struct ScalarCaseEntry {
  const char* name;
  int in_words;
  int out_words;
  bool has_wgsl;
  bool float_outputs;
  void (*run)(const std::uint32_t* in, std::uint32_t* out);
  // `count` random arguments and all edges: for every word zeros, ends of its domain, every power of two of either sign
  // and its neighbours, each among random other words; then 20 000 tuples of edges. The number of items is the size
  // divided by in_words. Without `allow_nonfinite` (the way for WGSL) there are no NaN, infinities and subnormal
  // numbers unless the case tests bits, and no arguments whose result WGSL leaves open.
  std::vector<std::uint32_t> (*make_arguments)(std::size_t count, std::uint64_t seed, bool allow_nonfinite);
};

const std::vector<ScalarCaseEntry>& scalar_cases();

// Entry point `main` with the bindings input (0), output (1) and uniforms (2: count: u32, negative_zero: f32), one
// invocation per item, workgroups of 64. To be put after all files of src/numerics/wgsl (one of the two lane files) and
// scalar_cases.wgsl.
std::string wgsl_entry(const ScalarCaseEntry& entry);

// Runs a case on the current CUDA device: `input` and `output` are device pointers, `stream` a cudaStream_t. Returns
// the cudaError_t of the launch. Defined in scalar_cases.cu.
int launch_scalar_case(int case_index, const std::uint32_t* input, std::uint32_t* output, std::uint32_t count,
                       void* stream);

}  // namespace cingulum::parity
