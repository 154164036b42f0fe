// Stopping one run and no other. Whoever starts a run keeps a CancelSource and gives its token to what works; work
// polls the token and answers ErrorKind::interrupted. A token that nobody made from a source follows the process's
// interrupt (base/interrupt.hpp): the command line needs no source of its own, and two runs in one process can be told
// apart.
#pragma once

#include <atomic>
#include <memory>

#include "base/result.hpp"

namespace cingulum {

class CancelToken {
 public:
  // Follows the process's interrupt and nothing else.
  CancelToken() noexcept = default;

  // A few loads: cheap enough for every thousandth turn of a loop. any thread
  [[nodiscard]] bool cancelled() const noexcept;
  // CGL_TRY(cancel.check()); any thread
  [[nodiscard]] Status check() const;

 private:
  friend class CancelSource;
  struct Flag;
  explicit CancelToken(std::shared_ptr<const Flag> flag) noexcept : flag_(std::move(flag)) {}

  std::shared_ptr<const Flag> flag_;  // null: the process's interrupt
};

class CancelSource {
 public:
  // Its tokens are cancelled by cancel() alone; not by Ctrl-C.
  CancelSource();
  // Its tokens are cancelled with `followed`, too: CancelSource(CancelToken()) ends with Ctrl-C as well.
  explicit CancelSource(CancelToken followed);

  // any thread
  void cancel() noexcept;
  // any thread
  [[nodiscard]] CancelToken token() const noexcept;

 private:
  std::shared_ptr<CancelToken::Flag> flag_;
};

}  // namespace cingulum
