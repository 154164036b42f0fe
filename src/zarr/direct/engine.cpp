#include "zarr/direct/engine.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/cache_folder.hpp"
#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "base/read_file.hpp"
#include "zarr/direct/cufile_library.hpp"
#include "zarr/direct/direct_conditions.hpp"
#include "zarr/direct/leaf_transport.hpp"
#include "zarr/direct/nvcomp_transport.hpp"

namespace cingulum::zarr {
namespace {

constexpr std::uint64_t most_rates_bytes = std::uint64_t{64} << 10;

EngineAnswer refused(Engine engine, std::string reason, std::vector<std::string> details = {}) {
  return {engine, false, std::move(reason), std::move(details)};
}

// Leaves are looked for in the first outer chunks: one that is stored shows where the files are.
std::optional<StoredObject::Extent> first_extent(const Array& array, std::shared_ptr<const StoredObject>& keeps) {
  if (!array.has_store()) return std::nullopt;
  const Shape grid = array.metadata().grid();
  Shape index(grid.size(), 0);
  for (int tries = 0; tries < 64; ++tries) {
    auto object = array.store().open_object(array.key_of(index));
    if (object && *object != nullptr) {
      keeps = *object;
      return keeps->extent();
    }
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] >= grid[d - 1]) index[--d] = 0;
    if (d == 0) break;
  }
  return std::nullopt;
}

EngineAnswer explain_direct(const Array& array, Device& device, const EngineSettings& settings) {
  std::vector<std::string> details;
  const CodecChain& chain = array.metadata().leaf_coding().chain;
  details.push_back(fmt::format("codec: {}", describe_coding(array.metadata())));
  if (array.has_store()) {
    for (std::string& fact : direct_conditions(array.store().path())) details.push_back(std::move(fact));
  }
  const auto answer = [&](std::string reason) { return refused(Engine::direct, std::move(reason), details); };
  if (device.description().backend != Backend::cuda) {
    return answer(fmt::format("device {}: cuFile reads into the memory of CUDA devices alone", device.id()));
  }
  if (!is_raw(chain)) return answer("codec: chunks are encoded; bytes that a disk hands to the device must be plain");
  auto library = CufileLibrary::open({settings.cufile_library, settings.allow_cufile_compatibility});
  if (!library) return answer(fmt::format("library: {}", library.error().message()));
  const CufileDriver& driver = (*library)->driver();
  details.push_back(fmt::format("library: {} (cuFile {})", (*library)->path(), driver.version_text()));
  details.push_back(driver.nvfs_major != 0
                        ? fmt::format("driver: nvidia-fs {}.{}", driver.nvfs_major, driver.nvfs_minor)
                    : driver.p2pdma ? std::string("driver: p2pdma")
                                    : std::string("driver: compatibility mode, through the host"));
  std::shared_ptr<const StoredObject> object;
  const auto extent = first_extent(array, object);
  if (object == nullptr) return answer("file: no stored chunk was found to try");
  if (!extent) return answer("file: the chunks do not lie in a file as they are (a compressed archive)");
  if (array.metadata().coding.sharding != nullptr) {
    std::uint64_t leaf = array.metadata().type.bytes();
    for (const std::uint64_t n : array.metadata().leaf_shape()) leaf *= n;
    if (leaf < direct_page_bytes) return answer("alignment: chunks are smaller than a page of 4 KiB");
  }
  auto file = (*library)->register_file(extent->descriptor);
  if (!file) return answer(fmt::format("file: {}: {}", extent->path.native(), file.error().message()));
  return {Engine::direct, true, "cuFile reads chunks into device memory, a kernel verifies them", std::move(details)};
}

