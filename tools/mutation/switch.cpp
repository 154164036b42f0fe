// What switch.hpp declares. CINGULUM_TEST_MUTANT=17 turns mutant 17 on. CINGULUM_TEST_MUTANT_LOG=file notes in a shared
// mapping of the file which mutants are reached: what a process that is killed has reached is kept, and processes of one
// test share the file. Nothing is allocated and no descriptor stays open, since tests count both.
#include <fcntl.h>
#include <stdlib.h>
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

}  // namespace
