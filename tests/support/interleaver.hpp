// Goes through every order in which threads can take their atomic steps on shared memory, with the code under test
// itself: it is compiled with SteppedAtomics in place of its atomics. Sequentially consistent; what weaker memory
// allows is left to ThreadSanitizer and to the orders written at each word.
//
// A thread is a function that is run again from its beginning for every step: the results of the steps that it took
// already are given to it from a record, the next one is done on the memory, and at the one after that it is left by an
// exception. So threads need no stacks of their own, and a state of the whole (memory and records) can be saved, hashed
// and returned to. States seen before are not entered again; the schedules through them are counted.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cingulum::test {

class Interleaver {
 public:
  // `memory`: what threads share; everything else is a thread's own.
  Interleaver(void* memory, std::size_t bytes) : memory_(static_cast<unsigned char*>(memory)), bytes_(bytes) {}

  // A thread's function; what it found out goes into its list, which is empty whenever it begins.
  using Findings = std::vector<std::uint64_t>;
  void add_thread(std::function<void(Findings&)> body) { threads_.push_back({std::move(body)}); }

  // Called at the end of every schedule; a text is a complaint.
  using Judge = std::function<std::string(const std::vector<Findings>&)>;

  struct Outcome {
    std::string complaint;  // the first; empty: none
    std::string schedule;   // that led to it, by the threads' numbers
    double schedules = 0;   // different ones
    std::uint64_t states = 0;
  };
  Outcome explore(const Judge& judge) {
    judge_ = &judge;
    outcome_ = {};
    seen_.clear();
    trace_.clear();
    for (Thread& thread : threads_) run(thread, false);  // to their first step
    outcome_.schedules = descend();
    outcome_.states = seen_.size();
    return outcome_;
  }

  [[nodiscard]] static Interleaver*& current() {
    thread_local Interleaver* one = nullptr;
    return one;
  }
  [[nodiscard]] bool shares(const void* word) const {
    const auto* at = static_cast<const unsigned char*>(word);
    return at >= memory_ && at < memory_ + bytes_;
  }

  // One atomic step on `word`: `act` is done when it is this thread's turn; answers what it answered.
  template <class T, class Act>
  std::uint64_t step(const T& word, Act&& act) {
    Thread& self = *running_;
    if (position_ < self.record.size()) return self.record[position_++];
    if (!granted_) throw Leave{};
    granted_ = false;
    ++position_;
    self.record.push_back(act());
    self.looked_at.push_back({&word, static_cast<std::uint64_t>(word), sizeof(T)});
    return self.record.back();
  }
  // Until a word that this thread looked at since its last such wait (or its beginning) has changed: with all of them
  // as they were, another look would end the same way.
  void wait_for_change() {
    Thread& self = *running_;
    if (position_ < self.record.size()) {
      ++position_;
      return;
    }
    self.waits = true;
    if (!granted_) throw Leave{};
    granted_ = false;
    ++position_;
    self.waits = false;
    self.looked_at.clear();
    self.record.push_back(0);
  }

