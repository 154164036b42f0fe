#include "device/selfcheck.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "device/selfcheck_item.hpp"
#include "device/shader_library.hpp"

namespace cingulum {
namespace {

constexpr std::uint32_t items_per_block = 64;

void selfcheck_block(const BlockContext& block) {
  const std::span<std::uint32_t> output = block.buffer<std::uint32_t>(0);
  const auto count = block.scalar<std::uint32_t>(1);
  const auto first = static_cast<std::uint32_t>(block.first_thread());
  for (std::uint32_t i = first; i < std::min(count, first + block.shape().block[0]); ++i) {
    selfcheck_item(i, output.data() + std::size_t{selfcheck_words} * i);
  }
}

Status queue_selfcheck(Queue& queue, Buffer& output, std::uint32_t items) {
  Device& device = queue.device();
  if (device.description().backend == Backend::cuda) return queue_selfcheck_on_cuda(queue, output, items);
  KernelSource source;
  source.name = "selfcheck";
  source.parameters = {{"output", ParameterKind::buffer_out}, {"count", ParameterKind::u32}};
  std::vector<KernelArgument> arguments = {argument(output), items};
  if (device.description().backend == Backend::webgpu) {
    source.language = KernelLanguage::wgsl;
    source.text = numerics_wgsl() + std::string(embedded_shader("selfcheck.wgsl"));
    source.parameters.push_back({"negative_zero", ParameterKind::f32});
    arguments.emplace_back(-0.0f);
  } else {
    source.native = selfcheck_block;
  }
  CGL_TRY_ASSIGN(const auto kernel, device.compile(source));
  const LaunchShape shape{{(items + items_per_block - 1) / items_per_block, 1, 1}, {items_per_block, 1, 1}, 0};
  CGL_TRY(queue.launch(*kernel, shape, arguments));
  return queue.synchronise();
}

}  // namespace

Result<SelfcheckResult> run_selfcheck(Device& device, std::uint32_t items) {
  if (items == 0 || items > selfcheck_most_items) {
    return fail(ErrorKind::invalid_argument, "selfcheck: {} items; accepted is 1 to {}", items, selfcheck_most_items);
  }
  return catch_out_of_memory([&]() -> Result<SelfcheckResult> {
    std::vector<std::uint32_t> words(std::size_t{selfcheck_words} * items);
    CGL_TRY_ASSIGN(const auto queue, device.create_queue());
    CGL_TRY_ASSIGN(const auto output, device.allocate(words.size() * sizeof(std::uint32_t)));
    const auto start = std::chrono::steady_clock::now();
    CGL_TRY(queue_selfcheck(*queue, *output, items));
    CGL_TRY(queue->synchronise());
    const auto end = std::chrono::steady_clock::now();
    CGL_TRY(download(*queue, std::span(words), *output));
    CGL_TRY(queue->synchronise());

    SelfcheckResult result;
    result.items = items;
    result.compute_milliseconds = std::chrono::duration<double, std::milli>(end - start).count();
    for (std::uint32_t i = 0; i < items; ++i) {
      std::array<std::uint32_t, selfcheck_words> expected{};
      selfcheck_item(i, expected.data());
      if (std::equal(expected.begin(), expected.end(), words.begin() + std::ptrdiff_t{selfcheck_words} * i))
        ++result.equal;
    }
    return result;
  });
}

}  // namespace cingulum
