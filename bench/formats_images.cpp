// Reading and writing images beside what limits them: a whole-brain diffusion series in .nii.gz and .nii, to float32,
// volume by volume. Ceilings of the same run, on the same bytes: ISA-L inflating alone (what decompression costs), zlib
// inflating, pread, memcpy; for writing zlib deflating on one core. Peak memory of the reader is the growth of the
// process's resident set.
//   bench_formats_images [--file IMAGE.nii.gz] [--out FILE.json] [--repetitions N] [--threads N] [--peer PYTHON]
#include <isa-l.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "base/quantity.hpp"
#include "base/read_file.hpp"
#include "bench/program.hpp"
#include "formats/nifti.hpp"
#include "formats/nifti_header.hpp"
#include "measure/bench_report.hpp"
#include "measure/host_peak.hpp"
#include "measure/repetitions.hpp"
#include "numerics/philox.hpp"

namespace cingulum::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::string file;
  std::string out;
  std::string peer;  // a Python with nibabel
  int repetitions = 7;
  int threads = 0;  // of the writer; 0: all
};

// A head of ellipsoids in noise, as a magnitude image has it: about half of the voxels are background.
std::vector<float> make_volume(const ImageGeometry& geometry, std::uint32_t volume) {
  std::vector<float> values(static_cast<std::size_t>(geometry.voxel_count()));
  const auto& size = geometry.size;
  std::size_t index = 0;
  for (std::int64_t k = 0; k < size[2]; ++k) {
    for (std::int64_t j = 0; j < size[1]; ++j) {
      for (std::int64_t i = 0; i < size[0]; ++i, ++index) {
        const auto unit = [](std::int64_t at, std::int64_t length) {
          return 2 * (static_cast<double>(at) + 0.5) / static_cast<double>(length) - 1;
        };
        const double x = unit(i, size[0]), y = unit(j, size[1]), z = unit(k, size[2]);
        const double inside = 1 - (x * x * 1.6 + y * y * 1.3 + z * z * 1.2);
        const auto random = numerics::philox4x32_10({{static_cast<std::uint32_t>(index), volume, 0, 0}}, {1, 0});
        // The sum of four uniform numbers is near enough to a normal one.
        double noise = -2;
        for (const std::uint32_t word : random.word) noise += static_cast<double>(word) * 0x1p-32;
        const double signal = inside > 0 ? 300 + 200 * inside + 60 * x * y : 8;
        const double value = signal + noise * (inside > 0 ? 25 : 6);
        values[index] = static_cast<float>(std::max(0.0, value));
      }
    }
  }
  return values;
}

fs::path make_series(const fs::path& folder, ThreadPool& pool) {
  ImageGeometry geometry;
  geometry.size = {128, 128, 78};
  geometry.voxel_to_world.rows = {1.8, 0, 0, -115, 0, 1.8, 0, -115, 0, 0, 1.8, -70};
  NiftiWriteOptions options;
  options.file = {.force = true, .sync = false};
  options.type = element_type_of<std::int16_t>();
  options.compression_level = 6;  // what most tools write
  options.pool = &pool;
  const fs::path path = folder / "series.nii.gz";
  NiftiWriter writer = require(NiftiWriter::create(path, geometry, {65}, options));
  for (std::uint32_t volume = 0; volume < 65; ++volume) {
    require(writer.append(std::span<const float>(make_volume(geometry, volume))));
  }
  require(writer.commit());
  return path;
}

void read_volumes(const fs::path& path) {
  NiftiReader reader = require(NiftiReader::open(path));
  std::vector<float> volume(static_cast<std::size_t>(reader.header().geometry.voxel_count()));
  while (reader.volumes_read() < reader.header().volume_count()) require(reader.next_volume(std::span(volume)));
}

constexpr std::size_t block_bytes = std::size_t{1} << 20U;

