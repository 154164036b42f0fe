#include "tract/webgpu/webgpu_shader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>

#include "numerics/lanes_portable.hpp"
#include "numerics/mirror_sum.hpp"
#include "tract/webgpu/probe_words.hpp"
#include "tract/webgpu/shader_constants.hpp"
#include "tract/webgpu/streamline_words.hpp"

namespace cingulum {
namespace {

constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

// A number of the field's shape that the text reads as NAME().
struct ShapeNumber {
  std::string name;
  std::uint32_t value;
  bool is_flag;
};

std::vector<ShapeNumber> shape_numbers(const TrackingInput& input, const FieldPieces& pieces) {
  return {{"channels", input.field.channels, false},
          {"stride", input.field.stride, false},
          {"records_per_piece", pieces.records_per_piece, false},
          {"record_rows", numerics::row_count(input.field.channels + 1), false},
          {"sphere_rows", input.sphere.rows, false},
          {"sphere_groups", input.sphere.rows / 4, false},
          {"sphere_is_hemisphere", input.sphere.is_hemisphere, true},
          {"neighbour_columns", input.sphere.degree, false},
          {"coefficients", input.harmonics.coefficients, false},
          {"coefficient_batches", (input.harmonics.coefficients + 15) / 16, false},
          {"harmonic_degree", input.harmonics.degree, false},
          {"is_mirror", input.harmonics.mirror, true},
          {"gradients", input.bootstrap.gradients, false},
          {"boot_rows", input.bootstrap.rows, false},
          {"is_csa", input.bootstrap.csa, true}};
}

void write_bindings(std::string& text, const std::vector<PlanNumber>& numbers, const FieldPieces& pieces,
                    bool is_float16, bool probes) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "struct Plan {{\n");
  for (const PlanNumber& number : numbers) {
    fmt::format_to(out, "  {}: {},\n", number.name, std::holds_alternative<float>(number.value) ? "f32" : "u32");
  }
  fmt::format_to(out, "}}\n@group(0) @binding(0) var<storage, read> tables: array<u32>;\n");
  for (std::uint32_t piece = 0; piece < pieces.count; ++piece) {
    fmt::format_to(out, "@group(0) @binding({}) var<storage, read> field_{}: array<{}>;\n", piece + 1, piece,
                   is_float16 ? "u32" : "f32");
  }
  std::uint32_t next = pieces.count + 1;
  if (probes) {
    fmt::format_to(out,
                   "@group(0) @binding({}) var<storage, read> field_rows: array<vec4<f32>>;\n"
                   "@group(0) @binding({}) var<storage, read> probe_tables: array<vec4<u32>>;\n",
                   next, next + 1);
    next += 2;
  }
  fmt::format_to(out,
                 "@group(0) @binding({}) var<storage, read_write> work: Work;\n"
                 "@group(0) @binding({}) var<storage, read_write> pages: array<u32>;\n"
                 "@group(0) @binding({}) var<uniform> plan: Plan;\n",
                 next, next + 1, next + 2);
}

// Where a record begins: with one binding an address in it, with several the binding as well.
// Numbers in half precision lie two to a word.
void write_field_access(std::string& text, const FieldPieces& pieces, bool is_float16) {
  const auto number = [is_float16](std::uint32_t piece) {
    return is_float16
               ? fmt::format("float16_in_word(field_{}[(address.at + channel) >> 1u], address.at + channel)", piece)
               : fmt::format("field_{}[address.at + channel]", piece);
  };
  if (is_float16) {
    text += R"(
fn float16_in_word(word: u32, at: u32) -> f32 {
  return finite_float16_to_float((word >> (16u * (at & 1u))) & 0xffffu);
}
)";
  }
  auto out = std::back_inserter(text);
  if (pieces.count == 1) {
    text += R"(
struct RecordAddress {
  at: u32,
}
fn record_address(record: u32) -> RecordAddress {
  return RecordAddress(record * stride());
}
fn field_number(address: RecordAddress, channel: u32) -> f32 {
)";
    fmt::format_to(out, "  return {};\n}}\n", number(0));
    return;
  }
  text += R"(
