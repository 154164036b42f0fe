#include "tract/field/memory_need.hpp"

#include <gtest/gtest.h>

#include "support/analytic_field.hpp"
#include "support/each_device.hpp"

namespace cingulum::memory_need_tests {
namespace {

// A device that has a little memory left, or does not tell.
class LittleDevice final : public Device {
 public:
  explicit LittleDevice(std::optional<std::uint64_t> free_bytes) : Device({}), free_bytes_(free_bytes) {
    mutable_description().id = "little";
  }
  [[nodiscard]] DeviceReading read_sensors() override { return {}; }

 protected:
  [[nodiscard]] Result<std::unique_ptr<Queue>> do_create_queue() override { return nothing(); }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> do_compile(const KernelSource&) override { return nothing(); }
  [[nodiscard]] KernelLanguage kernel_language() const override { return KernelLanguage::native; }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> do_allocate(std::uint64_t) override { return nothing(); }
  [[nodiscard]] Result<std::unique_ptr<HostMemory>> do_allocate_host(std::uint64_t, HostMemoryKind) override {
    return nothing();
  }
  [[nodiscard]] Result<DriverMemory> driver_memory() const override {
    if (!free_bytes_) return nothing();
    return DriverMemory{.total_bytes = 1 << 20, .free_bytes = free_bytes_};
  }

 private:
  static tl::unexpected<Error> nothing() { return fail(ErrorKind::unavailable, "there is nothing"); }
  std::optional<std::uint64_t> free_bytes_;
};

TEST(MemoryNeed, of_the_cpu_is_held_against_its_limit_alone_since_the_field_is_there_already) {
  const Field field = test::tensor_field(test::grid(4, 4, 4), [](numerics::Vec3d) { return numerics::Vec3d{1, 0, 0}; });
  const std::uint64_t need = field.stored_bytes().size() + 4 * field.record_of_voxel.size();
  LittleDevice device(1);
  EXPECT_TRUE(check_host_memory(device, field)) << "no limit";
  EXPECT_TRUE(check_host_memory(LittleDevice(std::nullopt), field)) << "nothing is known";
  LittleDevice roomy(need);
  roomy.budget().set_limit(need);
  EXPECT_TRUE(check_host_memory(roomy, field));
  roomy.budget().set_limit(need - 1);
  EXPECT_TRUE(testing::fails_with(check_host_memory(roomy, field), ErrorKind::out_of_memory, "little: tracking needs"));
}

}  // namespace
}  // namespace cingulum::memory_need_tests
