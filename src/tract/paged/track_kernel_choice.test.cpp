// Every shape that a run can have, on a machine without a GPU: the kernel that CUDA runs is the one of the table below,
// every kernel can be chosen, and what a kernel fixes is what the input has.
#include "tract/paged/track_kernel_choice.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>

#include "support/analytic_field.hpp"
#include "tract/field/float16_field.hpp"
#include "tract/paged/device_tables.hpp"

namespace cingulum::track_kernel_choice_tests {
namespace {

using numerics::Vec3d;

constexpr std::uint64_t h200_bytes = 232448;

struct Shape {
  Getter getter = Getter::prob;
  std::uint32_t kind = field_of_amplitudes;
  std::string sphere = "mirror321";  // none on tensors and peaks
  int degree = 0;                    // series, bootstrap
  bool is_float16 = false;
  double angular_weight = 0;
  std::uint32_t probes = 1;  // ptt
  double exponent = 1;       // ptt

  [[nodiscard]] std::string text() const {
    return fmt::format("{} on {} of {} degree {}{} weight {} probes {} exponent {}", getter_name(getter), kind, sphere,
                       degree, is_float16 ? " float16" : "", angular_weight, probes, exponent);
  }
};

// Fields of two by two by two voxels, made once per shape.
const Field& field_of(const Shape& shape) {
  static std::map<std::string, Field> made;
  const std::string name = fmt::format("{} {} {} {}", shape.kind, shape.sphere, shape.degree, shape.is_float16 ? 1 : 0);
  if (const auto found = made.find(name); found != made.end()) return found->second;
  const ImageGeometry geometry = test::grid(2, 2, 2);
  const Vec3d axis = test::unit({1, 2, 3});
  Field field;
  switch (shape.kind) {
    case field_of_tensors: field = test::tensor_field(geometry, [&](Vec3d) { return axis; }); break;
    case field_of_peaks: field = test::peak_field(geometry, 2, [&](Vec3d, Vec3d* list) { list[0] = axis; }); break;
    case field_of_harmonics:
      field = test::harmonic_field(geometry, named_sphere(shape.sphere).value(), shape.degree,
                                   [&](Vec3d, double* c) { test::add_lobe(shape.degree, axis, 1, c); });
      break;
    case field_of_bootstrap: {
      std::vector<Vec3d> directions;
      std::vector<std::uint8_t> is_b0;
      for (int i = 0; i < 65; ++i) {
        directions.push_back(test::unit({1.0 + i, 7.0 - i * i % 31, 3.0 - i % 17}));
        is_b0.push_back(i == 0 ? 1 : 0);
      }
      const test::AllVoxels signals(
          geometry, directions.size(), [](Vec3d, float* s) { std::fill_n(s, 65, 100.0f); }, test::everywhere());
      field =
          make_bootstrap_field(geometry, signals.stop, signals.records(), directions, is_b0, {.degree = shape.degree},
                               named_sphere(shape.sphere).value(), *ThreadPool::create(1).value())
              .value();
      break;
    }
    default:
      field = test::amplitude_field(geometry, named_sphere(shape.sphere).value(),
                                    [&](Vec3d, Vec3d v) { return std::abs(numerics::dot(v, axis)); });
  }
  if (shape.is_float16) {
    EXPECT_TRUE(store_as_float16(field)) << name;
  }
  return made.emplace(name, std::move(field)).first->second;
}

TrackingInput input_of(const Shape& shape) {
  TrackingOptions options;
  options.getter = shape.getter;
  options.angular_weight = shape.angular_weight;
  options.ptt_probe_count = shape.probes;
  options.ptt_probe_radius_mm = shape.probes > 1 ? 0.5 : 0;
  options.ptt_exponent = shape.exponent;
  const Field& field = field_of(shape);
  const TrackingPlan plan = make_tracking_plan(options, field.geometry).value();
  return make_device_tables(plan, field).value().input;
}

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes = {{.getter = Getter::tensor, .kind = field_of_tensors, .sphere = ""},
                               {.getter = Getter::closest, .kind = field_of_peaks, .sphere = ""}};
  for (const double weight : {0.0, 0.5}) {
    for (const char* sphere :
         {"repulsion724", "repulsion724-full", "repulsion362", "mirror321", "mirror406", "mirror501"}) {
      for (const bool is_float16 : {false, true}) {
        for (const Getter getter : {Getter::prob, Getter::det, Getter::closest, Getter::ptt}) {
          for (const std::uint32_t probes : {1u, 3u}) {
            for (const double exponent : {1.0, 2.0}) {
              if (getter != Getter::ptt && (probes > 1 || exponent > 1)) continue;
              shapes.push_back({getter, field_of_amplitudes, sphere, 0, is_float16, weight, probes, exponent});
              if (std::string_view(sphere).ends_with("full")) continue;
              for (const int degree : {2, 4, 6, 8, 10, 12}) {
                shapes.push_back({getter, field_of_harmonics, sphere, degree, is_float16, weight, probes, exponent});
              }
            }
          }
        }
      }
      if (std::string_view(sphere).ends_with("full")) continue;
      for (const int degree : {2, 4, 6, 8}) {
        shapes.push_back({Getter::boot, field_of_bootstrap, sphere, degree, false, weight});
      }
    }
  }
  return shapes;
}

// Which kernel runs, written down by hand. First those of fixed shapes; then one for each getter on each kind of field.
std::string expected_kernel(const Shape& s) {
  const bool plain = !s.is_float16 && s.angular_weight == 0;
  if (s.kind == field_of_tensors) return "tensors";
  if (s.kind == field_of_peaks) return "peaks";
  if (s.kind == field_of_bootstrap) {
    return s.sphere == "mirror321" && s.degree == 4 && plain ? "boot_degree4" : "boot";
  }
  if (s.kind == field_of_amplitudes && plain && s.sphere == "repulsion724") {
    if (s.getter == Getter::prob) return "amplitudes_prob_362";
    if (s.getter == Getter::det) return "amplitudes_det_362";
  }
  if (s.kind == field_of_harmonics && plain && s.sphere == "mirror321" && s.degree == 8) {
    if (s.getter == Getter::prob) return "series_prob_degree8";
    if (s.getter == Getter::det) return "series_det_degree8";
    if (s.getter == Getter::closest) return "series_closest_degree8";
  }
  // Halves of spheres with fewer than 384 directions; an angular weight does not matter.
  const bool is_small = s.sphere == "repulsion724" || s.sphere == "repulsion362" || s.sphere == "mirror321";
  if (s.kind == field_of_amplitudes && s.getter == Getter::ptt && is_small && !s.is_float16 && s.probes == 1 &&
      s.exponent == 1) {
    return "amplitudes_ptt_probes";
  }
  return fmt::format("{}{}_{}", s.is_float16 ? "float16_" : "", s.kind == field_of_harmonics ? "series" : "amplitudes",
                     getter_name(s.getter));
}

std::string expected_seeds_kernel(const Shape& s) {
  if (s.kind == field_of_tensors) return "tensors";
  if (s.kind == field_of_peaks) return "peaks";
  if (s.kind == field_of_bootstrap) return "boot";
  return fmt::format("{}{}_closest", s.is_float16 ? "float16_" : "",
                     s.kind == field_of_harmonics ? "series" : "amplitudes");
}

TEST(TrackKernelChoice, of_every_shape_is_that_of_the_table) {
  std::set<std::string_view> halves, seeds;
  const std::vector<Shape> shapes = all_shapes();
  EXPECT_GT(shapes.size(), 400u);
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.text());
    const TrackingInput input = input_of(shape);
    const TrackKernelChoice choice = choose_track_kernels(input, {.shared_bytes = h200_bytes});
    EXPECT_EQ(track_kernel_name(choice.halves), expected_kernel(shape));
    EXPECT_EQ(track_kernel_name(choice.seeds), expected_seeds_kernel(shape));
    EXPECT_EQ(choice.too_large_for_shared, TrackKernelId::none);
    EXPECT_TRUE(choice.halves_launch.fits && choice.seeds_launch.fits);
    halves.insert(track_kernel_name(choice.halves));
    seeds.insert(track_kernel_name(choice.seeds));
    // The kernels for all shapes, and for bricks.
    const TrackKernelChoice any = choose_track_kernels(input, {.shared_bytes = h200_bytes, .any_shape = true});
    Shape unfixed = shape;
    unfixed.angular_weight = 0.5;  // no fixed shape has one, but for ptt
    unfixed.exponent = 2;
    EXPECT_EQ(track_kernel_name(any.halves), expected_kernel(unfixed));
    EXPECT_EQ(any.seeds, choice.seeds);
    const TrackKernelChoice bricks = choose_track_kernels(input, {.shared_bytes = h200_bytes, .in_bricks = true});
    EXPECT_EQ(bricks.halves, TrackKernelId::bricks);
    EXPECT_EQ(bricks.seeds, choice.seeds);
    halves.insert(track_kernel_name(bricks.halves));
    // A kernel reads fields of its kind alone, for its getter alone.
    const TrackKernelFacts facts = track_kernel_facts(choice.halves);
    EXPECT_EQ(facts.getter, shape.getter);
    EXPECT_EQ(facts.kind, shape.kind);
    EXPECT_EQ(facts.is_float16, shape.is_float16);
    const TrackKernelFacts at_seeds = track_kernel_facts(choice.seeds);
    EXPECT_EQ(at_seeds.kind, shape.kind);
    EXPECT_EQ(at_seeds.is_float16, shape.is_float16);
    EXPECT_TRUE(finds_directions(choice.seeds));
  }
  for (std::uint32_t i = 1; i < track_kernel_count; ++i) {
    const auto id = static_cast<TrackKernelId>(i);
    EXPECT_TRUE(halves.contains(track_kernel_name(id))) << track_kernel_name(id) << " is never chosen";
    EXPECT_EQ(seeds.contains(track_kernel_name(id)), finds_directions(id)) << track_kernel_name(id);
  }
}