struct RecordAddress {
  at: u32,
  piece: u32,
}
fn record_address(record: u32) -> RecordAddress {
  let piece = record / records_per_piece();
  return RecordAddress((record - piece * records_per_piece()) * stride(), piece);
}
fn field_number(address: RecordAddress, channel: u32) -> f32 {
  switch address.piece {
)";
  for (std::uint32_t piece = 0; piece + 1 < pieces.count; ++piece) {
    fmt::format_to(out, "    case {}u: {{ return {}; }}\n", piece, number(piece));
  }
  fmt::format_to(out, "    default: {{ return {}; }}\n  }}\n}}\n", number(pieces.count - 1));
}

void write_shape(std::string& text, const std::vector<ShapeNumber>& shape, bool specialised) {
  auto out = std::back_inserter(text);
  for (const ShapeNumber& number : shape) {
    const std::string value =
        specialised ? fmt::format("{}u", number.value) : fmt::format("plan.shape_{}", number.name);
    fmt::format_to(out, "fn {}() -> {} {{ return {}{}; }}\n", number.name, number.is_flag ? "bool" : "u32", value,
                   number.is_flag ? " != 0u" : "");
  }
}

// The first coefficient of each mirror class, and one past the last of all.
std::array<std::uint32_t, 5> mirror_bounds(const TrackingInput& input) {
  std::array<std::uint32_t, 5> bounds{};
  const numerics::MirrorClassSizes sizes = numerics::mirror_class_sizes(static_cast<int>(input.harmonics.degree));
  for (std::size_t i = 0; i < 4; ++i) bounds[i + 1] = bounds[i] + sizes.of_class[i];
  return bounds;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string with_name_replaced(std::string_view text, std::string_view name, std::string_view by) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = text.find(name, at);
    if (found == std::string_view::npos) return result.append(text.substr(at));
    const std::size_t end = found + name.size();
    const bool whole =
        (found == 0 || !is_name_character(text[found - 1])) && (end == text.size() || !is_name_character(text[end]));
    result.append(text.substr(at, found - at)).append(whole ? by : name);
    at = end;
  }
  return result;
}

// Loops are unrolled here, because a driver that leaves one keeps the arrays that it indexes in slow memory. In the
// text such a loop's head is `for (var NAME = FIRST; NAME < END; NAME++) {  // unrolled` and its end a brace as far
// left; it has no `continue` and no `break`. Bounds are numbers or names in `known`; others leave the loop alone.
class Unroller {
 public:
  void know(std::string name, std::uint32_t value) { known_.emplace_back(std::move(name), value); }

  [[nodiscard]] std::string apply(std::string_view text) const {
    constexpr std::string_view mark = "{  // unrolled\n";
    std::string result;
    for (;;) {
      const std::size_t found = text.find(mark);
      if (found == std::string_view::npos) return result.append(text);
      const std::size_t line = text.rfind('\n', found) + 1;
      const std::string_view head = text.substr(line, found - line);
      const std::string indent(head.substr(0, head.find("for")));
      const std::string end = "\n" + indent + "}\n";
      const std::size_t body_at = found + mark.size();
      const std::size_t body_end = text.find(end, body_at - 1) + 1;
      const std::string_view body = text.substr(body_at, body_end - body_at);
      result.append(text.substr(0, line));
      const std::string_view name = between(head, "(var ", " = ");
      const auto first = value_of(between(head, " = ", "; "));
      const auto last = value_of(between(head, " < ", "; "));
      if (first && last) {
        for (std::uint32_t i = *first; i < *last; ++i) {
          result.append(indent).append("{\n");
          result.append(apply(with_name_replaced(body, name, fmt::format("{}u", i))));
          result.append(indent).append("}\n");
        }
      } else {
        result.append(head).append("{\n").append(apply(body)).append(indent).append("}\n");
      }
      text.remove_prefix(body_end + indent.size() + 2);
    }
  }

