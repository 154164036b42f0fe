#include "base/cancel.hpp"

#include <optional>

#include "base/interrupt.hpp"

namespace cingulum {

struct CancelToken::Flag {
  std::atomic<bool> set{false};
  std::optional<CancelToken> followed;
};

bool CancelToken::cancelled() const noexcept {
  const CancelToken* token = this;
  while (token->flag_ != nullptr) {
    const Flag& flag = *token->flag_;
    if (flag.set.load(std::memory_order_relaxed)) return true;
    if (!flag.followed) return false;
    token = &*flag.followed;
  }
  return interrupt_requested();
}

Status CancelToken::check() const {
  if (cancelled()) return fail(ErrorKind::interrupted, "interrupted");
  return {};
}

CancelSource::CancelSource() : flag_(std::make_shared<CancelToken::Flag>()) {}

CancelSource::CancelSource(CancelToken followed) : CancelSource() {
  flag_->followed = std::move(followed);
}

void CancelSource::cancel() noexcept {
  flag_->set.store(true, std::memory_order_relaxed);
}

CancelToken CancelSource::token() const noexcept {
  return CancelToken(flag_);
}

}  // namespace cingulum
