// Writing and reading tractograms beside a plain copy: TRX, TRK and TCK of the same streamlines, one thread. Rates are
// bytes of the file per second. Ceilings of the same run: write() of as many bytes in pieces of 1 MiB into a file of
// the same folder, with and without fsync as the row says, and read() of the file into one buffer of 1 MiB (both from
// the page cache). Reading TRX verifies its CRC-32.
//   bench_formats_tractograms [--out FILE.json] [--streamlines N] [--points N] [--repetitions N] [--folder DIR]
//                             [--peer PYTHON]
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>

#include "base/atomic_file.hpp"
#include "base/read_file.hpp"
#include "bench/program.hpp"
#include "formats/tractogram.hpp"
#include "measure/bench_report.hpp"
#include "measure/repetitions.hpp"

namespace cingulum::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::string out;
  std::string folder = "/tmp";
  std::string peer;  // a Python with nibabel and trx-python
  std::size_t streamlines = 100000;
  std::size_t points = 100;
  int repetitions = 5;
};

// Lines that bend, in batches as a tracker gives them.
std::vector<TractogramBatch> make_batches(const Options& options) {
  constexpr std::size_t per_batch = 2500;
  std::vector<TractogramBatch> batches;
  std::uint32_t state = 1;
  const auto random = [&] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(state >> 8U) * 0x1p-24F;
  };
  for (std::size_t first = 0; first < options.streamlines; first += per_batch) {
    TractogramBatch batch;
    for (std::size_t i = first; i < std::min(options.streamlines, first + per_batch); ++i) {
      float x = random() * 150 - 75, y = random() * 180 - 90, z = random() * 140 - 70;
      for (std::size_t p = 0; p < options.points; ++p) {
        batch.positions.insert(batch.positions.end(), {x, y, z});
        x += random() - 0.3F;
        y += random() - 0.5F;
        z += random() - 0.7F;
      }
      batch.offsets.push_back(batch.positions.size() / 3);
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

void write_tractogram(const fs::path& path, const TractogramLayout& layout, const std::vector<TractogramBatch>& batches,
                      bool sync) {
  const auto writer = require(TractogramWriter::create(path, layout, {.force = true, .sync = sync}));
  for (const TractogramBatch& batch : batches) require(writer->append(batch));
  require(writer->commit());
}

std::size_t read_through(const fs::path& path) {
  const auto reader = require(TractogramReader::open(path));
  TractogramBatch batch;
  std::size_t points = 0;
  while (require(reader->next(batch, default_batch_points, true))) points += batch.point_count();
  return points;
}

void plain_write(const fs::path& path, std::uint64_t bytes, bool sync) {
  static const std::vector<char> piece(std::size_t{1} << 20U, 'x');
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  require(file >= 0, "open");
  while (bytes > 0) {
    const ssize_t written = ::write(file, piece.data(), std::min<std::uint64_t>(bytes, piece.size()));
    require(written > 0, "write");
    bytes -= static_cast<std::uint64_t>(written);
  }
  if (sync) require(::fsync(file) == 0, "fsync");
  ::close(file);
}

void plain_read(const fs::path& path) {
  static std::vector<char> piece(std::size_t{1} << 20U);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(file >= 0, "open");
  while (::read(file, piece.data(), piece.size()) > 0) {
  }
  ::close(file);
}

struct Scenario {
  std::string name;
  TractogramFormat format;
  int bits;
};

class TractogramBench {
 public:
  explicit TractogramBench(const Options& options)
      : options_(options), batches_(make_batches(options)), folder_(scratch_folder(options.folder)) {}

  void measure(const Scenario& scenario) {
    TractogramLayout layout;
    layout.format = scenario.format;
    layout.position_type = {ElementType::Code::floating, static_cast<std::uint8_t>(scenario.bits)};
    layout.reference =
        ImageGeometry{.size = {96, 106, 76}, .voxel_to_world = {{-2, 0, 0, 90, 0, 2, 0.1, -106, 0, -0.1, 2, -72}}};
    const fs::path path = folder_.path() / (scenario.name + ".bin");
    const fs::path plain = folder_.path() / "plain.bin";
    write_tractogram(path, layout, batches_, false);
    const std::uint64_t bytes = fs::file_size(path);
    for (const bool sync : {false, true}) {
      const char* const how = sync ? "with fsync" : "without fsync";
      const measure::Spread copy =
          measure::measure_seconds(1, options_.repetitions, [&] { plain_write(plain, bytes, sync); });
      const measure::Spread ours =
          measure::measure_seconds(1, options_.repetitions, [&] { write_tractogram(path, layout, batches_, sync); });
      add({fmt::format("{} write, {}", scenario.name, how), "GB/s", measure::as_rate(ours, bytes),
           fmt::format("write() {}", how), measure::as_rate(copy, bytes).median});
    }
    const measure::Spread copy = measure::measure_seconds(1, options_.repetitions, [&] { plain_read(path); });
    std::size_t points = 0;
    const measure::Spread ours =
        measure::measure_seconds(1, options_.repetitions, [&] { points = read_through(path); });
    require(points == options_.streamlines * options_.points, "reading all points");
    add({fmt::format("{} read to float32", scenario.name), "GB/s", measure::as_rate(ours, bytes), "read()",
         measure::as_rate(copy, bytes).median});
  }

  void measure_peers() {
    if (options_.peer.empty()) return;
    TractogramLayout layout;
    layout.reference = ImageGeometry{.size = {96, 106, 76}, .voxel_to_world = {}};
    for (const auto& [name, format] :
         {std::pair{"a.trx", TractogramFormat::trx}, std::pair{"a.trk", TractogramFormat::trk},
          std::pair{"a.tck", TractogramFormat::tck}}) {
      layout.format = format;
      write_tractogram(folder_.path() / name, layout, batches_, false);
    }
    const fs::path script = fs::path(CINGULUM_BENCH_PEERS) / "tractograms.py";
    const fs::path said = folder_.path() / "peer.json";
    require(measure::run_child({options_.peer, script.string(), folder_.path().string()}, said).succeeded, "the peer");
    const std::string text = require(read_text_file(said));
    for (const Json& row : Json::parse(text)) {
      add({row["scenario"], "GB/s",
           measure::as_rate(measure::spread_of(row["seconds"].get<std::vector<double>>()), row["bytes"]), "", 0});
    }
  }

  [[nodiscard]] const Json& rows() const { return rows_; }

 private:
  void add(const measure::Row& row) {
    fmt::print("{}\n", to_text(row));
    std::fflush(stdout);
    rows_.push_back(to_json(row));
  }

  Options options_;
  std::vector<TractogramBatch> batches_;
  measure::ScratchFolder folder_;
  Json rows_ = Json::array();
};

Options parse(int count, char** words) {
  Options options;
  ProgramOptions()
      .add("--out", "FILE.json", options.out)
      .add("--streamlines", "N", options.streamlines)
      .add("--points", "N", options.points)
      .add("--repetitions", "N", options.repetitions, 3)
      .add("--folder", "DIR", options.folder)
      .add("--peer", "PYTHON", options.peer)
      .read(count, words);
  return options;
}

int run(const Options& options) {
  fmt::print("{} streamlines of {} points, one thread, page cache warm\n", options.streamlines, options.points);
  TractogramBench bench(options);
  for (const Scenario& scenario :
       {Scenario{"TRX float32", TractogramFormat::trx, 32}, Scenario{"TRX float16", TractogramFormat::trx, 16},
        Scenario{"TRX float64", TractogramFormat::trx, 64}, Scenario{"TRK", TractogramFormat::trk, 32},
        Scenario{"TCK", TractogramFormat::tck, 32}}) {
    bench.measure(scenario);
  }
  bench.measure_peers();
  write_report(
      options.out, "formats_tractograms",
      {{"streamlines", options.streamlines}, {"points_each", options.points}, {"threads", 1}, {"rows", bench.rows()}});
  return 0;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
