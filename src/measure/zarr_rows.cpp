#include "measure/zarr_rows.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/bulk_memory.hpp"
#include "base/first_failure.hpp"
#include "base/log.hpp"
#include "base/read_file.hpp"
#include "measure/child_program.hpp"
#include "measure/host_peak.hpp"
#include "measure/repetitions.hpp"
#include "zarr/region_plan.hpp"

namespace cingulum {

std::string_view embedded_peer(std::string_view file_name);

namespace measure {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t small_bytes = std::uint64_t{64} << 10;
constexpr std::size_t copy_piece = std::size_t{1} << 20;
constexpr double peer_limit_seconds = 240;

std::uint64_t bytes_of(const zarr::ArrayMetadata& metadata) {
  return metadata.element_count() * metadata.type.bytes();
}

// Drops every file below the array from the page cache: the next read comes from the disk.
void drop_from_page_cache(const zarr::Array& array) {
  std::error_code error;
  const fs::path path = array.store().path();
  const auto drop = [](const fs::path& file) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    static_cast<void>(::fdatasync(descriptor));
    static_cast<void>(::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED));
    ::close(descriptor);
  };
  if (fs::is_regular_file(path, error)) return drop(path);
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (at->is_regular_file(error)) drop(at->path());
  }
}

// Rates of what the machine can do at best, once for a bench.
double memcpy_rate(ThreadPool& pool, std::uint64_t bytes) {
  bytes = std::min<std::uint64_t>(bytes, std::uint64_t{1} << 30);
  BulkVector<std::byte> from(bytes), to(bytes);
  const auto each = [&](auto&& body) {
    pool.parallel_for(bytes, copy_piece, [&](std::size_t begin, std::size_t end) { body(begin, end - begin); });
  };
  each([&](std::size_t at, std::size_t count) { std::memset(from.data() + at, 1, count); });
  const Spread seconds = measure_seconds(1, 3, [&] {
    each([&](std::size_t at, std::size_t count) { std::memcpy(to.data() + at, from.data() + at, count); });
  });
  return as_rate(seconds, bytes).median;
}

// Uploads of pinned memory, or the memcpy where the device is the host.
Result<double> upload_rate(Device& device, ThreadPool& pool) {
  constexpr std::uint64_t bytes = std::uint64_t{256} << 20;
  if (device.capabilities().shares_host_memory) return memcpy_rate(pool, bytes);
  const HostMemoryKind kind =
      device.capabilities().pinned_host_memory ? HostMemoryKind::pinned : HostMemoryKind::pageable;
  CGL_TRY_ASSIGN(const auto host, device.allocate_host(bytes, kind));
  std::memset(host->bytes().data(), 1, bytes);
  CGL_TRY_ASSIGN(const auto buffer, device.allocate(bytes));
  CGL_TRY_ASSIGN(const auto queue, device.create_queue());
  CGL_TRY_ASSIGN(const Seconds seconds, measure_repetitions(1, 5, [&]() -> Status {
                   CGL_TRY(queue->upload(*buffer, 0, host->bytes()));
                   return queue->synchronise();
                 }));
  return as_rate(spread_of(seconds.elapsed), bytes).median;
}

// The codec alone: stored chunks are decoded from memory over and over, by one thread and by all at once. Cores that
// share caches, memory and units of arithmetic do less together than so many times one of them.
struct CodecRates {
  double one_thread = 0;
  double all_threads = 0;
};

