#include "device/registry.hpp"

#include <gtest/gtest.h>

#include "device/selfcheck.hpp"
#include "support/each_device.hpp"

namespace cingulum {
namespace {

using testing::fails_with;
using testing::registry;

TEST(Registry, lists_the_backends_in_order_and_each_has_devices_or_a_reason) {
  const auto backends = registry().backends();
  ASSERT_EQ(backends.size(), 3u);
  EXPECT_EQ(backends[0].backend, Backend::cuda);
  EXPECT_EQ(backends[1].backend, Backend::webgpu);
  EXPECT_EQ(backends[2].backend, Backend::cpu);
  for (const BackendReport& report : backends) {
    EXPECT_EQ(report.devices.empty(), !report.absent_reason.empty()) << backend_name(report.backend);
    int index = 0;
    for (const auto& device : report.devices) EXPECT_EQ(device->description().index, index++);
  }
  EXPECT_EQ(backends[2].devices.size(), 1u);
}

TEST(Registry, names_of_other_programs_are_understood) {
  ASSERT_OK_AND_ASSIGN(Device * cpu, registry().select_one("numba"));
  EXPECT_EQ(cpu->id(), "cpu");
  ASSERT_OK_AND_ASSIGN(Device * best, registry().select_one("auto"));
  EXPECT_FALSE(best->capabilities().software) << "an emulated GPU is never chosen by itself";
  ASSERT_OK_AND_ASSIGN(const auto list, registry().select("cpu,auto"));
  EXPECT_EQ(list, (std::vector<Device*>{cpu, best}));
}

TEST(Registry, a_device_may_be_named_twice) {
  ASSERT_OK_AND_ASSIGN(const auto list, registry().select("cpu,cpu"));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0], list[1]);
  EXPECT_TRUE(fails_with(registry().select_one("cpu,cpu"), ErrorKind::invalid_argument, "2 devices"));
}

TEST(Registry, unknown_and_absent_devices_are_refused_with_the_list_of_those_there_are) {
  EXPECT_TRUE(fails_with(registry().select("quantum"), ErrorKind::invalid_argument, "cpu"));
  EXPECT_TRUE(fails_with(registry().select("cpu:7"), ErrorKind::invalid_argument, "available: auto"));
  for (const BackendReport& report : registry().backends()) {
    if (!report.devices.empty()) continue;
    EXPECT_TRUE(
        fails_with(registry().select(backend_name(report.backend)), ErrorKind::unavailable, report.absent_reason));
  }
}

// A device that is named and nothing more.
class NamedDevice final : public Device {
 public:
  NamedDevice(Backend backend, bool software) : Device(described(backend, software)) {}
  [[nodiscard]] DeviceReading read_sensors() override { return {}; }

 protected:
  [[nodiscard]] Result<std::unique_ptr<Queue>> do_create_queue() override { return nothing(); }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> do_compile(const KernelSource&) override { return nothing(); }
  [[nodiscard]] KernelLanguage kernel_language() const override { return KernelLanguage::native; }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> do_allocate(std::uint64_t) override { return nothing(); }
  [[nodiscard]] Result<std::unique_ptr<HostMemory>> do_allocate_host(std::uint64_t, HostMemoryKind) override {
    return nothing();
  }
  [[nodiscard]] Result<DriverMemory> driver_memory() const override { return nothing(); }

 private:
  static DeviceDescription described(Backend backend, bool software) {
    DeviceDescription description;
    description.backend = backend;
    description.id = fmt::format("{}:0", backend_name(backend));
    description.capabilities.software = software;
    return description;
  }
  [[nodiscard]] static tl::unexpected<Error> nothing() { return fail(ErrorKind::unavailable, "a name and no device"); }
};

// Machines of three backends, and what was opened on them, in order.
std::vector<Backend> opened_backends;

template <Backend backend, bool there, bool software>
BackendReport open_named(const ProbeOptions&) {
  opened_backends.push_back(backend);
  BackendReport report{.backend = backend, .absent_reason = there ? "" : "not here", .library = {}, .devices = {}};
  if (there) report.devices.push_back(std::make_unique<NamedDevice>(backend, software));
  return report;
}
constexpr BackendProbe cpu_probe = {Backend::cpu, open_named<Backend::cpu, true, false>};
constexpr BackendProbe with_cuda[] = {{Backend::cuda, open_named<Backend::cuda, true, false>},
                                      {Backend::webgpu, open_named<Backend::webgpu, true, false>},
                                      cpu_probe};
constexpr BackendProbe without_cuda[] = {{Backend::cuda, open_named<Backend::cuda, false, false>},
                                         {Backend::webgpu, open_named<Backend::webgpu, true, false>},
                                         cpu_probe};
constexpr BackendProbe with_emulated_gpu[] = {{Backend::cuda, open_named<Backend::cuda, false, false>},
                                              {Backend::webgpu, open_named<Backend::webgpu, true, true>},
                                              cpu_probe};

ProbeOptions wanting(std::optional<std::string> wanted) {
  ProbeOptions options;
  options.wanted = std::move(wanted);
  return options;
}

std::vector<Backend> opened_for(std::optional<std::string> wanted, std::span<const BackendProbe> probes) {
  opened_backends.clear();
  const auto made = DeviceRegistry::probe(wanting(std::move(wanted)), probes);
  EXPECT_TRUE(made);
  return opened_backends;
}

