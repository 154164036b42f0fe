// The host's share of a tracking run: streamlines that are in memory already go through everything that follows a
// tracker (ordering, judging, mapping to the world, linearising, checksums, writing, the hash for a sidecar), into each
// format. Rates are points that the tracker gives per second. Ceilings of the same run: write() of as many bytes by one
// thread into a file of the same folder, and a copy of as many bytes by all threads into memory that is new.
//   bench_track_output [--out FILE.json] [--seeds N] [--chunk N] [--threads N] [--repetitions N] [--folder DIR]
#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/bulk_memory.hpp"
#include "base/thread_pool.hpp"
#include "bench/program.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram.hpp"
#include "measure/bench_report.hpp"
#include "measure/repetitions.hpp"
#include "tract/run/tracking_run.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::string out;
  std::string folder = "/dev/shm";
  std::uint64_t seeds = 200000;
  std::uint64_t chunk = 25000;
  int threads = 2;
  int repetitions = 5;
};

ImageGeometry geometry() {
  ImageGeometry g;
  g.size = {90, 110, 90};
  g.voxel_to_world.rows = {2, 0, 0, -90, 0, 2, 0, -110, 0, 0, 2, -90};
  return g;
}

// Streamlines of `count` seeds that bend: one each, 20 to 160 points, half an edge apart.
StreamlineBatch some_streamlines(std::uint64_t count) {
  StreamlineBatch batch;
  std::uint32_t state = 1;
  const auto random = [&] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(state >> 8U) * 0x1p-24F;
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto points = static_cast<std::uint32_t>(20 + 140 * random());
    float x = 10 + 70 * random(), y = 10 + 90 * random(), z = 10 + 70 * random();
    float angle = 6.28F * random(), turn = 0.2F * (random() - 0.5F);
    for (std::uint32_t p = 0; p < points; ++p) {
      batch.points.insert(batch.points.end(), {x, y, z});
      x += 0.5F * std::cos(angle);
      y += 0.5F * std::sin(angle);
      z += 0.05F * (random() - 0.5F);
      angle += turn;
    }
    batch.offsets.push_back(batch.points.size() / 3);
    batch.seed_index.push_back(i);
    batch.seed_point.push_back(points / 2);
    batch.end_reason.insert(batch.end_reason.end(), {1, 1});
  }
  return batch;
}

// Gives copies of the same streamlines, as a device's memory would.
class ReplayTracker final : public Tracker {
 public:
  explicit ReplayTracker(const StreamlineBatch& streamlines) : streamlines_(streamlines) {}
  [[nodiscard]] TrackerHints hints() const override { return {.callers = 3, .first_range = 1U << 30U}; }
  [[nodiscard]] Status supports(const TrackingPlan&, const Field&) const override { return {}; }
  [[nodiscard]] Status prepare(const TrackingPlan&, const Field&, const Seeds&, const GivenDirections*) override {
    return {};
  }
  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken&) override {
    batch.seeds = range;
    batch.offsets = streamlines_.offsets;
    batch.points = streamlines_.points;
    batch.seed_point = streamlines_.seed_point;
    batch.end_reason = streamlines_.end_reason;
    batch.seed_index.resize(streamlines_.seed_index.size());
    for (std::size_t i = 0; i < batch.seed_index.size(); ++i) batch.seed_index[i] = range.first + i;
    return {};
  }

 private:
  const StreamlineBatch& streamlines_;
};

double seconds_of_plain_write(const fs::path& path, std::uint64_t bytes) {
  static const std::vector<char> piece(std::size_t{1} << 20U, 'x');
  const auto begin = std::chrono::steady_clock::now();
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(file >= 0, "creating a file");
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t count = ::write(file, piece.data(), std::min<std::uint64_t>(piece.size(), bytes - done));
    require(count > 0, "writing");
    done += static_cast<std::uint64_t>(count);
  }
  ::close(file);
  const double seconds = seconds_since(begin);
  fs::remove(path);
  return seconds;
}

double seconds_of_copy(ThreadPool& pool, std::uint64_t bytes) {
  static const std::vector<std::byte> piece(std::size_t{1} << 20U, std::byte{1});
  const auto begin = std::chrono::steady_clock::now();
  BulkVector<std::byte> copy(static_cast<std::size_t>(bytes));
  pool.parallel_for(copy.size() / piece.size(), 1, [&](std::size_t first, std::size_t) {
    std::memcpy(copy.data() + first * piece.size(), piece.data(), piece.size());
  });
  return seconds_since(begin);
}

