// The models on CUDA: voxels go through the device in pieces of bounded size, several on their way at a time, so that
// copies and kernels overlap. The kernels are those of model_kernels.hpp.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/log.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_status.hpp"
#include "dmri/models/bootstrap.hpp"
#include "dmri/models/csd.hpp"
#include "dmri/models/cuda/model_kernels.hpp"
#include "dmri/models/dense_matrix.hpp"
#include "dmri/models/fit_device.hpp"
#include "dmri/models/fit_launch.hpp"
#include "dmri/models/q_ball.hpp"
#include "dmri/models/tensor.hpp"

namespace cingulum {
namespace {

// Pieces on their way at a time: one is filled or emptied while another is copied and a third computed.
constexpr std::size_t lane_count = 3;
// Bytes for a piece's input, and as many for its output, on the host and on the device.
constexpr std::uint64_t staging_bytes = std::uint64_t{4} << 20;
constexpr std::size_t copy_grain = std::size_t{512} << 10;

// Results of one kind: `per_voxel` numbers for each voxel.
struct Output {
  std::span<float> to;
  std::size_t per_voxel;
};
constexpr std::size_t most_outputs = 7;
using OutputPointers = std::array<float*, most_outputs>;

void copy_with(ThreadPool& pool, void* to, const void* from, std::size_t bytes) {
  pool.parallel_for(bytes, copy_grain, [&](std::size_t begin, std::size_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin, end - begin);
  });
}

// Host tables that become one buffer of the device.
class Tables {
 public:
  // Where `values` will be, as an offset; pointer() says it once upload() has been called.
  template <class T>
  std::size_t add(std::span<const T> values) {
    const std::size_t at = (bytes_.size() + 255) / 256 * 256;
    bytes_.resize(at + values.size_bytes());
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size_bytes());
    return at;
  }
  template <class T>
  std::size_t add(const T* values, std::size_t count) {
    return add(std::span<const T>(values, count));
  }
  [[nodiscard]] Status upload(Device& device, Queue& queue) {
    CGL_TRY_ASSIGN(buffer_, device.allocate(std::max<std::uint64_t>(bytes_.size(), 1)));
    if (!bytes_.empty()) CGL_TRY(queue.upload(*buffer_, 0, bytes_));
    return queue.synchronise();
  }
  template <class T>
  [[nodiscard]] const T* pointer(std::size_t at) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(buffer_->device_pointer()) + at);
  }

 private:
  std::vector<std::byte> bytes_;
  std::unique_ptr<Buffer> buffer_;
};

class CudaFitDevice final : public FitDevice {
 public:
  explicit CudaFitDevice(CudaDevice& device) : device_(device) {}

  [[nodiscard]] Status prepare() {
    CGL_TRY(device_.make_current());
    for (Lane& lane : lanes_) {
      CGL_TRY_ASSIGN(lane.queue, device_.create_queue());
      CGL_TRY_ASSIGN(lane.host_in, device_.allocate_host(staging_bytes, HostMemoryKind::pinned));
      CGL_TRY_ASSIGN(lane.host_out, device_.allocate_host(staging_bytes, HostMemoryKind::pinned));
      CGL_TRY_ASSIGN(lane.in, device_.allocate(staging_bytes));
      CGL_TRY_ASSIGN(lane.out, device_.allocate(staging_bytes));
      CGL_TRY_ASSIGN(lane.counters, device_.allocate(sizeof(FitCounters)));
    }
    return {};
  }

  [[nodiscard]] const std::string& name() const override { return device_.id(); }

  [[nodiscard]] Status fit_tensors(const TensorDesign& design, const FitRecords& signals, TensorFit& fit,
                                   ThreadPool& pool, const CancelToken& cancel, const FitAdvance& advance) override {
    Tables tables;
    const std::size_t volumes = design.volumes;
    const std::size_t rows = tables.add(design.rows, volumes * tensor_unknowns);
    const std::size_t products = tables.add(design.products, volumes * tensor_product_count);
    const std::size_t inverse = tables.add(design.inverse, volumes * tensor_unknowns);
    CGL_TRY(tables.upload(device_, *lanes_[0].queue));
    TensorDesign on_device = design;
    on_device.rows = tables.pointer<double>(rows);
    on_device.products = tables.pointer<double>(products);
    on_device.inverse = tables.pointer<double>(inverse);
    const std::vector<Output> outputs = {{fit.tensor, 6}, {fit.eigenvalues, 3}, {fit.v1, 3}, {fit.fa, 1},
                                         {fit.md, 1},     {fit.rd, 1},          {fit.s0, 1}};
    FitCounters totals = {};
    CGL_TRY(stream(signals, outputs, pool, cancel, advance, totals, [&](const Lane& lane, const Piece& piece) {
      const OutputPointers& to = piece.out;
      return cuda_status(
          launch_tensors(on_device, piece.in, piece.voxels, {to[0], to[1], to[2], to[3], to[4], to[5], to[6]},
                         lane.counters_pointer(), lane.stream()),
          "device {}: fitting tensors", device_.id());
    }));
    fit.unsolvable += totals.unsolvable;
    return {};
  }

