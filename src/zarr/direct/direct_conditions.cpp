#include "zarr/direct/direct_conditions.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/read_file.hpp"

namespace cingulum::zarr {
namespace {

constexpr std::uint64_t most_text_bytes = std::uint64_t{16} << 20;

std::optional<std::string> first_line(const std::filesystem::path& path) {
  const auto text = read_text_file(path, most_text_bytes);
  if (!text) return std::nullopt;
  return text->substr(0, text->find('\n'));
}

std::string kernel() {
  utsname names{};
  if (uname(&names) != 0) return "kernel: unknown";
  return fmt::format("kernel: {} {} (p2pdma needs 6.2 or later, with CONFIG_PCI_P2PDMA)", names.sysname, names.release);
}

std::string module(const std::filesystem::path& root) {
  if (!std::filesystem::exists(root / "sys/module/nvidia_fs")) return "module nvidia-fs: not loaded";
  const auto version = first_line(root / "sys/module/nvidia_fs/version");
  return fmt::format("module nvidia-fs: loaded, version {}", version ? *version : "unknown");
}

std::string iommu(const std::filesystem::path& root) {
  std::error_code error;
  std::size_t groups = 0;
  for (std::filesystem::directory_iterator at(root / "sys/kernel/iommu_groups", error), end; !error && at != end;
       at.increment(error)) {
    ++groups;
  }
  const auto arguments = first_line(root / "proc/cmdline");
  const bool passes = arguments && arguments->find("iommu=pt") != std::string::npos;
  if (groups == 0) return "IOMMU: off";
  return fmt::format("IOMMU: on with {} groups{}", groups,
                     passes ? ", passing through (iommu=pt)" : "; direct reads want it off or iommu=pt");
}

std::string container(const std::filesystem::path& root) {
  if (std::filesystem::exists(root / ".dockerenv")) return "container: docker";
  if (std::filesystem::exists(root / "run/.containerenv")) return "container: podman";
  return std::filesystem::exists(root / "run/udev") ? "container: none seen"
                                                    : "container: /run/udev is not readable, as in a container";
}

std::string settings_file(const std::filesystem::path& root) {
  // cuFile's own variable: it is read here for people to see, not for us to obey.
  const char* const named = std::getenv("CUFILE_ENV_PATH_JSON");
  const std::filesystem::path path = named != nullptr ? std::filesystem::path(named) : root / "etc/cufile.json";
  return fmt::format("cufile.json: {}{}", path.native(), std::filesystem::exists(path) ? "" : " (not there: defaults)");
}

// The mount whose point is the longest beginning of the path.
std::string mount_of(const std::filesystem::path& path, const std::filesystem::path& root) {
  std::error_code error;
  const std::string wanted = std::filesystem::weakly_canonical(path, error).native();
  const auto text = read_text_file(root / "proc/self/mounts", most_text_bytes);
  if (!text) return "file system: unknown";
  std::istringstream lines(*text);
  std::string line, best;
  std::size_t longest = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string device, point, type, options;
    if (!(words >> device >> point >> type >> options)) continue;
    const bool below = point == "/" || wanted == point || wanted.starts_with(point + "/");
    if (!below || point.size() < longest) continue;
    longest = point.size();
    best = fmt::format(
        "file system: {} at {} on {} ({}); native are ext4 (data=ordered) and xfs on NVMe, and some "
        "network file systems",
        type, point, device, options);
  }
  return best.empty() ? "file system: unknown" : best;
}

}  // namespace

std::vector<std::string> direct_conditions(const std::filesystem::path& path, const std::filesystem::path& root) {
  return {kernel(), module(root), iommu(root), container(root), settings_file(root), mount_of(path, root)};
}

}  // namespace cingulum::zarr
