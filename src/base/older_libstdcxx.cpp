// One function of libstdc++ that programs linked today take from GCC 12's, so that the library runs with that of GCC
// 11, which RHEL 9 and its likes have: there the function may throw, and has another version. The linker sends our
// calls here (--wrap in src/CMakeLists.txt); everything else we use is old enough, which `make wheel` sees.
#if defined(__GLIBCXX__) && defined(__linux__)
#include <pthread.h>

#include <condition_variable>
#include <mutex>

extern "C" void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* condition,
                                                                                 std::unique_lock<std::mutex>& lock);

extern "C" void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* condition,
                                                                                 std::unique_lock<std::mutex>& lock) {
  (void)pthread_cond_wait(condition->native_handle(), lock.mutex()->native_handle());
}
#endif