int run(const Options& options) {
  const auto pool = require(ThreadPool::create(options.threads));
  const StreamlineBatch streamlines = some_streamlines(options.chunk);
  const std::uint64_t seed_count = options.seeds / options.chunk * options.chunk;
  require(seed_count > 0, "at least --chunk seeds");
  const std::vector<std::uint8_t> mask(static_cast<std::size_t>(geometry().voxel_count()), 1);
  const auto seeds = require(random_seeds(geometry(), mask, seed_count, numerics::philox_key(1)));
  const double points = static_cast<double>(streamlines.points.size() / 3) * static_cast<double>(seed_count) /
                        static_cast<double>(options.chunk);
  struct Form {
    const char* name;
    bool float16;
    double linearise_mm;
  };
  Json rows = Json::array();
  for (const Form& form : {Form{"out.trx", false, 0}, Form{"out.tck", false, 0}, Form{"out.trk", false, 0},
                           Form{"out.trx", true, 0}, Form{"out.trx", true, 0.1}}) {
    const fs::path file = fs::path(options.folder) / fmt::format("cingulum-bench-{}-{}", ::getpid(), form.name);
    std::uint64_t bytes = 0;
    const auto write = [&] {
      ReplayTracker tracker(streamlines);
      TractogramLayout layout;
      layout.format = require(format_of_name(file));
      layout.reference = geometry();
      layout.position_type = form.float16 ? ElementType{ElementType::Code::floating, 16} : element_type_of<float>();
      WriteOptions write_options = {.force = true, .sync = false, .pool = pool.get()};
      const auto sidecar = std::make_shared<OutputSidecar>(file, write_options);
      sidecar->describe([] { return Json::object(); });
      const auto writer = require(TractogramWriter::create(file, layout, with_sidecar(write_options, sidecar)));
      TrackingRunOptions run_options;
      run_options.selection.min_length_mm = 25;
      run_options.chunk_seeds = options.chunk;
      run_options.fixed_chunks = true;
      run_options.double_positions = form.float16;
      run_options.linearise_mm = form.linearise_mm;
      run_options.pool = pool.get();
      (void)require(run_tracking(tracker, *seeds, geometry(), run_options, *writer, nullptr));
      require(writer->commit());
      bytes = fs::file_size(file);
    };
    const measure::Seconds seconds = measure::measure_repetitions(1, options.repetitions, write);
    fs::remove(file);
    fs::remove(sidecar_path(file));
    const double plain = seconds_of_plain_write(file, bytes);
    const double copied = seconds_of_copy(*pool, bytes);
    const measure::Spread spread = measure::spread_of(seconds.elapsed);
    const double processor = measure::spread_of(seconds.processor).median;
    fmt::print(
        "{:<8} {:<22} {:7.3f} s ({:.3f} to {:.3f}), processor {:7.3f} s, {:7.1f} M points/s, {:6.2f} GB; "
        "write() by one thread {:.3f} s, a copy by all {:.3f} s\n",
        form.name, fmt::format("{}{}", form.float16 ? "float16 " : "", form.linearise_mm > 0 ? "linearised" : ""),
        spread.median, spread.low, spread.high, processor, 1e-6 * points / spread.median,
        1e-9 * static_cast<double>(bytes), plain, copied);
    rows.push_back({{"file", form.name},
                    {"float16", form.float16},
                    {"linearise_mm", form.linearise_mm},
                    {"points", points},
                    {"bytes", bytes},
                    {"seconds", {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}}},
                    {"processor_seconds", processor},
                    {"M_points_per_s", 1e-6 * points / spread.median},
                    {"write_by_one_thread_seconds", plain},
                    {"copy_by_all_threads_seconds", copied}});
  }
  write_report(options.out, "track_output",
               {{"seeds", seed_count},
                {"chunk", options.chunk},
                {"threads", options.threads},
                {"repetitions", options.repetitions},
                {"folder", options.folder},
                {"rows", rows}});
  return 0;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  using namespace cingulum::bench;
  Options options;
  ProgramOptions()
      .add("--out", "FILE.json", options.out)
      .add("--folder", "DIR", options.folder)
      .add("--seeds", "N", options.seeds)
      .add("--chunk", "N", options.chunk)
      .add("--threads", "N", options.threads)
      .add("--repetitions", "N", options.repetitions)
      .read(count, words);
  return run(options);
}
