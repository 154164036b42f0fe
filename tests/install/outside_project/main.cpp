#include <cstdio>

#include "device/registry.hpp"
#include "device/selfcheck.hpp"

int main() {
  const auto registry = cingulum::DeviceRegistry::probe();
  for (cingulum::Device* device : registry->devices()) {
    const auto result = cingulum::run_selfcheck(*device, 1000);
    std::printf("%s %s\n", device->id().c_str(), result && result->equal == 1000 ? "equal" : "different");
  }
}
