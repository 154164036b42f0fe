// An NVML with two GPUs, of which the second reports its name alone, for the tests of the GPU monitor.
#include <cstring>

extern "C" {
struct Device {
  unsigned index;
};
static Device devices[2] = {{0}, {1}};
static int unknown_to_the_second(const Device* device) {
  return device->index == 0 ? 0 : 3;
}
int nvmlInit_v2() {
  return 0;
}
const char* nvmlErrorString(int) {
  return "not found";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** device) {
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char*, Device**) {
  return 6;
}
int nvmlDeviceGetName(Device* device, char* name, unsigned length) {
  std::strncpy(name, device->index == 0 ? "First GPU" : "Second GPU", length);
  return 0;
}
int nvmlDeviceGetUUID(Device* device, char* uuid, unsigned length) {
  std::strncpy(uuid, device->index == 0 ? "GPU-0" : "GPU-1", length);
  return 0;
}
int nvmlDeviceGetMemoryInfo(Device* device, unsigned long long* total_free_used) {
  total_free_used[0] = 1000;
  total_free_used[1] = 400;
  total_free_used[2] = 600;
  return unknown_to_the_second(device);
}
int nvmlDeviceGetUtilizationRates(Device* device, unsigned* gpu_and_memory) {
  gpu_and_memory[0] = 100;
  gpu_and_memory[1] = 25;
  return unknown_to_the_second(device);
}
int nvmlDeviceGetTemperature(Device* device, int, unsigned* value) {
  *value = 41;
  return unknown_to_the_second(device);
}
int nvmlDeviceGetPowerUsage(Device* device, unsigned* value) {
  *value = 350500;
  return unknown_to_the_second(device);
}
int nvmlDeviceGetPowerManagementLimit(Device* device, unsigned* value) {
  *value = 700000;
  return unknown_to_the_second(device);
}
}
