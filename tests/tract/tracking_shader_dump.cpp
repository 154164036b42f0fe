// Writes the WGSL of every getter on every kind of field to the folder that is given, a file each, for the test that
// gives them to a browser's compiler.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "support/analytic_field.hpp"
#include "tract/webgpu/probe_words.hpp"
#include "tract/webgpu/webgpu_shader.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

Status write_shader(const std::filesystem::path& folder, const std::string& name, const TrackingOptions& options,
                    const Field& field) {
  CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, field.geometry));
  CGL_TRY_ASSIGN(const DeviceTables tables, make_device_tables(plan, field));
  for (const bool specialised : {false, true}) {
    // Five bindings is what the specification's defaults leave for the field.
    const FieldPieces pieces{100, specialised ? 5u : 1u};
    const KernelSource source = make_tracking_shader(tables.input, plan_numbers(tables, pieces, {}), pieces,
                                                     {LaneForm::workgroup, specialised});
    std::ofstream file(folder / fmt::format("{}{}.wgsl", name, specialised ? "-specialised" : ""));
    file << source.text;
    if (!file.flush()) return fail(ErrorKind::io, "writing the text of {}", name);
  }
  if (!probes_fit(tables.input)) return {};
  const FieldPieces one{100, 1};
  std::ofstream file(folder / fmt::format("{}-probes.wgsl", name));
  file << make_tracking_shader(tables.input, plan_numbers(tables, one, {}), one,
                               {.lanes = LaneForm::workgroup, .probes = true})
              .text;
  if (!file.flush()) return fail(ErrorKind::io, "writing the text of {} by probes", name);
  return {};
}

Status write_all(const std::filesystem::path& folder) {
  const ImageGeometry geometry = test::grid(3, 3, 3);
  const Vec3d axis = test::unit({1, 2, 3});
  CGL_TRY_ASSIGN(const Sphere sphere, named_sphere("mirror321"));
  const Field amplitudes =
      test::amplitude_field(geometry, sphere, [&](Vec3d, Vec3d v) { return numerics::dot(v, axis); });
  const Field series = test::harmonic_field(geometry, sphere, 4, [&](Vec3d, double* c) { std::fill_n(c, 15, 0.1); });
  const Field peaks = test::peak_field(geometry, 2, [&](Vec3d, Vec3d* list) { list[0] = axis; });
  const Field tensors = test::tensor_field(geometry, [&](Vec3d) { return axis; });
  std::vector<Vec3d> directions;
  std::vector<std::uint8_t> is_b0;
  for (int i = 0; i < 31; ++i) {
    directions.push_back(test::unit({1.0 + i, 7.0 - i * i % 11, 3.0 - i % 5}));
    is_b0.push_back(i == 0 ? 1 : 0);
  }
  const test::AllVoxels signals(
      geometry, directions.size(), [](Vec3d, float* s) { std::fill_n(s, 31, 100.0f); }, test::everywhere());
  CGL_TRY_ASSIGN(const auto pool, ThreadPool::create(1));
  CGL_TRY_ASSIGN(const Field boot, make_bootstrap_field(geometry, signals.stop, signals.records(), directions, is_b0,
                                                        {.degree = 2}, sphere, *pool));
  for (const auto& [name, field] : {std::pair{"sf", &amplitudes}, std::pair{"sh", &series}}) {
    for (const Getter getter : {Getter::prob, Getter::det, Getter::closest, Getter::ptt}) {
      CGL_TRY(write_shader(folder, fmt::format("{}-{}", getter_name(getter), name), {.getter = getter}, *field));
    }
  }
  CGL_TRY(write_shader(folder, "det-sh-vertex", {.getter = Getter::det, .refine = false}, series));
  CGL_TRY(write_shader(folder, "closest-peaks", {.getter = Getter::closest}, peaks));
  CGL_TRY(write_shader(folder, "tensor", {.getter = Getter::tensor}, tensors));
  return write_shader(folder, "boot", {.getter = Getter::boot}, boot);
}

}  // namespace
}  // namespace cingulum

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: tracking_shader_dump FOLDER\n";
    return 2;
  }
  const cingulum::Status written = cingulum::write_all(arguments[1]);
  if (!written) std::cerr << written.error().message() << "\n";
  return written ? 0 : 1;
}
