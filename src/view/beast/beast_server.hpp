// The server behind view_server.hpp, as connections and sockets see it: who is connected, and who answers. Included by
// view_server.cpp alone, and by the headers of connections and sockets.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "view/beast/http_parts.hpp"
#include "view/beast/work_thread.hpp"
#include "view/request_guard.hpp"
#include "view/request_queue.hpp"
#include "view/view_server.hpp"

namespace cingulum::view {

// A connection of either kind, as the server counts it.
class Peer {
 public:
  virtual ~Peer() = default;
  // Whether it says nothing and may give way to another.
  [[nodiscard]] virtual bool is_idle() const = 0;
  virtual void end() = 0;
};

class BeastServer final : public ViewServer {
 public:
  BeastServer(ViewHost& host, std::string address)
      : host_(host), address_(std::move(address)), poll_(io_), retry_(io_) {}
  ~BeastServer() override { end_all(); }

  [[nodiscard]] Status listen_at(std::uint16_t port);
  [[nodiscard]] Result<std::string> make_link() override {
    CGL_TRY_ASSIGN(const std::string key, guard_->make_key());
    const std::string name = address_.empty()                          ? "127.0.0.1"
                             : address_.find(':') != std::string::npos ? "[" + address_ + "]"
                                                                       : address_;
    return fmt::format("http://{}:{}/open/{}", name, port_, key);
  }
  [[nodiscard]] std::uint16_t port() const override { return port_; }
  [[nodiscard]] Status run(const CancelToken& cancel) override;

  [[nodiscard]] ViewHost& host() { return host_; }
  [[nodiscard]] RequestGuard& guard() { return *guard_; }
  [[nodiscard]] RequestQueue& queue() { return *queue_; }
  [[nodiscard]] WorkThread& work() { return *work_; }
  // Works at runs that are saved, one at a time: begin_save() is false while one is at work.
  [[nodiscard]] WorkThread& saves() { return *saves_; }
  [[nodiscard]] bool begin_save() { return !std::exchange(is_saving_, true); }
  void end_save() { is_saving_ = false; }
  [[nodiscard]] asio::io_context& io() { return io_; }
  // For whoever wants to know what is going on; for tests, that nothing is.
  [[nodiscard]] std::string state_json() const {
    const LiveCounts counts = queue_->counts();
    return fmt::format(
        "{{\"connections\":{},\"pages\":{},\"waiting\":{},\"running\":{},\"requests\":{},\"answered\":{},"
        "\"replaced\":{},\"cancelled\":{},\"failed\":{}}}\n",
        peers_.size(), counts.pages, counts.waiting, counts.running, counts.requests, counts.answered, counts.replaced,
        counts.cancelled, counts.failed);
  }
  void forget(std::uint64_t number) { peers_.erase(number); }
  // The same place in the count for a connection that became a socket.
  void replace(std::uint64_t number, std::shared_ptr<Peer> peer) { peers_[number] = std::move(peer); }

 private:
  [[nodiscard]] Status open_acceptor(const std::string& address, std::uint16_t port, bool may_lack);
  void accept(std::size_t which);
  void take(tcp::socket socket);
  void watch(const CancelToken& cancel);
  void end_all();

  ViewHost& host_;
  const std::string address_;
  std::uint16_t port_ = 0;
  std::unique_ptr<RequestGuard> guard_;
  asio::io_context io_{1};
  std::vector<tcp::acceptor> acceptors_;
  asio::steady_timer poll_;
  asio::steady_timer retry_;
  std::map<std::uint64_t, std::shared_ptr<Peer>> peers_;  // by age
  std::uint64_t last_peer_ = 0;
  std::unique_ptr<RequestQueue> queue_;
  bool is_saving_ = false;
  std::unique_ptr<WorkThread> saves_;
  std::unique_ptr<WorkThread> work_;
};

}  // namespace cingulum::view
