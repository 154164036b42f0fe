// What only a real GPU shows: the calls that block, a killed host, a lost context, the same bodies on CPU and GPU side
// by side, many seats. The rest is in ring/resident/resident_grid.test.cpp.
#include "ring/cuda/cuda_backend.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "device/cuda/cuda_device.hpp"
#include "ring/child/child_host.hpp"
#include "ring/child/child_service.hpp"
#include "ring/resident/resident_actor.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/resident_bodies.hpp"
#include "ring/resident_programs.hpp"
#include "support/each_device.hpp"
#include "support/own_child.hpp"

namespace cingulum::ring {
namespace {

using namespace std::chrono_literals;
using cingulum::testing::fails_with;
using cingulum::testing::OwnChild;
using testing::Echo;
using testing::Numbered;
using testing::numbered;
using testing::Sum;

class CudaGrids : public cingulum::testing::EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_OK_AND_ASSIGN(runtime_, Runtime::create());
  }
  void TearDown() override {
    if (runtime_) static_cast<void>(runtime_->shutdown(Termination::discard()));
  }
  Result<std::shared_ptr<ResidentGrid>> open(GridOptions options = {}) {
    options.time_limit = 20s;
    CGL_TRY_ASSIGN(auto backend, testing::make_test_backend("cuda"));
    return ResidentGrid::open(std::move(backend), options);
  }
  // Each takes a new process and a new context: a few, or the goal's 20 (CINGULUM_TEST_ROUNDS).
  static int rounds() {
    const char* const text = std::getenv("CINGULUM_TEST_ROUNDS");
    return text == nullptr ? 3 : std::atoi(text);
  }
  static ChildOptions serving_child() {
    ChildOptions options;
    options.command = {std::filesystem::read_symlink("/proc/self/exe").string(),
                       "--gtest_filter=On/CudaGrids.DISABLED_serves_a_parent/cuda", "--gtest_also_run_disabled_tests",
                       "--gtest_brief=1"};
    return options;
  }
  std::unique_ptr<Runtime> runtime_;
};
CGL_FOR_DEVICES(CudaGrids, "cuda");

TEST_P(CudaGrids, calls_that_would_block_are_refused_or_put_off_until_the_actors_have_ended) {
  auto& cuda = dynamic_cast<CudaDevice&>(device());
  cuda.blocking_calls().set_reaction(BlockingCalls::Reaction::go_on);
  ASSERT_OK_AND_ASSIGN(auto memory, device().allocate(1 << 20));
  ASSERT_OK_AND_ASSIGN(auto pinned, device().allocate_host(1 << 20, HostMemoryKind::pinned));
  ASSERT_OK_AND_ASSIGN(const auto grid, open());
  ASSERT_OK(grid->launch(*runtime_, "echo", "echo", Echo{}));
  ASSERT_OK(runtime_->activate("echo"));
  const std::uint64_t before = cuda.blocking_calls().forbidden_calls();
  EXPECT_TRUE(fails_with(cuda.synchronise_device(), ErrorKind::invalid_state, "would block"));
  KernelSource source;
  source.name = "f";
  source.language = KernelLanguage::cuda_cpp;
  source.text = "extern \"C\" __global__ void f() {}";
  EXPECT_TRUE(fails_with(device().compile(source), ErrorKind::invalid_state, "loading a kernel"));
  memory.reset();
  pinned.reset();
  EXPECT_EQ(cuda.blocking_calls().kept(), 2u);
  EXPECT_EQ(cuda.blocking_calls().forbidden_calls(), before + 4);
  // Other work goes on beside the actors, and the actors go on.
  ASSERT_OK_AND_ASSIGN(const auto queue, device().create_queue());
  ASSERT_OK_AND_ASSIGN(const MemoryState state, device().memory());
  EXPECT_GT(state.total_bytes, 0u);
  ASSERT_OK(queue->synchronise());
  ASSERT_OK_AND_ASSIGN(const Message answer, runtime_->request("echo", make_message(numbered(5)), 5s));
  EXPECT_EQ(payload<Numbered>(answer).number, 5u);
  ASSERT_OK(runtime_->terminate("echo"));
  ASSERT_OK(grid->close());
  EXPECT_EQ(cuda.blocking_calls().kept(), 0u);
  EXPECT_FALSE(cuda.blocking_calls().forbidden());
  ASSERT_OK(cuda.synchronise_device());
}