// Absent for plain chunks.
Result<std::optional<CodecRates>> codec_rates(const zarr::Array& array, ThreadPool& pool) {
  const zarr::CodecChain& chain = array.metadata().leaf_coding().chain;
  if (chain.empty()) return std::optional<CodecRates>();
  CGL_TRY_ASSIGN(zarr::RegionPlan plan, zarr::RegionPlan::create(array, zarr::whole(array.metadata())));
  zarr::LeafWindow window;
  CGL_TRY_ASSIGN(const bool any, plan.next_window(window, {}));
  std::vector<std::vector<std::byte>> encoded;
  zarr::CodecScratch scratch;
  for (std::size_t i = 0; any && i < window.size() && encoded.size() < 16; ++i) {
    if (window.leaf(i).object == nullptr) continue;
    CGL_TRY_ASSIGN(const auto bytes, plan.read_encoded(window, i, scratch));
    encoded.emplace_back(bytes.begin(), bytes.end());
  }
  if (encoded.empty()) return std::optional<CodecRates>();
  struct Worker {
    std::vector<std::byte> place;
    zarr::CodecScratch scratch;
  };
  const auto rate_of = [&](std::size_t threads) -> Result<double> {
    std::vector<Worker> workers(threads);
    for (Worker& worker : workers) worker.place.resize(plan.leaf_bytes());
    CGL_TRY_ASSIGN(const Seconds seconds, measure_repetitions(1, 5, [&]() -> Status {
                     FirstFailure failure;
                     pool.parallel_for(threads, 1, [&](std::size_t begin, std::size_t end) {
                       for (std::size_t i = begin; i < end; ++i) {
                         for (const std::vector<std::byte>& one : encoded) {
                           const auto decoded =
                               zarr::decode_chain_into(chain, one, workers[i].place, workers[i].scratch);
                           if (!decoded) failure.note(i, tl::make_unexpected(decoded.error()));
                         }
                       }
                     });
                     return failure.take();
                   }));
    return as_rate(spread_of(seconds.elapsed), threads * encoded.size() * plan.leaf_bytes()).median;
  };
  CodecRates rates;
  CGL_TRY_ASSIGN(rates.one_thread, rate_of(1));
  CGL_TRY_ASSIGN(rates.all_threads, rate_of(static_cast<std::size_t>(pool.threads())));
  return std::optional<CodecRates>(rates);
}

class ReportedRows {
 public:
  explicit ReportedRows(const ZarrBench& bench) : bench_(bench) {}
  void add(Row row) {
    if (bench_.on_row) bench_.on_row(row);
    rows_.push_back(std::move(row));
  }
  [[nodiscard]] std::vector<Row> take() { return std::move(rows_); }

 private:
  const ZarrBench& bench_;
  std::vector<Row> rows_;
};

struct Ceiling {
  std::string name;
  double rate = 0;
};

// What bounds a read: the codec on all cores, or moving the bytes. It becomes a row where it is the codec.
Result<Ceiling> read_ceiling(ReportedRows& rows, const zarr::Array& array, std::string copy_name, double copy_rate,
                             ThreadPool& pool) {
  Ceiling ceiling{std::move(copy_name), copy_rate};
  CGL_TRY_ASSIGN(const std::optional<CodecRates> codec, codec_rates(array, pool));
  const double all = codec ? codec->one_thread * pool.threads() : 0;
  if (!codec || all >= copy_rate) return ceiling;
  ceiling = {fmt::format("codec alone on one core x {}", pool.threads()), all};
  rows.add({fmt::format("{}: the codec alone on {} threads at once", zarr::describe_coding(array.metadata()),
                        pool.threads()),
            "GB/s", spread_of({codec->all_threads}), ceiling.name, ceiling.rate});
  return ceiling;
}

// `body` warm, and cold where that is wanted: a row each.
template <class Body>
Status add_reads(ReportedRows& rows, const std::string& scenario, const zarr::Array& array, const ZarrBench& bench,
                 const Ceiling& ceiling, Body&& body, Spread* warm = nullptr) {
  const std::uint64_t bytes = bytes_of(array.metadata());
  CGL_TRY_ASSIGN(const Seconds seconds, measure_repetitions(1, bench.repetitions, body));
  const Spread rate = as_rate(spread_of(seconds.elapsed), bytes);
  if (warm != nullptr) *warm = rate;
  rows.add({scenario + ", warm", "GB/s", rate, ceiling.name, ceiling.rate});
  if (!bench.cold) return {};
  std::vector<double> cold;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(3, bench.repetitions); ++i) {
    drop_from_page_cache(array);
    const auto start = std::chrono::steady_clock::now();
    CGL_TRY(body());
    cold.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  rows.add({scenario + ", cold", "GB/s", as_rate(spread_of(std::move(cold)), bytes), "", 0});
  return {};
}

std::string coding_of(const zarr::Array& array) {
  return zarr::describe_coding(array.metadata());
}

