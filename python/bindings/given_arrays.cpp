#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "formats/sidecar.hpp"
#include "native_error.hpp"
#include "request_parts.hpp"

namespace cingulum::python {
namespace {

template <class T>
T entry(const nb::dict& from, const char* name) {
  return nb::cast<T>(from[name]);
}

template <class Array>
void note_input(GivenArrays& arrays, const char* option, const Array& array) {
  arrays.inputs.push_back({option, std::make_shared<const BackgroundHash>(hash_hex(std::as_bytes(span_of(array))))});
}

// The numbers of an array that stays where it is, and is hashed while the run goes on.
VolumeArray take_volumes(GivenArrays& arrays, const std::string& option, const Volumes& array) {
  const VolumeArray numbers = volumes_of(array);
  arrays.inputs.push_back({option, std::make_shared<const BackgroundHash>(numbers)});
  return numbers;
}

template <class Array>
ImageGeometry geometry_of(const Array& array, const Affine& affine) {
  ImageGeometry geometry;
  for (std::size_t axis = 0; axis < 3; ++axis) geometry.size[axis] = static_cast<std::int64_t>(array.shape(axis));
  geometry.voxel_to_world = affine;
  return geometry;
}

SeriesHead head_of(const nb::dict& from, const ImageGeometry& geometry) {
  SeriesHead head;
  head.geometry = geometry;
  const auto b_values = entry<nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(from, "bvals");
  const auto vectors = rows_of(entry<DoubleRows>(from, "bvecs"));
  GradientTable& table = head.table;
  table.b_values.assign(b_values.data(), b_values.data() + b_values.size());
  for (const numerics::Vec3d& vector : vectors) table.vectors.push_back(normalise(vector));
  const auto frame = entry<std::string>(from, "bvec_frame");
  table.frame = frame == "fsl" ? GradientFrame::fsl : frame == "world" ? GradientFrame::world : GradientFrame::voxel;
  return head;
}

template <class T>
void copy_map(const nb::dict& from, const char* name, const char* option, TakenArrays& taken,
              std::optional<std::vector<T>>& to) {
  if (!from.contains(name)) return;
  const auto array = entry<nb::ndarray<const T, nb::f_contig, nb::device::cpu>>(from, name);
  to.emplace(array.data(), array.data() + array.size());
  taken.options.emplace_back(option);
  note_input(taken.arrays, option, array);
}

void copy_rows(const nb::dict& from, const char* name, const char* option, TakenArrays& taken,
               std::optional<std::vector<numerics::Vec3d>>& to) {
  if (!from.contains(name)) return;
  const auto array = entry<DoubleRows>(from, name);
  to = rows_of(array);
  taken.options.emplace_back(option);
  note_input(taken.arrays, option, array);
}

}  // namespace

TakenArrays take_arrays(const nb::dict& from) {
  TakenArrays taken;
  taken.kept = from;
  GivenArrays& arrays = taken.arrays;
  const Affine affine = from.contains("affine") ? affine_of(entry<DoubleAffine>(from, "affine")) : Affine();
  if (from.contains("series")) {
    const auto series = entry<Volumes>(from, "series");
    arrays.head = head_of(from, geometry_of(series, affine));
    taken.options.push_back(entry<std::string>(from, "series_option"));
    arrays.series = take_volumes(arrays, taken.options.back(), series);
  }
  for (const char* name : {"sf", "sh", "peaks", "tensor"}) {
    if (!from.contains(name)) continue;
    const auto values = entry<Volumes>(from, name);
    arrays.image = GivenImage{geometry_of(values, affine), take_volumes(arrays, name, values)};
    taken.options.emplace_back(name);
  }
  if (from.contains("image_facts")) {
    arrays.image_facts = value_or_throw(parse_json(entry<std::string>(from, "image_facts")));
  }
  copy_map(from, "mask", "mask", taken, arrays.mask);
  copy_map(from, "seed_mask", "seed-mask", taken, arrays.seed_mask);
  copy_map(from, "stop_map", "stop-map", taken, arrays.stop_map);
  copy_rows(from, "seeds", "seed-file", taken, arrays.seeds);
  copy_rows(from, "directions", "directions", taken, arrays.directions);
  if (from.contains("sphere")) {
    const auto vertices = entry<DoubleRows>(from, "sphere");
    arrays.sphere = value_or_throw(make_sphere("given", rows_of(vertices), nb::cast<bool>(from["full_sphere"])));
    taken.options.emplace_back("sphere");
    note_input(arrays, "sphere", vertices);
  }
  return taken;
}

std::vector<ArgumentText> argument_texts(const std::vector<GivenArgument>& given) {
  std::vector<ArgumentText> texts;
  for (const auto& [name, values, is_flag] : given) texts.push_back({name, values, is_flag});
  return texts;
}

Status PythonMachine::open(std::vector<ArgumentText>& given) {
  CGL_TRY_ASSIGN(settings, Settings::from_environment());
  CGL_TRY(settings.check());
  MachineOptions options{.progress = ProgressStyle::automatic};
  CGL_TRY_ASSIGN(options.threads, settings.threads());
  for (const ArgumentText& one : given) {
    if (one.name == "threads") {
      CGL_TRY_ASSIGN(const auto values, values_of_texts(threads_argument(), one.texts));
      options.threads = static_cast<int>(std::get<std::int64_t>(values.front()));
    }
    if (one.name == "force") options.force = true;
  }
  std::erase_if(given, [](const ArgumentText& one) { return one.name == "threads" || one.name == "force"; });
  machine = std::make_unique<RunMachine>(settings, options);
  return {};
}

}  // namespace cingulum::python
