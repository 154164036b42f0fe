// The run-time compiler works without a GPU, so these tests need no device.
#include "device/cuda/nvrtc_library.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

class Nvrtc : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<NvrtcLibrary>& library = NvrtcLibrary::get(std::nullopt);
    if (!library) GTEST_SKIP() << library.error().message();
    nvrtc_ = &*library;
  }
  const NvrtcLibrary* nvrtc_ = nullptr;
};

KernelSource source(std::string text, std::string name = "f") {
  KernelSource made;
  made.name = std::move(name);
  made.language = KernelLanguage::cuda_cpp;
  made.text = std::move(text);
  return made;
}

TEST_F(Nvrtc, compiles_for_the_architecture_and_finds_templates_by_their_expression) {
  ASSERT_OK_AND_ASSIGN(
      const CompiledCuda plain,
      compile_cuda_source(*nvrtc_, source("extern \"C\" __global__ void f(float* x) { *x = 1; }"), "sm_90"));
  EXPECT_EQ(plain.symbol, "f");
  EXPECT_GT(plain.code.size(), 100u);
  ASSERT_OK_AND_ASSIGN(
      const CompiledCuda instance,
      compile_cuda_source(*nvrtc_, source("template <class T> __global__ void g(T* x) { *x = 1; }", "g<double>"),
                          "sm_90"));
  EXPECT_NE(instance.symbol.find("g"), std::string::npos);
}

TEST_F(Nvrtc, failures_carry_the_compilers_words_with_the_users_line) {
  const auto result =
      compile_cuda_source(*nvrtc_, source("\n\nextern \"C\" __global__ void f() {\n  undeclared = 1;\n}\n"), "sm_90");
  EXPECT_TRUE(testing::fails_with(result, ErrorKind::compilation, "f.cu(4): error"));
  EXPECT_TRUE(testing::fails_with(result, ErrorKind::compilation, "undeclared"));
  EXPECT_TRUE(testing::fails_with(compile_cuda_source(*nvrtc_, source("__global__ void g() {}"), "sm_90"),
                                  ErrorKind::compilation, "f"));
  EXPECT_TRUE(testing::fails_with(compile_cuda_source(*nvrtc_, source("__global__ void f() {}"), "sm_1"),
                                  ErrorKind::compilation, "sm_1"));
}

TEST_F(Nvrtc, warnings_are_kept_in_the_log) {
  ASSERT_OK_AND_ASSIGN(
      const CompiledCuda compiled,
      compile_cuda_source(*nvrtc_, source("extern \"C\" __global__ void f() { int unused; }"), "sm_90"));
  EXPECT_NE(compiled.log.find("unused"), std::string::npos) << compiled.log;
}

TEST(NvrtcOptions, of_our_own_kernels_hold_the_contract_and_come_last) {
  KernelSource own = source("");
  own.options = {"--device-debug"};
  own.contract_arithmetic = true;
  const auto options = nvrtc_options(own, "sm_90");
  for (const char* needed : {"--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"}) {
    const auto at = std::find(options.begin(), options.end(), needed);
    ASSERT_NE(at, options.end()) << needed;
    EXPECT_GT(at, std::find(options.begin(), options.end(), "--device-debug"));
  }
  own.contract_arithmetic = false;
  const auto defaults = nvrtc_options(own, "sm_90");
  EXPECT_EQ(std::find(defaults.begin(), defaults.end(), "--fmad=false"), defaults.end());
}

TEST_F(Nvrtc, options_that_would_loosen_the_contract_are_refused) {
  for (const char* option : {"--fmad=true", "-fmad=true", "--use_fast_math", "--prec-div=false", "--ftz=true"}) {
    KernelSource own = source("extern \"C\" __global__ void f() {}");
    own.contract_arithmetic = true;
    own.options = {option};
    EXPECT_TRUE(testing::fails_with(compile_cuda_source(*nvrtc_, own, "sm_90"), ErrorKind::invalid_argument, option));
  }
}

}  // namespace
}  // namespace cingulum
