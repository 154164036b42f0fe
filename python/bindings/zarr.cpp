// Arrays and groups of Zarr: opened, regions read into NumPy's memory and written from it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "arrays.hpp"
#include "base/json_text.hpp"
#include "base/settings.hpp"
#include "device_memory.hpp"
#include "formats/sidecar.hpp"
#include "job.hpp"
#include "native_error.hpp"
#include "parts.hpp"
#include "zarr/array.hpp"
#include "zarr/direct/device_region.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::python {
namespace {

using zarr::Json;
using zarr::Shape;
// Any numbers: NumPy's memory as bytes, with strides of its own.
using AnyArray = nb::ndarray<nb::device::cpu>;
using ConstArray = nb::ndarray<nb::ro, nb::device::cpu>;

template <class Array>
std::vector<std::int64_t> strides_in_bytes(const Array& array) {
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    strides.push_back(array.stride(i) * static_cast<std::int64_t>(array.itemsize()));
  }
  return strides;
}

// From the first element to behind the last; the package gives no negative strides.
template <class Array>
std::size_t covered_bytes(const Array& array) {
  std::size_t last = array.itemsize();
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    if (array.shape(i) == 0) return 0;
    last += (array.shape(i) - 1) * static_cast<std::size_t>(array.stride(i)) * array.itemsize();
  }
  return last;
}

class ZarrArray {
 public:
  ZarrArray(const std::string& store, const std::string& path) {
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      CGL_TRY_ASSIGN(auto opened, zarr::Store::open(store));
      CGL_TRY_ASSIGN(array_, zarr::Array::open(std::move(opened), path));
      return {};
    });
  }

  // Shape, type and the rest, as JSON.
  [[nodiscard]] std::string describe() const {
    const zarr::ArrayMetadata& metadata = array_.metadata();
    Json attributes = value_or_throw(parse_json(metadata.attributes));
    return json_text(Json{{"shape", metadata.shape},
                          {"type", metadata.type.name()},
                          {"chunks", metadata.chunk_shape},
                          {"leaf_chunks", metadata.leaf_shape()},
                          {"zarr_format", metadata.format},
                          {"fill_value", zarr::fill_value_json(metadata.fill, metadata.type)},
                          {"dimension_names", metadata.dimension_names},
                          {"coding", describe_coding(metadata)},
                          {"attributes", std::move(attributes)},
                          {"path", array_.path()}});
  }

  // Into `to`, whose shape is the region's. Chunks met, chunks that were not stored, bytes read.
  std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> read(const Shape& origin, const Shape& shape,
                                                               const AnyArray& to, int threads, bool complete,
                                                               const nb::object& progress) const {
    zarr::ReadReport report;
    const std::vector<std::int64_t> strides = strides_in_bytes(to);
    const std::span<std::byte> bytes = {static_cast<std::byte*>(to.data()), covered_bytes(to)};
    run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
      CGL_TRY_ASSIGN(const auto pool, ThreadPool::create(threads > 0 ? threads : default_thread_count()));
      zarr::ReadOptions options;
      options.pool = pool.get();
      options.cancel = job.cancel;
      options.complete = complete;
      CGL_TRY_ASSIGN(report, zarr::read_region(array_, {origin, shape}, bytes, strides, options));
      return {};
    });
    return {report.chunks, report.filled_chunks, report.stored_bytes};
  }

  // Into the memory of a device, past the host's where the engine can. The engine that was used, and why.
  std::tuple<std::string, std::string> read_to_device(const Shape& origin, const Shape& shape,
                                                      const DeviceMemory& memory, int threads, bool complete,
                                                      const std::string& engine, const nb::object& progress) const {
    return read_on(*memory.home(), memory.buffer(), origin, shape, threads, complete, engine, progress);
  }
  // The same into memory that another library has on this device.
  std::tuple<std::string, std::string> read_to_address(const Shape& origin, const Shape& shape,
                                                       const std::string& device, std::uintptr_t address,
                                                       std::uint64_t bytes, int threads, bool complete,
                                                       const std::string& engine, const nb::object& progress) const {
    std::shared_ptr<OpenDevice> home;
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      CGL_TRY_ASSIGN(home, open_device(device));
      return {};
    });
    BorrowedBuffer there(*home->device, reinterpret_cast<void*>(address), bytes);
    return read_on(*home, there, origin, shape, threads, complete, engine, progress);
  }

  std::tuple<std::uint64_t, std::uint64_t> write(const Shape& origin, const Shape& shape, const ConstArray& from,
                                                 int threads, const nb::object& progress) const {
    zarr::WriteReport report;
    const std::vector<std::int64_t> strides = strides_in_bytes(from);
    const std::span<const std::byte> bytes = {static_cast<const std::byte*>(from.data()), covered_bytes(from)};
    run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
      CGL_TRY_ASSIGN(const auto pool, ThreadPool::create(threads > 0 ? threads : default_thread_count()));
      WriteOptions file;
      file.force = true;
      file.cancel = job.cancel;
      CGL_TRY_ASSIGN(const auto output, zarr::existing_folder(array_.store().path(), file));
      zarr::ArrayWriteOptions options;
      options.pool = pool.get();
      options.cancel = job.cancel;
      CGL_TRY_ASSIGN(report, zarr::write_region(array_, *output, {origin, shape}, bytes, strides, options));
      return output->commit();
    });
    return {report.chunks, report.stored_bytes};
  }

 private:
  std::tuple<std::string, std::string> read_on(OpenDevice& home, Buffer& to, const Shape& origin, const Shape& shape,
                                               int threads, bool complete, const std::string& engine,
                                               const nb::object& progress) const {
    zarr::DeviceReadReport report;
    run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
      CGL_TRY_ASSIGN(const auto pool, ThreadPool::create(threads > 0 ? threads : default_thread_count()));
      CGL_TRY_ASSIGN(const Settings settings, Settings::from_environment());
      CGL_TRY_ASSIGN(zarr::EngineSettings engines, zarr::EngineSettings::from_settings(settings));
      zarr::DeviceReadOptions options;
      CGL_TRY_ASSIGN(options.engine, zarr::parse_engine(engine));
      options.pool = pool.get();
      options.cancel = job.cancel;
      options.complete = complete;
      const std::lock_guard lock(home.mutex);
      CGL_TRY_ASSIGN(const auto reader, zarr::DeviceReader::create(*home.device, std::move(engines)));
      CGL_TRY_ASSIGN(report, reader->read(array_, {origin, shape}, *home.queue, {to}, options));
      return home.queue->synchronise();
    });
    return {std::string(zarr::engine_name(report.engine)), report.reason};
  }

  zarr::Array array_;
};

