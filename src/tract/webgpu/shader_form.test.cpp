// Which WGSL runs a plan, on adapters that are made up: no adapter is needed.
#include "tract/webgpu/shader_form.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "device/shader_library.hpp"
#include "support/analytic_field.hpp"
#include "tract/field/float16_field.hpp"
#include "tract/paged/device_tables.hpp"
#include "tract/webgpu/webgpu_shader.hpp"

namespace cingulum::shader_form_tests {
namespace {

using numerics::Vec3d;

const Vec3d axis = test::unit({1, 2, 3});

Field amplitudes(const char* sphere) {
  return test::amplitude_field(test::grid(3, 3, 3), named_sphere(sphere).value(),
                               [](Vec3d, Vec3d v) { return std::abs(numerics::dot(v, axis)); });
}
Field series(const char* sphere, int degree) {
  return test::harmonic_field(test::grid(3, 3, 3), named_sphere(sphere).value(), degree,
                              [&](Vec3d, double* c) { test::add_lobe(degree, axis, 1, c); });
}
TrackingInput input_of(const TrackingOptions& options, const Field& field) {
  const TrackingPlan plan = make_tracking_plan(options, field.geometry).value();
  return make_device_tables(plan, field).value().input;
}

DeviceCapabilities adapter(bool subgroups, bool software = false, bool int64 = true) {
  DeviceCapabilities can;
  can.subgroups = subgroups;
  can.subgroup_min = subgroups ? 32 : 0;
  can.subgroup_max = subgroups ? 32 : 0;
  can.software = software;
  can.shader_int64 = int64;
  return can;
}

constexpr std::uint64_t large_binding = std::uint64_t{1} << 27;

std::string text_of(const ShaderForm& form) {
  return fmt::format("{}{}{}{}", form.lanes == LaneForm::subgroup ? "subgroup" : "workgroup",
                     form.specialised ? " specialised" : "", form.probes ? " probes" : "", form.int64 ? " int64" : "");
}

TEST(ShaderForm, is_that_of_the_table) {
  const Field small = amplitudes("repulsion724"), whole = amplitudes("repulsion724-full"),
              of_series = series("mirror321", 8);
  Field half = small;
  ASSERT_TRUE(store_as_float16(half));
  const TrackingInput prob = input_of({.getter = Getter::prob}, small), ptt = input_of({.getter = Getter::ptt}, small);
  TrackingOptions several{.getter = Getter::ptt, .ptt_probe_radius_mm = 0.5, .ptt_probe_count = 3};
  struct Case {
    const char* what;
    TrackingInput input;
    WebgpuTrackerOptions options;
    DeviceCapabilities can;
    ShaderSituation situation;
    const char* form;
  };
  const ShaderSituation few{.largest_binding_bytes = large_binding, .seeds = 9999};
  const ShaderSituation many{.largest_binding_bytes = large_binding, .seeds = 10'000};
  const auto with = [](ShaderSituation situation, auto&& change) {
    change(situation);
    return situation;
  };
  const Case cases[] = {
      {"prob, few seeds", prob, {}, adapter(true), few, "subgroup"},
      {"prob, many seeds", prob, {}, adapter(true), many, "subgroup specialised"},
      {"prob, no subgroups", prob, {}, adapter(false), many, "workgroup specialised"},
      {"ptt", ptt, {}, adapter(true), few, "subgroup probes int64"},
      {"ptt, many seeds", ptt, {}, adapter(true), many, "subgroup specialised probes int64"},
      {"ptt, no 64-bit integers", ptt, {}, adapter(true, false, false), few, "subgroup probes"},
      {"ptt, no subgroups", ptt, {}, adapter(false), many, "workgroup"},
      {"ptt, no subgroups, probes asked for", ptt, {.probes = true}, adapter(false), few, "workgroup probes int64"},
      {"ptt, probes refused", ptt, {.probes = false}, adapter(true), many, "subgroup"},
      {"ptt, int64 refused", ptt, {.int64 = false}, adapter(true), few, "subgroup probes"},
      {"ptt of many points per probe, software",
       input_of({.getter = Getter::ptt, .ptt_probe_quality = 40}, small),
       {.probes = true},
       adapter(false, true),
       few,
       "workgroup"},
      {"ptt of 100 tries, software",
       input_of({.getter = Getter::ptt, .ptt_tries = 100}, small),
       {.probes = true},
       adapter(false, true),
       few,
       "workgroup probes int64"},
      {"ptt in half precision", input_of({.getter = Getter::ptt}, half), {}, adapter(true), few, "subgroup"},
      {"ptt on a whole sphere", input_of({.getter = Getter::ptt}, whole), {}, adapter(true), few, "subgroup"},
      {"ptt from a series", input_of({.getter = Getter::ptt}, of_series), {}, adapter(true), many, "subgroup"},
      {"ptt with several probes", input_of(several, small), {}, adapter(true), few, "subgroup"},
      {"ptt with an exponent",
       input_of({.getter = Getter::ptt, .ptt_exponent = 2}, small),
       {},
       adapter(true),
       few,
       "subgroup"},
      {"ptt along given directions",
       ptt,
       {},
       adapter(true),
       with(few, [](auto& s) { s.starts_are_unit = false; }),
       "subgroup"},
      {"ptt in bricks", ptt, {}, adapter(true), with(few, [](auto& s) { s.in_bricks = true; }), "subgroup"},
      {"ptt in two bindings", ptt, {}, adapter(true), with(few, [](auto& s) { s.field_pieces = 2; }), "subgroup"},
      {"ptt, small bindings",
       ptt,
       {},
       adapter(true),
       with(few, [](auto& s) { s.largest_binding_bytes = 1000; }),
       "subgroup"},
      {"ptt, no memory for tables",
       ptt,
       {},
       adapter(true),
       with(many, [](auto& s) { s.probe_tables_there = false; }),
       "subgroup"},
      {"lanes as asked", prob, {.lanes = LaneForm::workgroup}, adapter(true), few, "workgroup"},
      {"one shape as asked", prob, {.specialised = true}, adapter(true), few, "subgroup specialised"},
      {"all shapes as asked", prob, {.specialised = false}, adapter(true), many, "subgroup"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(text_of(choose_shader_form(c.input, c.options, c.can, c.situation)), c.form) << c.what;
  }
  DeviceCapabilities narrow = adapter(true);
  narrow.subgroup_min = 16;
  EXPECT_FALSE(subgroups_are_32_wide(narrow));
  narrow = adapter(true);
  narrow.subgroup_max = 64;
  EXPECT_FALSE(subgroups_are_32_wide(narrow));
}

// Rounding sizes up, so that shapes share a module, must not ask for more workgroup memory than every device has.
TEST(ShaderForm, is_for_one_shape_where_rounded_sizes_take_too_much_memory) {
  TrackingInput input = input_of({.getter = Getter::det}, series("mirror321", 8));
  EXPECT_FALSE(choose_shader_form(input, {}, adapter(true), {.largest_binding_bytes = large_binding}).specialised);
  // 101 numbers round up to 128, 121 rows to 132: beyond 16384 bytes only so.
  input.sphere.rows = 121;
  input.field.channels = 100;
  ASSERT_GT(tracking_workgroup_bytes(input, false), guaranteed_workgroup_bytes);
  ASSERT_LT(tracking_workgroup_bytes(input, true), guaranteed_workgroup_bytes);
  EXPECT_TRUE(choose_shader_form(input, {}, adapter(true), {.largest_binding_bytes = large_binding}).specialised);
  EXPECT_TRUE(choose_shader_form(input, {.specialised = false}, adapter(true), {.largest_binding_bytes = large_binding})
                  .specialised);
}

std::string files_of(const TrackingInput& input, bool probes = false) {
  return fmt::format("{}", fmt::join(tracking_shader_files(input, probes), " "));
}

TEST(ShaderForm, the_files_of_every_getter_on_every_field_are_those_of_the_table) {
  const Field on_sphere = amplitudes("mirror321"), of_series = series("mirror321", 4);
  const Field peaks = test::peak_field(test::grid(3, 3, 3), 2, [](Vec3d, Vec3d* list) { list[0] = axis; });
  const Field tensors = test::tensor_field(test::grid(3, 3, 3), [](Vec3d) { return axis; });
  const std::string common = "sphere.wgsl find_peaks.wgsl nearest_peak.wgsl ";
  const std::string sf = common + "amplitudes_sf.wgsl amplitudes.wgsl choose_own.wgsl initial_directions.wgsl ";
  const std::string sh = common +
                         "record.wgsl series_on_sphere.wgsl amplitudes_sh.wgsl amplitudes.wgsl choose_own.wgsl "
                         "initial_directions.wgsl ";
  const std::string plain = "plain_half.wgsl ";
  EXPECT_EQ(files_of(input_of({.getter = Getter::prob}, on_sphere)), plain + sf + "prob.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::prob}, of_series)), plain + sh + "prob.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::closest}, on_sphere)), plain + sf + "closest.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::closest}, of_series)), plain + sh + "closest.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::closest}, peaks)), plain + "closest_stored.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::tensor}, tensors)), plain + "tensor.wgsl");
  // Amplitudes are not refined whatever is asked.
  EXPECT_EQ(files_of(input_of({.getter = Getter::det}, on_sphere)), plain + sf + "det_vertex.wgsl det.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::det}, of_series)),
            plain + sh + "series.wgsl det_refined.wgsl det.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::det, .refine = false}, of_series)),
            plain + sh + "det_vertex.wgsl det.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::ptt}, on_sphere)), sf + "ptt_draws.wgsl ptt_sf.wgsl ptt.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::ptt}, on_sphere), true), sf + "ptt_draws.wgsl ptt_sf.wgsl");
  EXPECT_EQ(files_of(input_of({.getter = Getter::ptt}, of_series)),
            sh + "series.wgsl ptt_draws.wgsl ptt_sh.wgsl ptt.wgsl");
  TrackingInput boot = input_of({.getter = Getter::prob}, of_series);
  boot.plan.getter = static_cast<std::uint32_t>(Getter::boot);
  boot.field.kind = field_of_bootstrap;
  EXPECT_EQ(files_of(boot), plain + common + "record.wgsl series_on_sphere.wgsl boot.wgsl");
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Six harmonics of degree 4 are even along every axis, and three belong to each pair of axes: a text for one shape says
// each of the 15 once for every group of rows, in its own class, and has no loop left that could be unrolled.
TEST(ShaderForm, a_text_for_one_shape_unrolls_every_coefficient_in_its_class) {
  const Field field = series("mirror321", 4);
  const TrackingPlan plan = make_tracking_plan({.getter = Getter::prob}, field.geometry).value();
  const DeviceTables tables = make_device_tables(plan, field).value();
  const FieldPieces pieces{100, 1};
  const auto text_for = [&](bool specialised) {
    return make_tracking_shader(tables.input, plan_numbers(tables, pieces, {}), pieces,
                                {.lanes = LaneForm::workgroup, .specialised = specialised})
        .text;
  };
  const std::string text = text_for(true), general = text_for(false);
  EXPECT_EQ(times(general, "j == mirror_begin(of_class)"), 1U);
  EXPECT_EQ(times(text, "j == mirror_begin(of_class)"), 0U);
  constexpr std::uint32_t begin[5] = {0, 6, 9, 12, 15};
  const std::uint32_t groups = tables.input.sphere.rows / 4;
  ASSERT_GT(groups, 1U);
  for (std::uint32_t of_class = 0; of_class < 4; ++of_class) {
    for (std::uint32_t j = 0; j < 16; ++j) {
      const bool member = j >= begin[of_class] && j < begin[of_class + 1];
      EXPECT_EQ(times(text, fmt::format(" {}u == mirror_begin({}u)", j, of_class)), member ? groups : 0U)
          << j << " " << of_class;
    }
  }
  EXPECT_EQ(times(text, "sampled_coefficient(of_class"), 0U);
  EXPECT_GT(times(general, "for (var row = 0u; row < sphere_rows(); row++)"), 3U);
  // Peaks are sought at seeds alone, and there the loops stay.
  EXPECT_EQ(times(text, "for (var row = 0u; row < sphere_rows(); row++) {  // unrolled"),
            times(std::string(embedded_shader("find_peaks.wgsl")),
                  "for (var row = 0u; row < sphere_rows(); row++) {  // unrolled"));
}

// What a launch does not say: no directions are given, and no brick bounds the field.
TEST(ShaderForm, the_numbers_of_a_launch_are_nothing_where_nothing_is_said) {
  const Field field = amplitudes("mirror321");
  const TrackingPlan plan = make_tracking_plan({.getter = Getter::prob}, field.geometry).value();
  const DeviceTables tables = make_device_tables(plan, field).value();
  std::map<std::string, KernelArgument> numbers;
  for (const PlanNumber& number : plan_numbers(tables, {100, 1}, {})) {
    EXPECT_TRUE(numbers.emplace(number.name, number.value).second) << number.name;
  }
  for (const char* name : {"seed_count", "first_seed", "budget", "call_shares", "page_capacity", "at_points",
                           "at_seeds", "at_values", "given_directions"}) {
    EXPECT_EQ(std::get<std::uint32_t>(numbers.at(name)), 0u) << name;
  }
  EXPECT_EQ(std::get<float>(numbers.at("brick_low")), -1e30f);
  EXPECT_EQ(std::get<float>(numbers.at("brick_high")), 1e30f);
  EXPECT_EQ(std::get<std::uint32_t>(numbers.at("size_x")), 3u);
}

}  // namespace
}  // namespace cingulum::shader_form_tests
