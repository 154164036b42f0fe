// A cuFile that reads files into ordinary memory, for the tests of the direct engine on a device that is the host. What
// it plays is set by the environment variable CINGULUM_TEST_CUFILE, a list of words:
//   old           a version that cannot leave its compatibility mode
//   closed        the driver does not open without that mode
//   unsupported   files are not registered
//   short:N       every N-th read brings half of its bytes
//   failing:N     every N-th read fails
//   flipped:N     every N-th read brings one wrong bit
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Answer {
  int operation;
  int cuda;
};
struct Description {
  int type;
  union {
    int descriptor;
    void* pointer;
  } handle;
  const void* operations;
};
bool native_only = false;
std::atomic<long> reads{0};
std::atomic<long> registered{0};

std::string part() {
  const char* const text = std::getenv("CINGULUM_TEST_CUFILE");
  return text == nullptr ? "" : text;
}
bool plays(const char* word) {
  return part().find(word) != std::string::npos;
}
// Whether this read is one that goes wrong.
bool is_turn(const char* word, long read) {
  const std::string text = part();
  const std::size_t at = text.find(word);
  return at != std::string::npos && read % std::atol(text.c_str() + at + std::strlen(word)) == 0;
}

}  // namespace

extern "C" {
Answer cuFileGetVersion(int* version) {
  *version = plays("old") ? 1130 : 1160;
  return {0, 0};
}
Answer cuFileSetParameterBool(int which, bool value) {
  if (which == 1) native_only = !value;
  return {0, 0};
}
Answer cuFileDriverOpen() {
  return {plays("closed") && native_only ? 5001 : 0, 0};
}
Answer cuFileDriverGetProperties(unsigned* properties) {
  std::memset(properties, 0, 56);
  properties[0] = 2;  // nvidia-fs 2.28
  properties[1] = 28;
  properties[6] = 1u << 4;  // NVMe
  return {0, 0};
}
Answer cuFileHandleRegister(void** handle, Description* description) {
  if (plays("unsupported")) return {5008, 0};
  // As the real one: nothing but files that are open past the page cache.
  if ((fcntl(description->handle.descriptor, F_GETFL) & O_DIRECT) == 0) return {5020, 0};
  *handle = reinterpret_cast<void*>(static_cast<long>(description->handle.descriptor) + 1);
  ++registered;
  return {0, 0};
}
void cuFileHandleDeregister(void*) {
  --registered;
}
Answer cuFileBufRegister(const void*, std::size_t, int) {
  ++registered;
  return {0, 0};
}
Answer cuFileBufDeregister(const void*) {
  --registered;
  return {0, 0};
}
ssize_t cuFileRead(void* handle, void* memory, std::size_t bytes, off_t file_offset, off_t memory_offset) {
  const long read = ++reads;
  if (bytes % 4096 != 0 || file_offset % 4096 != 0 || memory_offset % 256 != 0) return -5022;
  if (is_turn("failing:", read)) return -5010;
  if (is_turn("short:", read)) bytes /= 2;
  const int descriptor = static_cast<int>(reinterpret_cast<long>(handle)) - 1;
  // Any memory will do here: the file is opened once more, through the page cache.
  const int plain = open(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), O_RDONLY | O_CLOEXEC);
  auto* const to = static_cast<char*>(memory) + memory_offset;
  const ssize_t count = pread(plain, to, bytes, file_offset);
  close(plain);
  if (count > 0 && is_turn("flipped:", read)) to[count / 2] ^= 1;
  return count;
}
// For the tests: what was registered and not given back.
long fake_cufile_registered() {
  return registered;
}
long fake_cufile_reads() {
  return reads;
}
}
