// A run of `track` in memory: prepared once, tracked into memory, into a file, or batch by batch.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "arrays.hpp"
#include "base/json_text.hpp"
#include "formats/tractogram_batch.hpp"
#include "job.hpp"
#include "native_error.hpp"
#include "parts.hpp"
#include "request_parts.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_run.hpp"

namespace cingulum::python {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// A type of elements as an array of NumPy.
nb::object array_of(GrowingBytes& bytes, const DataField& field, std::size_t rows) {
  const auto columns = static_cast<std::size_t>(field.columns);
  if (field.type == element_type_of<std::uint32_t>()) return bytes.release_as<std::uint32_t>({rows, columns});
  if (field.type == element_type_of<std::uint64_t>()) return bytes.release_as<std::uint64_t>({rows, columns});
  if (field.type == element_type_of<float>()) return bytes.release_as<float>({rows, columns});
  return bytes.release_as<std::uint8_t>({rows, columns});
}

// Takes the streamlines of a run in memory, in the types that a file would have.
class MemoryWriter final : public TractogramWriter {
 public:
  explicit MemoryWriter(TractogramLayout layout)
      : layout_(std::move(layout)), fields_(layout_.streamline_fields.size()) {
    const std::uint64_t zero = 0;
    offsets_.append(std::as_bytes(std::span(&zero, 1)));
  }

  Status append(const TractogramBatch& batch) override {
    return catch_out_of_memory([&]() -> Status {
      CGL_TRY(check_batch(layout_, batch));
      const std::span<std::byte> to = positions_.grow(batch.point_count() * 3 * layout_.position_type.bytes());
      CGL_TRY(encode_positions(batch, 0, layout_.position_type, to));
      std::vector<std::uint64_t> offsets(batch.offsets.begin() + 1, batch.offsets.end());
      for (std::uint64_t& offset : offsets) offset += points_;
      offsets_.append(std::as_bytes(std::span(offsets)));
      points_ += batch.point_count();
      streamlines_ += batch.streamline_count();
      for (std::size_t i = 0; i < fields_.size(); ++i) fields_[i].append(batch.streamline_data[i]);
      return {};
    });
  }
  Status add_group(TractogramGroup /*group*/) override { return {}; }
  Status commit() override { return {}; }

  // With the GIL.
  [[nodiscard]] nb::dict release() {
    nb::dict result;
    const auto points = static_cast<std::size_t>(points_);
    if (layout_.position_type == element_type_of<double>()) {
      result["positions"] = positions_.release_as<double>({points, 3});
    } else if (layout_.position_type == element_type_of<float>()) {
      result["positions"] = positions_.release_as<float>({points, 3});
    } else {
      result["positions"] = positions_.release_as<std::uint16_t>({points, 3});  // the bits of float16
    }
    result["offsets"] = offsets_.release_as<std::uint64_t>({streamlines_ + 1});
    nb::dict data;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const DataField& field = layout_.streamline_fields[i];
      data[field.name.c_str()] = array_of(fields_[i], field, streamlines_);
    }
    result["data"] = data;
    return result;
  }

 private:
  TractogramLayout layout_;
  GrowingBytes positions_;
  GrowingBytes offsets_;
  std::vector<GrowingBytes> fields_;
  std::uint64_t points_ = 0;
  std::size_t streamlines_ = 0;
};

nb::dict geometry_dict(const ImageGeometry& geometry) {
  nb::dict result;
  result["shape"] = nb::make_tuple(geometry.size[0], geometry.size[1], geometry.size[2]);
  nb::list rows;
  for (const double number : geometry.voxel_to_world.rows) rows.append(number);
  result["affine"] = rows;
  return result;
}

// one caller at a time
class TrackHandle {
 public:
  TrackHandle(const std::vector<GivenArgument>& given, const nb::dict& arrays) : given_(argument_texts(given)) {
    taken_ = take_arrays(arrays);
  }