 private:
  struct Leave {};
  struct Look {
    const void* word;
    std::uint64_t value;
    std::size_t bytes;
  };
  struct Thread {
    std::function<void(Findings&)> body;
    std::vector<std::uint64_t> record = {};
    Findings findings = {};
    std::vector<Look> looked_at = {};
    bool ended = false;
    bool waits = false;  // its next step is a wait
  };
  struct Key {
    std::uint64_t a, b;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key.a; }
  };

  void run(Thread& thread, bool granted) {
    current() = this;
    running_ = &thread;
    granted_ = granted;
    position_ = 0;
    thread.waits = false;
    thread.findings.clear();
    try {
      thread.body(thread.findings);
      thread.ended = true;
    } catch (const Leave&) {
    }
    current() = nullptr;
  }

  [[nodiscard]] bool can_step(const Thread& thread) const {
    if (thread.ended) return false;
    if (!thread.waits) return true;
    for (const Look& look : thread.looked_at) {
      std::uint64_t value = 0;
      std::memcpy(&value, look.word, look.bytes);
      if (value != look.value) return true;
    }
    return false;
  }

  [[nodiscard]] Key key() const {
    Key key{14695981039346656037u, 0x9e3779b97f4a7c15u};
    const auto mix = [&](std::uint64_t value) {
      key.a = (key.a ^ value) * 1099511628211u;
      key.a ^= key.a >> 29;
      key.b = (key.b + value) * 0xbf58476d1ce4e5b9u;
      key.b ^= key.b >> 31;
    };
    for (std::size_t i = 0; i + 8 <= bytes_; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, memory_ + i, 8);
      mix(word);
    }
    for (const Thread& thread : threads_) {
      mix(thread.record.size());
      for (const std::uint64_t value : thread.record) mix(value);
      mix(can_step(thread) ? 1 : 0);
    }
    return key;
  }

  // How many schedules there are from here.
  double descend() {
    const Key here = key();
    if (const auto found = seen_.find(here); found != seen_.end()) return found->second;
    bool all_ended = true;
    bool any = false;
    double schedules = 0;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      all_ended = all_ended && threads_[i].ended;
      if (!can_step(threads_[i])) continue;
      any = true;
      const std::vector<unsigned char> memory(memory_, memory_ + bytes_);
      const Thread thread = threads_[i];
      trace_.push_back(static_cast<char>('0' + i));
      run(threads_[i], true);
      schedules += descend();
      trace_.pop_back();
      threads_[i] = thread;
      std::memcpy(memory_, memory.data(), bytes_);
      if (!outcome_.complaint.empty()) return schedules;
    }
    if (all_ended) {
      std::vector<Findings> findings;
      for (const Thread& thread : threads_) findings.push_back(thread.findings);
      complain((*judge_)(findings));
      schedules = 1;
    } else if (!any) {
      complain("deadlock: nobody can go on");
      schedules = 1;
    }
    seen_.emplace(here, schedules);
    return schedules;
  }

  void complain(const std::string& text) {
    if (text.empty() || !outcome_.complaint.empty()) return;
    outcome_.complaint = text;
    outcome_.schedule = trace_;
  }

  unsigned char* memory_;
  std::size_t bytes_;
  std::vector<Thread> threads_;
  Thread* running_ = nullptr;
  bool granted_ = false;
  std::size_t position_ = 0;
  const Judge* judge_ = nullptr;
  Outcome outcome_;
  std::string trace_;
  std::unordered_map<Key, double, KeyHash> seen_;
};

// The policy of ring/queue/atomics.hpp whose every operation on shared memory is a step.
struct SteppedAtomics {
  template <class T>
  static T load(const T& word) {
    Interleaver* const all = Interleaver::current();
    if (all == nullptr || !all->shares(&word)) return word;
    return static_cast<T>(all->step(word, [&] { return static_cast<std::uint64_t>(word); }));
  }
  template <class T>
  static void store(T& word, T value) {
    (void)update(word, [&](T) { return value; });
  }
  // Answers the value before.
  template <class T, class Change>
  static T update(T& word, Change&& change) {
    Interleaver* const all = Interleaver::current();
    const auto act = [&] {
      const T before = word;
      word = change(before);
      return static_cast<std::uint64_t>(before);
    };
    if (all == nullptr || !all->shares(&word)) return static_cast<T>(act());
    return static_cast<T>(all->step(word, act));
  }

  template <class T>
  static T load_relaxed(const T& word) {
    return load(word);
  }
  template <class T>
  static T load_acquire(const T& word) {
    return load(word);
  }
  template <class T>
  static void store_relaxed(T& word, T value) {
    store(word, value);
  }
  template <class T>
  static void store_release(T& word, T value) {
    store(word, value);
  }
  template <class T>
  static bool compare_exchange(T& word, T& expected, T desired) {
    const T before = update(word, [&](T now) { return now == expected ? desired : now; });
    if (before == expected) return true;
    expected = before;
    return false;
  }
  template <class T>
  static void set_bits(T& word, T bits) {
    (void)update(word, [&](T now) { return static_cast<T>(now | bits); });
  }
  template <class T>
  static T add(T& word, T by) {
    return update(word, [&](T now) { return static_cast<T>(now + by); });
  }
  static void pause() {
    if (Interleaver* const all = Interleaver::current(); all != nullptr) all->wait_for_change();
  }
};

// A value of two halves whose copying can be interrupted between them, as any copy can.
struct SteppedValue {
  std::uint32_t low = 0;
  std::uint32_t high = 0;

  SteppedValue() = default;
  explicit SteppedValue(std::uint32_t value) : low(value), high(~value) {}
  SteppedValue(const SteppedValue& other) { *this = other; }
  SteppedValue& operator=(const SteppedValue& other) {
    if (this == &other) return *this;
    SteppedAtomics::store(low, SteppedAtomics::load(other.low));
    SteppedAtomics::store(high, SteppedAtomics::load(other.high));
    return *this;
  }
  [[nodiscard]] bool is_whole() const { return high == ~low; }
};

}  // namespace cingulum::test