TEST_P(CudaGrids, one_body_gives_the_same_answers_on_cpu_and_gpu) {
  ASSERT_OK_AND_ASSIGN(const auto grid, open());
  ASSERT_OK(grid->launch(*runtime_, "gpu", "sum", Sum{}));
  ASSERT_OK(runtime_->launch("cpu", Sum{}));
  for (const char* name : {"gpu", "cpu"}) ASSERT_OK(runtime_->activate(name));
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Message message = make_message(numbered(i * 7919));
    ASSERT_OK_AND_ASSIGN(const Message from_gpu, runtime_->request("gpu", message, 5s));
    ASSERT_OK_AND_ASSIGN(const Message from_cpu, runtime_->request("cpu", message, 5s));
    ASSERT_EQ(payload<Numbered>(from_gpu).number, payload<Numbered>(from_cpu).number);
  }
  for (const char* name : {"gpu", "cpu"}) ASSERT_OK(runtime_->terminate(name));
  ASSERT_OK(grid->close());
}

TEST_P(CudaGrids, seats_beyond_what_runs_at_once_are_refused) {
  GridOptions options;
  options.seats = 1024;
  options.lanes = 256;
  options.ring_capacity = 16;
  const auto refused = open(options);
  // 49 KiB of shared memory allow four blocks per processor at most; 1024 fit only on a GPU of 256 processors and more.
  if (device().capabilities().compute_units < 256) {
    EXPECT_TRUE(fails_with(refused, ErrorKind::invalid_argument, "run at the same time"));
  }
  EXPECT_FALSE(dynamic_cast<CudaDevice&>(device()).blocking_calls().forbidden() && !refused);
}

// Grids come and go: device memory, pinned memory and handles are as before.
TEST_P(CudaGrids, opening_and_closing_leaves_nothing_behind) {
  std::uint64_t free_after_first = 0;
  for (int round = 0; round < 5; ++round) {
    ASSERT_OK_AND_ASSIGN(const auto grid, open());
    ASSERT_OK(grid->launch(*runtime_, "echo", "echo", Echo{}));
    ASSERT_OK(runtime_->activate("echo"));
    ASSERT_OK(runtime_->terminate("echo"));
    ASSERT_OK(grid->close());
    if (round == 0) {
      ASSERT_OK_AND_ASSIGN(const MemoryState state, device().memory());
      free_after_first = state.free_bytes.value_or(0);
    }
  }
  ASSERT_OK_AND_ASSIGN(const MemoryState state, device().memory());
  EXPECT_LE(free_after_first, state.free_bytes.value_or(0) + (std::uint64_t{4} << 20));
}

// Everything that waits for the kernel (freeing, destroying its stream) would wait for the body. The body's own limit
// is far beyond what the steps may take; the times of each are printed.
TEST_P(CudaGrids, a_grid_whose_body_does_not_return_can_be_let_go_of) {
  constexpr std::uint64_t body_ms = 12000;
  const std::uint64_t start_ns = steady_now_ns();
  const auto tell = [&](const char* what) {
    const std::uint64_t ms = (steady_now_ns() - start_ns) / 1'000'000;
    std::printf("  %-22s after %llu ms\n", what, static_cast<unsigned long long>(ms));
    std::fflush(stdout);
    return ms;
  };
  const std::size_t let_go = cuda_grids_let_go();
  {
    ASSERT_OK_AND_ASSIGN(auto grid, open());
    ASSERT_OK(grid->launch(*runtime_, "busy", "busy", testing::Busy{}));
    ASSERT_OK(runtime_->activate("busy"));
    ASSERT_OK(runtime_->send("busy", make_message(numbered(body_ms))));
    tell("sent");
    std::this_thread::sleep_for(100ms);
    EXPECT_TRUE(fails_with(runtime_->terminate("busy", Termination::discard(200ms)), ErrorKind::timed_out, "return"));
    tell("terminate");
    EXPECT_TRUE(fails_with(grid->close(500ms), ErrorKind::timed_out, "does not end"));
    tell("close");
  }
  EXPECT_LT(tell("destroyed"), body_ms / 2);
  EXPECT_EQ(cuda_grids_let_go(), let_go + 1);
  // Another grid runs beside it.
  ASSERT_OK_AND_ASSIGN(auto other, open());
  ASSERT_OK(other->launch(*runtime_, "echo", "echo", Echo{}));
  ASSERT_OK(runtime_->activate("echo"));
  ASSERT_OK_AND_ASSIGN(const Message answer, runtime_->request("echo", make_message(numbered(5)), 5s));
  EXPECT_EQ(payload<Numbered>(answer).number, 5u);
  EXPECT_LT(tell("another grid answers"), body_ms);
  ASSERT_OK(runtime_->terminate("echo"));
  ASSERT_OK(other->close());
  // And when the body has returned, the next grid gives everything back.
  while (tell("waiting") < body_ms + 1000) std::this_thread::sleep_for(1s);
  ASSERT_OK_AND_ASSIGN(const auto third, open());
  EXPECT_EQ(cuda_grids_let_go(), let_go);
  ASSERT_OK(third->close());
}

// ---- tests in processes of their own ----

