// A writer to be killed and interrupted: kill_writer FILE BYTES SEED [MODE] replaces FILE through
// AtomicFile with BYTES that follow from SEED, in small pieces, and patches the first 16 bytes at the end.
// test_kill.py stops it at random moments and looks at what is left. Modes: `plain`; `sidecar` and `fresh` write a
// sidecar, too, the latter where nothing is yet; `polite` shows progress and gives up at the first Ctrl-C; `stubborn`
// does not look, so that only the second one ends it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/interrupt.hpp"
#include "base/progress.hpp"
#include "base/quantity.hpp"
#include "formats/output_sidecar.hpp"

namespace {

using namespace cingulum;

enum class Mode { plain, sidecar, fresh, polite, stubborn };

// The byte at an index; the test computes the same.
std::byte content(std::uint64_t seed, std::uint64_t index) {
  return static_cast<std::byte>(((index + seed) * 2654435761U) >> 24U);
}

Status write(const std::string& path, std::uint64_t size, std::uint64_t seed, Mode mode) {
  constexpr std::uint64_t header_bytes = 16;
  constexpr std::uint64_t piece_bytes = 4096;
  const bool interactive = mode == Mode::polite || mode == Mode::stubborn;
  if (interactive) CGL_TRY(install_interrupt_handlers());
  Progress progress("writing", size, "bytes",
                    {.style = interactive ? ProgressStyle::automatic : ProgressStyle::silent});
  WriteOptions options{.force = mode != Mode::fresh, .buffer_bytes = 64 * 1024};
  if (mode == Mode::sidecar || mode == Mode::fresh) {
    CGL_TRY(check_sidecar_output(path, options));
    const auto sidecar = std::make_shared<OutputSidecar>(path, options);
    sidecar->describe([=] { return nlohmann::ordered_json{{"seed", seed}}; });
    options = with_sidecar(options, sidecar);
  }
  CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, options));
  std::vector<std::byte> piece;
  for (std::uint64_t begin = 0; begin < size; begin += piece_bytes) {
    if (mode == Mode::polite) CGL_TRY(check_interrupt());
    // Slow enough for a hand, or a test, to interrupt.
    if (interactive) std::this_thread::sleep_for(std::chrono::microseconds(500));
    piece.clear();
    for (std::uint64_t i = begin; i < std::min(size, begin + piece_bytes); ++i) {
      piece.push_back(i < header_bytes ? std::byte{0} : content(seed, i));
    }
    CGL_TRY(file.append(piece));
    progress.advance(piece.size());
  }
  std::vector<std::byte> header;
  for (std::uint64_t i = 0; i < std::min(size, header_bytes); ++i) header.push_back(content(seed, i));
  CGL_TRY(file.write_at(0, header));
  CGL_TRY(file.commit());
  progress.finish();
  return {};
}

}  // namespace

int main(int count, char** words) {
  const std::string_view mode = count > 4 ? words[4] : "plain";
  const auto size = parse_key(count > 2 ? words[2] : "");
  const auto seed = parse_key(count > 3 ? words[3] : "");
  if (!size || !seed) {
    std::fprintf(stderr, "usage: kill_writer FILE BYTES SEED [plain|sidecar|fresh|polite|stubborn]\n");
    return 2;
  }
  const Status status = write(words[1], *size, *seed,
                              mode == "sidecar"    ? Mode::sidecar
                              : mode == "fresh"    ? Mode::fresh
                              : mode == "polite"   ? Mode::polite
                              : mode == "stubborn" ? Mode::stubborn
                                                   : Mode::plain);
  if (status) return 0;
  std::fprintf(stderr, "kill_writer: %s\n", status.error().message().c_str());
  return status.error().kind() == ErrorKind::interrupted ? interrupted_exit_code : 1;
}
