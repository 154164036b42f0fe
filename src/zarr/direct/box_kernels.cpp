#include "zarr/direct/box_kernels.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "device/shader_library.hpp"

namespace cingulum::zarr {
namespace {

// WGSL counts bytes in 32 bits.
constexpr std::uint64_t most_wgsl_bytes = (std::uint64_t{1} << 32) - 4;
constexpr std::uint32_t widest_grid = 65535;  // of WebGPU, along one axis

struct LaunchOfBoxes {
  const BoxRecord* records;
  std::uint32_t count;
  BoxDirection direction;
  std::byte* chunks;
  std::byte* places;
};

class HostBoxKernels final : public BoxKernels {
 public:
  [[nodiscard]] static Result<std::unique_ptr<BoxKernels>> create(Device& device) {
    KernelSource source;
    source.name = "move_boxes";
    source.native = move_block;
    source.parameters = {{"launch", ParameterKind::u64}};
    CGL_TRY_ASSIGN(auto kernel, device.compile(source));
    auto kernels = std::make_unique<HostBoxKernels>();
    kernels->kernel_ = std::move(kernel);
    return kernels;
  }
  [[nodiscard]] Status scatter(Queue& queue, const BoxTable& table, const Buffer& staging, Buffer& place) override {
    return move(queue, table, staging, place, BoxDirection::scatter);
  }
  [[nodiscard]] Status gather(Queue& queue, const BoxTable& table, Buffer& staging, const Buffer& place) override {
    return move(queue, table, staging, place, BoxDirection::gather);
  }

 private:
  static void move_block(const BlockContext& block) {
    const auto& launch = *reinterpret_cast<const LaunchOfBoxes*>(block.scalar<std::uint64_t>(0));
    const std::uint32_t index = block.block_index()[0];
    const BoxRecord& box = launch.records[box_of_block(launch.records, launch.count, index)];
    const std::uint32_t first = (index - box.first_block) * box_items_per_block;
    const std::uint32_t end = std::min(first + box_items_per_block, box.items);
    for (std::uint32_t i = first; i < end; ++i) {
      move_box_item(box, i, launch.direction, launch.chunks, launch.places);
    }
  }
  // A queue of the CPU has done its work when a launch returns.
  Status move(Queue& queue, const BoxTable& table, const Buffer& staging, const Buffer& place, BoxDirection direction) {
    const auto* const records = reinterpret_cast<const BoxRecord*>(
        static_cast<const std::byte*>(table.buffer->device_pointer()) + table.offset);
    for (const BoxLaunch& one : table.plan->launches()) {
      const LaunchOfBoxes launch = {records + one.first_record, one.records, direction,
                                    static_cast<std::byte*>(staging.device_pointer()),
                                    static_cast<std::byte*>(place.device_pointer())};
      const std::array<KernelArgument, 1> arguments = {reinterpret_cast<std::uint64_t>(&launch)};
      CGL_TRY(queue.launch(*kernel_, {{one.blocks, 1, 1}, {box_block_threads, 1, 1}, 0}, arguments));
    }
    return {};
  }

  std::unique_ptr<Kernel> kernel_;
};

class WebgpuBoxKernels final : public BoxKernels {
 public:
  [[nodiscard]] static Result<std::unique_ptr<BoxKernels>> create(Device& device) {
    KernelSource source;
    source.name = "move_boxes";
    source.language = KernelLanguage::wgsl;
    source.text =
        wgsl_constant("box_record_words", box_record_words) + wgsl_constant("box_block_threads", box_block_threads) +
        wgsl_constant("box_items_per_block", box_items_per_block) + std::string(embedded_shader("move_boxes.wgsl"));
    source.parameters = {{"records", ParameterKind::buffer_in},
                         {"source", ParameterKind::buffer_in},
                         {"target_words", ParameterKind::buffer_inout},
                         {"first_record_word", ParameterKind::u32},
                         {"record_count", ParameterKind::u32},
                         {"block_count", ParameterKind::u32},
                         {"gathers", ParameterKind::u32},
                         {"place_begin", ParameterKind::u32}};
    CGL_TRY_ASSIGN(auto kernel, device.compile(source));
    auto kernels = std::make_unique<WebgpuBoxKernels>();
    kernels->kernel_ = std::move(kernel);
    return kernels;
  }
  [[nodiscard]] Status scatter(Queue& queue, const BoxTable& table, const Buffer& staging, Buffer& place) override {
    for (const BoxLaunch& one : table.plan->launches()) {
      CGL_TRY(launch(queue, table, one, argument(staging), argument(place, one.place_begin, one.place_bytes), 0));
    }
    return {};
  }
  [[nodiscard]] Status gather(Queue& queue, const BoxTable& table, Buffer& staging, const Buffer& place) override {
    for (const BoxLaunch& one : table.plan->launches()) {
      CGL_TRY(launch(queue, table, one, argument(place, one.place_begin, one.place_bytes), argument(staging), 1));
    }
    return {};
  }

 private:
  Status launch(Queue& queue, const BoxTable& table, const BoxLaunch& one, const KernelArgument& from,
                const KernelArgument& to, std::uint32_t gathers) {
    // Bound from the start of its buffer: the table may begin anywhere in a slab that is itself the source.
    const auto first_word = static_cast<std::uint32_t>(table.offset / 4 + one.first_record * box_record_words);
    const std::array<KernelArgument, 8> arguments = {argument(*table.buffer),
                                                     from,
                                                     to,
                                                     first_word,
                                                     one.records,
                                                     one.blocks,
                                                     gathers,
                                                     static_cast<std::uint32_t>(one.place_begin)};
    const std::uint32_t width = std::min(one.blocks, widest_grid);
    const std::uint32_t height = (one.blocks + width - 1) / width;
    return queue.launch(*kernel_, {{width, height, 1}, {box_block_threads, 1, 1}, 0}, arguments);
  }

  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

Result<std::unique_ptr<BoxKernels>> BoxKernels::create(Device& device) {
  switch (device.description().backend) {
    case Backend::cuda: return make_cuda_box_kernels(device);
    case Backend::webgpu: return WebgpuBoxKernels::create(device);
    case Backend::cpu: return HostBoxKernels::create(device);
  }
  return fail(ErrorKind::unavailable, "device {}: no kernels for Zarr regions", device.id());
}

BoxLimits BoxKernels::limits_of(const Buffer& place) const {
  BoxLimits limits;
  limits.place_bytes = place.bytes();
  const Device& device = place.device();
  if (device.description().backend == Backend::webgpu) {
    const std::uint64_t binding = device.capabilities().largest_binding_bytes;
    limits.binding_bytes = binding == 0 ? most_wgsl_bytes : std::min(binding, most_wgsl_bytes);
  } else {
    limits.place_misaligned = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(place.device_pointer()) % 16);
  }
  return limits;
}

}  // namespace cingulum::zarr
