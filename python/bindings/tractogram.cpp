// Tractograms in memory to files and back.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "arrays.hpp"
#include "base/json_text.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram.hpp"
#include "formats/tractogram_batch.hpp"
#include "job.hpp"
#include "native_error.hpp"
#include "parts.hpp"

namespace cingulum::python {
namespace {

using Json = nlohmann::ordered_json;
using Positions = nb::ndarray<nb::ro, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FieldArray = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

ElementType element_type_of_array(nb::dlpack::dtype type) {
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  ElementType result;
  result.code = code == nb::dlpack::dtype_code::Float  ? ElementType::Code::floating
                : code == nb::dlpack::dtype_code::UInt ? ElementType::Code::unsigned_integer
                                                       : ElementType::Code::integer;
  result.bits = type.bits;
  return result;
}

struct GivenField {
  DataField field;
  std::span<const std::byte> bytes;
};

// Streamlines `first` to `last` of the arrays.
void take_streamlines(const Positions& positions, const Offsets& offsets, const std::vector<GivenField>& fields,
                      std::size_t first, std::size_t last, TractogramBatch& batch) {
  batch.clear();
  const std::uint64_t begin = offsets(first);
  const auto points = static_cast<std::size_t>(offsets(last) - begin);
  batch.offsets.resize(1);
  for (std::size_t i = first + 1; i <= last; ++i) batch.offsets.push_back(offsets(i) - begin);
  const ElementType type = element_type_of_array(positions.dtype());
  const auto* const bytes = static_cast<const std::byte*>(positions.data()) + begin * 3 * type.bytes();
  decode_positions({bytes, points * 3 * type.bytes()}, type, false, 0, batch);
  batch.streamline_data.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t row = fields[i].field.type.bytes() * static_cast<std::size_t>(fields[i].field.columns);
    const auto part = fields[i].bytes.subspan(first * row, (last - first) * row);
    batch.streamline_data[i].assign(part.begin(), part.end());
  }
}

void write_tractogram(const std::string& path, const Positions& positions, const Offsets& offsets, const nb::dict& data,
                      const nb::object& shape, const nb::object& affine, const std::string& sidecar, bool force,
                      bool deflate, const nb::object& progress) {
  TractogramLayout layout;
  layout.position_type = element_type_of_array(positions.dtype());
  layout.deflated = deflate;
  if (!affine.is_none()) {
    ImageGeometry geometry;
    geometry.voxel_to_world = affine_of(nb::cast<DoubleAffine>(affine));
    for (std::size_t axis = 0; axis < 3; ++axis) geometry.size[axis] = nb::cast<std::int64_t>(shape[axis]);
    layout.reference = geometry;
  }
  std::vector<FieldArray> kept;
  std::vector<GivenField> fields;
  for (const auto& [name, value] : data) {
    const FieldArray& array = kept.emplace_back(nb::cast<FieldArray>(value));
    GivenField given;
    given.field = {nb::cast<std::string>(name), element_type_of_array(array.dtype()),
                   static_cast<std::int64_t>(array.shape(1))};
    given.bytes = {static_cast<const std::byte*>(array.data()), array.nbytes()};
    layout.streamline_fields.push_back(given.field);
    fields.push_back(std::move(given));
  }
  run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
    CGL_TRY_ASSIGN(layout.format, format_of_name(path));
    WriteOptions options;
    options.force = force;
    options.cancel = job.cancel;
    if (layout.format != TractogramFormat::trx_folder) CGL_TRY(check_output(path, options));
    const auto output_sidecar = std::make_shared<OutputSidecar>(path, options);
    if (!sidecar.empty()) {
      CGL_TRY(check_sidecar_output(path, options));
      CGL_TRY_ASSIGN(const Json facts, parse_json(sidecar));
      output_sidecar->describe([facts] { return facts; });
    }
    CGL_TRY_ASSIGN(
        const std::unique_ptr<TractogramWriter> writer,
        TractogramWriter::create(
            path, layout, sidecar.empty() ? without_sidecar(path, options) : with_sidecar(options, output_sidecar)));
    ProgressOptions shown;
    shown.observer = job.observer;
    const std::size_t streamlines = offsets.size() - 1;
    Progress told("writing", streamlines, "streamlines", shown);
    TractogramBatch batch;
    for (std::size_t first = 0; first < streamlines;) {
      CGL_TRY(job.cancel.check());
      std::size_t last = first + 1;
      while (last < streamlines && offsets(last + 1) - offsets(first) <= default_batch_points) ++last;
      take_streamlines(positions, offsets, fields, first, last, batch);
      CGL_TRY(writer->append(batch));
      told.advance(last - first);
      first = last;
    }
    told.finish();
    return writer->commit();
  });
}