// Files of `each` bytes by all threads, as nobody could write faster.
Result<double> plain_write_rate(const fs::path& folder, std::span<const std::byte> from, std::uint64_t each,
                                ThreadPool& pool, std::int64_t repetitions) {
  const std::size_t files = static_cast<std::size_t>((from.size() + each - 1) / each);
  CGL_TRY_ASSIGN(const Seconds seconds, measure_repetitions(0, repetitions, [&]() -> Status {
                   FirstFailure failure;
                   pool.parallel_for(files, 1, [&](std::size_t begin, std::size_t end) {
                     for (std::size_t i = begin; i < end; ++i) {
                       const auto bytes = from.subspan(i * each, std::min<std::uint64_t>(each, from.size() - i * each));
                       const int file =
                           ::open((folder / std::to_string(i)).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
                       std::size_t done = 0;
                       while (file >= 0 && done < bytes.size()) {
                         const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
                         if (count <= 0) break;
                         done += static_cast<std::size_t>(count);
                       }
                       if (file >= 0) ::close(file);
                       if (done < bytes.size())
                         failure.note(i, fail(ErrorKind::io, "writing {} failed", folder.string()));
                     }
                   });
                   return failure.take();
                 }));
  return as_rate(spread_of(seconds.elapsed), from.size()).median;
}

}  // namespace

zarr::Region small_region(const zarr::ArrayMetadata& metadata, std::uint64_t n) {
  const std::size_t rank = metadata.rank();
  const zarr::Shape leaf = metadata.leaf_shape();
  std::uint64_t leaf_bytes = metadata.type.bytes();
  for (const std::uint64_t extent : leaf) leaf_bytes *= extent;
  // Whole chunks where they have this size, else a cube, as near as the array allows.
  const bool chunks = leaf_bytes == small_bytes;
  std::uint64_t left = std::max<std::uint64_t>(1, small_bytes / metadata.type.bytes());
  zarr::Region region;
  // The place of the region follows from a sequence that peers compute, too.
  std::uint64_t state = n * 2654435761u % 4294967296u;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto edge = static_cast<std::uint64_t>(
        std::llround(std::pow(static_cast<double>(left), 1.0 / static_cast<double>(rank - d))));
    const std::uint64_t extent = std::clamp<std::uint64_t>(chunks ? leaf[d] : edge, 1, metadata.shape[d]);
    left = std::max<std::uint64_t>(1, left / extent);
    state = (state * 1664525u + 1013904223u) % 4294967296u;
    std::uint64_t origin = state % (metadata.shape[d] - extent + 1);
    if (chunks) origin = origin / extent * extent;
    region.shape.push_back(extent);
    region.origin.push_back(origin);
  }
  return region;
}

Status generate_zarr(const fs::path& path, const zarr::NewArray& wanted, ThreadPool& pool) {
  CGL_TRY_ASSIGN(const zarr::ArrayMetadata metadata, zarr::describe_new_array(wanted));
  if (metadata.type != element_type_of<float>()) {
    return fail(ErrorKind::invalid_argument, "generating {}: elements are float32", path.string());
  }
  BulkVector<float> numbers(static_cast<std::size_t>(metadata.element_count()));
  pool.parallel_for(numbers.size(), copy_piece, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      // Noise of 16 bits on a wave.
      std::uint64_t hash = (i + 1) * 0x9e3779b97f4a7c15u;
      hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
      numbers[i] = 1.0f + static_cast<float>(hash >> 48) * 0x1p-15f + static_cast<float>(i >> 12 & 1023) * 0x1p-8f;
    }
  });
  CGL_TRY_ASSIGN(const auto output, zarr::new_hierarchy(path, {.sync = false}));
  CGL_TRY(zarr::write_array_metadata("", metadata, *output));
  zarr::ArrayWriteOptions options;
  options.pool = &pool;
  CGL_TRY(zarr::write_region(zarr::Array::describe(nullptr, "", metadata), *output, zarr::whole(metadata),
                             std::as_bytes(std::span(numbers)), options));
  return output->commit();
}

