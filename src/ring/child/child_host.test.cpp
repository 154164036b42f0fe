// A device's runtime in a child process, with CPU actors in the place of a device: bodies that abort, never return or
// fail. The child is this test program, running one test that is disabled otherwise.
#include "ring/child/child_host.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <csignal>
#include <filesystem>

#include "ring/child/child_protocol.hpp"
#include "ring/child/child_service.hpp"
#include "ring/resident/look_again.hpp"
#include "ring/resident_bodies.hpp"
#include "ring/small_actors.hpp"
#include "ring/stream_stories.hpp"
#include "support/each_device.hpp"
#include "support/long_tests.hpp"

namespace cingulum::ring {
namespace {

using namespace std::chrono_literals;
using cingulum::testing::fails_with;
using testing::Echo;
using testing::FailEvery;
using testing::Numbered;
using testing::numbered;
using testing::Sum;

struct AbortAt {
  std::uint64_t number = 0;
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (payload<Numbered>(message).number == number) std::abort();
      context.send(message);
    }
    return 0;
  }
};

// Works for ever at its number: no heartbeat, no look at the stop word.
struct EndlessAt {
  std::uint64_t number = 0;
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (payload<Numbered>(message).number == number) {
        for (std::atomic<bool> forever = true; forever;) std::this_thread::sleep_for(1ms);
      }
      context.send(message);
    }
    return 0;
  }
};

// Puts as many messages into its output as it is told.
struct Outputs {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const std::uint64_t count = payload<Numbered>(message).number;
      for (std::uint64_t i = 0; i < count && context.send(make_message(numbered(i))) == PutStatus::stored; ++i) {
      }
    }
    return 0;
  }
};

// The same, and then it fails.
struct OutputsThenFail {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    if (!context.receive(message)) return 0;
    const std::uint64_t count = payload<Numbered>(message).number;
    for (std::uint64_t i = 0; i < count; ++i) context.send(make_message(numbered(i)));
    return 5;
  }
};

// Takes 20 ms for each message.
struct Slow {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      std::this_thread::sleep_for(20ms);
      context.send(message);
    }
    return 0;
  }
};

// Answers whether the process has a descriptor of this number.
struct Descriptor {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const auto number = static_cast<int>(payload<Numbered>(message).number);
      context.send(make_reply(message, numbered(::fcntl(number, F_GETFD) >= 0 ? 1 : 0)));
    }
    return 0;
  }
};

// Answers every request with a failure.
struct Refuse {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) context.send(make_failure(message, 31));
    return 0;
  }
};

class CpuWork final : public ChildWork {
 public:
  Result<ActorHandle> launch(Runtime& runtime, const std::string& name, const std::string& body,
                             std::span<const std::byte> arguments, RingKind, const ActorOptions& options) override {
    if (body == "echo") return runtime.launch(name, Echo{}, options);
    if (body == "sum") return runtime.launch(name, Sum{}, options);
    if (body == "fail_every") return runtime.launch(name, from<FailEvery>(arguments), options);
    if (body == "abort_at") return runtime.launch(name, from<AbortAt>(arguments), options);
    if (body == "endless_at") return runtime.launch(name, from<EndlessAt>(arguments), options);
    if (body == "outputs") return runtime.launch(name, Outputs{}, options);
    if (body == "outputs_then_fail") return runtime.launch(name, OutputsThenFail{}, options);
    if (body == "slow") return runtime.launch(name, Slow{}, options);
    if (body == "descriptor") return runtime.launch(name, Descriptor{}, options);
    if (body == "refuse") return runtime.launch(name, Refuse{}, options);
    if (body == "parts") return runtime.launch(name, testing::Parts{}, options);
    if (body == "parts_then_fail") return runtime.launch(name, testing::PartsThenFail{}, options);
    if (body == "lose") lost_ = Error(ErrorKind::device, "the context is lost");
    return fail(ErrorKind::not_found, "no body '{}'", body);
  }
  std::optional<Error> lost() override { return lost_; }

 private:
  template <class Body>
  static Body from(std::span<const std::byte> bytes) {
    Body body;
    std::memcpy(&body, bytes.data(), std::min(sizeof body, bytes.size()));
    return body;
  }
  std::optional<Error> lost_;
};

TEST(ChildProcess, DISABLED_serves) {
  const int code = serve_parent([]() -> Result<std::unique_ptr<ChildWork>> { return std::make_unique<CpuWork>(); });
  ASSERT_EQ(code, child_left);
}

