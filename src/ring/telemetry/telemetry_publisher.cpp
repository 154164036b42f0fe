#include "ring/telemetry/telemetry_publisher.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace cingulum::ring {

Result<std::filesystem::path> process_page_path(std::string_view xdg_runtime_dir) {
  CGL_TRY_ASSIGN(const std::filesystem::path folder, telemetry_folder(xdg_runtime_dir, true));
  return folder / fmt::format("{}.ring", ::getpid());
}

Result<std::unique_ptr<TelemetryPublisher>> TelemetryPublisher::start(std::function<RuntimeTelemetry()> read,
                                                                      PublisherOptions options) {
  CGL_TRY_ASSIGN(TelemetryPage page, TelemetryPage::create(options.path));
  std::unique_ptr<TelemetryPublisher> publisher(
      new TelemetryPublisher(std::move(read), std::move(options), std::move(page)));
  CGL_TRY(publisher->publish());
  publisher->thread_ = std::thread([self = publisher.get()] { self->run(); });
  return publisher;
}

TelemetryPublisher::TelemetryPublisher(std::function<RuntimeTelemetry()> read, PublisherOptions options,
                                       TelemetryPage page)
    : read_(std::move(read)), options_(std::move(options)), gpus_(options_.nvml_library), page_(std::move(page)) {}

TelemetryPublisher::~TelemetryPublisher() {
  {
    const std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

TelemetrySnapshot TelemetryPublisher::snapshot() const {
  TelemetrySnapshot snapshot;
  snapshot.process = ::getpid();
  snapshot.program = options_.program;
  snapshot.unix_time_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
  snapshot.runtime = read_();
  snapshot.gpus = gpus_.read();
  return snapshot;
}

Status TelemetryPublisher::publish() {
  const std::string text =
      telemetry_json(snapshot()).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const std::lock_guard lock(page_mutex_);
  return page_.write(text);
}

void TelemetryPublisher::run() {
  std::unique_lock lock(stop_mutex_);
  while (!stop_changed_.wait_for(lock, options_.interval, [&] { return stop_; })) {
    lock.unlock();
    // A page that cannot be written (a full disk) is no reason to disturb the runtime; the next time may succeed.
    static_cast<void>(publish());
    lock.lock();
  }
}

}  // namespace cingulum::ring