 private:
  static std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
    const std::size_t begin = text.find(before) + before.size();
    return text.substr(begin, text.find(after, begin) - begin);
  }

  [[nodiscard]] std::optional<std::uint32_t> value_of(std::string_view bound) const {
    std::uint32_t number = 0;
    if (std::from_chars(bound.data(), bound.data() + bound.size(), number).ptr == bound.data() + bound.size() - 1) {
      return number;
    }
    for (const auto& [name, value] : known_) {
      if (name == bound) return value;
    }
    return std::nullopt;
  }

  std::vector<std::pair<std::string, std::uint32_t>> known_;
};

// Words of workgroup memory, by the names of the arrays' sizes.
struct WorkgroupSizes {
  std::uint32_t record;
  std::uint32_t values;
  std::uint32_t boot_rows;

  // Rounded up, so that fields of similar shape share a module.
  WorkgroupSizes(const TrackingInput& input, bool exact) {
    const bool has_record = input.field.kind == field_of_harmonics || input.field.kind == field_of_bootstrap;
    record = has_record ? input.field.channels + 1 : 0;
    values = numerics::lane_count * input.sphere.rows;
    boot_rows = input.bootstrap.rows;
    if (exact) return;
    record = has_record ? round_up(record, 128) : 0;
    values = round_up(values, 384);
    boot_rows = round_up(boot_rows, 5);
  }

  [[nodiscard]] std::uint32_t bytes(const TrackingInput& input) const {
    constexpr std::uint32_t lanes = 64 + 1 + 32;  // lanes_workgroup.wgsl, shared_words
    const std::uint32_t boot = input.field.kind == field_of_bootstrap ? 96 : 0;
    return 4 * (lanes + record + values + boot);
  }
};

}  // namespace

std::vector<std::string_view> tracking_shader_files(const TrackingInput& input, bool probes) {
  std::vector<std::string_view> files;
  const auto add = [&](std::initializer_list<std::string_view> names) { files.insert(files.end(), names); };
  const bool series = input.field.kind == field_of_harmonics;
  const auto getter = static_cast<Getter>(input.plan.getter);
  if (getter != Getter::ptt) add({"plain_half.wgsl"});
  if (input.field.kind == field_of_tensors) {
    add({"tensor.wgsl"});
    return files;
  }
  if (input.field.kind == field_of_peaks) {
    add({"closest_stored.wgsl"});
    return files;
  }
  add({"sphere.wgsl", "find_peaks.wgsl", "nearest_peak.wgsl"});
  if (getter == Getter::boot) {
    add({"record.wgsl", "series_on_sphere.wgsl", "boot.wgsl"});
    return files;
  }
  if (series) {
    add({"record.wgsl", "series_on_sphere.wgsl", "amplitudes_sh.wgsl"});
  } else {
    add({"amplitudes_sf.wgsl"});
  }
  add({"amplitudes.wgsl", "choose_own.wgsl", "initial_directions.wgsl"});
  const bool refines = getter == Getter::det && series && input.plan.refine != 0u;
  switch (getter) {
    case Getter::prob: add({"prob.wgsl"}); break;
    case Getter::closest: add({"closest.wgsl"}); break;
    case Getter::det:
      if (refines) add({"series.wgsl"});
      add({refines ? "det_refined.wgsl" : "det_vertex.wgsl", "det.wgsl"});
      break;
    default:
      if (series) add({"series.wgsl"});
      add({"ptt_draws.wgsl", series ? "ptt_sh.wgsl" : "ptt_sf.wgsl"});
      if (!probes) add({"ptt.wgsl"});
      break;
  }
  return files;
}