TEST_P(CudaGrids, DISABLED_idle_until_killed) {
  GridOptions options;
  options.seats = 32;
  ASSERT_OK_AND_ASSIGN(const auto grid, open(options));
  for (int i = 0; i < 32; ++i) {
    ASSERT_OK(grid->launch(*runtime_, fmt::format("{}", i), "echo", Echo{}));
    ASSERT_OK(runtime_->activate(fmt::format("{}", i)));
  }
  std::puts("ready");
  std::fflush(stdout);
  for (int i = 0; i < 150; ++i) {  // with traffic until the signal comes
    for (int k = 0; k < 1000; ++k) static_cast<void>(runtime_->request("0", make_message(numbered(1)), 1s));
    std::this_thread::sleep_for(100ms);
  }
}

TEST_P(CudaGrids, a_killed_host_leaves_the_gpu_idle_and_its_memory_free_within_5_seconds) {
  // What another process has just left may still be on its way back.
  MemoryState before;
  for (int look = 0; look < 30; ++look) {
    ASSERT_OK_AND_ASSIGN(const MemoryState now, device().memory());
    if (look > 2 && now.free_bytes == before.free_bytes) break;
    before = now;
    std::this_thread::sleep_for(100ms);
  }
  for (const int signal : {SIGKILL, SIGSEGV, SIGTERM, SIGINT}) {
    OwnChild child("On/CudaGrids.DISABLED_idle_until_killed/cuda");
    ASSERT_TRUE(child.prints("ready", 30s)) << child.printed();
    std::this_thread::sleep_for(300ms);
    ASSERT_OK_AND_ASSIGN(const MemoryState during, device().memory());
    EXPECT_LT(during.free_bytes.value(), before.free_bytes.value()) << "the child takes memory of the GPU";
    child.kill(signal);
    const auto start = std::chrono::steady_clock::now();
    bool is_back = false;
    bool is_idle = false;
    while (std::chrono::steady_clock::now() - start < 5s && !(is_back && is_idle)) {
      ASSERT_OK_AND_ASSIGN(const MemoryState now, device().memory());
      is_back = now.free_bytes.value() + (std::uint64_t{16} << 20) >= before.free_bytes.value();
      const DeviceReading reading = device().read_sensors();
      is_idle = !reading.utilisation || *reading.utilisation < 0.05;
      std::this_thread::sleep_for(20ms);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_TRUE(is_back) << "signal " << signal;
    EXPECT_TRUE(is_idle) << "signal " << signal;
    std::printf("signal %d: idle and free after %.2f s\n", signal, seconds);
    // The next run starts.
    ASSERT_OK_AND_ASSIGN(const auto grid, open());
    ASSERT_OK(grid->close());
  }
}

TEST_P(CudaGrids, DISABLED_traps) {
  ASSERT_OK_AND_ASSIGN(auto backend, testing::make_trapping_backend());
  GridOptions options;
  options.time_limit = 20s;
  ASSERT_OK_AND_ASSIGN(const auto grid, ResidentGrid::open(std::move(backend), options));
  const std::byte nothing[1] = {};  // the type of the body that traps is one of device code alone
  ActorOptions restarting;
  restarting.restart.kind = RestartKind::limited;  // a lost context is no reason to restart in place
  ASSERT_OK_AND_ASSIGN(const auto trap, grid->launch(*runtime_, "trap", "trap", std::span<const std::byte>(nothing),
                                                     RingKind::fast, restarting));
  ASSERT_OK_AND_ASSIGN(const auto neighbour, grid->launch(*runtime_, "neighbour", "echo", Echo{}));
  ASSERT_OK(trap->activate());
  ASSERT_OK(neighbour->activate());
  ASSERT_OK(runtime_->launch("cpu", Echo{}));
  ASSERT_OK(runtime_->activate("cpu"));
  const auto start = std::chrono::steady_clock::now();
  const auto answer = runtime_->request("trap", make_message(numbered(1)), 5s);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_FALSE(answer);
  EXPECT_LT(seconds, 1.0) << "reported within a second";
  ASSERT_TRUE(grid->lost());
  EXPECT_NE(grid->lost()->message().find("context"), std::string::npos) << grid->lost()->message();
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(neighbour->state(), ActorState::failed);
  EXPECT_FALSE(neighbour->send(make_message(numbered(1))));
  // The process lives on, and so do the CPU's actors.
  ASSERT_OK_AND_ASSIGN(const Message from_cpu, runtime_->request("cpu", make_message(numbered(9)), 5s));
  EXPECT_EQ(payload<Numbered>(from_cpu).number, 9u);
  std::printf("lost after %.3f s: %s\n", seconds, grid->lost()->message().c_str());
}

TEST_P(CudaGrids, a_lost_context_is_told_apart_reported_and_the_process_lives_on) {
  for (int round = 0; round < rounds(); ++round) {
    OwnChild child("On/CudaGrids.DISABLED_traps/cuda");
    EXPECT_TRUE(child.succeeds(30s)) << child.printed();
  }
  // Ours is untouched.
  ASSERT_OK_AND_ASSIGN(const auto grid, open());
  ASSERT_OK(grid->close());
}

// The child of the next test: the GPU's runtime, for the program that started it.
TEST_P(CudaGrids, DISABLED_serves_a_parent) {
  const int code = serve_parent([]() -> Result<std::unique_ptr<ChildWork>> {
    CGL_TRY_ASSIGN(auto backend, testing::make_trapping_backend());
    GridOptions options;
    options.time_limit = 20s;
    CGL_TRY_ASSIGN(auto grid, ResidentGrid::open(std::move(backend), options));
    return child_work_of(std::move(grid));
  });
  ASSERT_EQ(code, child_left);
}

ActorOptions restarted_often() {
  ActorOptions options;
  options.restart.kind = RestartKind::limited;
  options.restart.max_restarts = 100;
  options.restart.max_back_off = 10ms;
  return options;
}

TEST_P(CudaGrids, in_a_child_process_gpu_work_resumes_after_a_lost_context) {
  ASSERT_OK_AND_ASSIGN(const auto host, ChildHost::start(serving_child()));
  struct Nothing {};
  const ActorOptions restarting = restarted_often();
  ASSERT_OK_AND_ASSIGN(const auto trap, host->launch(*runtime_, "trap", "trap", Nothing{}, RingKind::fast, restarting));
  ASSERT_OK_AND_ASSIGN(const auto echo, host->launch(*runtime_, "echo", "echo", Nothing{}, RingKind::fast, restarting));
  ASSERT_OK(trap->activate());
  ASSERT_OK(echo->activate());
  for (int round = 0; round < rounds(); ++round) {
    ASSERT_OK(runtime_->request("echo", make_message(numbered(1)), 5s));
    EXPECT_FALSE(runtime_->request("trap", make_message(numbered(1)), 5s));
    const auto start = std::chrono::steady_clock::now();
    bool resumed = false;
    while (!resumed && std::chrono::steady_clock::now() - start < 10s) {
      resumed = runtime_->request("echo", make_message(numbered(2)), 500ms).has_value();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_TRUE(resumed);
    EXPECT_LT(seconds, 5.0);
    std::printf("resumed after %.2f s; the child %s\n", seconds, host->last_end().c_str());
    EXPECT_NE(host->last_end().find("context"), std::string::npos) << host->last_end();
    // The trap is back a moment after its neighbour: a request to it before would be lost, not trap.
    const auto restarts = static_cast<std::uint64_t>(round) + 1;
    while (trap->telemetry().restarts < restarts && std::chrono::steady_clock::now() - start < 10s) {
      std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(50ms);  // restarts counts before the restart is done
    EXPECT_EQ(host->starts(), restarts + 1);
  }
  EXPECT_EQ(host->starts(), static_cast<std::uint64_t>(rounds()) + 1);
}

// A loop that does not look at its orders, of 15 seconds at most: the watchdog ends the process that holds the GPU.
TEST_P(CudaGrids, in_a_child_process_gpu_work_resumes_after_a_body_that_never_returns) {
  ChildOptions options = serving_child();
  options.end_stalled = true;
  ASSERT_OK_AND_ASSIGN(const auto host, ChildHost::start(options));
  struct Nothing {};
  const ActorOptions restarting = restarted_often();
  ASSERT_OK_AND_ASSIGN(const auto busy, host->launch(*runtime_, "busy", "busy", Nothing{}, RingKind::fast, restarting));
  ASSERT_OK_AND_ASSIGN(const auto echo, host->launch(*runtime_, "echo", "echo", Nothing{}, RingKind::fast, restarting));
  ASSERT_OK(busy->activate());
  ASSERT_OK(echo->activate());
  for (int round = 0; round < rounds(); ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    EXPECT_TRUE(
        fails_with(runtime_->request("busy", make_message(numbered(15000)), 10s), ErrorKind::closed, "signal 9"));
    const double reported = seconds();
    EXPECT_LT(reported, 2.5) << "the watchdog's limit is 500 ms, found within twice that";
    bool resumed = false;
    while (!resumed && seconds() < 15) {
      resumed = runtime_->request("echo", make_message(numbered(2)), 500ms).has_value() &&
                runtime_->request("busy", make_message(numbered(1)), 500ms).has_value();
    }
    EXPECT_TRUE(resumed);
    EXPECT_LT(seconds() - reported, 5.0);
    std::printf("reported after %.2f s, resumed %.2f s later\n", reported, seconds() - reported);
  }
}

}  // namespace
}  // namespace cingulum::ring
