#include <algorithm>

#include "ring/workloads/anomaly_body.hpp"
#include "ring/workloads/echo_and_sum.hpp"
#include "ring/workloads/hop_body.hpp"
#include "ring/workloads/pagerank_body.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {
namespace {

class CpuPlace final : public WorkloadPlace {
 public:
  CpuPlace(std::unique_ptr<Runtime> runtime, std::uint32_t threads) : runtime_(std::move(runtime)), threads_(threads) {}

  std::string name() const override { return "cpu"; }
  Runtime& runtime() override { return *runtime_; }
  std::uint32_t useful_workers() const override { return threads_; }
  bool waiting_takes_a_processor() const override { return true; }

  Result<ActorHandle> launch(const std::string& name, WorkloadBody body, Traffic,
                             const ActorOptions& options) override {
    switch (body) {
      case WorkloadBody::echo: return runtime_->launch(name, EchoBody{}, options);
      case WorkloadBody::sum: return runtime_->launch(name, SumBody<false>{}, options);
      case WorkloadBody::sum_of_squares: return runtime_->launch(name, SumBody<true>{}, options);
      case WorkloadBody::pagerank: return runtime_->launch(name, PageRankBody{}, options);
      case WorkloadBody::anomaly: return runtime_->launch(name, AnomalyBody{}, options);
      case WorkloadBody::hop: return runtime_->launch(name, HopBody{}, options);
      case WorkloadBody::batch_echo: return runtime_->launch(name, BatchEchoBody{}, options);
    }
    return fail(ErrorKind::invalid_argument, "no such body: {}", static_cast<int>(body));
  }

  Result<SharedBuffer> share(std::uint64_t bytes) override {
    CGL_TRY_ASSIGN(const BufferHandle handle, runtime_->buffers().add(bytes));
    CGL_TRY_ASSIGN(const std::span<std::byte> memory, runtime_->buffers().get(handle));
    return SharedBuffer{handle, memory};
  }
  Result<BufferHandle> keep(std::span<const std::byte> content) override {
    CGL_TRY_ASSIGN(const SharedBuffer buffer, share(content.size()));
    std::copy(content.begin(), content.end(), buffer.bytes.begin());
    return buffer.handle;
  }
  Status fetch(BufferHandle handle, std::uint64_t offset, std::span<std::byte> bytes) override {
    CGL_TRY_ASSIGN(const std::span<std::byte> memory, runtime_->buffers().get(handle));
    if (offset > memory.size() || bytes.size() > memory.size() - offset) {
      return fail(ErrorKind::invalid_argument, "fetching {} bytes at {} of a buffer of {}", bytes.size(), offset,
                  memory.size());
    }
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(offset), bytes.size(), bytes.begin());
    return {};
  }
  Status release(BufferHandle handle) override {
    return runtime_->buffers().release(handle).map([](std::uint32_t) {});
  }

 private:
  const std::unique_ptr<Runtime> runtime_;
  const std::uint32_t threads_;
};

}  // namespace

std::string_view workload_body_name(WorkloadBody body) {
  switch (body) {
    case WorkloadBody::echo: return "echo";
    case WorkloadBody::sum: return "sum";
    case WorkloadBody::sum_of_squares: return "sum_of_squares";
    case WorkloadBody::pagerank: return "pagerank";
    case WorkloadBody::anomaly: return "anomaly";
    case WorkloadBody::hop: return "hop";
    case WorkloadBody::batch_echo: return "batch_echo";
  }
  return "?";
}

std::vector<std::string> workload_body_names() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(WorkloadBody::batch_echo); ++i) {
    names.emplace_back(workload_body_name(static_cast<WorkloadBody>(i)));
  }
  return names;
}

Result<std::unique_ptr<WorkloadPlace>> make_cpu_place(std::uint32_t threads, WaitStrategy waiting) {
  RuntimeOptions options;
  options.waiting = waiting;
  CGL_TRY_ASSIGN(std::unique_ptr<Runtime> runtime, Runtime::create(options));
  return std::make_unique<CpuPlace>(std::move(runtime), std::max(threads, 1U));
}

}  // namespace cingulum::ring
