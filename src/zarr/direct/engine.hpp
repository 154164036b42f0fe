// The ways by which regions of arrays reach device memory, which of them are possible here for an array, and why not
// the others. A choice is made before work and by nothing that reading finds out; a person asks for it by explain.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/settings.hpp"
#include "device/device.hpp"
#include "zarr/array.hpp"

namespace cingulum::zarr {

enum class Engine : std::uint8_t {
  automatic,
  host,    // threads decode into pinned memory, batches are uploaded
  direct,  // cuFile reads into device memory, past the host (GPUDirect Storage)
  nvcomp,  // encoded bytes are uploaded and decoded on the device
};

[[nodiscard]] std::string_view engine_name(Engine engine);
// "auto", "host", "direct", "nvcomp".
[[nodiscard]] Result<Engine> parse_engine(std::string_view text);

// Files to open instead of searching, and where measurements are kept; absent: none are.
struct EngineSettings {
  std::optional<std::filesystem::path> cufile_library;
  std::optional<std::filesystem::path> nvcomp_library;
  std::optional<std::filesystem::path> cache_dir;
  // cuFile's own compatibility mode (through the host) counts as possible: for tests of equality, never for work.
  bool allow_cufile_compatibility = false;

  [[nodiscard]] static Result<EngineSettings> from_settings(const Settings& settings);
};

struct EngineAnswer {
  Engine engine = Engine::host;
  bool possible = false;
  std::string reason;                // why it is not, or what it would do
  std::vector<std::string> details;  // one fact each: "library: libcufile.so.0 (1.16)", "file system: ext4"
};

// One answer for each engine: host, direct, nvcomp.
[[nodiscard]] std::vector<EngineAnswer> explain_engines(const Array& array, Device& device,
                                                        const EngineSettings& settings);

// GB/s of decoded bytes to a device, as `cingulum zarr bench` measured them; absent: not measured.
struct EngineRates {
  std::optional<double> host, direct, nvcomp;
};
// Rates for arrays with this coding on such a device with so many threads, kept in the cache folder for `auto` to
// choose by. Whether or not a rate is kept changes no byte of what is read.
[[nodiscard]] std::optional<EngineRates> kept_rates(const Array& array, Device& device, const EngineSettings& settings,
                                                    int threads);
[[nodiscard]] Status keep_rates(const Array& array, Device& device, const EngineSettings& settings, int threads,
                                const EngineRates& rates);

struct EngineChoice {
  Engine engine = Engine::host;
  std::string reason;  // "host: nvcomp was measured at 12.1 GB/s, host at 14.0 GB/s"
};

// What `wanted` comes to. An engine that was named and is not possible is a failure with the reason.
[[nodiscard]] Result<EngineChoice> choose_engine(const Array& array, Device& device, Engine wanted,
                                                 const EngineSettings& settings, int threads);

}  // namespace cingulum::zarr