// A driver that takes its time.
TEST(ChildProcess, DISABLED_opens_slowly) {
  const int code = serve_parent([]() -> Result<std::unique_ptr<ChildWork>> {
    std::this_thread::sleep_for(1500ms);
    return std::make_unique<CpuWork>();
  });
  ASSERT_EQ(code, child_left);
}

// A driver that hangs: nobody looks for commands yet.
TEST(ChildProcess, DISABLED_opens_for_ever) {
  static_cast<void>(serve_parent([]() -> Result<std::unique_ptr<ChildWork>> {
    for (;;) ::pause();
  }));
}

TEST(ChildProcess, ends_with_its_parent_even_while_it_opens_the_device) {
  int control[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
  const int memory = ::memfd_create("cingulum-test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(memory, sizeof(ChildMemory)), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // By way of numbers that are neither, since either may be the other's goal.
    ::dup2(control[1], 100);
    ::dup2(memory, 101);
    ::dup2(100, control_descriptor);
    ::dup2(101, memory_descriptor);
    ::close(100);
    ::execl("/proc/self/exe", "test", "--gtest_filter=ChildProcess.DISABLED_opens_for_ever",
            "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
    ::_exit(127);
  }
  ::close(control[1]);
  ::close(memory);
  std::this_thread::sleep_for(50ms);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, WNOHANG), 0) << "it ended before its parent was gone";
  ::close(control[0]);
  const std::uint64_t deadline = deadline_from_now(10s);
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, WNOHANG)) == 0 && steady_now_ns() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_EQ(ended, child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), child_lost_parent);
}

class ChildProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(runtime_, Runtime::create());
    start();
  }
  void start(bool end_stalled = false, const std::string& child = "serves") {
    ChildOptions options;
    options.command = {std::filesystem::read_symlink("/proc/self/exe").string(),
                       "--gtest_filter=ChildProcess.DISABLED_" + child, "--gtest_also_run_disabled_tests",
                       "--gtest_brief=1"};
    options.end_stalled = end_stalled;
    ASSERT_OK_AND_ASSIGN(host_, ChildHost::start(options));
  }
  void TearDown() override {
    if (runtime_) static_cast<void>(runtime_->shutdown(Termination::discard(1s)));
  }
  template <class Body>
  ActorHandle run(const std::string& name, const char* body_name, const Body& body, const ActorOptions& options = {}) {
    return testing::activated(host_->launch(*runtime_, name, body_name, body, RingKind::fast, options));
  }
  static Message message(std::uint64_t number) { return make_message(numbered(number)); }
  static std::uint64_t number_of(const Result<Message>& got) {
    EXPECT_TRUE(got) << (got ? "" : got.error().message());
    return got ? payload<Numbered>(*got).number : ~std::uint64_t{0};
  }
  static bool comes_true(const std::function<bool()>& what, Nanoseconds patience = 10s) {
    return testing::comes_true(what, patience);
  }
  static ActorOptions restarting() {
    ActorOptions options;
    options.restart.kind = RestartKind::limited;
    options.restart.max_restarts = 100;
    options.restart.max_back_off = 10ms;
    options.stall_limit = 200ms;
    return options;
  }

  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<ChildHost> host_;
};

TEST_F(ChildProcesses, messages_and_requests_go_there_and_back) {
  const auto echo = run("echo", "echo", Echo{});
  const auto sum = run("sum", "sum", Sum{});
  ASSERT_TRUE(echo && sum);
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    ASSERT_OK(echo->send(message(i)));
    ASSERT_EQ(number_of(echo->receive(5s)), i);
    expected += i + (i % 256) * ((i % 256) - (i % 256 != 0)) / 2;
    ASSERT_EQ(number_of(runtime_->request("sum", message(i), 5s)), expected);
  }
  ASSERT_OK(echo->deactivate());
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_OK(echo->send(message(i)));
  EXPECT_TRUE(fails_with(echo->receive(5ms), ErrorKind::timed_out, "no message"));
  ASSERT_OK_AND_ASSIGN(const TerminationReport report, runtime_->terminate("echo", Termination::drain(5s)));
  EXPECT_EQ(report.drained, 10u);
  EXPECT_EQ(report.dropped, 0u);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(number_of(echo->receive(1s)), i);
  EXPECT_EQ(host_->starts(), 1u);
}

