// Reads and writes regions of Zarr arrays as the library does, for tests in Python (tests/zarr/probe.py): a JSON object
// a line comes in, with an "op", and a JSON object a line goes out, {"error": ...} where it failed.
//   describe  {store, path}                              type, shape, chunks, coding
//   read      {store, path, origin, shape, to, threads, complete}    elements in C order, to a file
//   create    {store, path, type, shape, chunks, shards, sharded, format, codec, fill, attributes, names}
//   write     {store, path, origin, shape, from, threads}            into an array that is there
//   new       as create and write together: a hierarchy that appears as a whole
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "base/read_file.hpp"
#include "base/thread_pool.hpp"
#include "formats/sidecar.hpp"
#include "zarr/array.hpp"
#include "zarr/new_array.hpp"

namespace {

using namespace cingulum;        // NOLINT
using namespace cingulum::zarr;  // NOLINT

Result<std::unique_ptr<ThreadPool>> pool_of(const Json& request) {
  return ThreadPool::create(request.value("threads", 1));
}

Region region_of(const Json& request, const ArrayMetadata& metadata) {
  Region region = whole(metadata);
  if (request.contains("origin")) region.origin = request["origin"].get<Shape>();
  if (request.contains("shape") && request["op"] != "new") region.shape = request["shape"].get<Shape>();
  return region;
}

Result<Array> open(const Json& request) {
  CGL_TRY_ASSIGN(auto store, Store::open(request["store"].get<std::string>()));
  return Array::open(std::move(store), request.value("path", ""));
}

Result<Json> describe(const Json& request) {
  CGL_TRY_ASSIGN(const Array array, open(request));
  const ArrayMetadata& metadata = array.metadata();
  return Json{{"type", metadata.type.name()},        {"shape", metadata.shape},
              {"chunks", metadata.chunk_shape},      {"leaves", metadata.leaf_shape()},
              {"coding", describe_coding(metadata)}, {"fill", fill_value_json(metadata.fill, metadata.type)},
              {"document", metadata.document}};
}

Result<Json> read(const Json& request) {
  CGL_TRY_ASSIGN(const Array array, open(request));
  CGL_TRY_ASSIGN(const auto pool, pool_of(request));
  const Region region = region_of(request, array.metadata());
  std::uint64_t bytes = array.metadata().type.bytes();
  for (const std::uint64_t extent : region.shape) bytes *= extent;
  std::vector<std::byte> elements(static_cast<std::size_t>(bytes));
  ReadOptions options;
  options.pool = pool.get();
  options.complete = request.value("complete", false);
  CGL_TRY_ASSIGN(const ReadReport report, read_region(array, region, elements, options));
  std::ofstream file(request["to"].get<std::string>(), std::ios::binary);
  file.write(reinterpret_cast<const char*>(elements.data()), static_cast<std::streamsize>(elements.size()));
  file.close();
  if (!file) return fail(ErrorKind::io, "writing {}", request["to"].get<std::string>());
  return Json{{"type", array.metadata().type.name()},
              {"shape", region.shape},
              {"chunks", report.chunks},
              {"filled", report.filled_chunks},
              {"stored_bytes", report.stored_bytes}};
}

Result<ArrayMetadata> described(const Json& request) {
  NewArray wanted;
  wanted.format = request.value("format", 3);
  wanted.shape = request["shape"].get<Shape>();
  CGL_TRY_ASSIGN(wanted.type, parse_v3_type(request["type"].get<std::string>()));
  wanted.chunk_shape = request.value("chunks", Shape());
  wanted.shard_shape = request.value("shards", Shape());
  wanted.sharded = request.value("sharded", true);
  if (request.contains("codec")) {
    CGL_TRY_ASSIGN(wanted.codec, parse_codec_choice(request["codec"].get<std::string>()));
  }
  if (request.contains("fill")) wanted.fill_value = request["fill"];
  if (request.contains("attributes")) wanted.attributes = request["attributes"];
  if (request.contains("names")) wanted.dimension_names = request["names"].get<std::vector<std::string>>();
  if (request.contains("separator")) wanted.separator = request["separator"].get<std::string>()[0];
  return describe_new_array(wanted);
}

Result<WriteReport> write_file(const Array& array, StoreOutput& output, const Json& request) {
  CGL_TRY_ASSIGN(const auto pool, pool_of(request));
  CGL_TRY_ASSIGN(const auto elements, read_file(request["from"].get<std::string>()));
  ArrayWriteOptions options;
  options.pool = pool.get();
  return write_region(array, output, region_of(request, array.metadata()), elements, options);
}

WriteOptions write_options(const Json& request) {
  WriteOptions options;
  options.sync = request.value("sync", false);
  options.force = request.value("force", false);
  return options;
}

Result<Json> create(const Json& request) {
  CGL_TRY_ASSIGN(ArrayMetadata metadata, described(request));
  CGL_TRY_ASSIGN(const auto output, new_hierarchy(request["store"].get<std::string>(), write_options(request)));
  CGL_TRY(write_array_metadata(request.value("path", ""), metadata, *output));
  Json answer = Json::object();
  if (request["op"] == "new") {
    const Array array = Array::describe(nullptr, request.value("path", ""), std::move(metadata));
    CGL_TRY_ASSIGN(const WriteReport report, write_file(array, *output, request));
    answer["chunks"] = report.chunks;
    answer["stored_bytes"] = report.stored_bytes;
  }
  CGL_TRY(output->commit());
  return answer;
}

Result<Json> write(const Json& request) {
  CGL_TRY_ASSIGN(const Array array, open(request));
  CGL_TRY_ASSIGN(const auto output, existing_folder(request["store"].get<std::string>(), write_options(request)));
  CGL_TRY_ASSIGN(const WriteReport report, write_file(array, *output, request));
  CGL_TRY(output->commit());
  return Json{{"chunks", report.chunks}, {"stored_bytes", report.stored_bytes}};
}

Result<Json> answer(const std::string& line) {
  CGL_TRY_ASSIGN(const Json request, parse_json(line));
  const auto op = request["op"].get<std::string>();
  if (op == "describe") return describe(request);
  if (op == "read") return read(request);
  if (op == "create" || op == "new") return create(request);
  if (op == "write") return write(request);
  return fail(ErrorKind::invalid_argument, "op {}", op);
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto result = answer(line);
    const Json shown = result ? *result
                              : Json{{"error", result.error().message()},
                                     {"kind", std::string(error_kind_name(result.error().kind()))}};
    std::cout << shown.dump(-1, ' ', true, Json::error_handler_t::replace) << std::endl;
  }
  return 0;
}
