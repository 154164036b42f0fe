#include "view/request_queue.hpp"

#include <utility>

namespace cingulum::view {

RequestQueue::RequestQueue(Answerer& answerer, std::chrono::milliseconds moment)
    : answerer_(answerer), moment_(moment), thread_([this] { run(); }), watch_([this] { watch(); }) {}

RequestQueue::~RequestQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    running_.cancel();
  }
  changed_.notify_all();
  overtaken_.notify_all();
  thread_.join();
  watch_.join();
}

std::uint32_t RequestQueue::open_page(std::shared_ptr<LiveSink> sink) {
  const std::lock_guard lock(mutex_);
  // 0 is no page: channels of tracking actors begin at 1.
  do ++last_page_;
  while (last_page_ == 0 || pages_.contains(last_page_));
  pages_[last_page_].sink = std::move(sink);
  return last_page_;
}

void RequestQueue::close_page(std::uint32_t page) {
  const std::lock_guard lock(mutex_);
  const auto found = pages_.find(page);
  if (found == pages_.end()) return;
  if (found->second.waiting) ++counts_.cancelled;
  if (is_running_ && running_page_ == page) running_.cancel();
  pages_.erase(found);
}

Status RequestQueue::ask(std::uint32_t page, LiveRequest request) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pages_.find(page);
    if (found == pages_.end()) return fail(ErrorKind::closed, "the page is closed");
    Page& asking = found->second;
    if (asking.newest && request.number <= *asking.newest) {
      return fail(ErrorKind::invalid_argument, "request {} after request {}: numbers increase", request.number,
                  *asking.newest);
    }
    asking.newest = request.number;
    ++counts_.requests;
    if (asking.waiting) ++counts_.replaced;
    if (is_running_ && running_page_ == page) is_overtaken_ = true;
    asking.waiting = std::move(request);
  }
  changed_.notify_one();
  overtaken_.notify_one();
  return {};
}

void RequestQueue::cancel(std::uint32_t page, std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = pages_.find(page);
  if (found == pages_.end()) return;
  const bool waits = found->second.waiting && found->second.waiting->number == number;
  // With one that waits an older one that still runs ends, too: nothing of it may follow the error of the newer.
  if (is_running_ && running_page_ == page && (running_number_ == number || waits)) running_.cancel();
  if (!waits) return;
  found->second.waiting.reset();
  ++counts_.cancelled;
  tell_failure(page, number, Error(ErrorKind::interrupted, "cancelled before it began"));
}

LiveCounts RequestQueue::counts() const {
  const std::lock_guard lock(mutex_);
  LiveCounts counts = counts_;
  counts.pages = pages_.size();
  for (const auto& [number, page] : pages_) counts.waiting += page.waiting ? 1u : 0u;
  counts.running = is_running_ ? 1 : 0;
  return counts;
}

bool RequestQueue::is_newest(std::uint32_t page, std::uint32_t number) const {
  const auto found = pages_.find(page);
  return found != pages_.end() && found->second.newest == number;
}

void RequestQueue::tell_failure(std::uint32_t page, std::uint32_t number, const Error& error) {
  const std::string text = answerer_.describe(error);
  // A page that cannot be told is one that does not read: its socket ends by itself.
  static_cast<void>(pages_.at(page).sink->send(number, make_message(MessageKind::error, number, text)));
}

void RequestQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    // The next page in turn that has something to ask.
    auto next = pages_.end();
    for (auto page = pages_.upper_bound(last_turn_); page != pages_.end() && next == pages_.end(); ++page) {
      if (page->second.waiting) next = page;
    }
    for (auto page = pages_.begin(); page != pages_.end() && next == pages_.end(); ++page) {
      if (page->second.waiting) next = page;
    }
    if (ending_) return;
    if (next == pages_.end()) {
      changed_.wait(lock);
      continue;
    }
    last_turn_ = next->first;
    answer_one(lock, next->first);
  }
}

// Cancels what runs when its moment is over and a newer request waits; the thread that answers is busy with it.
void RequestQueue::watch() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (!is_running_ || !is_overtaken_) {
      overtaken_.wait(lock);
      continue;
    }
    const auto until = running_since_ + moment_;
    if (std::chrono::steady_clock::now() < until) {
      overtaken_.wait_until(lock, until);
      continue;
    }
    running_.cancel();
    is_overtaken_ = false;
  }
}

void RequestQueue::answer_one(std::unique_lock<std::mutex>& lock, std::uint32_t page_number) {
  Page& page = pages_.at(page_number);
  const LiveRequest request = std::move(*page.waiting);
  page.waiting.reset();
  const std::shared_ptr<LiveSink> sink = page.sink;
  running_ = CancelSource();
  running_page_ = page_number;
  running_number_ = request.number;
  is_running_ = true;
  is_overtaken_ = false;
  running_since_ = std::chrono::steady_clock::now();
  sink->forget_before(request.number);
  const CancelToken token = running_.token();
  lock.unlock();
  const Status outcome = catch_out_of_memory([&] {
    return answerer_.answer(request, page_number, token, [&](std::vector<std::byte> message) -> Status {
      // Under the mutex: once it was cancelled nothing of this one is put into the queue.
      const std::lock_guard sending(mutex_);
      if (token.cancelled()) return fail(ErrorKind::interrupted, "a newer request took this one's place");
      return sink->send(request.number, std::move(message));
    });
  });
  lock.lock();
  is_running_ = false;
  if (outcome) {
    ++counts_.answered;
  } else if (!pages_.contains(page_number)) {
    ++counts_.cancelled;
  } else if (!is_newest(page_number, request.number)) {
    ++counts_.replaced;
  } else {
    ++(outcome.error().kind() == ErrorKind::interrupted ? counts_.cancelled : counts_.failed);
    tell_failure(page_number, request.number, outcome.error());
  }
}

}  // namespace cingulum::view
