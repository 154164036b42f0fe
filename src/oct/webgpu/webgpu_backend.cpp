// The OCT kernels on WebGPU: WGSL that is compiled when a kernel is first asked for. A range that begins anywhere is
// bound from a multiple of 256 bytes on, and the elements before it are skipped in the kernel.
#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/shader_library.hpp"
#include "oct/kernel/attenuation_line.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/layer_line.hpp"
#include "oct/kernel/line_index.hpp"
#include "oct/kernel/product_terms.hpp"
#include "oct/kernel/sample_item.hpp"
#include "oct/kernel/simulated_voxel.hpp"
#include "oct/kernel/spline_line.hpp"
#include "oct/kernel_backend.hpp"

namespace cingulum::oct {
namespace {

constexpr std::uint64_t binding_alignment = 256;
// WGSL counts elements in 32 bits, and a binding has at most as many bytes.
constexpr std::uint64_t most_wgsl_bytes = (std::uint64_t{1} << 32) - binding_alignment;

// What the headers define and the texts read.
std::string oct_constants() {
  std::string text;
  const auto add = [&](std::string_view name, auto value) { text += wgsl_constant(name, value); };
  const auto code = [](Boundary boundary) { return static_cast<std::uint32_t>(boundary); };
  add("boundary_reflect", code(Boundary::reflect));
  add("boundary_nearest", code(Boundary::nearest));
  add("boundary_constant", code(Boundary::constant));
  add("boundary_wrap", code(Boundary::wrap));
  add("filter_outputs_per_thread", filter_outputs_per_thread);
  add("spline_pole", spline_pole);
  add("spline_gain", spline_gain);
  add("spline_horizon", spline_horizon);
  add("spline_mirror_start", spline_mirror_start);
  add("spline_reflect_start", spline_reflect_start);
  add("log_box_threads", log_box_threads);
  add("log_box_block_rows", log_box_block_rows);
  add("log_box_batch", log_box_batch);
  add("log_box_eighth", log_box_eighth);
  add("log_box_pitch", log_box_pitch);
  add("roll_depth_per_thread", roll_depth_per_thread);
  add("order_side", order_side);
  add("order_block_rows", order_block_rows);
  add("layer_planes", layer_planes);
  add("surface_margin", surface_margin);
  add("water_margin", water_margin);
  add("product_words", product_words);
  add("product_of_one", product_of_one);
  add("product_of_square", product_of_square);
  add("product_of_both", product_of_both);
  add("product_of_other", product_of_other);
  add("sample_planes_per_thread", sample_planes_per_thread);
  add("farthest_whole", farthest_whole);
  add("most_key_bins", most_key_bins);
  add("log_ninth", log_series[0]);
  add("log_seventh", log_series[1]);
  add("log_fifth", log_series[2]);
  add("log_third", log_series[3]);
  add("draw_purpose_texture", static_cast<std::uint32_t>(numerics::DrawPurpose::oct_texture));
  add("draw_purpose_speckle", static_cast<std::uint32_t>(numerics::DrawPurpose::oct_speckle));
  add("root_twelve", root_twelve);
  add("interface_width", interface_width);
  return text;
}

std::string text_of(const KernelFacts& facts, std::uint32_t compiled_word) {
  return numerics_wgsl(LaneForm::workgroup, "scalars.negative_zero") + oct_constants() +
         (facts.compiled_word == no_compiled_word ? "" : wgsl_constant("compiled_word", compiled_word)) +
         std::string(embedded_shader("oct_index.wgsl")) +
         std::string(embedded_shader(std::string(facts.name) + ".wgsl"));
}

class WebgpuOctBackend final : public KernelBackend {
 public:
  explicit WebgpuOctBackend(Device& device) : device_(device) {}

  [[nodiscard]] std::uint64_t most_elements() const override {
    const std::uint64_t binding = device_.capabilities().largest_binding_bytes;
    const std::uint64_t bytes = binding == 0 ? most_wgsl_bytes : std::min(binding, most_wgsl_bytes);
    return (bytes - binding_alignment) / 4;
  }

  [[nodiscard]] Status launch(Queue& queue, const KernelLaunch& launch) override {
    const KernelFacts& facts = kernel_facts(launch.kernel);
    CGL_TRY_ASSIGN(Kernel* const kernel, compiled(launch.kernel, launch.words));
    std::vector<KernelArgument> arguments;
    std::vector<std::uint32_t> skips;
    for (const KernelRange& range : launch.ranges) {
      const std::uint64_t begin = range.first * 4 / binding_alignment * binding_alignment;
      const std::uint64_t end = (range.first + range.count) * 4;
      arguments.push_back(argument(*range.buffer, begin, end - begin));
      skips.push_back(static_cast<std::uint32_t>(range.first - begin / 4));
    }
    arguments.emplace_back(-0.0f);
    for (const std::uint32_t skip : skips) arguments.emplace_back(skip);
    for (const std::uint32_t word : launch.words) arguments.emplace_back(word);
    LaunchShape shape;
    shape.block = facts.block;
    for (std::size_t d = 0; d < 3; ++d) shape.grid[d] = (launch.threads[d] + facts.block[d] - 1) / facts.block[d];
    return queue.launch(*kernel, shape, arguments);
  }

 private:
  Result<Kernel*> compiled(OctKernel which, std::span<const std::uint32_t> words) {
    const KernelFacts& facts = kernel_facts(which);
    const std::uint32_t constant = facts.compiled_word == no_compiled_word ? 0 : words[facts.compiled_word];
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Kernel>& kernel = kernels_[{which, constant}];
    if (kernel == nullptr) {
      KernelSource source;
      source.name = facts.name;
      source.language = KernelLanguage::wgsl;
      source.text = text_of(facts, constant);
      source.trusted = true;
      for (std::size_t i = 0; i < facts.buffers; ++i) {
        source.parameters.push_back(
            {"buffer_" + std::to_string(i), facts.written[i] ? ParameterKind::buffer_inout : ParameterKind::buffer_in});
      }
      source.parameters.push_back({"negative_zero", ParameterKind::f32});
      for (std::size_t i = 0; i < facts.buffers; ++i) {
        source.parameters.push_back({"skip_" + std::to_string(i), ParameterKind::u32});
      }
      for (std::size_t i = 0; i < words.size(); ++i) {
        source.parameters.push_back({"word_" + std::to_string(i), ParameterKind::u32});
      }
      CGL_TRY_ASSIGN(kernel, device_.compile(source));
    }
    return kernel.get();
  }

  Device& device_;
  std::mutex mutex_;                                                                // guards kernels_
  std::map<std::pair<OctKernel, std::uint32_t>, std::unique_ptr<Kernel>> kernels_;  // by the compiled word, too
};

}  // namespace

Result<std::unique_ptr<KernelBackend>> make_webgpu_oct_backend(Device& device) {
  return std::make_unique<WebgpuOctBackend>(device);
}

}  // namespace cingulum::oct