EngineAnswer explain_nvcomp(const Array& array, Device& device, const EngineSettings& settings) {
  const CodecChain& chain = array.metadata().leaf_coding().chain;
  std::vector<std::string> details = {fmt::format("codec: {}", describe_coding(array.metadata()))};
  if (device.description().backend != Backend::cuda) {
    return refused(Engine::nvcomp, fmt::format("device {}: nvCOMP runs on CUDA devices alone", device.id()), details);
  }
  if (auto reason = reason_against_nvcomp(chain)) {
    return refused(Engine::nvcomp, fmt::format("codec: {}", *reason), details);
  }
  const auto library = NvcompLibrary::open(settings.nvcomp_library);
  if (!library) return refused(Engine::nvcomp, fmt::format("library: {}", library.error().message()), details);
  details.push_back(fmt::format("library: {} (nvCOMP {})", (*library)->path(), (*library)->version()));
  return {Engine::nvcomp, true, "encoded chunks are uploaded and decoded on the device", std::move(details)};
}

EngineAnswer explain_host(const Device& device) {
  const bool shares = device.capabilities().shares_host_memory;
  return {Engine::host,
          true,
          shares ? "the device's memory is the host's: threads decode into it"
                 : "threads decode into pinned memory, batches are uploaded",
          {fmt::format("pinned memory: {}", device.capabilities().pinned_host_memory ? "yes" : "no")}};
}

EngineAnswer explain_one(Engine engine, const Array& array, Device& device, const EngineSettings& settings) {
  switch (engine) {
    case Engine::direct: return explain_direct(array, device, settings);
    case Engine::nvcomp: return explain_nvcomp(array, device, settings);
    default: return explain_host(device);
  }
}

CacheFolder rates_folder(const std::filesystem::path& cache_dir) {
  return {cache_dir / "zarr-engines", ".json"};
}

// All that a rate depends on but the data.
std::string rates_key(const Array& array, Device& device, const EngineSettings& settings, int threads) {
  const auto cufile = CufileLibrary::open({settings.cufile_library, settings.allow_cufile_compatibility});
  const auto nvcomp = NvcompLibrary::open(settings.nvcomp_library);
  std::uint64_t leaf = array.metadata().type.bytes();
  for (const std::uint64_t n : array.metadata().leaf_shape()) leaf *= n;
  return hash_hex(fmt::format("1|{}|{}|{}|{}|{}|{}|{}", device.description().name, device.description().driver,
                              describe_coding(array.metadata()), leaf, threads,
                              cufile ? (*cufile)->driver().version_text() : "none",
                              nvcomp ? (*nvcomp)->version() : "none"));
}

std::optional<double> rate_in(const nlohmann::json& rates, const char* name) {
  const auto found = rates.find(name);
  if (found == rates.end() || !found->is_number() || !(found->get<double>() > 0)) return std::nullopt;
  return found->get<double>();
}

}  // namespace

std::string_view engine_name(Engine engine) {
  switch (engine) {
    case Engine::automatic: return "auto";
    case Engine::host: return "host";
    case Engine::direct: return "direct";
    case Engine::nvcomp: return "nvcomp";
  }
  return "unknown";
}

Result<Engine> parse_engine(std::string_view text) {
  for (const Engine engine : {Engine::automatic, Engine::host, Engine::direct, Engine::nvcomp}) {
    if (text == engine_name(engine)) return engine;
  }
  return fail_argument("engine", "{} '{}': accepted are auto, host, direct and nvcomp", argument_name("engine"), text);
}

Result<EngineSettings> EngineSettings::from_settings(const Settings& settings) {
  EngineSettings engines;
  CGL_TRY_ASSIGN(engines.cufile_library, settings.library(Setting::cufile_library));
  CGL_TRY_ASSIGN(engines.nvcomp_library, settings.library(Setting::nvcomp_library));
  CGL_TRY_ASSIGN(engines.cache_dir, settings.cache_dir());
  return engines;
}

