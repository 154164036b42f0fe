#include <algorithm>
#include <array>

#include "device/memory_pool.hpp"
#include "zarr/chunk_writer.hpp"
#include "zarr/direct/box_kernels.hpp"
#include "zarr/direct/device_place.hpp"
#include "zarr/direct/device_region.hpp"
#include "zarr/direct/staging.hpp"

namespace cingulum::zarr {
namespace {

// Elements of a window, of which two are on the host: long enough that threads seldom wait for each other at its end.
constexpr std::uint64_t window_bytes = std::uint64_t{256} << 20;

// Device memory in which leaves are packed before they are downloaded; two are used in turn.
struct Piece {
  std::optional<PooledBlock<DeviceBlock>> memory;
  std::unique_ptr<Buffer> table;
  std::unique_ptr<Event> drained;  // its bytes have arrived on the host
};

// A leaf of a window on the host: in stored form, where the region has all of it, else the elements that the region has
// of it, one behind the other.
struct PackedLeaf {
  std::uint64_t at = 0;
  bool whole = false;
};

struct PackedWindow {
  std::optional<PooledBlock<PinnedBlock>> memory;
  std::vector<PackedLeaf> leaves;  // by their number in the window
  std::unique_ptr<Event> arrived;
};

}  // namespace

struct DeviceWriter::Parts {
  Device& device;
  RingOptions ring;
  std::unique_ptr<BoxKernels> kernels;
  std::unique_ptr<Queue> copies;
  std::unique_ptr<PinnedPool> pinned;
  std::unique_ptr<DevicePool> memory;
  std::array<Piece, 2> pieces;
  std::array<PackedWindow, 2> windows;

  ~Parts() { static_cast<void>(finish()); }
  [[nodiscard]] Status finish() {
    Status status;
    for (PackedWindow& window : windows) {
      if (window.arrived == nullptr) continue;
      if (Status done = window.arrived->wait(); !done && status) status = std::move(done);
      window.arrived.reset();
    }
    return status;
  }
  [[nodiscard]] Result<DeviceWriteReport> write(const Array& array, StoreOutput& output, const Region& region,
                                                Queue& queue, const DevicePlace& from,
                                                const DeviceWriteOptions& options);
};

namespace {

// Leaves of a region that lies on a device: packed there by a kernel, downloaded while the window before is written.
class DeviceSource final : public LeafSource {
 public:
  struct Means {
    Device& device;
    BoxKernels& kernels;
    Queue& copies;
    PinnedPool& pinned;
    DevicePool& memory;
    std::array<Piece, 2>& pieces;
    std::array<PackedWindow, 2>& windows;
    std::uint64_t piece_bytes;
  };
  DeviceSource(const RegionPlan& plan, Queue& queue, const DevicePlace& from, const Means& means)
      : plan_(plan),
        metadata_(plan.array().metadata()),
        leaf_shape_(metadata_.leaf_shape()),
        strides_(from.strides.empty() ? row_major_strides(plan.region().shape, metadata_.type.bytes())
                                      : Strides(from.strides.begin(), from.strides.end())),
        queue_(queue),
        from_(from),
        means_(means) {}

  [[nodiscard]] bool holds_whole_leaves() const override { return true; }

  [[nodiscard]] Status begin_window(std::span<const LeafRange> now, std::span<const LeafRange> next) override {
    return catch_out_of_memory([&]() -> Status {
      if (current_ == nullptr) {
        CGL_TRY(start(now, means_.windows[0]));
        current_ = &means_.windows[0];
      } else {
        current_ = &other();
      }
      if (current_->arrived != nullptr) CGL_TRY(current_->arrived->wait());
      current_->arrived.reset();
      // The other window was written: its memory takes what comes next.
      return next.empty() ? Status() : start(next, other());
    });
  }

  [[nodiscard]] Result<std::span<const std::byte>> leaf(const LeafPart& part) override {
    const PackedLeaf& packed = current_->leaves[part.number];
    const std::span<const std::byte> bytes = (*current_->memory)->bytes.subspan(packed.at);
    if (packed.whole) return bytes.first(plan_.leaf_bytes());
    CGL_TRY_ASSIGN(const RegionPlan own, RegionPlan::create(plan_.array(), part_of(part.origin)));
    own.for_each_move(part.origin, [&](const BoxMove& move) { gather(move, bytes.data(), part.room.data()); });
    return std::span<const std::byte>(part.room);
  }

 private:
  [[nodiscard]] PackedWindow& other() const {
    return current_ == &means_.windows[0] ? means_.windows[1] : means_.windows[0];
  }

