// Who may speak to the viewer's server: any web page that the user has open can send requests to this machine, so each
// is judged by its Host, Origin, Sec-Fetch-Site and cookie before anything is done. Plain values in, a status out: the
// server reads the headers, tests try hundreds of them.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cingulum::view {

// The parts of a request's head that are judged; a header that came twice has two texts.
struct RequestHead {
  std::string method;
  std::string target;
  std::vector<std::string> hosts;
  std::vector<std::string> origins;
  std::vector<std::string> cookies;
  std::vector<std::string> fetch_sites;
  bool upgrade = false;  // to a WebSocket
};

struct Refusal {
  int status = 0;  // of HTTP
  std::string reason;
};

// What a target names. No text is decoded and no path is made of it: it is one of these, letter by letter, or nothing.
struct Target {
  enum class Kind {
    page,
    open,
    files,
    state,
    link,
    save,
    save_sidecar,
    data,
    lines,
    values,
    glyphs,
    peaks,
    live,
    none
  };
  Kind kind = Kind::none;
  std::string_view name;   // of an asset, a key or an identifier; an axis of glyphs and peaks; into the target
  std::string_view place;  // lines: the message; values: the column; glyphs and peaks: millimetres
};
[[nodiscard]] Target read_target(std::string_view target);

class RequestGuard {
 public:
  // `host` besides localhost, 127.0.0.1 and [::1]; empty: none.
  [[nodiscard]] static Result<std::unique_ptr<RequestGuard>> create(std::string_view host, std::uint16_t port);

  // Nothing where the request may be answered. any thread
  [[nodiscard]] std::optional<Refusal> judge(const RequestHead& head) const;

  // A key that opens once: from then on it is forgotten. any thread
  [[nodiscard]] Result<std::string> make_key();
  // Whether it was one of the keys. any thread
  [[nodiscard]] bool take_key(std::string_view key);

  // "name=value" of the cookie.
  [[nodiscard]] std::string cookie() const;

 private:
  RequestGuard() = default;
  [[nodiscard]] bool has_cookie(const RequestHead& head) const;

  std::vector<std::string> hosts_;  // as a browser writes them, with the port
  std::string cookie_name_;
  std::string cookie_value_;
  std::mutex mutex_;
  std::vector<std::string> keys_;  // guarded by mutex_
};

// "bytes=a-b", "bytes=a-" or "bytes=-n" of a file: its first byte and how many. Several ranges are as none (the whole
// file), which HTTP allows.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
enum class RangeKind { whole, part, unsatisfiable };
[[nodiscard]] RangeKind read_range(std::string_view header, std::uint64_t bytes, ByteRange& range);

}  // namespace cingulum::view
