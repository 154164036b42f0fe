// Where models are fitted: on the threads of a pool, or on a device whose kernels are built from the same headers and
// give the same bits (contract, section 6). The fits of this folder take a FitMachine; a ThreadPool converts to one.
// A device is made by make_cuda_fit_device, which tract/run/device_choice.cpp calls; what set-up computes is always the
// host's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"

namespace cingulum {

struct TensorDesign;
struct TensorFit;
struct QBallView;
struct QBallFit;
struct BootstrapPreparationView;
struct BootstrapVoxels;
struct CsdView;
struct CsdFit;
struct DenseMatrix;
class Device;

// `stride` numbers per voxel.
struct FitRecords {
  std::span<const float> values;
  std::size_t stride = 0;

  [[nodiscard]] std::size_t count() const { return stride == 0 ? 0 : values.size() / stride; }
};

// Called with the number of voxels done.
using FitAdvance = std::function<void(std::size_t)>;

// Every function fills vectors that have their size already, and adds to the counts beside them. Views point to host
// memory. The pool's threads move memory to and from the device's staging. All functions: one caller at a time
class FitDevice {
 public:
  virtual ~FitDevice() = default;
  FitDevice(const FitDevice&) = delete;
  FitDevice& operator=(const FitDevice&) = delete;

  [[nodiscard]] virtual const std::string& name() const = 0;  // "cuda:0"

  [[nodiscard]] virtual Status fit_tensors(const TensorDesign& design, const FitRecords& signals, TensorFit& fit,
                                           ThreadPool& pool, const CancelToken& cancel, const FitAdvance& advance) = 0;
  [[nodiscard]] virtual Status fit_q_ball(const QBallView& view, const FitRecords& signals, QBallFit& fit,
                                          ThreadPool& pool, const CancelToken& cancel, const FitAdvance& advance) = 0;
  [[nodiscard]] virtual Status prepare_bootstrap(const BootstrapPreparationView& view, const FitRecords& signals,
                                                 BootstrapVoxels& voxels, ThreadPool& pool,
                                                 const CancelToken& cancel) = 0;
  [[nodiscard]] virtual Status fit_csd(const CsdView& view, const FitRecords& signals,
                                       std::span<const std::uint32_t> volumes, CsdFit& fit, ThreadPool& pool,
                                       const CancelToken& cancel, const FitAdvance& advance) = 0;
  // Rows of `matrix` times each record of coefficients; `clip` makes negative amplitudes zero.
  [[nodiscard]] virtual Status sample(const DenseMatrix& matrix, const FitRecords& coefficients, bool clip,
                                      std::span<float> amplitudes, ThreadPool& pool, const CancelToken& cancel) = 0;

 protected:
  FitDevice() = default;
};

struct FitMachine {
  FitMachine(ThreadPool& threads, FitDevice* on = nullptr, CancelToken stopped_by = {})
      : pool(threads), device(on), cancel(std::move(stopped_by)) {}

  ThreadPool& pool;
  FitDevice* device;   // null: the pool's threads compute
  CancelToken cancel;  // of the run: every fit polls it
};

// The device outlives what is made.
[[nodiscard]] Result<std::unique_ptr<FitDevice>> make_cuda_fit_device(Device& device);

}  // namespace cingulum
