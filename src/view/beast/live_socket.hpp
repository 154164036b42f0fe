// The WebSocket of a page: requests for streamlines come in and go to the queue, messages go out in the order of
// send(). Made by connection.hpp where a request asks for a socket.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "view/beast/beast_server.hpp"
#include "view/beast/http_parts.hpp"
#include "view/view_messages.hpp"

namespace cingulum::view {

class LiveSocket final : public Peer, public LiveSink, public std::enable_shared_from_this<LiveSocket> {
 public:
  LiveSocket(BeastServer& server, std::uint64_t number, beast::tcp_stream stream)
      : server_(server), number_(number), socket_(std::move(stream)), buffer_(most_message_bytes + 1024) {}

  template <class Request>
  void start(Request request) {
    beast::get_lowest_layer(socket_).expires_never();  // the socket has times of its own
    socket_.set_option(websocket::stream_base::timeout{
        .handshake_timeout = head_time, .idle_timeout = socket_time, .keep_alive_pings = true});
    websocket::permessage_deflate deflate;
    deflate.server_enable = false;
    deflate.client_enable = false;
    socket_.set_option(deflate);
    socket_.set_option(websocket::stream_base::decorator([](websocket::response_type& response) {
      add_safety(response);
      response.set(http::field::sec_websocket_protocol, subprotocol);
    }));
    socket_.read_message_max(most_message_bytes);
    socket_.binary(true);
    socket_.auto_fragment(false);
    auto kept = std::make_shared<Request>(std::move(request));
    socket_.async_accept(*kept, [self = shared_from_this(), kept](error_code error) {
      if (error) return self->end();
      self->page_ = self->server_.queue().open_page(self);
      self->read();
    });
  }

  [[nodiscard]] bool is_idle() const override { return false; }
  void end() override {
    const auto self = shared_from_this();
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      queue_.clear();
      waiting_bytes_ = 0;
    }
    if (page_ != 0) server_.queue().close_page(std::exchange(page_, 0));
    error_code ignored;
    beast::get_lowest_layer(socket_).socket().close(ignored);
    server_.forget(number_);
  }

  [[nodiscard]] Status send(std::uint32_t request, std::vector<std::byte> message) override {
    const std::lock_guard lock(mutex_);
    if (closed_) return fail(ErrorKind::closed, "the page is closed");
    if (waiting_bytes_ + message.size() > most_waiting_bytes) {
      closed_ = true;
      queue_.clear();
      asio::post(server_.io(), [self = shared_from_this()] {
        self->close(websocket::close_code::try_again_later, "the page does not read what it asked for");
      });
      return fail(ErrorKind::full, "the page does not read what it asked for");
    }
    waiting_bytes_ += message.size();
    queue_.push_back({request, std::move(message)});
    if (!is_writing_) {
      is_writing_ = true;
      asio::post(server_.io(), [self = shared_from_this()] { self->write(); });
    }
    return {};
  }

  void forget_before(std::uint32_t request) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const Waiting& waiting) {
      if (waiting.request >= request) return false;
      waiting_bytes_ -= waiting.bytes.size();
      return true;
    });
  }

 private:
  struct Waiting {
    std::uint32_t request;
    std::vector<std::byte> bytes;
  };

  void read() {
    socket_.async_read(buffer_, [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->end();
      self->take();
    });
  }

  void take() {
    if (!socket_.got_binary()) return close(websocket::close_code::unknown_data, "messages are binary");
    const auto bytes = buffer_.data();
    const auto message = parse_client_message({static_cast<const std::byte*>(bytes.data()), bytes.size()});
    if (!message) return close(websocket::close_code::protocol_error, message.error().message());
    if (message->kind == MessageKind::cancel) {
      server_.queue().cancel(page_, message->request);
    } else {
      auto arguments = catch_out_of_memory([&] { return parse_track_request(message->body); });
      if (!arguments) return close(websocket::close_code::policy_error, arguments.error().message());
      const Status asked = server_.queue().ask(page_, {message->request, std::move(*arguments)});
      if (!asked) return close(websocket::close_code::policy_error, asked.error().message());
    }
    buffer_.consume(buffer_.size());
    read();
  }

  void write() {
    {
      const std::lock_guard lock(mutex_);
      is_writing_ = !queue_.empty();
      if (!is_writing_) return;
      current_ = std::move(queue_.front());
      queue_.pop_front();
    }
    socket_.async_write(asio::buffer(current_.bytes.data(), current_.bytes.size()), [self = shared_from_this()](
                                                                                        error_code error, std::size_t) {
      {
        const std::lock_guard lock(self->mutex_);
        self->waiting_bytes_ -= std::min<std::uint64_t>(self->waiting_bytes_, self->current_.bytes.size());
      }
      if (error) return self->end();
      self->write();
    });
  }

  void close(websocket::close_code code, std::string_view why) {
    if (page_ != 0) server_.queue().close_page(std::exchange(page_, 0));
    // A close frame has room for 123 bytes of a reason.
    const std::string reason = one_line(std::string(why.substr(0, 120)));
    socket_.async_close(websocket::close_reason(code, reason),
                        [self = shared_from_this()](error_code) { self->end(); });
  }

  BeastServer& server_;
  const std::uint64_t number_;
  websocket::stream<beast::tcp_stream> socket_;
  beast::flat_buffer buffer_;
  std::uint32_t page_ = 0;
  Waiting current_;  // being written
  std::mutex mutex_;
  std::deque<Waiting> queue_;        // guarded by mutex_
  std::uint64_t waiting_bytes_ = 0;  // of queue_ and current_; guarded by mutex_
  bool is_writing_ = false;          // guarded by mutex_
  bool closed_ = false;              // guarded by mutex_
};

}  // namespace cingulum::view
