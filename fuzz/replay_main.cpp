// The main program of every fuzz target, for any compiler:
//   fuzz_NAME PATH...                                replays files and folders
//   fuzz_NAME --mutate SECONDS SEED [--keep FOLDER] PATH...   mutates them, and what it finds, for so long
// Each input must end within a time limit and must not allocate more than 16 times its size and 64 MB. An
// input that fails is written to FOLDER (default: the current one) as crash-TARGET-HASH. Where the code is compiled
// with -fsanitize-coverage=trace-pc (make fuzz), mutants that reach new code join the pool, otherwise all come from
// PATH.
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "fuzz/fuzz_target.hpp"

// Allocations of the whole process through operator new, which is how all of Cingulum's memory comes.
// malloc_usable_size answers what the allocator really gave.
namespace {

std::atomic<std::size_t> allocated{0};
std::atomic<std::size_t> most_allocated{0};

void* counted_allocation(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) return nullptr;
  const std::size_t now = allocated.fetch_add(malloc_usable_size(memory)) + malloc_usable_size(memory);
  std::size_t most = most_allocated.load();
  while (now > most && !most_allocated.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void counted_free(void* memory) noexcept {
  if (memory != nullptr) allocated.fetch_sub(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  void* memory = counted_allocation(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t size) {
  return operator new(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted_allocation(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return counted_allocation(size);
}
void operator delete(void* memory) noexcept {
  counted_free(memory);
}
void operator delete[](void* memory) noexcept {
  counted_free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  counted_free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  counted_free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  counted_free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  counted_free(memory);
}

// What the compiler calls at every branch under -fsanitize-coverage=trace-pc: places are numbered by their address.
namespace {

constexpr std::size_t place_count = std::size_t{1} << 16U;
std::array<std::uint8_t, place_count> places_met;
bool places_are_traced = false;

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  const auto address = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  std::uint8_t& count = places_met[(address ^ (address >> 16U)) % place_count];
  if (count < 255) ++count;
  places_are_traced = true;
}

// Under a sanitizer: called before the process dies.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::uint8_t>;

constexpr unsigned time_limit_s = 10;  // an alarm; a sanitized build on a busy machine is slow
constexpr std::size_t allocation_factor = 16;
constexpr std::size_t allocation_base = std::size_t{64} << 20U;
constexpr std::size_t largest_mutant = std::size_t{64} << 10U;

const Input* current_input = nullptr;
std::string target_name;
fs::path keep_folder = ".";

void keep_current_input() {
  if (current_input == nullptr) return;
  const Input& input = *std::exchange(current_input, nullptr);
  const std::string hash =
      cingulum::hash_hex(std::string_view(reinterpret_cast<const char*>(input.data()), input.size())).substr(0, 16);
  const fs::path path = keep_folder / fmt::format("crash-{}-{}", target_name, hash);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  fmt::print(stderr, "fuzz_{}: the input is kept as {}\n", target_name, path.native());
}

// Not safe in general in a signal handler; the process ends anyway, and mostly it works.
void on_signal(int number) {
  fmt::print(stderr, "fuzz_{}: {}\n", target_name,
             number == SIGALRM ? "an input took too long" : fmt::format("signal {}", number));
  keep_current_input();
  ::_exit(1);
}

void run_one(const Input& input) {
  current_input = &input;
  ::alarm(time_limit_s);
  const std::size_t before = allocated.load();
  most_allocated.store(before);
  // A copy of exact size: reading beyond its end is seen by the address sanitizer.
  const Input copy(input.begin(), input.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
  const std::size_t used = most_allocated.load() - before;
  ::alarm(0);
  cingulum::fuzz::require(used <= allocation_factor * input.size() + allocation_base, "too much memory",
                          fmt::format("{} bytes allocated for an input of {}", used, input.size()));
  current_input = nullptr;
}

Input read_input(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<Input> read_inputs(const std::vector<std::string>& paths) {
  std::set<fs::path> files;
  for (const std::string& path : paths) {
    if (!fs::exists(path)) {
      fmt::print(stderr, "fuzz_{}: {} does not exist\n", target_name, path);
      std::exit(2);
    }
    if (!fs::is_directory(path)) files.insert(path);
    if (!fs::is_directory(path)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.insert(entry.path());
    }
  }
  std::vector<Input> inputs;
  for (const fs::path& file : files) inputs.push_back(read_input(file));
  return inputs;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }

  Input mutant(const std::vector<Input>& pool) {
    Input input = pool[below(pool.size())];
    const std::size_t changes = std::size_t{1} << below(5);
    for (std::size_t i = 0; i < changes; ++i) change(input, pool);
    if (input.size() > largest_mutant) input.resize(largest_mutant);
    return input;
  }

 private:
  void change(Input& input, const std::vector<Input>& pool) {
    switch (below(10)) {
      case 0:  // a bit
        if (!input.empty()) input[below(input.size())] ^= static_cast<std::uint8_t>(1U << below(8));
        return;
      case 1:  // a byte
        if (!input.empty()) input[below(input.size())] = static_cast<std::uint8_t>(random_());
        return;
      case 2: return put_number(input);
      case 3: {  // a few bytes more
        const std::size_t at = below(input.size() + 1);
        const Input more(1 + below(16), static_cast<std::uint8_t>(random_()));
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
        return;
      }
      case 4: {  // a part less
        if (input.empty()) return;
        const std::size_t at = below(input.size());
        const std::size_t count = 1 + below(std::min<std::size_t>(input.size() - at, std::size_t{1} << below(12)));
        input.erase(input.begin() + static_cast<std::ptrdiff_t>(at),
                    input.begin() + static_cast<std::ptrdiff_t>(std::min(at + count, input.size())));
        return;
      }
      case 5:  // cut
        input.resize(below(input.size() + 1));
        return;
      case 6: {  // the head of one and the tail of another
        const Input& other = pool[below(pool.size())];
        input.resize(below(input.size() + 1));
        const std::size_t from = below(other.size() + 1);
        input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        return;
      }
      case 7: {  // a part of it, or of another, copied over
        const Input other = pool[below(pool.size())];
        if (input.empty() || other.empty()) return;
        const std::size_t from = below(other.size()), to = below(input.size());
        const std::size_t count = std::min({other.size() - from, input.size() - to, std::size_t{1} << below(8)});
        std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(from), count,
                    input.begin() + static_cast<std::ptrdiff_t>(to));
        return;
      }
      case 8: {  // one more or less
        if (input.empty()) return;
        std::uint8_t& byte = input[below(input.size())];
        byte = static_cast<std::uint8_t>(byte + (below(2) == 0 ? 1 : 255));
        return;
      }
      default: {  // a digit or a mark: for texts
        constexpr std::string_view marks = "0123456789-+.eE \n\t,:\"{}[]naif\\#";
        if (!input.empty()) input[below(input.size())] = static_cast<std::uint8_t>(marks[below(marks.size())]);
        return;
      }
    }
  }

  // Numbers at the ends of ranges, of 1 to 8 bytes, in either order.
  void put_number(Input& input) {
    constexpr std::array<std::uint64_t, 24> numbers = {0,
                                                       1,
                                                       2,
                                                       7,
                                                       8,
                                                       16,
                                                       64,
                                                       127,
                                                       128,
                                                       255,
                                                       256,
                                                       1024,
                                                       32767,
                                                       32768,
                                                       65535,
                                                       65536,
                                                       0x7fffffff,
                                                       0x80000000,
                                                       0xffffffff,
                                                       0x100000000,
                                                       0x7fffffffffffffff,
                                                       0x8000000000000000,
                                                       0xfffffffffffffffe,
                                                       0xffffffffffffffff};
    const std::size_t width = std::size_t{1} << below(4);
    if (input.size() < width) return;
    std::uint64_t number = numbers[below(numbers.size())];
    if (below(4) == 0) number = std::uint64_t{0} - number;
    const std::size_t at = below(input.size() - width + 1);
    const bool reversed = below(4) == 0;
    for (std::size_t i = 0; i < width; ++i) {
      input[at + (reversed ? width - 1 - i : i)] = static_cast<std::uint8_t>(number >> (8 * i));
    }
  }

  std::mt19937_64 random_;
};

// Whether the last run met a place, or a place so often, as no run before.
class Novelty {
 public:
  void begin() { places_met.fill(0); }
  bool found() {
    bool fresh = false;
    for (std::size_t i = 0; i < place_count; ++i) {
      if (places_met[i] == 0) continue;
      // Counts in classes 1, 2, 3, 4-7, 8-15, ... as AFL does.
      const unsigned count = places_met[i];
      const unsigned kind = count < 4 ? count - 1
                                      : (count < 8 ? 3
                                                   : (count < 16 ? 4
                                                                 : (count < 32    ? 5
                                                                    : count < 128 ? 6
                                                                                  : 7)));
      const auto bit = static_cast<std::uint8_t>(1U << kind);
      if ((seen_[i] & bit) != 0) continue;
      if (seen_[i] == 0) ++places_;
      seen_[i] |= bit;
      fresh = true;
    }
    return fresh;
  }
  [[nodiscard]] std::size_t places() const { return places_; }

 private:
  std::array<std::uint8_t, place_count> seen_{};
  std::size_t places_ = 0;
};

int mutate(std::vector<Input> pool, double seconds, std::uint64_t seed) {
  if (pool.empty()) pool.push_back({});
  Mutator mutator(seed);
  auto novelty = std::make_unique<Novelty>();
  for (const Input& input : std::vector(pool)) {
    novelty->begin();
    run_one(input);
    (void)novelty->found();
  }
  const std::size_t given = pool.size(), given_places = novelty->places();
  std::uint64_t runs = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  constexpr std::size_t largest_pool = 20000;
  while (elapsed() < seconds) {
    for (int i = 0; i < 16; ++i, ++runs) {
      const Input input = mutator.mutant(pool);
      novelty->begin();
      run_one(input);
      if (places_are_traced && novelty->found() && pool.size() < largest_pool) pool.push_back(input);
    }
  }
  fmt::print("fuzz_{}: {} runs in {:.0f} s ({:.0f} a second), seed {}, {} inputs given, {} in the pool at the end, ",
             target_name, runs, elapsed(), static_cast<double>(runs) / elapsed(), seed, given, pool.size());
  fmt::print("{}\n", places_are_traced
                         ? fmt::format("{} places met ({} by the inputs given)", novelty->places(), given_places)
                         : std::string("places not traced"));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  target_name = fs::path(words[0]).filename().string();
  if (target_name.starts_with("fuzz_")) target_name.erase(0, 5);
  std::vector<std::string> paths(words + 1, words + count);
  double seconds = 0;
  std::uint64_t seed = 0;
  if (paths.size() >= 3 && paths[0] == "--mutate") {
    seconds = std::strtod(paths[1].c_str(), nullptr);
    seed = std::strtoull(paths[2].c_str(), nullptr, 0);
    paths.erase(paths.begin(), paths.begin() + 3);
  }
  if (paths.size() >= 2 && paths[0] == "--keep") {
    keep_folder = paths[1];
    paths.erase(paths.begin(), paths.begin() + 2);
  }
  if (paths.empty()) {
    fmt::print(stderr, "usage: fuzz_{} [--mutate SECONDS SEED] [--keep FOLDER] FILE_OR_FOLDER...\n", target_name);
    return 2;
  }
  for (const int number : {SIGALRM, SIGABRT}) ::signal(number, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(keep_current_input);
  } else {
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(number, on_signal);
  }
  std::vector<Input> inputs = read_inputs(paths);
  if (seconds > 0) return mutate(std::move(inputs), seconds, seed);
  for (const Input& input : inputs) run_one(input);
  fmt::print("fuzz_{}: {} inputs replayed\n", target_name, inputs.size());
  return inputs.empty() ? 1 : 0;
}
