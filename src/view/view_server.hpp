// The server of the live viewer: HTTP and WebSockets for one user on this machine (docs/view.md). All of Boost.Beast is
// in beast/, one translation unit. Every limit on what a connection may ask and take is a constant in
// beast/http_parts.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "view/view_host.hpp"

namespace cingulum::view {

struct ViewServerOptions {
  std::string host;        // an address of this machine; empty: 127.0.0.1 and ::1
  std::uint16_t port = 0;  // 0: any that is free
};

class ViewServer {
 public:
  // Listens. The host outlives it. ErrorKind::unavailable where the program was built without it.
  [[nodiscard]] static Result<std::unique_ptr<ViewServer>> listen(ViewHost& host, const ViewServerOptions& options);
  virtual ~ViewServer() = default;
  ViewServer(const ViewServer&) = delete;
  ViewServer& operator=(const ViewServer&) = delete;

  // A link that opens the page once: http://127.0.0.1:PORT/open/KEY.
  [[nodiscard]] virtual Result<std::string> make_link() = 0;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  // Serves until cancelled; then ends all connections and what they asked for.
  [[nodiscard]] virtual Status run(const CancelToken& cancel) = 0;

 protected:
  ViewServer() = default;
};

}  // namespace cingulum::view