  [[nodiscard]] Status fit_q_ball(const QBallView& view, const FitRecords& signals, QBallFit& fit, ThreadPool& pool,
                                  const CancelToken& cancel, const FitAdvance& advance) override {
    Tables tables;
    const std::size_t volumes = tables.add(view.volumes, view.directions);
    const std::size_t b0_volumes = tables.add(view.b0_volumes, view.b0_count);
    const std::size_t linear = tables.add(view.linear, view.count * view.directions);
    const bool opdt = view.kind == QBallModelKind::opdt;
    const std::size_t quadratic = tables.add(view.quadratic, opdt ? view.count * view.directions : 0);
    CGL_TRY(tables.upload(device_, *lanes_[0].queue));
    QBallView on_device = view;
    on_device.volumes = tables.pointer<std::uint32_t>(volumes);
    on_device.b0_volumes = tables.pointer<std::uint32_t>(b0_volumes);
    on_device.linear = tables.pointer<double>(linear);
    on_device.quadratic = opdt ? tables.pointer<double>(quadratic) : nullptr;
    CGL_TRY_ASSIGN(const WorkPlan plan, plan_work(q_ball_kernel_address(), 2 * (view.directions + view.count), 1));
    FitCounters totals = {};
    const std::vector<Output> outputs = {{fit.coefficients, view.count}, {fit.gfa, 1}};
    return stream(signals, outputs, pool, cancel, advance, totals, [&](const Lane& lane, const Piece& piece) {
      return cuda_status(launch_q_ball(on_device, piece.in, static_cast<std::uint32_t>(signals.stride), piece.voxels,
                                       piece.out[0], piece.out[1], plan.of_lane(lane.index), lane.stream()),
                         "device {}: fitting OPDT or CSA", device_.id());
    });
  }

  [[nodiscard]] Status prepare_bootstrap(const BootstrapPreparationView& view, const FitRecords& signals,
                                         BootstrapVoxels& voxels, ThreadPool& pool,
                                         const CancelToken& cancel) override {
    Tables tables;
    const std::size_t volumes = tables.add(view.volumes, view.directions);
    const std::size_t b0_volumes = tables.add(view.b0_volumes, view.b0_count);
    const std::size_t inverse = tables.add(view.inverse, view.count * view.directions);
    const std::size_t residual = tables.add(view.residual, view.directions * view.directions);
    CGL_TRY(tables.upload(device_, *lanes_[0].queue));
    BootstrapPreparationView on_device = view;
    on_device.volumes = tables.pointer<std::uint32_t>(volumes);
    on_device.b0_volumes = tables.pointer<std::uint32_t>(b0_volumes);
    on_device.inverse = tables.pointer<double>(inverse);
    on_device.residual = tables.pointer<double>(residual);
    CGL_TRY_ASSIGN(const WorkPlan plan, plan_work(bootstrap_kernel_address(), view.directions, 1));
    FitCounters totals = {};
    const std::vector<Output> outputs = {
        {voxels.coefficients, view.count}, {voxels.residuals, view.directions}, {voxels.b0, 1}};
    return stream(signals, outputs, pool, cancel, {}, totals, [&](const Lane& lane, const Piece& piece) {
      return cuda_status(
          launch_bootstrap(on_device, piece.in, static_cast<std::uint32_t>(signals.stride), piece.voxels, piece.out[0],
                           piece.out[1], piece.out[2], plan.of_lane(lane.index), lane.stream()),
          "device {}: preparing the bootstrap", device_.id());
    });
  }

