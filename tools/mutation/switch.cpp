// What switch.hpp declares. CINGULUM_TEST_MUTANT=17 turns mutant 17 on. CINGULUM_TEST_MUTANT_LOG=file notes in a shared
// mapping of the file which mutants are reached: what a process that is killed has reached is kept, and processes of
// one test share the file. Nothing is allocated and no descriptor stays open, since tests count both.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {
unsigned cingulum_mutant_on = 0;
unsigned char* cingulum_mutants_seen = nullptr;
}

namespace {

[[gnu::constructor]] void read_switch() {
  if (const char* const number = ::getenv("CINGULUM_TEST_MUTANT")) {
    cingulum_mutant_on = static_cast<unsigned>(::strtoul(number, nullptr, 10));
  }
  const char* const path = ::getenv("CINGULUM_TEST_MUTANT_LOG");
  if (path == nullptr) return;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  struct stat facts {};
  if (::fstat(file, &facts) == 0 && facts.st_size > 0) {
    void* const memory =
        ::mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) cingulum_mutants_seen = static_cast<unsigned char*>(memory);
  }
  ::close(file);
}

struct Resolved {
  const char* from;
  const char* to;
};
constexpr size_t most_texts = 256;
Resolved resolved[most_texts];
size_t resolved_count = 0;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char* resolve(const char* text) {
  char* const memory = static_cast<char*>(
      ::mmap(nullptr, ::strlen(text) + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) ::abort();
  char* out = memory;
  bool keep = true;
  for (const char* at = text; *at != '\0'; ++at) {
    if (*at == '\1') {
      char* end = nullptr;
      const unsigned number = static_cast<unsigned>(::strtoul(at + 1, &end, 10));
      if (cingulum_mutants_seen != nullptr) cingulum_mutants_seen[number] = 1;
      keep = cingulum_mutant_on == number;
      at = end;  // \2
    } else if (*at == '\3') {
      keep = !keep;
    } else if (*at == '\4') {
      keep = true;
    } else if (keep) {
      *out++ = *at;
    }
  }
  return memory;
}

}  // namespace

// The text lives as long as the process.
extern "C" const char* cingulum_chosen_text(const char* text) {
  ::pthread_mutex_lock(&lock);
  const char* answer = nullptr;
  for (size_t i = 0; i < resolved_count && answer == nullptr; ++i) {
    if (resolved[i].from == text) answer = resolved[i].to;
  }
  if (answer == nullptr) {
    answer = resolve(text);
    if (resolved_count < most_texts) resolved[resolved_count++] = {text, answer};
  }
  ::pthread_mutex_unlock(&lock);
  return answer;
}