// The nodes below `path`: [{"path", "kind", "format", "attributes"}], the first is the node itself.
std::string read_nodes(const std::string& store, const std::string& path) {
  Json nodes = Json::array();
  run_job(nb::none(), Stopping::by_token, [&](JobContext& job) -> Status {
    CGL_TRY_ASSIGN(const auto opened, zarr::Store::open(store));
    CGL_TRY_ASSIGN(const zarr::Hierarchy hierarchy, zarr::read_hierarchy(*opened, path, {}, job.cancel));
    for (const zarr::Node& node : hierarchy.nodes) {
      CGL_TRY_ASSIGN(Json attributes, parse_json(node.attributes));
      nodes.push_back({{"path", node.path},
                       {"kind", node.kind == zarr::NodeKind::array ? "array" : "group"},
                       {"zarr_format", node.format},
                       {"attributes", std::move(attributes)}});
    }
    return {};
  });
  return json_text(nodes);
}

// A hierarchy with one array at its root, which appears as a whole; with `from` its elements, else filled.
void create_array(const std::string& store, const std::string& wanted_json, const nb::object& from, bool force,
                  int threads, const nb::object& progress) {
  const bool has_elements = !from.is_none();
  ConstArray elements;
  if (has_elements) elements = nb::cast<ConstArray>(from);
  run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
    CGL_TRY_ASSIGN(const Json given, parse_json(wanted_json));
    zarr::NewArray wanted;
    wanted.format = given["zarr_format"].get<int>();
    wanted.shape = given["shape"].get<Shape>();
    CGL_TRY_ASSIGN(wanted.type, zarr::parse_v3_type(given["type"].get<std::string>()));
    wanted.chunk_shape = given.value("chunks", Shape());
    wanted.shard_shape = given.value("shards", Shape());
    wanted.sharded = given.value("sharded", true);
    if (given.contains("codec")) {
      CGL_TRY_ASSIGN(wanted.codec, zarr::parse_codec_choice(given["codec"].get<std::string>()));
    }
    wanted.fill_value = given["fill_value"];
    wanted.attributes = given["attributes"];
    wanted.dimension_names = given.value("dimension_names", std::vector<std::string>());
    CGL_TRY_ASSIGN(zarr::ArrayMetadata metadata, zarr::describe_new_array(wanted));
    CGL_TRY_ASSIGN(const auto pool, ThreadPool::create(threads > 0 ? threads : default_thread_count()));
    WriteOptions file;
    file.force = force;
    file.cancel = job.cancel;
    CGL_TRY_ASSIGN(const auto output, zarr::new_hierarchy(store, file));
    CGL_TRY(zarr::write_array_metadata("", metadata, *output));
    if (has_elements) {
      const zarr::Array array = zarr::Array::describe(nullptr, "", std::move(metadata));
      zarr::ArrayWriteOptions options;
      options.pool = pool.get();
      options.cancel = job.cancel;
      CGL_TRY(zarr::write_region(array, *output, zarr::whole(array.metadata()),
                                 {static_cast<const std::byte*>(elements.data()), covered_bytes(elements)},
                                 strides_in_bytes(elements), options));
    }
    return output->commit();
  });
}

}  // namespace

void bind_zarr(nb::module_& module) {
  nb::class_<ZarrArray>(module, "ZarrArray")
      .def(nb::init<const std::string&, const std::string&>(), nb::arg("store"), nb::arg("path"))
      .def("describe", &ZarrArray::describe)
      .def("read", &ZarrArray::read, nb::arg("origin"), nb::arg("shape"), nb::arg("to"), nb::arg("threads"),
           nb::arg("complete"), nb::arg("progress").none())
      .def("read_to_device", &ZarrArray::read_to_device, nb::arg("origin"), nb::arg("shape"), nb::arg("memory"),
           nb::arg("threads"), nb::arg("complete"), nb::arg("engine"), nb::arg("progress").none())
      .def("read_to_address", &ZarrArray::read_to_address, nb::arg("origin"), nb::arg("shape"), nb::arg("device"),
           nb::arg("address"), nb::arg("bytes"), nb::arg("threads"), nb::arg("complete"), nb::arg("engine"),
           nb::arg("progress").none())
      .def("write", &ZarrArray::write, nb::arg("origin"), nb::arg("shape"), nb::arg("from_"), nb::arg("threads"),
           nb::arg("progress").none());
  module.def("zarr_nodes", read_nodes, nb::arg("store"), nb::arg("path"));
  module.def("zarr_create", create_array, nb::arg("store"), nb::arg("wanted"), nb::arg("elements").none(),
             nb::arg("force"), nb::arg("threads"), nb::arg("progress").none());
}

}  // namespace cingulum::python