std::vector<PlanNumber> plan_numbers(const DeviceTables& tables, const FieldPieces& pieces,
                                     const LaunchNumbers& launch) {
  const TrackingInput& input = tables.input;
  const TrackingPlan& plan = input.plan;
  const TableOffsets& at = tables.offsets;
  const ProbeOffsets probes = probe_offsets(input);
  std::vector<PlanNumber> numbers = {
      {"negative_zero", -0.0f},
      {"seed_count", launch.seed_count},
      {"first_seed", launch.first_seed},
      {"budget", launch.budget},
      {"call_shares", launch.call_shares},
      {"page_capacity", launch.page_capacity},
      {"at_points", entry_words * launch.page_capacity},
      {"at_seeds", launch.at_seeds},
      {"at_values", launch.at_values},
      {"given_directions", launch.given_directions},
      {"brick_low", launch.brick_low},
      {"brick_high", launch.brick_high},
      {"size_x", plan.size.x},
      {"size_y", plan.size.y},
      {"size_z", plan.size.z},
      {"step_in_voxels_x", plan.step_in_voxels[0]},
      {"step_in_voxels_y", plan.step_in_voxels[1]},
      {"step_in_voxels_z", plan.step_in_voxels[2]},
      {"voxels_per_mm_x", plan.voxels_per_mm[0]},
      {"voxels_per_mm_y", plan.voxels_per_mm[1]},
      {"voxels_per_mm_z", plan.voxels_per_mm[2]},
      {"cos_max_angle", plan.cos_max_angle},
      {"stop_threshold", plan.stop_threshold},
      {"stop_nearest", plan.stop_nearest},
      {"max_steps", plan.max_steps},
      {"relative_threshold", plan.relative_threshold},
      {"absolute_threshold", plan.absolute_threshold},
      {"relative_peak_threshold", plan.relative_peak_threshold},
      {"cos_min_separation", plan.cos_min_separation},
      {"max_directions", plan.max_directions},
      {"draws_start", plan.draws_start},
      {"angular_weight", plan.angular_weight},
      {"one_sided", plan.one_sided},
      {"turns_back", plan.turns_back},
      {"rk4", plan.rk4},
      {"boot_attempts", plan.boot_attempts},
      {"boot_retry_angle", plan.boot_retry_angle},
      {"boot_seed", plan.boot_seed},
      {"boot_min_signal", plan.boot_min_signal},
      {"inverse_scale_sum", input.bootstrap.inverse_scale_sum},
      {"ptt_probe_step_mm", plan.ptt_probe_step_mm},
      {"ptt_probe_radius_mm", plan.ptt_probe_radius_mm},
      {"ptt_probe_quality", plan.ptt_probe_quality},
      {"ptt_inverse_quality", 1.0f / static_cast<float>(plan.ptt_probe_quality)},
      {"ptt_probe_count", plan.ptt_probe_count},
      {"ptt_exponent_is_one", plan.ptt_exponent_is_one},
      {"ptt_exponent", plan.ptt_exponent},
      {"ptt_max_curvature", plan.ptt_max_curvature},
      {"ptt_weak_links", plan.ptt_weak_links},
      {"ptt_tries", plan.ptt_tries},
      {"ptt_bound_interval", plan.ptt_bound_interval},
      {"ptt_arc_mm", plan.ptt_arc_mm},
      {"substeps", static_cast<Getter>(plan.getter) == Getter::ptt ? plan.ptt_substeps : 1u},
      {"key_low", plan.key.low},
      {"key_high", plan.key.high},
      {"nearest_cells", input.nearest.cells},
      {"nearest_capacity", input.nearest.capacity},
      {"at_record_of_voxel", static_cast<std::uint32_t>(tables.words.size())},
      {"at_occupied", at.occupied},
      {"at_x", at.sphere_x},
      {"at_y", at.sphere_y},
      {"at_z", at.sphere_z},
      {"at_neighbours", at.neighbours},
      {"at_matrix", at.harmonics},
      {"at_record_index", at.record_index},
      {"at_recurrence", at.recurrence},
      {"at_boot_basis", at.boot_basis},
      {"at_boot_fit", at.boot_fit},
      {"at_level", at.boot_level},
      {"at_residual_scale", at.residual_scale},
      {"at_disc_k1", at.disc_k1},
      {"at_disc_k2", at.disc_k2},
      {"at_nearest", at.nearest},
      {"at_probe_arcs", probes.arcs},
      {"at_packed_nearest", probes.nearest},
      {"at_probe_cells", probes.cells},
  };
  for (const ShapeNumber& number : shape_numbers(input, pieces)) {
    numbers.push_back({fmt::format("shape_{}", number.name), number.value});
  }
  return numbers;
}

std::uint32_t tracking_workgroup_bytes(const TrackingInput& input, bool specialised) {
  return WorkgroupSizes(input, specialised).bytes(input);
}

std::uint32_t tracking_value_words(const TrackingInput& input) {
  return WorkgroupSizes(input, false).values;
}