TEST_F(ChildProcesses, a_body_that_ends_the_process_is_reported_and_its_actors_run_again_in_a_new_one) {
  const auto doomed = run("doomed", "abort_at", AbortAt{13}, restarting());
  const auto neighbour = run("neighbour", "echo", Echo{}, restarting());
  ASSERT_TRUE(doomed && neighbour);
  const int rounds = test::may_take_long() ? 20 : 3;
  for (int round = 0; round < rounds; ++round) {
    ASSERT_EQ(number_of(runtime_->request("doomed", message(1), 5s)), 1u);
    const auto failed = runtime_->request("doomed", message(13), 5s);
    EXPECT_TRUE(fails_with(failed, ErrorKind::closed, "signal 6"));
    // Both run again within five seconds.
    const std::uint64_t start_ns = steady_now_ns();
    ASSERT_TRUE(comes_true([&] { return runtime_->request("doomed", message(2), 200ms).has_value(); }));
    ASSERT_TRUE(comes_true([&] { return runtime_->request("neighbour", message(2), 200ms).has_value(); }));
    EXPECT_LT(steady_now_ns() - start_ns, 5'000'000'000u);
  }
  EXPECT_EQ(host_->starts(), static_cast<std::uint64_t>(rounds) + 1);
  EXPECT_EQ(doomed->telemetry().failures, static_cast<std::uint64_t>(rounds));
  EXPECT_NE(doomed->failure()->message.find("signal 6"), std::string::npos);
}

TEST_F(ChildProcesses, without_a_restart_policy_the_end_is_final_and_the_program_lives_on) {
  ActorOptions options;
  options.inbox_capacity = 4;
  const auto doomed = run("doomed", "abort_at", AbortAt{13}, options);
  ASSERT_TRUE(doomed);
  ASSERT_OK(doomed->deactivate());
  ASSERT_OK(doomed->send(message(13)));
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_OK(doomed->send(message(i)));
  // Everybody who waits gets an error: for an output, for an answer, for room; but the body takes one message before it
  // ends, and what waits may be put into that one's room.
  std::vector<std::thread> waiting;
  std::atomic<int> without_output = 0, without_answer = 0, put = 0;
  waiting.emplace_back(
      [&] { without_output += fails_with(doomed->receive(30s), ErrorKind::closed, "signal 6") ? 1 : 0; });
  waiting.emplace_back([&] { without_answer += runtime_->request("doomed", message(5), 30s) ? 0 : 1; });
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&] { put += doomed->send(message(4), {.timeout = 30s}) ? 1 : 0; });
  }
  std::this_thread::sleep_for(20ms);
  const std::uint64_t start_ns = steady_now_ns();
  ASSERT_OK(doomed->reactivate());
  for (std::thread& each : waiting) each.join();
  EXPECT_EQ(without_output, 1);
  EXPECT_EQ(without_answer, 1);
  EXPECT_LE(put, 1);
  EXPECT_LT(steady_now_ns() - start_ns, 10'000'000'000u);
  EXPECT_EQ(doomed->state(), ActorState::failed);
  EXPECT_FALSE(doomed->send(message(1)));
  ASSERT_OK(runtime_->launch("cpu", Echo{}));
  ASSERT_OK(runtime_->activate("cpu"));
  EXPECT_EQ(number_of(runtime_->request("cpu", message(3), 5s)), 3u);
}

