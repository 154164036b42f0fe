#include "ring/cuda/user_program.hpp"

#include <gtest/gtest.h>

#include "device/cuda/nvrtc_library.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/resident_bodies.hpp"
#include "support/each_device.hpp"

namespace cingulum::ring {
namespace {

using namespace std::chrono_literals;
using cingulum::testing::fails_with;
using testing::Numbered;
using testing::numbered;

constexpr const char* twice = R"(struct Number {
  static constexpr const char* message_name = "Numbered";
  std::uint64_t number = 0;
  std::uint64_t words[5] = {};
};
struct Times {
  std::uint64_t factor;
  template <class Context>
  __device__ int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      Number value = payload<Number>(message);
      value.number *= factor;
      context.send(make_reply(message, value));
    }
    return 0;
  }
};
)";

// Without a GPU: the compiler itself needs none.
TEST(UserPrograms, compile_for_an_architecture_and_failures_name_the_users_lines) {
  const Result<NvrtcLibrary>& nvrtc = NvrtcLibrary::get(std::nullopt);
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message();
  KernelSource source;
  source.name = "resident_user_actors";
  source.language = KernelLanguage::cuda_cpp;
  source.text = user_program_text("mine.cu", twice, {{"times", "Times"}});
  ASSERT_OK_AND_ASSIGN(const CompiledCuda compiled, compile_cuda_source(*nvrtc, source, "sm_90"));
  EXPECT_GT(compiled.code.size(), 1000u);
  source.text = user_program_text("mine.cu", "struct Times {\n  int operator()(int) { return undeclared; }\n};",
                                  {{"times", "Times"}});
  EXPECT_TRUE(fails_with(compile_cuda_source(*nvrtc, source, "sm_90"), ErrorKind::compilation, "mine.cu(2): error"));
}

constexpr const char* with_memory = R"(struct Sums {
  static constexpr std::uint32_t block_bytes = 1000;
  struct Memory { double part[125]; };
  template <class Context>
  __device__ int operator()(Context& context) const {
    Message message;
    while (context.receive(message) && context.template block_memory<Memory>() != nullptr) context.send(message);
    return 0;
  }
};
)";

TEST(UserPrograms, say_what_memory_of_the_block_their_bodies_ask_for) {
  const Result<NvrtcLibrary>& nvrtc = NvrtcLibrary::get(std::nullopt);
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message();
  KernelSource source;
  source.name = "resident_user_actors";
  source.language = KernelLanguage::cuda_cpp;
  source.text = user_program_text("mine.cu", with_memory, {{"sums", "Sums", 1000}});
  ASSERT_OK(compile_cuda_source(*nvrtc, source, "sm_90"));
  source.text = user_program_text("mine.cu", with_memory, {{"sums", "Sums"}});
  EXPECT_TRUE(fails_with(compile_cuda_source(*nvrtc, source, "sm_90"), ErrorKind::compilation,
                         "UserActor::block_bytes is not what the bodies ask for"));
}

class UserProgramsOnDevice : public cingulum::testing::EachDevice {};
CGL_FOR_DEVICES(UserProgramsOnDevice, "cuda");

TEST_P(UserProgramsOnDevice, an_actor_from_text_runs_like_one_that_was_compiled_ahead) {
  ASSERT_OK_AND_ASSIGN(CudaProgram program, compile_cuda_program(device(), "mine.cu", twice, {{"times", "Times"}}));
  ASSERT_OK_AND_ASSIGN(auto backend, make_cuda_backend(device(), std::move(program)));
  GridOptions options;
  options.time_limit = 20s;
  ASSERT_OK_AND_ASSIGN(const auto runtime, Runtime::create());
  ASSERT_OK_AND_ASSIGN(const auto grid, ResidentGrid::open(std::move(backend), options));
  struct Times {
    std::uint64_t factor;
  };
  ASSERT_OK(grid->launch(*runtime, "times", "times", Times{3}));
  ASSERT_OK(runtime->activate("times"));
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_OK_AND_ASSIGN(const Message answer, runtime->request("times", make_message(numbered(i)), 5s));
    ASSERT_EQ(payload<Numbered>(answer).number, 3 * i);
  }
  ASSERT_OK(runtime->terminate("times"));
  ASSERT_OK(grid->close());
}

TEST_P(UserProgramsOnDevice, text_that_does_not_compile_is_an_error_of_the_compiler) {
  EXPECT_TRUE(fails_with(compile_cuda_program(device(), "mine.cu", "struct Broken {", {{"broken", "Broken"}}),
                         ErrorKind::compilation, "mine.cu"));
  EXPECT_TRUE(fails_with(compile_cuda_program(device(), "mine.cu", twice, {}), ErrorKind::invalid_argument, "none"));
}

}  // namespace
}  // namespace cingulum::ring