// Everything that a decoder must do: inflate and CRC-32, block by block, nothing else.
std::uint64_t inflate_by_isal(std::span<const std::byte> compressed) {
  std::vector<std::uint8_t> block(block_bytes);
  auto state = std::make_unique<inflate_state>();
  isal_inflate_init(state.get());
  state->crc_flag = ISAL_GZIP;
  state->next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(compressed.data()));
  state->avail_in = static_cast<std::uint32_t>(compressed.size());
  std::uint64_t total = 0;
  do {
    state->next_out = block.data();
    state->avail_out = static_cast<std::uint32_t>(block.size());
    if (isal_inflate(state.get()) < 0) break;
    total += block.size() - state->avail_out;
  } while (state->block_state != ISAL_BLOCK_FINISH);
  return total;
}

std::uint64_t inflate_by_zlib(std::span<const std::byte> compressed) {
  std::vector<Bytef> block(block_bytes);
  z_stream stream{};
  if (::inflateInit2(&stream, 15 + 16) != Z_OK) return 0;
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::uint64_t total = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = block.data();
    stream.avail_out = static_cast<uInt>(block.size());
    code = ::inflate(&stream, Z_NO_FLUSH);
    total += block.size() - stream.avail_out;
  }
  ::inflateEnd(&stream);
  return total;
}

std::uint64_t deflate_by_zlib(std::span<const std::byte> bytes) {
  std::vector<Bytef> block(block_bytes);
  z_stream stream{};
  if (::deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::uint64_t total = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = block.data();
    stream.avail_out = static_cast<uInt>(block.size());
    code = ::deflate(&stream, Z_FINISH);
    total += block.size() - stream.avail_out;
  }
  ::deflateEnd(&stream);
  return total;
}

// Seconds of each repetition of a peer in Python; empty when it cannot be run.
std::vector<double> ask_peer(const Options& options, const fs::path& path, const fs::path& folder, std::string& name) {
  if (options.peer.empty()) return {};
  const fs::path script = fs::path(CINGULUM_BENCH_PEERS) / "read_nifti.py", said = folder / "peer.json";
  if (!measure::run_child(
           {options.peer, script.string(), path.string(), std::to_string(std::max(2, options.repetitions / 2))}, said)
           .succeeded) {
    return {};
  }
  const std::string text = require(read_text_file(said));
  const Json answer = Json::parse(text, nullptr, false);
  if (answer.is_discarded()) return {};
  name = answer["peer"];
  return answer["seconds"].get<std::vector<double>>();
}