std::optional<std::string> reason_against_nvcomp(const CodecChain& chain) {
  if (chain.empty()) return "chunks are not compressed";
  const Codec& codec = chain.front();
  if (codec.kind != CodecKind::zstd && codec.kind != CodecKind::lz4 && codec.kind != CodecKind::gzip) {
    return fmt::format("'{}' is not among zstd, lz4 and gzip", codec.name);
  }
  const bool sealed = chain.size() > 1;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (chain[i].kind != CodecKind::crc32c) return fmt::format("'{}' behind the compressor", chain[i].name);
  }
  if (!sealed && has_checksum(codec)) {
    return fmt::format("the checksum of '{}' would not be verified, and there is no crc32c behind it", codec.name);
  }
  return std::nullopt;
}

std::vector<EngineAnswer> explain_engines(const Array& array, Device& device, const EngineSettings& settings) {
  std::vector<EngineAnswer> answers;
  for (const Engine engine : {Engine::host, Engine::direct, Engine::nvcomp}) {
    answers.push_back(explain_one(engine, array, device, settings));
  }
  return answers;
}

std::optional<EngineRates> kept_rates(const Array& array, Device& device, const EngineSettings& settings, int threads) {
  if (!settings.cache_dir) return std::nullopt;
  const auto path = rates_folder(*settings.cache_dir).path_of(rates_key(array, device, settings, threads));
  const auto text = read_text_file(path, most_rates_bytes);
  if (!text) return std::nullopt;
  const auto rates = nlohmann::json::parse(*text, nullptr, false);
  if (!rates.is_object()) return std::nullopt;
  return EngineRates{rate_in(rates, "host"), rate_in(rates, "direct"), rate_in(rates, "nvcomp")};
}

Status keep_rates(const Array& array, Device& device, const EngineSettings& settings, int threads,
                  const EngineRates& rates) {
  if (!settings.cache_dir) return {};
  nlohmann::ordered_json kept = nlohmann::ordered_json::object();
  if (rates.host) kept["host"] = *rates.host;
  if (rates.direct) kept["direct"] = *rates.direct;
  if (rates.nvcomp) kept["nvcomp"] = *rates.nvcomp;
  const CacheFolder folder = rates_folder(*settings.cache_dir);
  CGL_TRY(folder.make());
  WriteOptions replace;
  replace.force = true;
  return write_file_atomically(folder.path_of(rates_key(array, device, settings, threads)), json_text(kept), replace);
}

Result<EngineChoice> choose_engine(const Array& array, Device& device, Engine wanted, const EngineSettings& settings,
                                   int threads) {
  if (wanted == Engine::host) return EngineChoice{Engine::host, "asked for"};
  if (wanted != Engine::automatic) {
    EngineAnswer answer = explain_one(wanted, array, device, settings);
    if (!answer.possible) {
      return fail(ErrorKind::unavailable, "engine {}: {}", engine_name(wanted), answer.reason);
    }
    return EngineChoice{wanted, "asked for"};
  }
  if (device.description().backend != Backend::cuda) return EngineChoice{Engine::host, "the one engine of this device"};
  const std::optional<EngineRates> rates = kept_rates(array, device, settings, threads);
  EngineChoice choice{Engine::host, "no other engine is possible"};
  const double host_rate = rates && rates->host ? *rates->host : 0;
  if (explain_direct(array, device, settings).possible) {
    const bool slower = rates && rates->direct && *rates->direct < host_rate;
    choice = slower ? EngineChoice{Engine::host, fmt::format("host was measured at {:.1f} GB/s, direct at {:.1f} GB/s",
                                                             host_rate, *rates->direct)}
                    : EngineChoice{Engine::direct, "cuFile is native here"};
  } else if (explain_nvcomp(array, device, settings).possible) {
    if (!rates || !rates->nvcomp || !rates->host) {
      choice.reason = "nvcomp is possible and was not measured here";
    } else {
      choice.engine = *rates->nvcomp > host_rate ? Engine::nvcomp : Engine::host;
      choice.reason = fmt::format("host was measured at {:.1f} GB/s, nvcomp at {:.1f} GB/s", host_rate, *rates->nvcomp);
    }
  }
  return choice;
}

}  // namespace cingulum::zarr
