#include "zarr/direct/checksum_kernels.hpp"

#include <algorithm>

#include "zarr/direct/checksum_plan.hpp"

namespace cingulum::zarr {
namespace {

constexpr std::uint32_t x_to_0 = 0x80000000u;
constexpr std::uint32_t byte_power = x_to_0 >> 8;  // x^8

CrcTables make_tables() {
  CrcTables tables{};
  const std::uint32_t step = crc_power(4 * std::uint64_t{crc_threads});
  for (std::uint32_t b = 0; b < 4; ++b) {
    for (std::uint32_t value = 0; value < 256; ++value) tables.step[b][value] = crc_product(value << 8 * b, step);
  }
  for (std::uint32_t t = 0; t < crc_threads; ++t) tables.of_thread[t] = crc_power(4 * (crc_threads - t));
  std::uint32_t segments = crc_power(4 * crc_segment_words);
  for (std::uint32_t& power : tables.of_segments) {
    power = segments;
    segments = crc_product(segments, segments);
  }
  return tables;
}

// As the kernel does it, thread by thread.
class HostChecksumKernels final : public ChecksumKernels {
 public:
  [[nodiscard]] Result<std::vector<bool>> verify(Queue& queue, const Buffer& staging,
                                                 std::span<const ChecksumPlace> places) override {
    CGL_TRY(queue.synchronise());
    const auto* const bytes = static_cast<const std::byte*>(staging.device_pointer());
    const ChecksumPlan plan = plan_checksums(places);
    std::vector<CrcAnswer> answers;
    for (const CrcTask& task : plan.tasks) {
      CrcAnswer answer{0, stored_crc32c(bytes, task)};
      for (std::uint32_t segment = 0; segment < task.segments; ++segment) {
        std::uint32_t sum = 0;
        for (std::uint32_t t = 0; t < crc_threads; ++t) sum ^= crc_of_thread(bytes, task, segment, t, crc_tables());
        answer.sum ^= crc_of_segment(sum, task, segment, crc_tables());
      }
      answers.push_back(answer);
    }
    return judge_checksums(plan, answers);
  }
};

}  // namespace

std::uint32_t crc_power(std::uint64_t bytes) {
  std::uint32_t result = x_to_0;
  for (std::uint32_t power = byte_power; bytes != 0; bytes >>= 1, power = crc_product(power, power)) {
    if ((bytes & 1) != 0) result = crc_product(result, power);
  }
  return result;
}

const CrcTables& crc_tables() {
  static const CrcTables tables = make_tables();
  return tables;
}

std::uint32_t finished_crc32c(std::uint32_t sum, std::uint64_t bytes) {
  return ~(sum ^ crc_product(0xffffffffu, crc_power(bytes)));
}

ChecksumPlan plan_checksums(std::span<const ChecksumPlace> places) {
  ChecksumPlan plan;
  for (const ChecksumPlace& place : places) {
    const std::uint64_t words = (place.bytes + 3) / 4;
    const auto segments =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (words + crc_segment_words - 1) / crc_segment_words));
    plan.tasks.push_back({place.at, place.bytes, plan.blocks, segments});
    plan.blocks += segments;
  }
  return plan;
}

std::vector<bool> judge_checksums(const ChecksumPlan& plan, std::span<const CrcAnswer> answers) {
  std::vector<bool> right;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    right.push_back(finished_crc32c(answers[i].sum, plan.tasks[i].bytes) == answers[i].stored);
  }
  return right;
}

Result<std::unique_ptr<ChecksumKernels>> ChecksumKernels::create(Device& device) {
  switch (device.description().backend) {
    case Backend::cuda: return make_cuda_checksum_kernels(device);
    case Backend::cpu: return std::make_unique<HostChecksumKernels>();
    case Backend::webgpu: break;
  }
  return fail(ErrorKind::unavailable, "device {}: no kernel of checksums", device.id());
}

}  // namespace cingulum::zarr