int run(const Options& options) {
  const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  const auto pool = require(ThreadPool::create(threads));
  const measure::ScratchFolder scratch = scratch_folder();
  const fs::path& folder = scratch.path();
  const fs::path packed = options.file.empty() ? make_series(folder, *pool) : fs::path(options.file);

  std::uint64_t resident_before = 0, resident_peak = 0;
  measure::forget_host_peak();
  resident_before = measure::host_peak_bytes();
  read_volumes(packed);
  resident_peak = measure::host_peak_bytes();

  const NiftiHeader header = require(NiftiReader::open(packed)).header();
  const std::uint64_t data_bytes = require(nifti_data_bytes(header));
  const std::uint64_t file_bytes = fs::file_size(packed);
  fmt::print("{}: {} of {}, {} in {}; {} repetitions after 1, {} threads\n", packed.native(),
             fmt::join(header.shape, " x "), nifti_datatype_name(header.datatype), format_bytes(data_bytes),
             format_bytes(file_bytes), options.repetitions, threads);
  std::vector<measure::Row> rows;
  const auto measure = [&](auto&& body) { return measure::measure_seconds(1, options.repetitions, body); };

  const std::vector<std::byte> compressed = require(read_file(packed, std::uint64_t{1} << 32U));
  {
    std::uint64_t checked = 0;
    const measure::Spread isal = measure::as_rate(measure([&] { checked = inflate_by_isal(compressed); }), data_bytes);
    if (checked < data_bytes) fmt::print("the ceiling decoded {} of {} bytes\n", checked, data_bytes);
    const measure::Spread zlib = measure::as_rate(measure([&] { inflate_by_zlib(compressed); }), data_bytes);
    const std::vector<std::byte> from(data_bytes, std::byte{1});
    std::vector<std::byte> to(data_bytes);
    const measure::Spread copy =
        measure::as_rate(measure([&] { std::memcpy(to.data(), from.data(), data_bytes); }), data_bytes);
    const measure::Spread ours = measure::as_rate(measure([&] { read_volumes(packed); }), data_bytes);
    rows.push_back({"read .nii.gz to float32", "GB/s", ours, "ISA-L inflate and CRC alone, one core", isal.median});
    rows.push_back({"read .nii.gz to float32", "GB/s", ours, "zlib inflate alone, one core", zlib.median});
    rows.push_back({"read .nii.gz to float32", "GB/s", ours, "memcpy, one core", copy.median});
    std::string peer;
    const auto seconds = ask_peer(options, packed, folder, peer);
    if (!seconds.empty()) {
      const measure::Spread theirs = measure::as_rate(measure::spread_of(seconds), data_bytes);
      rows.push_back({"read .nii.gz to float32", "GB/s", ours, peer, theirs.median});
    }
    rows.push_back({"ISA-L inflate and CRC alone", "GB/s", isal, "memcpy, one core", copy.median});
  }
  {
    // The same voxels written again: plain, then read; and compressed.
    NiftiReader reader = require(NiftiReader::open(packed));
    const Image image = require(read_image(reader));
    NiftiWriteOptions write;
    write.file = {.force = true, .sync = false};
    write.type = header.type;
    write.slope = header.slope;
    write.intercept = header.intercept;
    write.pool = pool.get();
    const fs::path plain = folder / "plain.nii", again = folder / "again.nii.gz";
    const auto store = [&](const fs::path& path) {
      require(write_image(path, image.geometry, image.volumes, image.values, write));
    };
    const measure::Spread written = measure::as_rate(measure([&] { store(plain); }), data_bytes);
    const std::vector<std::byte> bytes = require(read_file(plain, std::uint64_t{1} << 32U));
    const measure::Spread saved = measure::as_rate(measure([&] {
                                                     std::ofstream file(folder / "copy.bin", std::ios::binary);
                                                     file.write(reinterpret_cast<const char*>(bytes.data()),
                                                                static_cast<std::streamsize>(bytes.size()));
                                                   }),
                                                   data_bytes);
    const measure::Spread loaded =
        measure::as_rate(measure([&] { (void)require(read_file(plain, std::uint64_t{1} << 32U)); }), data_bytes);
    const measure::Spread read = measure::as_rate(measure([&] { read_volumes(plain); }), data_bytes);
    rows.push_back({"read .nii to float32", "GB/s", read, "reading the file into memory", loaded.median});
    rows.push_back({"write .nii from float32", "GB/s", written, "writing the bytes to a file", saved.median});
    std::uint64_t size = 0;
    const measure::Spread deflated = measure::as_rate(measure([&] { size = deflate_by_zlib(bytes); }), data_bytes);
    const measure::Spread packed_again = measure::as_rate(measure([&] { store(again); }), data_bytes);
    rows.push_back({fmt::format("write .nii.gz, level 1, {} threads", threads), "GB/s", packed_again,
                    "zlib deflate level 1 alone, one core", deflated.median});
    fmt::print("written at level 1: {} by pieces, {} by zlib in one\n", format_bytes(fs::file_size(again)),
               format_bytes(size));
  }
  Json json = {{"shape", header.shape},
               {"type", nifti_datatype_name(header.datatype)},
               {"data_bytes", data_bytes},
               {"file_bytes", file_bytes},
               {"threads", threads},
               {"warm_up", 1},
               {"peak_memory_of_reading_bytes", resident_peak - resident_before},
               {"rows", Json::array()}};
  for (const measure::Row& row : rows) {
    fmt::print("{}\n", to_text(row));
    json["rows"].push_back(to_json(row));
  }
  fmt::print("  peak memory of reading it volume by volume: {} (a volume in float32 is {})\n",
             format_bytes(resident_peak - resident_before),
             format_bytes(static_cast<std::uint64_t>(header.geometry.voxel_count()) * 4));
  write_report(options.out, "formats_images", json);
  return 0;
}

Options parse(int count, char** words) {
  Options options;
  ProgramOptions()
      .add("--file", "IMAGE.nii.gz", options.file)
      .add("--out", "FILE.json", options.out)
      .add("--repetitions", "N", options.repetitions)
      .add("--threads", "N", options.threads)
      .add("--peer", "PYTHON", options.peer)
      .read(count, words);
  return options;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
