// Where the requests of all pages wait for the one thread that answers them. Of each page the newest counts: what waits
// of it is replaced, and what runs is cancelled once it has had a moment, so that a drag shows answers and not only its
// last one. After the first message of a request nothing of an older one is sent. Pages take turns. Knows neither
// sockets nor tracking: the server brings requests and takes messages, an Answerer makes them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "view/view_messages.hpp"

namespace cingulum::view {

// A page's way to its messages, in the order of send(). Never waits: a failure says that the page does not read, or is
// gone, and ends the request. any thread
class LiveSink {
 public:
  virtual ~LiveSink() = default;
  [[nodiscard]] virtual Status send(std::uint32_t request, std::vector<std::byte> message) = 0;
  // Takes what was not sent yet of requests before this one out of the queue.
  virtual void forget_before(std::uint32_t request) = 0;
};

struct LiveRequest {
  std::uint32_t number = 0;
  std::vector<ArgumentText> arguments;
};
using LiveSend = std::function<Status(std::vector<std::byte>)>;

// Answers a request by messages. Its own failures become a message by the queue. Called by one thread.
class Answerer {
 public:
  virtual ~Answerer() = default;
  [[nodiscard]] virtual Status answer(const LiveRequest& request, std::uint32_t page, const CancelToken& cancel,
                                      const LiveSend& send) = 0;
  // The JSON of a failure that a page shows: {"kind", "message", "argument"}. any thread
  [[nodiscard]] virtual std::string describe(const Error& error) const = 0;
};

struct LiveCounts {
  std::uint64_t pages = 0;     // open now
  std::uint64_t waiting = 0;   // requests, now
  std::uint64_t running = 0;   // 0 or 1, now
  std::uint64_t requests = 0;  // ever
  std::uint64_t answered = 0;
  std::uint64_t replaced = 0;   // by a newer one of their page
  std::uint64_t cancelled = 0;  // by their page, or because it closed
  std::uint64_t failed = 0;
};

class RequestQueue {
 public:
  // How long a request may go on while a newer one of its page waits: the pace of a drag at worst, 20 answers a second.
  static constexpr std::chrono::milliseconds usual_moment{50};

  // The answerer outlives it.
  explicit RequestQueue(Answerer& answerer, std::chrono::milliseconds moment = usual_moment);
  ~RequestQueue();  // cancels what runs and waits for its threads
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  // All members: any thread. None waits for tracking.
  [[nodiscard]] std::uint32_t open_page(std::shared_ptr<LiveSink> sink);
  void close_page(std::uint32_t page);
  // Fails where the number does not increase.
  [[nodiscard]] Status ask(std::uint32_t page, LiveRequest request);
  // The request of this number, if it waits or runs; its page gets an error of kind interrupted.
  void cancel(std::uint32_t page, std::uint32_t number);
  [[nodiscard]] LiveCounts counts() const;

 private:
  struct Page {
    std::shared_ptr<LiveSink> sink;
    std::optional<LiveRequest> waiting;
    std::optional<std::uint32_t> newest;  // number asked last
  };

  void run();
  void watch();
  void answer_one(std::unique_lock<std::mutex>& lock, std::uint32_t page_number);
  [[nodiscard]] bool is_newest(std::uint32_t page, std::uint32_t number) const;  // under the mutex
  void tell_failure(std::uint32_t page, std::uint32_t number, const Error& error);

  Answerer& answerer_;
  const std::chrono::milliseconds moment_;
  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable changed_;
  std::condition_variable overtaken_;
  std::map<std::uint32_t, Page> pages_;
  std::uint32_t last_page_ = 0;
  std::uint32_t last_turn_ = 0;  // the page that was answered last
  std::uint32_t running_page_ = 0;
  std::uint32_t running_number_ = 0;
  bool is_running_ = false;
  bool is_overtaken_ = false;  // what runs: a newer request of its page waits
  std::chrono::steady_clock::time_point running_since_;
  CancelSource running_;
  LiveCounts counts_;
  bool ending_ = false;
  std::thread thread_;
  std::thread watch_;
};

}  // namespace cingulum::view