  // What the region has of a leaf; a dimension of 0 elements where it has nothing.
  [[nodiscard]] Region part_of(std::span<const std::uint64_t> origin) const {
    const Region& region = plan_.region();
    Region part;
    for (std::size_t d = 0; d < origin.size(); ++d) {
      const std::uint64_t begin = std::max(origin[d], region.origin[d]);
      const std::uint64_t end = std::min(origin[d] + leaf_shape_[d], region.origin[d] + region.shape[d]);
      part.origin.push_back(begin);
      part.shape.push_back(end > begin ? end - begin : 0);
    }
    return part;
  }

  // The elements of a part one behind the other, as they are in memory.
  [[nodiscard]] BoxMove dense_move(const Region& part) const {
    BoxMove move;
    move.rank = static_cast<std::uint32_t>(part.shape.size());
    move.element_bytes = static_cast<std::uint32_t>(metadata_.type.bytes());
    std::uint64_t elements = 1;
    for (std::size_t d = part.shape.size(); d-- > 0;) {
      move.extent[d] = part.shape[d];
      move.chunk_stride[d] = elements;
      move.place_stride[d] = strides_[d];
      move.place_offset += (part.origin[d] - plan_.region().origin[d]) * static_cast<std::uint64_t>(strides_[d]);
      elements *= part.shape[d];
    }
    return move;
  }

  // Queues the packing and the download of a window.
  [[nodiscard]] Status start(std::span<const LeafRange> ranges, PackedWindow& window) {
    window.leaves.clear();
    std::vector<BoxTask> tasks;
    std::uint64_t end = 0;
    for (const LeafRange& range : ranges) {
      for (std::size_t k = range.begin; k < range.end; ++k) {
        const auto origin = range.leaves->origin(k);
        const PackedLeaf packed{end, plan_.covers(origin) && plan_.is_inside(origin)};
        window.leaves.push_back(packed);
        BoxTask task;
        std::uint64_t bytes = plan_.leaf_bytes();
        if (packed.whole) {
          task.move = plan_.move(*range.leaves, k);
        } else {
          const Region part = part_of(origin);
          if (std::ranges::find(part.shape, std::uint64_t{0}) != part.shape.end()) continue;
          task.move = dense_move(part);
          bytes = task.move.element_count() * metadata_.type.bytes();
        }
        task.move.place_offset += from_.offset;
        task.chunk_at = end;
        tasks.push_back(task);
        end += round_up(bytes, slab_alignment);
      }
    }
    if (tasks.empty()) return {};
    if (!window.memory || (*window.memory)->bytes.size() < end) {
      window.memory.reset();
      CGL_TRY_ASSIGN(window.memory, means_.pinned.acquire(end));
    }
    const std::span<std::byte> host = (*window.memory)->bytes;
    for (std::size_t i = 0; i < tasks.size();) {
      const std::uint64_t begin = tasks[i].chunk_at;
      std::size_t last = i + 1;
      while (last < tasks.size() && end_of(tasks, last, end) - begin <= means_.piece_bytes) ++last;
      const std::uint64_t bytes = end_of(tasks, last - 1, end) - begin;
      CGL_TRY(pack(std::span(tasks).subspan(i, last - i), begin, host.subspan(begin, bytes), window));
      i = last;
    }
    return {};
  }
  static std::uint64_t end_of(std::span<const BoxTask> tasks, std::size_t i, std::uint64_t end) {
    return i + 1 < tasks.size() ? tasks[i + 1].chunk_at : end;
  }

  [[nodiscard]] Status pack(std::span<BoxTask> tasks, std::uint64_t begin, std::span<std::byte> to,
                            PackedWindow& window) {
    Piece& piece = means_.pieces[next_piece_ % means_.pieces.size()];
    ++next_piece_;
    if (!piece.memory || (**piece.memory)->bytes() < to.size()) {
      if (piece.drained != nullptr) CGL_TRY(piece.drained->wait());
      piece.memory.reset();
      CGL_TRY_ASSIGN(piece.memory, means_.memory.acquire(std::max<std::uint64_t>(means_.piece_bytes, to.size())));
    }
    Buffer& packed = ***piece.memory;
    BoxPlan boxes(means_.kernels.limits_of(from_.buffer), {});
    for (BoxTask& task : tasks) {
      task.chunk_at -= begin;
      boxes.add(task);
    }
    const std::span<const std::byte> table = std::as_bytes(boxes.records());
    if (piece.drained != nullptr) CGL_TRY(queue_.wait_for(*piece.drained));
    if (piece.table == nullptr || piece.table->bytes() < table.size()) {
      if (piece.drained != nullptr) CGL_TRY(piece.drained->wait());
      CGL_TRY_ASSIGN(piece.table, means_.device.allocate(table.size()));
    }
    CGL_TRY(queue_.upload(*piece.table, 0, table));
    CGL_TRY(means_.kernels.gather(queue_, {&boxes, piece.table.get(), 0}, packed, from_.buffer));
    CGL_TRY_ASSIGN(const auto gathered, queue_.record());
    CGL_TRY(means_.copies.wait_for(*gathered));
    CGL_TRY(means_.copies.download(to, packed, 0));
    CGL_TRY_ASSIGN(piece.drained, means_.copies.record());
    // Downloads arrive in the order of their queue: the last one's event is the window's.
    CGL_TRY_ASSIGN(window.arrived, means_.copies.record());
    return {};
  }