Result<std::vector<Row>> measure_zarr_on_host(const zarr::Array& array, const ZarrBench& bench) {
  ReportedRows rows(bench);
  const zarr::Region all = zarr::whole(array.metadata());
  const std::uint64_t bytes = bytes_of(array.metadata());
  CGL_TRY_ASSIGN(const Ceiling ceiling,
                 read_ceiling(rows, array, fmt::format("memcpy on {} threads", bench.pool.threads()),
                              memcpy_rate(bench.pool, bytes), bench.pool));
  BulkVector<std::byte> memory(static_cast<std::size_t>(bytes));
  const zarr::ReadOptions options{&bench.pool, bench.cancel, false};
  const Status measured =
      add_reads(rows, fmt::format("{}: to host", coding_of(array)), array, bench, ceiling, [&]() -> Status {
        CGL_TRY(zarr::read_region(array, all, std::span(memory), options));
        return {};
      });
  CGL_TRY(measured);
  if (bench.small > 0) {
    std::vector<std::byte> place(2 * small_bytes);
    CGL_TRY_ASSIGN(const Seconds times, measure_repetitions(1, bench.repetitions, [&]() -> Status {
                     for (std::uint64_t n = 0; n < bench.small; ++n) {
                       const zarr::Region region = small_region(array.metadata(), n);
                       std::uint64_t count = array.metadata().type.bytes();
                       for (const std::uint64_t extent : region.shape) count *= extent;
                       if (place.size() < count) place.resize(count);
                       CGL_TRY(zarr::read_region(array, region, std::span(place).first(count), options));
                     }
                     return {};
                   }));
    Spread each = spread_of(times.elapsed);
    for (double* const value : {&each.median, &each.low, &each.high}) *value *= 1e6 / static_cast<double>(bench.small);
    rows.add({fmt::format("{}: a region of 64 KiB, warm", coding_of(array)), "us", each, "", 0});
  }
  return rows.take();
}

Result<std::vector<Row>> measure_zarr_to_device(const zarr::Array& array, Device& device, const ZarrBench& bench) {
  ReportedRows rows(bench);
  const zarr::Region all = zarr::whole(array.metadata());
  const std::uint64_t bytes = bytes_of(array.metadata());
  CGL_TRY_ASSIGN(const double copies, upload_rate(device, bench.pool));
  CGL_TRY_ASSIGN(const Ceiling ceiling, read_ceiling(rows, array, "upload of pinned memory", copies, bench.pool));
  CGL_TRY_ASSIGN(const auto buffer, device.allocate(bytes));
  CGL_TRY_ASSIGN(const auto queue, device.create_queue());
  zarr::EngineRates rates;
  for (const zarr::EngineAnswer& answer : zarr::explain_engines(array, device, bench.settings)) {
    const bool wanted = bench.engines.empty() || std::ranges::find(bench.engines, answer.engine) != bench.engines.end();
    if (!wanted) continue;
    if (!answer.possible) {
      log_info("engine {} on {}: {}", zarr::engine_name(answer.engine), device.id(), answer.reason);
      continue;
    }
    zarr::DeviceReadOptions options;
    options.engine = answer.engine;
    options.pool = &bench.pool;
    options.cancel = bench.cancel;
    CGL_TRY_ASSIGN(const auto reader, zarr::DeviceReader::create(device, bench.settings));
    Spread warm;
    std::uint64_t ring_bytes = 0;
    forget_host_peak();
    const std::uint64_t before_bytes = host_peak_bytes();
    const Status measured = add_reads(
        rows, fmt::format("{}: to {} by {}", coding_of(array), device.id(), zarr::engine_name(answer.engine)), array,
        bench, ceiling,
        [&]() -> Status {
          CGL_TRY_ASSIGN(const zarr::DeviceReadReport report, reader->read(array, all, *queue, {*buffer}, options));
          ring_bytes = report.ring_bytes;
          return queue->synchronise();
        },
        &warm);
    CGL_TRY(measured);
    const double megabyte = 1 << 20;
    const double ring = static_cast<double>(ring_bytes) / megabyte;
    rows.add({fmt::format("{}: host memory that reading added, a ring of {:.0f} MiB in it", coding_of(array), ring),
              "MiB", spread_of({static_cast<double>(host_peak_bytes() - before_bytes) / megabyte}), "", 0});
    if (answer.engine == zarr::Engine::host) rates.host = warm.median;
    if (answer.engine == zarr::Engine::direct) rates.direct = warm.median;
    if (answer.engine == zarr::Engine::nvcomp) rates.nvcomp = warm.median;
  }
  CGL_TRY(zarr::keep_rates(array, device, bench.settings, bench.pool.threads(), rates));
  return rows.take();
}