TEST(Registry, opens_the_backends_that_a_wanted_device_can_be_of_and_no_others) {
  using enum Backend;
  using List = std::vector<Backend>;
  const List all = {cuda, webgpu, cpu};
  EXPECT_EQ(opened_for(std::nullopt, with_cuda), all);
  EXPECT_EQ(opened_for("cpu", with_cuda), List{cpu});
  EXPECT_EQ(opened_for("numba", with_cuda), List{cpu});
  EXPECT_EQ(opened_for("cuda", with_cuda), (List{cuda, cpu}));
  EXPECT_EQ(opened_for("cuda:0,cpu", with_cuda), (List{cuda, cpu}));
  EXPECT_EQ(opened_for("webgpu", with_cuda), (List{webgpu, cpu}));
  EXPECT_EQ(opened_for("webgpu:0,cuda:0", with_cuda), all);
  EXPECT_EQ(opened_for("auto", with_cuda), (List{cuda, cpu}));
  EXPECT_EQ(opened_for("gpu", with_cuda), (List{cuda, cpu}));
  EXPECT_EQ(opened_for("auto", without_cuda), all);
  EXPECT_EQ(opened_for("auto", with_emulated_gpu), all);
}

TEST(Registry, where_a_wanted_device_is_missing_all_are_opened_for_the_message) {
  const auto made = DeviceRegistry::probe(wanting("cuda"), without_cuda);
  ASSERT_TRUE(made);
  EXPECT_TRUE(fails_with(made->select("cuda"), ErrorKind::unavailable, "not here (available: webgpu:0, cpu:0)"));
}

TEST(Registry, the_rest_is_opened_once_and_stands_in_its_place) {
  opened_backends.clear();
  auto made = DeviceRegistry::probe(wanting("auto"), with_cuda);
  ASSERT_TRUE(made);
  Device* const before = made->select_one("auto").value();
  ASSERT_OK(made->open_rest());
  ASSERT_OK(made->open_rest());
  EXPECT_EQ(opened_backends, (std::vector<Backend>{Backend::cuda, Backend::cpu, Backend::webgpu}));
  std::vector<std::string> ids;
  for (const Device* device : made->devices()) ids.push_back(device->id());
  EXPECT_EQ(ids, (std::vector<std::string>{"cuda:0", "webgpu:0", "cpu:0"}));
  EXPECT_EQ(made->select_one("cuda").value(), before);
}

TEST(Registry, a_list_that_is_none_is_refused_before_anything_is_opened) {
  opened_backends.clear();
  EXPECT_TRUE(fails_with(DeviceRegistry::probe(wanting("cuda,,"), with_cuda), ErrorKind::invalid_argument, "cuda,,"));
  EXPECT_TRUE(opened_backends.empty());
}

class Selfcheck : public testing::EachDevice {};
CGL_FOR_EACH_DEVICE(Selfcheck);

TEST_P(Selfcheck, every_item_has_the_bits_of_the_cpu) {
  ASSERT_OK_AND_ASSIGN(const SelfcheckResult result, run_selfcheck(device(), 300001));
  EXPECT_EQ(result.items, 300001u);
  EXPECT_EQ(result.equal, result.items);
}

// With a share of the memory that a job needs it runs, or is refused with the numbers, and a smaller one runs
// after.
TEST_P(Selfcheck, with_less_memory_than_needed_is_refused_and_a_smaller_one_runs) {
  constexpr std::uint32_t items = 100000;
  constexpr std::uint64_t need = items * 16;
  const std::uint64_t base = device().budget().used_bytes();
  for (const std::uint64_t percent : {100u, 50u, 20u, 5u, 1u}) {
    device().budget().set_limit(base + need * percent / 100);
    const auto result = run_selfcheck(device(), items);
    if (percent == 100) {
      ASSERT_OK(result);
      EXPECT_EQ(result->equal, items);
    } else {
      EXPECT_TRUE(fails_with(result, ErrorKind::out_of_memory, "1.5 MiB needed"));
    }
    ASSERT_OK_AND_ASSIGN(const SelfcheckResult smaller, run_selfcheck(device(), items / 100));
    EXPECT_EQ(smaller.equal, smaller.items);
  }
  device().budget().set_limit(std::nullopt);
  for (std::uint64_t n = 1; n <= 2; ++n) {
    device().budget().fail_nth_allocation(n);
    const auto result = run_selfcheck(device(), 1000);
    device().budget().fail_nth_allocation(0);
    EXPECT_EQ(result.has_value(), n > 1) << testing::message_of(result);
  }
  EXPECT_EQ(device().budget().used_bytes(), base);
}

TEST(SelfcheckLimits, more_items_than_a_launch_can_count_are_refused) {
  ASSERT_OK_AND_ASSIGN(Device * cpu, registry().select_one("cpu"));
  EXPECT_TRUE(fails_with(run_selfcheck(*cpu, 0), ErrorKind::invalid_argument, "1 to"));
  EXPECT_TRUE(fails_with(run_selfcheck(*cpu, ~0u), ErrorKind::invalid_argument, "1 to"));
}

}  // namespace
}  // namespace cingulum