template <class Fixed>
void expect_fixed_as_given(const Shape& shape) {
  SCOPED_TRACE(shape.text());
  const TrackingInput input = input_of(shape);
  ASSERT_TRUE(Fixed::matches(input));
  TrackingInput fixed = input;
  Fixed::fix_shape(fixed);
  const auto same = [](const auto& a, const auto& b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  EXPECT_TRUE(same(fixed.plan, input.plan));
  EXPECT_TRUE(same(fixed.field, input.field));
  EXPECT_TRUE(same(fixed.sphere, input.sphere));
  EXPECT_TRUE(same(fixed.harmonics, input.harmonics));
  EXPECT_TRUE(same(fixed.bootstrap, input.bootstrap));
}

TEST(TrackKernelChoice, what_a_kernel_fixes_is_what_the_input_has) {
  expect_fixed_as_given<BootstrapDegree4>({Getter::boot, field_of_bootstrap, "mirror321", 4});
  for (const Getter getter : {Getter::prob, Getter::det}) {
    expect_fixed_as_given<Amplitudes362>({getter, field_of_amplitudes, "repulsion724"});
    expect_fixed_as_given<SeriesDegree8<false>>({getter, field_of_harmonics, "mirror321", 8});
  }
  expect_fixed_as_given<SeriesDegree8<true>>({Getter::closest, field_of_harmonics, "mirror321", 8});
  for (const char* sphere : {"repulsion724", "repulsion362", "mirror321"}) {
    expect_fixed_as_given<ProbesInRegisters>({Getter::ptt, field_of_amplitudes, sphere});
  }
}

// By hand, for blocks of 227 KiB (Hopper), 99 KiB (Ada), 48 KiB (what every card has) and less.
TEST(TrackKernelChoice, threads_and_shared_memory_are_as_computed_by_hand) {
  struct Case {
    std::uint64_t shared_bytes;
    const char* kernel;
    std::uint32_t threads;
    std::uint32_t bytes;
  };
  // prob on 362 directions: a warp keeps 8 records of 368 numbers and 32 more, 11904 bytes; the tables of a block have
  // 32 (3 * 12 + 1) words, 4736 bytes; a block takes a kilobyte besides, of which there is one more than it may ask
  // for.
  for (const Case& c : {Case{232448, "amplitudes_prob_362", 576, 4736 + 18 * 11904},
                        Case{101376, "amplitudes_prob_362", 256, 4736 + 8 * 11904},
                        Case{49152, "amplitudes_prob_362", 96, 4736 + 3 * 11904},
                        Case{28544, "amplitudes_prob_362", 64, 4736 + 2 * 11904},
                        // Not even two warps: any shape, whose warp has 12 rows of the record, 12 of peaks at none.
                        Case{28543, "amplitudes_prob", 128, 0}}) {
    const TrackingInput input = input_of({Getter::prob, field_of_amplitudes, "repulsion724"});
    const TrackKernelChoice choice = choose_track_kernels(input, {.shared_bytes = c.shared_bytes});
    EXPECT_EQ(track_kernel_name(choice.halves), c.kernel) << c.shared_bytes;
    EXPECT_EQ(choice.halves_launch.threads, c.threads) << c.shared_bytes;
    if (c.bytes != 0) {
      EXPECT_EQ(choice.halves_launch.shared_bytes, c.bytes) << c.shared_bytes;
      EXPECT_EQ(choice.too_large_for_shared, TrackKernelId::none);
    } else {
      EXPECT_EQ(choice.too_large_for_shared, TrackKernelId::amplitudes_prob_362);
      EXPECT_TRUE(choice.halves_launch.slabs_in_shared);
      EXPECT_EQ(choice.halves_launch.slab_words, 12u * 32u);  // the record; amplitudes lie in it
    }
  }
  // Where nothing fits, slabs of the kernels for all shapes lie in global memory, with all threads.
  const TrackingInput input = input_of({Getter::det, field_of_harmonics, "mirror321", 8});
  const TrackKernelChoice none = choose_track_kernels(input, {.shared_bytes = 100});
  EXPECT_EQ(track_kernel_name(none.halves), "series_det");
  EXPECT_FALSE(none.halves_launch.slabs_in_shared);
  EXPECT_EQ(none.halves_launch.threads, 128u);
  EXPECT_EQ(none.halves_launch.shared_bytes, 0u);
}

TEST(TrackKernelChoice, fits_the_shared_memory_whatever_there_is) {
  for (const Shape& shape : all_shapes()) {
    const TrackingInput input = input_of(shape);
    for (std::uint64_t bytes = 0; bytes <= h200_bytes; bytes += 7 * 1024) {
      const TrackKernelChoice choice = choose_track_kernels(input, {.shared_bytes = bytes});
      for (const TrackLaunchShape& launch : {choice.seeds_launch, choice.halves_launch}) {
        ASSERT_TRUE(launch.fits) << shape.text() << " with " << bytes;
        ASSERT_LE(launch.shared_bytes, bytes) << shape.text();
        ASSERT_TRUE(launch.threads >= 32 && launch.threads % 32 == 0) << shape.text();
        ASSERT_GT(launch.slab_words, 0u) << shape.text();
      }
    }
  }
}

TEST(TrackKernelChoice, there_is_none_for_a_getter_that_cannot_read_the_field) {
  TrackingInput input = input_of({Getter::prob, field_of_amplitudes, "mirror321"});
  input.plan.getter = static_cast<std::uint32_t>(Getter::boot);
  EXPECT_EQ(choose_track_kernels(input, {.shared_bytes = h200_bytes}).halves, TrackKernelId::none);
  input.field.is_float16 = 1;
  EXPECT_EQ(choose_track_kernels(input, {.shared_bytes = h200_bytes}).halves, TrackKernelId::none);
  input.field.kind = field_of_harmonics;
  input.field.is_float16 = 0;
  EXPECT_EQ(choose_track_kernels(input, {.shared_bytes = h200_bytes}).halves, TrackKernelId::none);
}

}  // namespace
}  // namespace cingulum::track_kernel_choice_tests