  [[nodiscard]] Status fit_csd(const CsdView& view, const FitRecords& signals, std::span<const std::uint32_t> volumes,
                               CsdFit& fit, ThreadPool& pool, const CancelToken& cancel,
                               const FitAdvance& advance) override {
    Tables tables;
    const auto count = static_cast<std::size_t>(view.count);
    const auto stride = static_cast<std::size_t>(view.stride);
    const auto gradients = static_cast<std::size_t>(view.gradients);
    const std::size_t volumes_at = tables.add(volumes);
    const std::size_t projection = tables.add(view.projection, gradients * stride);
    const std::size_t start = tables.add(view.start, gradients * stride);
    const std::size_t amplitudes = tables.add(view.amplitudes, count * static_cast<std::size_t>(view.direction_stride));
    const std::size_t constraint = tables.add(view.constraint, static_cast<std::size_t>(view.directions) * stride);
    const std::size_t gram = tables.add<double>(in_panels(view, view.gram));
    const std::size_t gram_all = tables.add<double>(in_panels(view, view.gram_all));
    CGL_TRY(tables.upload(device_, *lanes_[0].queue));
    CsdTeamView on_device = {view, tables.pointer<double>(gram), tables.pointer<double>(gram_all)};
    on_device.model.projection = tables.pointer<double>(projection);
    on_device.model.start = tables.pointer<double>(start);
    on_device.model.amplitudes = tables.pointer<double>(amplitudes);
    on_device.model.constraint = tables.pointer<double>(constraint);
    on_device.model.negated_constraint = nullptr;
    on_device.model.gram = nullptr;
    on_device.model.gram_all = nullptr;
    CGL_TRY_ASSIGN(const CsdPlan plan, plan_csd(view));
    FitCounters totals = {};
    const std::vector<Output> outputs = {{fit.coefficients, count}};
    const auto launch = [&](const Lane& lane, const Piece& piece) -> Status {
      CGL_TRY(lane.queue->fill(*lane.counters, offsetof(FitCounters, next_voxel), sizeof(FitCounters::next_voxel),
                               std::byte{0}));
      const CsdPiece on_piece = {.signals = piece.in,
                                 .stride = static_cast<std::uint32_t>(signals.stride),
                                 .volumes = tables.pointer<std::uint32_t>(volumes_at),
                                 .voxels = piece.voxels,
                                 .coefficients = piece.out[0]};
      return cuda_status(
          launch_csd(on_device, on_piece, lane.counters_pointer(), plan.of_lane(lane.index, view), lane.stream()),
          "device {}: deconvolving", device_.id());
    };
    CGL_TRY(stream(signals, outputs, pool, cancel, advance, totals, launch));
    fit.unconstrained += totals.unconstrained;
    fit.not_converged += totals.not_converged;
    fit.not_solvable += totals.unsolvable;
    fit.iterations += totals.iterations;
    return {};
  }

  [[nodiscard]] Status sample(const DenseMatrix& matrix, const FitRecords& coefficients, bool clip,
                              std::span<float> amplitudes, ThreadPool& pool, const CancelToken& cancel) override {
    Tables tables;
    const std::size_t at = tables.add<double>(matrix.values);
    CGL_TRY(tables.upload(device_, *lanes_[0].queue));
    const auto rows = static_cast<std::uint32_t>(matrix.rows);
    CGL_TRY_ASSIGN(const WorkPlan plan, plan_work(sample_kernel_address(), matrix.columns, (rows + 31) / 32));
    FitCounters totals = {};
    const std::vector<Output> outputs = {{amplitudes, matrix.rows}};
    return stream(coefficients, outputs, pool, cancel, {}, totals, [&](const Lane& lane, const Piece& piece) {
      return cuda_status(
          launch_sample(tables.pointer<double>(at), rows, static_cast<std::uint32_t>(matrix.columns), clip, piece.in,
                        piece.voxels, piece.out[0], plan.of_lane(lane.index), lane.stream()),
          "device {}: sampling amplitudes", device_.id());
    });
  }

 private:
  struct Lane {
    std::size_t index = 0;
    std::unique_ptr<Queue> queue;
    std::unique_ptr<HostMemory> host_in, host_out;
    std::unique_ptr<Buffer> in, out, counters;
    std::unique_ptr<Event> done;  // of the piece that is on its way; null: none is
    std::size_t first = 0, voxels = 0;

    [[nodiscard]] cudaStream_t stream() const { return cuda_stream_of(*queue); }
    [[nodiscard]] FitCounters* counters_pointer() const {
      return static_cast<FitCounters*>(counters->device_pointer());
    }
  };
  struct Piece {
    const float* in;
    std::uint32_t voxels;
    OutputPointers out;
  };
  // The work space of a kernel for each lane.
  struct WorkPlan {
    VoxelWork work;
    std::unique_ptr<Buffer> global;
    std::size_t numbers_per_lane = 0;