KernelSource make_tracking_shader(const TrackingInput& input, const std::vector<PlanNumber>& numbers,
                                  const FieldPieces& pieces, const ShaderForm& form) {
  const WorkgroupSizes sizes(input, form.specialised);
  KernelSource source;
  source.name = "track";
  source.language = KernelLanguage::wgsl;
  // ptt.wgsl is a twentieth faster with the checks, which keep the driver from unrolling.
  source.trusted = form.probes || static_cast<Getter>(input.plan.getter) != Getter::ptt;
  source.parameters.push_back({"tables", ParameterKind::buffer_in});
  for (std::uint32_t piece = 0; piece < pieces.count; ++piece) {
    source.parameters.push_back({fmt::format("field_{}", piece), ParameterKind::buffer_in});
  }
  if (form.probes) {
    source.parameters.push_back({"field_rows", ParameterKind::buffer_in});
    source.parameters.push_back({"probe_tables", ParameterKind::buffer_in});
  }
  source.parameters.push_back({"work", ParameterKind::buffer_inout});
  source.parameters.push_back({"pages", ParameterKind::buffer_inout});
  for (const PlanNumber& number : numbers) {
    source.parameters.push_back(
        {number.name, std::holds_alternative<float>(number.value) ? ParameterKind::f32 : ParameterKind::u32});
  }

  std::string& text = source.text;
  write_bindings(text, numbers, pieces, input.field.is_float16 != 0u, form.probes);
  fmt::format_to(std::back_inserter(text),
                 "const record_size = {}u;\nconst values_size = {}u;\nconst sphere_rows_size = {}u;\n"
                 "const boot_rows_size = {}u;\n",
                 std::max(1u, sizes.record), std::max(1u, sizes.values),
                 std::max(1u, sizes.values / numerics::lane_count), std::max(1u, sizes.boot_rows));
  text += tracking_constants_wgsl();
  write_shape(text, shape_numbers(input, pieces), form.specialised);
  write_field_access(text, pieces, input.field.is_float16 != 0u);
  text += numerics_wgsl(form.lanes, "plan.negative_zero", form.int64);
  Unroller unroller;
  if (form.specialised) {
    for (const ShapeNumber& number : shape_numbers(input, pieces)) unroller.know(number.name + "()", number.value);
    const std::array<std::uint32_t, 5> bounds = mirror_bounds(input);
    for (std::uint32_t i = 0; i < 4; ++i) {
      unroller.know(fmt::format("mirror_begin({}u)", i), bounds[i]);
      unroller.know(fmt::format("mirror_end({}u)", i), bounds[i + 1]);
    }
  }
  std::vector<std::string_view> files = tracking_shader_files(input, form.probes);
  files.insert(files.begin(), {"sample.wgsl", "step.wgsl"});
  files.push_back("streamline.wgsl");
  if (form.probes) {
    files.insert(files.end(), {"values_stored.wgsl", "ptt_points.wgsl", "ptt_probes.wgsl"});
  } else {
    files.insert(files.end(), {"values_shared.wgsl", "track.wgsl"});
  }
  // Where peaks are sought at seeds alone, their code shall not take registers from the rest.
  const auto getter = static_cast<Getter>(input.plan.getter);
  const bool peaks_at_steps = getter == Getter::boot || getter == Getter::closest;
  for (const std::string_view file : files) {
    const std::string_view lines = embedded_shader(file);
    const bool unrolled = form.specialised && (file != "find_peaks.wgsl" || peaks_at_steps);
    text += unrolled ? unroller.apply(lines) : std::string(lines);
  }
  fmt::format_to(std::back_inserter(text),
                 "\n@compute @workgroup_size(32)\nfn track(@builtin(workgroup_id) workgroup: vec3<u32>, "
                 "@builtin({}) lane: u32) {{\n  lane_index = lane;\n{}"
                 "  track_seeds(workgroup.x);\n}}\n",
                 form.lanes == LaneForm::workgroup ? "local_invocation_index" : "subgroup_invocation_id",
                 form.probes ? "  values_at = plan.at_values + values_size * workgroup.x;\n" : "");
  return source;
}

}  // namespace cingulum