Result<std::vector<Row>> measure_zarr_from_device(const zarr::Array& array, Device& device, const fs::path& folder,
                                                  const ZarrBench& bench) {
  ReportedRows rows(bench);
  const zarr::Region all = zarr::whole(array.metadata());
  const std::uint64_t bytes = bytes_of(array.metadata());
  CGL_TRY_ASSIGN(const auto scratch, ScratchFolder::create(folder));
  CGL_TRY_ASSIGN(const auto buffer, device.allocate(bytes));
  CGL_TRY_ASSIGN(const auto queue, device.create_queue());
  CGL_TRY_ASSIGN(const auto reader, zarr::DeviceReader::create(device, bench.settings));
  zarr::DeviceReadOptions read;
  read.pool = &bench.pool;
  CGL_TRY(reader->read(array, all, *queue, {*buffer}, read));
  double plain = 0;
  {
    BulkVector<std::byte> memory(static_cast<std::size_t>(bytes));
    CGL_TRY(queue->download(memory, *buffer, 0));
    CGL_TRY(queue->synchronise());
    std::uint64_t outer = array.metadata().type.bytes();
    for (const std::uint64_t extent : array.metadata().chunk_shape) outer *= extent;
    const fs::path files = scratch.path() / "plain";
    std::error_code error;
    fs::create_directories(files, error);
    CGL_TRY_ASSIGN(plain, plain_write_rate(files, memory, outer, bench.pool, bench.repetitions));
    fs::remove_all(files, error);
  }
  CGL_TRY_ASSIGN(const auto writer, zarr::DeviceWriter::create(device));
  zarr::DeviceWriteOptions options;
  options.pool = &bench.pool;
  options.cancel = bench.cancel;
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < bench.repetitions; ++i) {
    const fs::path path = scratch.path() / "written.zarr";
    const auto start = std::chrono::steady_clock::now();
    CGL_TRY_ASSIGN(const auto output, zarr::new_hierarchy(path, {.sync = false}));
    CGL_TRY(zarr::write_array_metadata("", array.metadata(), *output));
    CGL_TRY(
        writer->write(zarr::Array::describe(nullptr, "", array.metadata()), *output, all, *queue, {*buffer}, options));
    CGL_TRY(output->commit());
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::error_code error;
    fs::remove_all(path, error);
  }
  rows.add({fmt::format("{}: from {} to files", coding_of(array), device.id()), "GB/s",
            as_rate(spread_of(std::move(seconds)), bytes), "plain write", plain});
  return rows.take();
}

Result<std::vector<Row>> measure_zarr_peers(const zarr::Array& array, const std::string& python, bool on_gpu,
                                            const ZarrBench& bench) {
  ReportedRows rows(bench);
  if (python.empty()) return rows.take();
  CGL_TRY_ASSIGN(const auto scratch, ScratchFolder::create(fs::temp_directory_path()));
  const fs::path script = scratch.path() / "zarr_peers.py", said = scratch.path() / "said";
  CGL_TRY(write_file_atomically(script, embedded_peer("zarr.py"), {.force = true, .sync = false}));
  const std::string path = (array.store().path() / array.path()).string();
  for (const char* const peer : {"zarr-python", "tensorstore", "zarr-python gpu", "kvikio"}) {
    const bool gpu_peer =
        std::string_view(peer).find("gpu") != std::string_view::npos || std::string_view(peer) == "kvikio";
    if (gpu_peer && !on_gpu) continue;
    const ChildRun run = run_child({python, script.string(), path, peer, std::to_string(bench.repetitions),
                                    std::to_string(bench.small / 10), std::to_string(bench.pool.threads())},
                                   said, ChildErrors::with_output, peer_limit_seconds);
    const auto text = read_text_file(said);
    bool any = false;
    std::size_t at = 0;
    while (text && at < text->size()) {
      const std::size_t end = std::min(text->find('\n', at), text->size());
      const auto answer = nlohmann::json::parse(text->substr(at, end - at), nullptr, false);
      at = end + 1;
      if (!answer.is_object() || !answer.contains("seconds")) continue;
      any = true;
      Spread value = spread_of(answer["seconds"].get<std::vector<double>>());
      const std::string scenario =
          fmt::format("{}: {}, {}", coding_of(array), answer.value("scenario", ""), answer.value("peer", peer));
      if (answer.contains("each")) {
        const double scale = 1e6 / answer["each"].get<double>();
        for (double* const number : {&value.median, &value.low, &value.high}) *number *= scale;
        rows.add({scenario, "us", value, "", 0});
      } else {
        rows.add({scenario, "GB/s", as_rate(value, bytes_of(array.metadata())), "", 0});
      }
    }
    if (!any) {
      log_info("peer {}: {}{}", peer, run.too_long ? "took too long; " : "",
               text ? text->substr(text->size() > 300 ? text->size() - 300 : 0) : "said nothing");
    }
  }
  return rows.take();
}

}  // namespace measure
}  // namespace cingulum