TEST_F(ChildProcesses, a_body_that_never_returns_is_ended_with_its_process_when_asked) {
  start(true);
  const auto endless = run("endless", "endless_at", EndlessAt{13}, restarting());
  ASSERT_TRUE(endless);
  const int rounds = test::may_take_long() ? 20 : 1;
  for (int round = 0; round < rounds; ++round) {
    ASSERT_EQ(number_of(runtime_->request("endless", message(1), 5s)), 1u);
    const std::uint64_t start_ns = steady_now_ns();
    EXPECT_TRUE(fails_with(runtime_->request("endless", message(13), 10s), ErrorKind::closed, "signal 9"));
    EXPECT_LT(steady_now_ns() - start_ns, 4'000'000'000u);
    ASSERT_TRUE(comes_true([&] { return runtime_->request("endless", message(2), 200ms).has_value(); }, 5s));
  }
}

TEST_F(ChildProcesses, a_lost_device_is_told_apart_from_a_failed_body) {
  const auto failing = run("failing", "fail_every", FailEvery{5, 7}, restarting());
  ASSERT_TRUE(failing);
  ASSERT_OK(failing->send(message(4)));
  ASSERT_TRUE(comes_true([&] { return failing->telemetry().restarts == 1; }));
  EXPECT_EQ(host_->starts(), 1u) << "the process goes on";
  EXPECT_EQ(failing->failure()->code, 7);
  ASSERT_TRUE(comes_true([&] { return runtime_->request("failing", message(1), 200ms).has_value(); }));
  // Now the device.
  EXPECT_FALSE(host_->launch(*runtime_, "loser", "lose", Echo{}));
  ASSERT_TRUE(comes_true([&] { return failing->failure()->message.find("lost its device") != std::string::npos; }));
  EXPECT_NE(host_->last_end().find("the context is lost"), std::string::npos) << host_->last_end();
  ASSERT_TRUE(comes_true([&] { return runtime_->request("failing", message(1), 200ms).has_value(); }));
  EXPECT_EQ(host_->starts(), 2u);
}

TEST_F(ChildProcesses, a_launch_whose_process_ends_before_it_answers_goes_to_the_next_one) {
  // Stopped, it does not answer; then it is gone.
  const pid_t process = host_->process();
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  std::thread killer([&] {
    std::this_thread::sleep_for(50ms);
    ::kill(process, SIGKILL);
  });
  const auto echo = run("echo", "echo", Echo{});
  killer.join();
  ASSERT_TRUE(echo);
  EXPECT_EQ(host_->starts(), 2u);
  EXPECT_EQ(number_of(runtime_->request("echo", message(3), 5s)), 3u);
}

TEST_F(ChildProcesses, streams_of_answers_come_whole_and_wait_for_their_reader) {
  ActorOptions small;
  small.outbox_capacity = 16;
  const auto parts = run("parts", "parts", testing::Parts{}, small);
  ASSERT_TRUE(parts);
  testing::tells_all_parts_in_order(*runtime_, *parts);
  // The window of the child's own stream, and the answers under way.
  testing::waits_for_its_reader_and_learns_that_he_left(*runtime_, *parts, StreamOptions{}.window + child_part_window);
  const auto failing = run("failing", "parts_then_fail", testing::PartsThenFail{});
  ASSERT_TRUE(failing);
  testing::is_read_before_the_failure_that_ends_it(*runtime_, *failing);
}

TEST_F(ChildProcesses, requests_fill_the_latency_histogram) {
  const auto echo = run("echo", "echo", Echo{});
  ASSERT_TRUE(echo);
  for (std::uint32_t i = 0; i < 2 * echo->options().latency_sample_interval; ++i) {
    EXPECT_EQ(number_of(runtime_->request("echo", message(i), 5s)), i);
  }
  EXPECT_EQ(echo->telemetry().latency.count, 2u);
}

// What was put while the new child opened its device was lost, and counted as in flight for ever.
TEST_F(ChildProcesses, messages_that_come_while_a_child_is_started_again_wait_for_it) {
  start(false, "opens_slowly");
  ActorOptions options = restarting();
  options.inbox_capacity = 16;
  const auto echo = run("echo", "echo", Echo{}, options);
  ASSERT_TRUE(echo);
  ASSERT_EQ(::kill(host_->process(), SIGKILL), 0);
  ASSERT_TRUE(comes_true([&] { return host_->starts() == 2; }));
  std::vector<std::thread> senders;
  std::atomic<int> answered = 0;
  for (std::uint64_t i = 0; i < 16; ++i) {
    senders.emplace_back([&, i] { answered += runtime_->request("echo", message(i), 20s).has_value() ? 1 : 0; });
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(answered, 16);
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_EQ(number_of(runtime_->request("echo", message(i), 5s)), i);
}

// The monitor stood still for as long as a child took to open its device.
TEST_F(ChildProcesses, the_restart_of_a_child_keeps_no_other_restart_waiting) {
  start(false, "opens_slowly");
  const auto echo = run("echo", "echo", Echo{}, restarting());
  ASSERT_TRUE(echo);
  ASSERT_OK_AND_ASSIGN(const auto cpu, runtime_->launch("cpu", FailEvery{5, 7}, restarting()));
  ASSERT_OK(cpu->activate());
  ASSERT_EQ(::kill(host_->process(), SIGKILL), 0);
  ASSERT_TRUE(comes_true([&] { return host_->starts() == 2; }));
  EXPECT_FALSE(runtime_->request("cpu", message(4), 5s));
  EXPECT_EQ(number_of(runtime_->request("cpu", message(1), 700ms)), 1u);
  EXPECT_EQ(number_of(runtime_->request("echo", message(1), 10s)), 1u);
}

TEST_F(ChildProcesses, outputs_that_nobody_reads_stay_in_the_child_and_stop_the_body) {
  ActorOptions small;
  small.outbox_capacity = 16;
  const auto outputs = run("outputs", "outputs", Outputs{}, small);
  ASSERT_TRUE(outputs);
  constexpr std::uint64_t count = 25000;
  ASSERT_OK(outputs->send(message(count)));
  std::uint64_t sent = 0;
  for (int look = 0; look < 100; ++look) {
    std::this_thread::sleep_for(50ms);
    const std::uint64_t now = outputs->telemetry().sent;
    if (now == sent && now != 0) break;
    sent = now;
  }
  EXPECT_GE(sent, 16u);
  EXPECT_LE(sent, 2u * 16);
  for (std::uint64_t i = 0; i < 5000; ++i) ASSERT_EQ(number_of(outputs->receive(5s)), i);
  // A drain does not wait for a reader.
  ASSERT_OK(runtime_->terminate("outputs", Termination::drain(20s)));
  for (std::uint64_t i = 5000; i < count; ++i) ASSERT_EQ(number_of(outputs->receive(5s)), i);
  EXPECT_FALSE(outputs->receive(1s));
}

// What lay in the child's outbox went with the body that had sent it.
TEST_F(ChildProcesses, outputs_from_before_a_failure_are_not_lost_with_it) {
  ActorOptions options = restarting();
  options.outbox_capacity = 16;
  const auto outputs = run("outputs", "outputs_then_fail", OutputsThenFail{}, options);
  ASSERT_TRUE(outputs);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    ASSERT_OK(outputs->send(message(30)));
    ASSERT_TRUE(comes_true([&] { return outputs->telemetry().failures == round; }));
    for (std::uint64_t i = 0; i < 30; ++i) ASSERT_EQ(number_of(outputs->receive(5s)), i);
  }
}

// The child's only loop drained, and carried nothing for anybody meanwhile.
TEST_F(ChildProcesses, draining_one_actor_leaves_its_neighbours_served) {
  const auto slow = run("slow", "slow", Slow{});
  const auto echo = run("echo", "echo", Echo{});
  ASSERT_TRUE(slow && echo);
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_OK(slow->send(message(i)));
  std::atomic<bool> drained = false;
  Result<TerminationReport> report = TerminationReport{};
  std::thread draining([&] {
    report = runtime_->terminate("slow", Termination::drain(20s));
    drained = true;
  });
  int served = 0;
  ASSERT_TRUE(comes_true([&] { return slow->state() == ActorState::terminating; }));
  while (!drained) {
    const auto answer = runtime_->request("echo", message(7), 500ms);
    if (!drained) served += answer.has_value() ? 1 : -1000;
  }
  draining.join();
  EXPECT_GT(served, 10);
  ASSERT_OK(report);
  EXPECT_GT(report->drained, 50u);
  EXPECT_EQ(report->dropped, 0u);
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(number_of(slow->receive(5s)), i);
}

TEST_F(ChildProcesses, descriptors_of_the_program_reach_the_child_as_they_are) {
  const int file = ::open("/dev/null", O_RDONLY);
  ASSERT_EQ(::dup2(file, 100), 100);
  ASSERT_EQ(::dup2(file, 101), 101);
  start();
  ::close(100);
  ::close(101);
  ::close(file);
  const auto descriptor = run("descriptor", "descriptor", Descriptor{});
  ASSERT_TRUE(descriptor);
  for (const std::uint64_t number : {3u, 4u, 100u, 101u}) {
    EXPECT_EQ(number_of(runtime_->request("descriptor", message(number), 5s)), 1u) << number;
  }
}

TEST_F(ChildProcesses, a_failure_that_a_body_answers_with_reaches_who_asked) {
  const auto refuse = run("refuse", "refuse", Refuse{});
  ASSERT_TRUE(refuse);
  EXPECT_TRUE(fails_with(runtime_->request("refuse", message(1), 5s), ErrorKind::device, "failure 31"));
}

TEST_F(ChildProcesses, a_child_ends_with_its_parent) {
  const auto echo = run("echo", "echo", Echo{});
  const pid_t process = host_->process();
  ASSERT_GT(process, 0);
  ASSERT_OK(runtime_->terminate("echo"));
  std::weak_ptr<ChildHost> weak = host_;
  static_cast<void>(runtime_->shutdown(Termination::discard(1s)));
  const_cast<ActorHandle&>(echo).reset();
  host_.reset();
  ASSERT_TRUE(comes_true([&] { return weak.expired() && ::kill(process, 0) != 0; }));
}

}  // namespace
}  // namespace cingulum::ring