  // Everything before the seeds. `to_file`: the request names an output, which is checked first.
  void prepare(bool to_file, const nb::object& progress) {
    run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
      begin_ = Clock::now();
      CGL_TRY(python_machine_.open(given_));
      machine().set_run(job.cancel, job.observer);
      TrackRequest request;
      CGL_TRY(fill_request(track_fields(), given_, taken_.options, request));
      request.arrays = std::move(taken_.arrays);
      CGL_TRY(settle_track(std::move(request), machine(), run_));
      if (to_file) {
        CGL_TRY_ASSIGN(output_, check_track_output(run_.request, machine()));
      }
      CGL_TRY(prepare_field(output_.path, machine(), run_));
      // The arrays are given back now: whatever still reads them has ended.
      GivenArrays& arrays = run_.request.arrays;
      for (const GivenInput& input : arrays.inputs) CGL_TRY(input.hash->hex(job.cancel));
      arrays.series = {};
      arrays.image.reset();
      return {};
    });
    taken_.kept.clear();
  }

  // Another request for the field that is there; what needs another field is refused.
  void change(const std::vector<GivenArgument>& given, const nb::dict& arrays) {
    TakenArrays taken = take_arrays(arrays);
    run_job(nb::none(), Stopping::by_token, [&](JobContext& job) -> Status {
      std::vector<ArgumentText> texts = argument_texts(given);
      std::erase_if(texts, [](const ArgumentText& one) { return one.name == "threads" || one.name == "force"; });
      std::vector<std::string> of_arrays = taken_.options;
      of_arrays.insert(of_arrays.end(), taken.options.begin(), taken.options.end());
      TrackRequest request;
      CGL_TRY(fill_request(track_fields(), texts, of_arrays, request));
      TrackRun settled;
      settled.wanted = run_.wanted;
      machine().set_run(job.cancel, job.observer);
      CGL_TRY(settle_track(std::move(request), machine(), settled));
      GivenArrays& kept = settled.request.arrays;
      kept = run_.request.arrays;
      if (taken.arrays.seeds) kept.seeds = std::move(taken.arrays.seeds);
      if (taken.arrays.directions) kept.directions = std::move(taken.arrays.directions);
      if (taken.arrays.seed_mask) kept.seed_mask = std::move(taken.arrays.seed_mask);
      kept.inputs.insert(kept.inputs.end(), taken.arrays.inputs.begin(), taken.arrays.inputs.end());
      return change_request(std::move(settled.request), run_);
    });
  }

  nb::dict track(const nb::object& progress) {
    std::unique_ptr<MemoryWriter> writer;
    TrackOutcome outcome;
    run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
      machine().set_run(job.cancel, job.observer);
      CGL_TRY(prepare_seeds(machine(), run_));
      run_.run_options.save_seeds = true;  // what a file has on request
      writer = std::make_unique<MemoryWriter>(track_layout(run_, TractogramFormat::trx));
      CGL_TRY_ASSIGN(outcome, track_into(run_, *writer, begin_, machine()));
      run_.devices = {};
      return {};
    });
    nb::dict result = writer->release();
    result["sidecar"] = json_text(outcome.sidecar);
    result["geometry"] = geometry_dict(outcome.geometry);
    return result;
  }

  std::string track_file(const nb::object& progress) {
    TrackOutcome outcome;
    run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
      machine().set_run(job.cancel, job.observer);
      CGL_TRY(prepare_seeds(machine(), run_));
      CGL_TRY_ASSIGN(outcome, track_to_file(run_, output_, begin_, machine()));
      run_.devices = {};
      return {};
    });
    return json_text(outcome.sidecar);
  }

  void begin_batches(const nb::object& progress) {
    run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
      machine().set_run(job.cancel, job.observer);
      CGL_TRY(prepare_seeds(machine(), run_));
      run_.run_options.save_seeds = true;
      stop_batches_ = CancelSource();
      run_.run_options.cancel = stop_batches_.token();
      CGL_TRY_ASSIGN(batches_, TrackingBatches::start(run_.devices.pointers(), *run_.seeds, run_.prepared.data.geometry,
                                                      run_.run_options));
      return {};
    });
  }

  // None after the last.
  nb::object next_batch(const nb::object& progress) {
    if (!batches_) return nb::none();
    MemoryWriter writer(track_layout(run_, TractogramFormat::trx));
    bool more = false;
    const auto next = [&](JobContext&) -> Status {
      CGL_TRY_ASSIGN(const TractogramBatch* const batch, batches_->next());
      more = batch != nullptr;
      if (more) CGL_TRY(writer.append(*batch));
      return {};
    };
    run_job(progress, Stopping::by_token, next, [&] { stop_batches_.cancel(); });
    if (!more) {
      end_batches();
      return nb::none();
    }
    nb::dict result = writer.release();
    result["geometry"] = geometry_dict(run_.prepared.data.geometry);
    return result;
  }

  // Cancels what is being tracked and waits for it.
  void end_batches() {
    stop_batches_.cancel();
    const nb::gil_scoped_release without_gil;
    batches_.reset();
  }

  [[nodiscard]] nb::dict geometry() const { return geometry_dict(run_.prepared.data.geometry); }
  [[nodiscard]] std::string device_names() const { return run_.wanted->names(); }

 private:
  [[nodiscard]] RunMachine& machine() { return *python_machine_.machine; }

  std::vector<ArgumentText> given_;
  TakenArrays taken_;
  PythonMachine python_machine_;
  TrackRun run_;
  TrackOutput output_;
  Clock::time_point begin_;
  CancelSource stop_batches_;
  std::unique_ptr<TrackingBatches> batches_;
};

}  // namespace

void bind_track(nb::module_& module) {
  nb::class_<TrackHandle>(module, "TrackHandle")
      .def(nb::init<const std::vector<GivenArgument>&, const nb::dict&>(), nb::arg("given"), nb::arg("arrays"))
      .def("prepare", &TrackHandle::prepare, nb::arg("to_file"), nb::arg("progress").none())
      .def("change", &TrackHandle::change, nb::arg("given"), nb::arg("arrays"))
      .def("track", &TrackHandle::track, nb::arg("progress").none())
      .def("track_file", &TrackHandle::track_file, nb::arg("progress").none())
      .def("begin_batches", &TrackHandle::begin_batches, nb::arg("progress").none())
      .def("next_batch", &TrackHandle::next_batch, nb::arg("progress").none())
      .def("end_batches", &TrackHandle::end_batches)
      .def("geometry", &TrackHandle::geometry)
      .def("device_names", &TrackHandle::device_names);
}

}  // namespace cingulum::python
