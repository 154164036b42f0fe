#include "zarr/hierarchy_check.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/first_failure.hpp"
#include "formats/file_bytes.hpp"
#include "formats/verify.hpp"
#include "formats/zip_archive.hpp"
#include "zarr/hierarchy.hpp"
#include "zarr/region_plan.hpp"
#include "zarr/row_major.hpp"

namespace cingulum::zarr {
namespace {

// What threads find, in the order of the array whoever found it.
class FoundFaults {
 public:
  void add(std::uint64_t chunk, std::uint64_t leaf, std::string text) {
    const std::lock_guard lock(mutex_);
    faults_.push_back({chunk, leaf, std::move(text)});
  }
  void give(ArrayCheck& check, std::size_t most) {
    std::sort(faults_.begin(), faults_.end(),
              [](const Fault& a, const Fault& b) { return std::pair(a.chunk, a.leaf) < std::pair(b.chunk, b.leaf); });
    check.fault_count = faults_.size();
    for (std::size_t i = 0; i < std::min(most, faults_.size()); ++i) check.faults.push_back(std::move(faults_[i].text));
  }

 private:
  struct Fault {
    std::uint64_t chunk;
    std::uint64_t leaf;
    std::string text;
  };
  std::mutex mutex_;
  std::vector<Fault> faults_;
};

struct ChunkCounts {
  std::uint64_t chunks = 0;
  std::uint64_t missing = 0;
  std::uint64_t stored_bytes = 0;
};

Region chunk_region(const ArrayMetadata& metadata, std::uint64_t number) {
  const Shape grid = metadata.grid();
  Region region{Shape(grid.size()), Shape(grid.size())};
  for (std::size_t d = grid.size(); d-- > 0;) {
    region.origin[d] = number % grid[d] * metadata.chunk_shape[d];
    region.shape[d] = std::min(metadata.chunk_shape[d], metadata.shape[d] - region.origin[d]);
    number /= grid[d];
  }
  return region;
}

// One chunk with a key and all that is in it. Only what is not damage fails.
Result<ChunkCounts> check_chunk(const Array& array, std::uint64_t number, const ArrayCheckOptions& options,
                                ThreadPool* pool, FoundFaults& faults) {
  ChunkCounts counts;
  CGL_TRY(options.cancel.check());
  CGL_TRY_ASSIGN(RegionPlan plan, RegionPlan::create(array, chunk_region(array.metadata(), number)));
  LeafWindow window;
  std::uint64_t before = 0;
  while (true) {
    const auto more = plan.next_window(window, {.cancel = options.cancel});
    if (!more && more.error().kind() == ErrorKind::interrupted) return tl::make_unexpected(more.error());
    if (!more) {
      faults.add(number, before, more.error().message());
      return counts;
    }
    if (!*more) return counts;
    for (std::size_t i = 0; i < window.size(); ++i) {
      ++counts.chunks;
      if (window.leaf(i).object == nullptr) ++counts.missing;
      counts.stored_bytes += window.leaf(i).bytes;
    }
    FirstFailure interrupted;
    const auto decode = [&](std::size_t begin, std::size_t end) {
      CodecScratch scratch;
      for (std::size_t i = begin; i < end; ++i) {
        if (window.leaf(i).object == nullptr) continue;
        if (options.cancel.cancelled()) {
          interrupted.note(i, options.cancel.check());
          return;
        }
        const auto loaded = catch_out_of_memory([&] { return plan.load(window, i, scratch); });
        if (!loaded) faults.add(number, before + i, plan.located(window, i, loaded.error()).message());
      }
    };
    if (options.decode && pool != nullptr) {
      pool->parallel_for(window.size(), 0, decode);
    } else if (options.decode) {
      decode(0, window.size());
    }
    CGL_TRY(interrupted.take());
    before += window.size();
  }
}

Status check_archive(const std::filesystem::path& path, const CancelToken& cancel, std::vector<std::string>& faults) {
  CGL_TRY_ASSIGN(const FileBytes file, FileBytes::map(path));
  CGL_TRY_ASSIGN(const std::vector<ZipEntry> entries, read_zip_directory(file.bytes()));
  for (const ZipEntry& entry : entries) {
    CGL_TRY(cancel.check());
    const Status found = verify_entry(file.bytes(), entry);
    if (!found) faults.push_back(fmt::format("{}: {}", path.native(), found.error().message()));
  }
  return {};
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

}  // namespace

Result<ArrayCheck> check_array(const Array& array, const ArrayCheckOptions& options) {
  return catch_out_of_memory([&]() -> Result<ArrayCheck> {
    ArrayCheck check;
    const std::uint64_t count = elements_of(array.metadata().grid());
    FoundFaults faults;
    FirstFailure failure;
    std::mutex mutex;
    // A few large chunks are shared among threads, many small ones given to one each.
    const bool one_each = options.pool != nullptr && count >= 2 * static_cast<std::uint64_t>(options.pool->threads());
    const auto check_chunks = [&](std::size_t begin, std::size_t end) {
      for (std::size_t number = begin; number < end; ++number) {
        const auto found = check_chunk(array, number, options, one_each ? nullptr : options.pool, faults);
        if (!found) {
          failure.note(number, tl::make_unexpected(found.error()));
          return;
        }
        const std::lock_guard lock(mutex);
        check.chunks += found->chunks;
        check.missing += found->missing;
        check.stored_bytes += found->stored_bytes;
        if (options.progress != nullptr) options.progress->advance();
      }
    };
    if (one_each) {
      options.pool->parallel_for(count, 0, check_chunks);
    } else {
      check_chunks(0, count);
    }
    CGL_TRY(failure.take());
    faults.give(check, options.most_faults);
    return check;
  });
}

std::vector<std::string> checksums_of(const ArrayMetadata& metadata) {
  std::vector<std::string> names;
  const auto add = [&](const CodecChain& chain) {
    for (const Codec& codec : chain) {
      if (!has_checksum(codec)) continue;
      add_once(names, codec.kind == CodecKind::crc32c || codec.kind == CodecKind::fletcher32
                          ? codec.name
                          : fmt::format("{} checksum", codec.name));
    }
  };
  add(metadata.coding.chain);
  add(metadata.leaf_coding().chain);
  return names;
}

Result<HierarchyCheck> check_hierarchy(const std::filesystem::path& path, const ArrayCheckOptions& options) {
  HierarchyCheck result;
  const auto sidecar = compare_with_sidecar(path, options.cancel);
  if (!sidecar && sidecar.error().kind() == ErrorKind::interrupted) return tl::make_unexpected(sidecar.error());
  if (!sidecar) result.faults.push_back(sidecar.error().message());
  if (sidecar && *sidecar) result.checksums.emplace_back("sidecar XXH3-128");
  CGL_TRY_ASSIGN(const std::shared_ptr<const Store> store, Store::open(path));
  if (store->is_archive()) {
    CGL_TRY(check_archive(path, options.cancel, result.faults));
    result.checksums.emplace_back("zip CRC-32");
  }
  CGL_TRY_ASSIGN(const Hierarchy hierarchy, read_hierarchy(*store, "", {}, options.cancel));
  for (const Node& node : hierarchy.nodes) {
    if (node.kind != NodeKind::array) continue;
    CGL_TRY_ASSIGN(const Array array, Array::open(store, node.path));
    HierarchyCheck::NamedCheck found{node.path, false, {}};
    CGL_TRY_ASSIGN(found.check, check_array(array, options));
    const std::vector<std::string> checksums = checksums_of(array.metadata());
    found.has_checksum = !checksums.empty();
    for (const std::string& checksum : checksums) add_once(result.checksums, checksum);
    result.missing += found.check.missing;
    result.fault_count += found.check.fault_count - found.check.faults.size();
    result.faults.insert(result.faults.end(), found.check.faults.begin(), found.check.faults.end());
    result.arrays.push_back(std::move(found));
  }
  result.fault_count += result.faults.size();
  return result;
}

}  // namespace cingulum::zarr
