// The only translation unit with Boost.Beast. One thread serves all connections; tracking (request_queue.hpp), saving
// and what else takes its time (WorkThread) have threads of their own, so that a slow page or a long run holds up
// nobody.
#include "view/view_server.hpp"

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <chrono>

#include "view/beast/beast_server.hpp"
#include "view/beast/connection.hpp"
#include "view/beast/http_parts.hpp"

namespace cingulum::view {

Status BeastServer::open_acceptor(const std::string& address, std::uint16_t port, bool may_lack) {
  error_code error;
  const auto place = asio::ip::make_address(address, error);
  if (error) {
    return fail_argument("host", "{} '{}': accepted is a numeric address of this machine, such as 192.168.1.5",
                         argument_name("host"), address);
  }
  if (place.is_unspecified()) {
    return fail_argument("host", "{} {}: name the one address by which browsers reach this machine",
                         argument_name("host"), address);
  }
  const tcp::endpoint endpoint(place, port);
  tcp::acceptor acceptor(io_);
  const auto step = [&](auto&& call) {
    if (!error) call();
  };
  step([&] { acceptor.open(endpoint.protocol(), error); });
  step([&] { acceptor.set_option(tcp::acceptor::reuse_address(true), error); });
  if (place.is_v6()) step([&] { acceptor.set_option(asio::ip::v6_only(true), error); });
  step([&] { acceptor.bind(endpoint, error); });
  step([&] { acceptor.listen(asio::socket_base::max_listen_connections, error); });
  if (error) {
    if (may_lack && error != asio::error::address_in_use) return {};
    return fail(error == asio::error::address_in_use ? ErrorKind::already_exists : ErrorKind::unavailable,
                "listening at {} port {}: {}", address, port, error.message());
  }
  port_ = acceptor.local_endpoint().port();
  acceptors_.push_back(std::move(acceptor));
  return {};
}

Status BeastServer::listen_at(std::uint16_t port) {
  if (!address_.empty()) {
    CGL_TRY(open_acceptor(address_, port, false));
  } else {
    // Both names of this machine at one port; of those that the system chooses some may be taken at the other.
    constexpr int most_tries = 8;
    Status outcome;
    for (int i = 0; i < (port == 0 ? most_tries : 1); ++i) {
      acceptors_.clear();
      CGL_TRY(open_acceptor("127.0.0.1", port, false));
      outcome = open_acceptor("::1", port_, true);
      if (outcome) break;
    }
    CGL_TRY(outcome);
  }
  CGL_TRY_ASSIGN(guard_, RequestGuard::create(address_, port_));
  queue_ = std::make_unique<RequestQueue>(host_);
  saves_ = std::make_unique<WorkThread>();
  work_ = std::make_unique<WorkThread>();
  return {};
}

void BeastServer::accept(std::size_t which) {
  acceptors_[which].async_accept([this, which](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || !acceptors_[which].is_open()) return;
    if (!error) {
      take(std::move(socket));
      return accept(which);
    }
    // Out of descriptors, say: those in use end by their times.
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this, which](error_code stopped) {
      if (!stopped) accept(which);
    });
  });
}

void BeastServer::take(tcp::socket socket) {
  if (peers_.size() >= most_connections) {
    const auto idle =
        std::find_if(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.second->is_idle(); });
    if (idle == peers_.end()) return;  // all are at work: the socket closes here
    const std::shared_ptr<Peer> oldest = idle->second;
    oldest->end();
  }
  const std::uint64_t number = ++last_peer_;
  const auto connection = std::make_shared<Connection>(*this, number, std::move(socket));
  peers_[number] = connection;
  connection->start();
}

void BeastServer::watch(const CancelToken& cancel) {
  poll_.expires_after(cancel_poll);
  poll_.async_wait([this, &cancel](error_code error) {
    if (error) return;
    if (cancel.cancelled()) return io_.stop();
    watch(cancel);
  });
}

Status BeastServer::run(const CancelToken& cancel) {
  for (std::size_t i = 0; i < acceptors_.size(); ++i) accept(i);
  watch(cancel);
  io_.run();
  end_all();
  return {};
}

void BeastServer::end_all() {
  for (tcp::acceptor& acceptor : acceptors_) {
    error_code ignored;
    acceptor.close(ignored);
  }
  while (!peers_.empty()) {
    const std::shared_ptr<Peer> peer = peers_.begin()->second;
    peer->end();
  }
  // Their threads are waited for; what they post is never run.
  saves_.reset();
  queue_.reset();
}

Result<std::unique_ptr<ViewServer>> ViewServer::listen(ViewHost& host, const ViewServerOptions& options) {
  auto server = std::make_unique<BeastServer>(host, options.host);
  CGL_TRY(server->listen_at(options.port));
  return server;
}

}  // namespace cingulum::view