  const RegionPlan& plan_;
  const ArrayMetadata& metadata_;
  const Shape leaf_shape_;
  const Strides strides_;
  Queue& queue_;
  const DevicePlace& from_;
  const Means& means_;
  PackedWindow* current_ = nullptr;
  std::size_t next_piece_ = 0;
};

}  // namespace

DeviceWriter::DeviceWriter(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
DeviceWriter::~DeviceWriter() = default;

Result<std::unique_ptr<DeviceWriter>> DeviceWriter::create(Device& device, RingOptions ring) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<DeviceWriter>> {
    std::unique_ptr<Parts> parts(new Parts{device, ring, {}, {}, {}, {}, {}, {}});
    if (!device.capabilities().shares_host_memory) {
      CGL_TRY_ASSIGN(parts->kernels, BoxKernels::create(device));
      CGL_TRY_ASSIGN(parts->copies, device.create_queue());
      parts->pinned = std::make_unique<PinnedPool>(
          device, device.capabilities().pinned_host_memory ? HostMemoryKind::pinned : HostMemoryKind::pageable);
      parts->memory = std::make_unique<DevicePool>(device);
    }
    return std::unique_ptr<DeviceWriter>(new DeviceWriter(std::move(parts)));
  });
}

Result<DeviceWriteReport> DeviceWriter::write(const Array& array, StoreOutput& output, const Region& region,
                                              Queue& queue, const DevicePlace& from,
                                              const DeviceWriteOptions& options) {
  return catch_out_of_memory([&] { return parts_->write(array, output, region, queue, from, options); });
}

Result<DeviceWriteReport> DeviceWriter::Parts::write(const Array& array, StoreOutput& output, const Region& region,
                                                     Queue& queue, const DevicePlace& from,
                                                     const DeviceWriteOptions& options) {
  CGL_TRY(check_place(array, region, queue, from));
  DeviceWriteReport report;
  const ArrayWriteOptions write_options{options.pool, options.cancel};
  if (kernels == nullptr) {
    CGL_TRY_ASSIGN(report.write, write_region(array, output, region, host_bytes(from), from.strides, write_options));
    return report;
  }
  CGL_TRY_ASSIGN(const RegionPlan plan, RegionPlan::create(array, region, from.strides));
  const std::uint64_t leaf = round_up(plan.leaf_bytes(), slab_alignment);
  const std::uint64_t binding = device.capabilities().largest_binding_bytes;
  if (!plan.moves_fit() || (binding != 0 && leaf > binding)) {
    if (!is_dense(array, region, from)) {
      return fail(ErrorKind::invalid_argument,
                  "{}: its chunks do not fit the kernels of {}, and a region with strides cannot be downloaded whole; "
                  "write it without strides",
                  array.name(), device.id());
    }
    BulkVector<std::byte> all(static_cast<std::size_t>(plan.place_bytes()));
    CGL_TRY(queue.download(all, from.buffer, from.offset));
    CGL_TRY(queue.synchronise());
    CGL_TRY_ASSIGN(report.write, write_region(array, output, region, all, write_options));
    return report;
  }

  const ChunkWriteOptions chunks{write_options, window_bytes};
  const DeviceSource::Means means = {device,  *kernels, *copies, *pinned,
                                     *memory, pieces,   windows, std::max(leaf, ring.slab_bytes)};
  DeviceSource source(plan, queue, from, means);
  Result<WriteReport> written = write_chunks(plan, output, source, chunks);
  // A download that nobody waited for may still arrive.
  Status finished = finish();
  if (!written) return tl::make_unexpected(std::move(written.error()));
  CGL_TRY(std::move(finished));
  report.write = *written;
  for (const PackedWindow& window : windows) {
    if (window.memory) report.ring_bytes += (*window.memory)->bytes.size();
  }
  return report;
}

}  // namespace cingulum::zarr
