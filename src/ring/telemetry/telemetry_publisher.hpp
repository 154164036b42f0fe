// Shows the telemetry of a runtime on a telemetry page, several times a second, for as long as it lives. Programs that
// hold a Runtime make one beside it: `cingulum ring run` and `cingulum ring bench` do.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.hpp"
#include "ring/telemetry/gpu_monitor.hpp"
#include "ring/telemetry/telemetry_export.hpp"
#include "ring/telemetry/telemetry_page.hpp"

namespace cingulum::ring {

struct PublisherOptions {
  std::filesystem::path path;  // of the page; usually process_page_path(...)
  std::string program;         // what `cingulum ring top` shows beside the process number
  std::chrono::milliseconds interval{250};
  std::optional<std::filesystem::path> nvml_library;  // of the setting
};

// FOLDER/PROCESS.ring, in the folder of telemetry_folder, which is made.
[[nodiscard]] Result<std::filesystem::path> process_page_path(std::string_view xdg_runtime_dir);

class TelemetryPublisher {
 public:
  // `read` is called by the publisher's thread until it is gone: [&] { return runtime->telemetry(); }
  [[nodiscard]] static Result<std::unique_ptr<TelemetryPublisher>> start(std::function<RuntimeTelemetry()> read,
                                                                         PublisherOptions options);
  ~TelemetryPublisher();  // removes the page
  TelemetryPublisher(const TelemetryPublisher&) = delete;
  TelemetryPublisher& operator=(const TelemetryPublisher&) = delete;

  [[nodiscard]] TelemetrySnapshot snapshot() const;
  // Now, besides the regular ones.
  [[nodiscard]] Status publish();

 private:
  TelemetryPublisher(std::function<RuntimeTelemetry()> read, PublisherOptions options, TelemetryPage page);
  void run();

  const std::function<RuntimeTelemetry()> read_;
  const PublisherOptions options_;
  const GpuMonitor gpus_;
  std::mutex page_mutex_;
  TelemetryPage page_;  // guarded by page_mutex_
  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;  // guarded by stop_mutex_
  std::thread thread_;
};

}  // namespace cingulum::ring
