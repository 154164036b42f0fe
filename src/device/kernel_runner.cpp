#include "device/kernel_runner.hpp"

namespace cingulum {

Status KernelRegistry::add(std::string name, std::shared_ptr<Kernel> kernel, bool overwrite) {
  if (name.empty() || kernel == nullptr)
    return fail(ErrorKind::invalid_argument, "registering a kernel: no name or no kernel");
  const std::lock_guard lock(mutex_);
  if (!overwrite && kernels_.contains(name)) {
    return fail(ErrorKind::already_exists, "registering kernel '{}': the name is taken", name);
  }
  kernels_.insert_or_assign(std::move(name), std::move(kernel));
  return {};
}

Result<std::shared_ptr<Kernel>> KernelRegistry::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = kernels_.find(name); found != kernels_.end()) return found->second;
  std::string known;
  for (const auto& [known_name, kernel] : kernels_) known += (known.empty() ? "" : ", ") + known_name;
  return fail(ErrorKind::not_found, "there is no kernel '{}' (registered: {})", name, known.empty() ? "none" : known);
}

std::vector<std::string> KernelRegistry::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [name, kernel] : kernels_) all.push_back(name);
  return all;
}

void KernelRegistry::clear() {
  const std::lock_guard lock(mutex_);
  kernels_.clear();
}

Result<KernelExecution> KernelRunner::run(std::string_view name, const LaunchShape& shape,
                                          std::span<const KernelArgument> arguments) {
  KernelExecution execution;
  execution.id = next_id_++;
  execution.kernel = name;
  execution.shape = shape;
  execution.started = std::chrono::system_clock::now();
  const auto start = std::chrono::steady_clock::now();
  const Status status = [&]() -> Status {
    CGL_TRY_ASSIGN(const auto kernel, registry_.find(name));
    CGL_TRY_ASSIGN(const auto before, queue_.record());
    CGL_TRY(queue_.launch(*kernel, shape, arguments));
    CGL_TRY_ASSIGN(const auto after, queue_.record());
    CGL_TRY(queue_.synchronise());
    if (queue_.device().capabilities().device_timestamps) {
      CGL_TRY_ASSIGN(execution.device_milliseconds, after->milliseconds_since(*before));
    }
    return {};
  }();
  execution.host_milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  execution.succeeded = status.has_value();
  if (!status) execution.error = status.error().message();
  if (history_limit_ > 0) {
    if (history_.size() == history_limit_) history_.pop_front();
    history_.push_back(execution);
  }
  if (!status) return tl::make_unexpected(status.error());
  return execution;
}

std::vector<KernelExecution> KernelRunner::history(std::size_t limit, std::string_view kernel) const {
  std::vector<KernelExecution> chosen;
  for (auto entry = history_.rbegin(); entry != history_.rend(); ++entry) {
    if (limit != 0 && chosen.size() == limit) break;
    if (kernel.empty() || entry->kernel == kernel) chosen.push_back(*entry);
  }
  return {chosen.rbegin(), chosen.rend()};
}

}  // namespace cingulum
