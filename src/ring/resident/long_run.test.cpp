// A long session: jobs one after the other in one process, and what the process holds after the first of them and after
// the last: threads, descriptors, resident memory, on a GPU also its memory. CINGULUM_TEST_LONG=1 runs for
// CINGULUM_TEST_RING_SECONDS (1800 unless set) instead of a number of jobs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ring/resident/resident_actor.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/resident_bodies.hpp"
#include "ring/resident_programs.hpp"
#include "ring/telemetry/telemetry_export.hpp"
#include "support/each_device.hpp"
#include "support/long_tests.hpp"

namespace cingulum::ring {
namespace {

using namespace std::chrono_literals;
using testing::Add;
using testing::Echo;
using testing::FailEvery;
using testing::Numbered;
using testing::numbered;

struct Holdings {
  std::uint64_t threads = 0;
  std::uint64_t descriptors = 0;
  std::uint64_t resident_kb = 0;
};
Holdings holdings() {
  Holdings now;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) now.threads = std::strtoull(line.c_str() + 8, nullptr, 10);
    if (line.starts_with("VmRSS:")) now.resident_kb = std::strtoull(line.c_str() + 6, nullptr, 10);
  }
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) ++now.descriptors;
  return now;
}

class LongRuns : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] bool is_on_cpu() const { return std::string_view(GetParam()) == "cpu"; }

  // Launch, talk, fail and restart, wire, hand buffers, look at telemetry, end.
  void job(std::uint64_t number) {
    ASSERT_OK_AND_ASSIGN(const auto runtime, Runtime::create());
    std::shared_ptr<ResidentGrid> grid;
    if (!is_on_cpu()) {
      ASSERT_OK_AND_ASSIGN(auto backend, testing::make_test_backend(GetParam()));
      GridOptions options;
      options.time_limit = 20s;
      options.seats = 4;
      if (std::string_view(GetParam()) == "emulated") options.longest_nap_ns = 50000;
      ASSERT_OK_AND_ASSIGN(grid, ResidentGrid::open(std::move(backend), options));
    }
    const auto launch = [&](const char* name, const char* kind, const auto& body, const ActorOptions& options) {
      return grid ? grid->launch(*runtime, name, kind, body, RingKind::fast, options)
                  : runtime->launch(name, body, options);
    };
    ActorOptions options;
    options.restart.kind = RestartKind::limited;
    ASSERT_OK_AND_ASSIGN(const auto first, launch("first", "add", Add{1}, options));
    ASSERT_OK_AND_ASSIGN(const auto second, launch("second", "add", Add{10}, options));
    ASSERT_OK_AND_ASSIGN(const auto failing, launch("failing", "fail_every", FailEvery{5, 7}, options));
    ASSERT_OK(runtime->pipeline({"first", "second"}));
    for (const auto& actor : {first, second, failing}) ASSERT_OK(actor->activate());
    for (std::uint64_t i = 0; i < 50; ++i) {
      ASSERT_OK(first->send(make_message(numbered(i))));
      ASSERT_OK_AND_ASSIGN(const Message answer, second->receive(10s));
      ASSERT_EQ(payload<Numbered>(answer).number, i + 11);
    }
    ASSERT_OK(failing->send(make_message(numbered(4))));
    ASSERT_OK_AND_ASSIGN(const Message after, runtime->request("failing", make_message(numbered(1)), 10s));
    ASSERT_EQ(payload<Numbered>(after).number, 1u);
    TelemetrySnapshot snapshot;
    snapshot.runtime = runtime->telemetry();
    ASSERT_FALSE(prometheus_text(snapshot).empty());
    ASSERT_OK_AND_ASSIGN(const BufferHandle buffer, runtime->buffers().add(4096));
    if (number % 2 == 0) ASSERT_OK(runtime->buffers().release(buffer));
    if (number % 3 == 0) {
      for (const char* name : {"first", "second", "failing"})
        ASSERT_OK(runtime->terminate(name, Termination::drain(10s)));
    }
    ASSERT_TRUE(runtime->shutdown(Termination::discard()).errors.empty());
    if (grid) ASSERT_OK(grid->close());
  }
};
CGL_FOR_DEVICES(LongRuns, "cpu", "emulated", "cuda");

TEST_P(LongRuns, take_no_more_memory_threads_or_descriptors_at_the_end_than_at_the_beginning) {
  if (!is_on_cpu()) {
    if (const auto backend = testing::make_test_backend(GetParam()); !backend) {
      if (cingulum::testing::is_required(GetParam())) FAIL() << backend.error().message();
      GTEST_SKIP() << backend.error().message();
    }
  }
  const bool is_long = test::may_take_long();
  const char* const wanted = std::getenv("CINGULUM_TEST_RING_SECONDS");
  const auto seconds = std::chrono::seconds(wanted != nullptr ? std::strtol(wanted, nullptr, 10) : 1800);
  const std::uint64_t least = is_on_cpu() ? 100 : std::string_view(GetParam()) == "cuda" ? 20 : 40;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::steady_clock::now() - start; };
  std::uint64_t jobs = 0;
  Holdings before;
  for (; jobs < least || (is_long && elapsed() < seconds); ++jobs) {
    job(jobs);
    if (HasFatalFailure()) return;
    // The first twentieth fills caches and pools.
    if (before.threads == 0 && jobs + 1 >= least / 4 && (!is_long || elapsed() >= seconds / 20)) before = holdings();
  }
  const Holdings after = holdings();
  std::printf("%s: %llu jobs in %.0f s; threads %llu -> %llu, descriptors %llu -> %llu, memory %llu -> %llu kB\n",
              GetParam(), static_cast<unsigned long long>(jobs), std::chrono::duration<double>(elapsed()).count(),
              static_cast<unsigned long long>(before.threads), static_cast<unsigned long long>(after.threads),
              static_cast<unsigned long long>(before.descriptors), static_cast<unsigned long long>(after.descriptors),
              static_cast<unsigned long long>(before.resident_kb), static_cast<unsigned long long>(after.resident_kb));
  EXPECT_LE(after.threads, before.threads);
  EXPECT_LE(after.descriptors, before.descriptors);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // One per cent, and what the allocator's arenas need for threads that come and go. (Sanitizers keep what was freed.)
  EXPECT_LE(after.resident_kb, before.resident_kb * 101 / 100 + 4096);
#endif
}

}  // namespace
}  // namespace cingulum::ring