nb::dict read_file(const std::string& path, const nb::object& progress) {
  GrowingBytes positions;
  std::vector<std::uint64_t> all_offsets = {0};
  std::vector<GrowingBytes> fields;
  TractogramLayout layout;
  ElementType type;
  Json sidecar;
  run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
    CGL_TRY_ASSIGN(const std::unique_ptr<TractogramReader> reader, TractogramReader::open(path));
    layout = reader->layout();
    type = layout.position_type;
    fields = std::vector<GrowingBytes>(layout.streamline_fields.size());
    TractogramBatch batch;
    for (;;) {
      CGL_TRY(job.cancel.check());
      CGL_TRY_ASSIGN(const bool more, reader->next(batch, default_batch_points, false));
      if (!more) break;
      const std::span<std::byte> to = positions.grow(batch.point_count() * 3 * type.bytes());
      CGL_TRY(encode_positions(batch, 0, type, to));
      const std::uint64_t before = all_offsets.back();
      for (std::size_t i = 1; i < batch.offsets.size(); ++i) all_offsets.push_back(before + batch.offsets[i]);
      for (std::size_t i = 0; i < fields.size(); ++i) fields[i].append(batch.streamline_data[i]);
    }
    if (auto found = read_sidecar(path)) sidecar = std::move(*found);
    return {};
  });
  nb::dict result;
  const auto points = static_cast<std::size_t>(all_offsets.back());
  if (type == element_type_of<double>()) {
    result["positions"] = positions.release_as<double>({points, 3});
  } else if (type == element_type_of<float>()) {
    result["positions"] = positions.release_as<float>({points, 3});
  } else {
    result["positions"] = positions.release_as<std::uint16_t>({points, 3});
  }
  const std::size_t streamlines = all_offsets.size() - 1;
  GrowingBytes offsets;
  offsets.append(std::as_bytes(std::span(all_offsets)));
  result["offsets"] = offsets.release_as<std::uint64_t>({streamlines + 1});
  nb::dict data;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const DataField& field = layout.streamline_fields[i];
    const auto row = static_cast<std::size_t>(field.columns) * field.type.bytes();
    // Bytes; the package gives them their type.
    data[field.name.c_str()] = nb::make_tuple(field.type.name(), static_cast<std::size_t>(field.columns),
                                              fields[i].release_as<std::uint8_t>({streamlines, row}));
  }
  result["data"] = data;
  result["sidecar"] = sidecar.is_null() ? std::string() : json_text(sidecar);
  if (layout.reference) {
    nb::dict geometry;
    const auto& size = layout.reference->size;
    geometry["shape"] = nb::make_tuple(size[0], size[1], size[2]);
    nb::list rows;
    for (const double number : layout.reference->voxel_to_world.rows) rows.append(number);
    geometry["affine"] = rows;
    result["geometry"] = geometry;
  }
  return result;
}

}  // namespace

void bind_tractogram(nb::module_& module) {
  module.def("write_tractogram", write_tractogram, nb::arg("path"), nb::arg("positions"), nb::arg("offsets"),
             nb::arg("data"), nb::arg("shape").none(), nb::arg("affine").none(), nb::arg("sidecar"), nb::arg("force"),
             nb::arg("deflate"), nb::arg("progress").none());
  module.def("read_tractogram", read_file, nb::arg("path"), nb::arg("progress").none());
}

}  // namespace cingulum::python