    [[nodiscard]] VoxelWork of_lane(std::size_t lane) const {
      VoxelWork result = work;
      if (global) result.global = static_cast<double*>(global->device_pointer()) + lane * numbers_per_lane;
      return result;
    }
  };
  struct CsdPlan {
    CsdLaunch launch;
    std::unique_ptr<Buffer> gram;

    [[nodiscard]] CsdLaunch of_lane(std::size_t lane, const CsdView& view) const {
      CsdLaunch result = launch;
      result.gram = static_cast<double*>(gram->device_pointer()) +
                    lane * launch.warps() * static_cast<std::size_t>(panel_numbers(view.stride));
      return result;
    }
  };

  // Waits for all lanes when a fit ends, well or not: its tables are freed then.
  struct Drained {
    std::array<Lane, lane_count>& lanes;
    ~Drained() {
      for (Lane& lane : lanes) {
        if (const Status ended = lane.queue->synchronise(); !ended) log_debug("{}", ended.error());
        lane.done.reset();
      }
    }
  };

  // Lets the kernel have all shared memory; tells how many blocks of this kind fill the device.
  [[nodiscard]] Result<std::uint32_t> blocks_that_fill(const void* kernel, std::uint32_t threads,
                                                       std::uint32_t shared_bytes) const {
    CGL_TRY(device_.make_current());
    const std::uint64_t most_shared = device_.capabilities().shared_bytes;
    CGL_TRY(cuda_status(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most_shared)),
        "device {}: asking for {} bytes of shared memory", device_.id(), most_shared));
    int blocks = 0;
    CGL_TRY(cuda_status(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(threads), shared_bytes),
        "device {}: planning a launch", device_.id()));
    return static_cast<std::uint32_t>(std::max(blocks, 1)) * device_.capabilities().compute_units;
  }

  // `parts`: blocks along y, which need memory of their own.
  [[nodiscard]] Result<WorkPlan> plan_work(const void* kernel, std::size_t numbers, std::size_t parts) const {
    const FitLaunchShape shape = voxel_fit_launch(numbers, device_.capabilities().shared_bytes);
    WorkPlan plan;
    plan.work = {.threads = shape.threads,
                 .blocks = 0,
                 .numbers = static_cast<std::uint32_t>(numbers),
                 .shared_bytes = shape.fits ? shape.shared_bytes : 0,
                 .global = nullptr};
    if (shape.fits) {
      CGL_TRY_ASSIGN(plan.work.blocks, blocks_that_fill(kernel, plan.work.threads, plan.work.shared_bytes));
      return plan;
    }
    plan.work.blocks = device_.capabilities().compute_units;
    plan.numbers_per_lane = std::size_t{plan.work.blocks} * parts * plan.work.threads * numbers;
    CGL_TRY_ASSIGN(plan.global, device_.allocate(lane_count * plan.numbers_per_lane * sizeof(double)));
    return plan;
  }

  [[nodiscard]] Result<CsdPlan> plan_csd(const CsdView& view) const {
    const std::uint64_t most_shared = device_.capabilities().shared_bytes;
    const auto [threads, bytes, fits] = csd_fit_launch(team_bytes(view), most_shared);
    if (!fits) {
      return fail(ErrorKind::out_of_memory,
                  "device {}: deconvolving {} coefficients with {} directions needs {} bytes of shared memory, there "
                  "are {}; use {} cpu",
                  device_.id(), view.count, view.directions, bytes, most_shared, argument_name("device"));
    }
    CsdPlan plan;
    plan.launch = {.threads = threads, .blocks = 0, .shared_bytes = bytes, .gram = nullptr};
    CGL_TRY_ASSIGN(plan.launch.blocks, blocks_that_fill(csd_kernel_address(), threads, bytes));
    const std::uint64_t gram = static_cast<std::uint64_t>(panel_numbers(view.stride)) * sizeof(double);
    CGL_TRY_ASSIGN(plan.gram, device_.allocate(lane_count * plan.launch.warps() * gram));
    log_debug("device {}: CSD with {} blocks of {} threads, {} bytes of shared memory each", device_.id(),
              plan.launch.blocks, plan.launch.threads, plan.launch.shared_bytes);
    return plan;
  }

  // The times are added to.
  [[nodiscard]] Status empty(Lane& lane, std::span<const Output> outputs, ThreadPool& pool, const FitAdvance& advance,
                             double& waiting, double& emptying) {
    if (!lane.done) return {};
    const auto begin = std::chrono::steady_clock::now();
    CGL_TRY(lane.done->wait());
    lane.done.reset();
    const auto arrived = std::chrono::steady_clock::now();
    const auto* from = reinterpret_cast<const float*>(lane.host_out->bytes().data());
    for (const Output& output : outputs) {
      copy_with(pool, output.to.data() + lane.first * output.per_voxel, from,
                lane.voxels * output.per_voxel * sizeof(float));
      from += lane.voxels * output.per_voxel;
    }
    waiting += std::chrono::duration<double>(arrived - begin).count();
    emptying += std::chrono::duration<double>(std::chrono::steady_clock::now() - arrived).count();
    if (advance) advance(lane.voxels);
    return {};
  }

  // Sends all records through the device; launch(lane, piece) starts the kernel of a piece.
  template <class Launch>
  [[nodiscard]] Status stream(const FitRecords& records, std::span<const Output> outputs, ThreadPool& pool,
                              const CancelToken& cancel, const FitAdvance& advance, FitCounters& totals,
                              Launch&& launch) {
    CGL_TRY(device_.make_current());
    std::size_t written = 0;
    for (const Output& output : outputs) written += output.per_voxel;
    const std::size_t most = staging_bytes / (std::max(records.stride, written) * sizeof(float));
    if (most == 0) {
      return fail(ErrorKind::out_of_memory,
                  "device {}: a voxel of {} numbers and {} results exceeds the staging of {} bytes; use {} cpu",
                  device_.id(), records.stride, written, staging_bytes, argument_name("device"));
    }
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    double filling = 0, waiting = 0, emptying = 0;
    const auto timed = [](double& sum, auto&& body) {
      const auto from = Clock::now();
      body();
      sum += std::chrono::duration<double>(Clock::now() - from).count();
    };
    const Drained drained = {lanes_};
    for (std::size_t i = 0; i < lane_count; ++i) {
      lanes_[i].index = i;
      CGL_TRY(lanes_[i].queue->fill(*lanes_[i].counters, 0, sizeof(FitCounters), std::byte{0}));
    }
    const std::size_t count = records.count();
    std::size_t turn = 0;
    for (std::size_t first = 0; first < count; first += most, ++turn) {
      CGL_TRY(cancel.check());
      Lane& lane = lanes_[turn % lane_count];
      CGL_TRY(empty(lane, outputs, pool, advance, waiting, emptying));
      lane.first = first;
      lane.voxels = std::min(most, count - first);
      const std::size_t in_bytes = lane.voxels * records.stride * sizeof(float);
      const std::size_t out_bytes = lane.voxels * written * sizeof(float);
      timed(filling, [&] {
        copy_with(pool, lane.host_in->bytes().data(), records.values.data() + first * records.stride, in_bytes);
      });
      CGL_TRY(lane.queue->upload(*lane.in, 0, lane.host_in->bytes().first(in_bytes)));
      Piece piece = {static_cast<const float*>(lane.in->device_pointer()), static_cast<std::uint32_t>(lane.voxels), {}};
      float* next = static_cast<float*>(lane.out->device_pointer());
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        piece.out[o] = next;
        next += lane.voxels * outputs[o].per_voxel;
      }
      CGL_TRY(launch(lane, piece));
      CGL_TRY(lane.queue->download(lane.host_out->bytes().first(out_bytes), *lane.out, 0));
      CGL_TRY_ASSIGN(lane.done, lane.queue->record());
    }
    for (std::size_t i = 0; i < lane_count; ++i) {
      CGL_TRY(empty(lanes_[(turn + i) % lane_count], outputs, pool, advance, waiting, emptying));
    }
    for (Lane& lane : lanes_) {
      FitCounters found = {};
      CGL_TRY(lane.queue->download(std::as_writable_bytes(std::span(&found, 1)), *lane.counters, 0));
      CGL_TRY(lane.queue->synchronise());
      totals.unsolvable += found.unsolvable;
      totals.unconstrained += found.unconstrained;
      totals.not_converged += found.not_converged;
      totals.iterations += found.iterations;
    }
    log_debug(
        "device {}: {} voxels in {} pieces: {:.4f} s, of it {:.4f} s filling, {:.4f} s waiting, {:.4f} s emptying",
        device_.id(), count, turn, std::chrono::duration<double>(Clock::now() - begin).count(), filling, waiting,
        emptying);
    return {};
  }

  CudaDevice& device_;
  std::array<Lane, lane_count> lanes_;
};

}  // namespace

Result<std::unique_ptr<FitDevice>> make_cuda_fit_device(Device& device) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<FitDevice>> {
    auto made = std::make_unique<CudaFitDevice>(static_cast<CudaDevice&>(device));
    CGL_TRY(made->prepare());
    return made;
  });
}

}  // namespace cingulum
