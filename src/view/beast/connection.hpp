// A connection of HTTP: one request after the other is judged, read and answered, or becomes a socket. Made by
// view_server.cpp for every connection that it accepts.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "view/assets.hpp"
#include "view/beast/beast_server.hpp"
#include "view/beast/http_parts.hpp"
#include "view/beast/live_socket.hpp"
#include "view/beast/open_file.hpp"
#include "view/request_guard.hpp"

namespace cingulum::view {

struct FileHeaders {
  std::string type;
  std::string name;     // to be kept under; empty: shown
  std::string command;  // empty: none
  bool ranges = false;
};

// The whole of a text, or nothing.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

class Connection final : public Peer, public std::enable_shared_from_this<Connection> {
 public:
  Connection(BeastServer& server, std::uint64_t number, tcp::socket socket)
      : server_(server), number_(number), stream_(std::move(socket)), buffer_(most_head_bytes + 65536) {}

  void start() { read_head(head_time); }
  [[nodiscard]] bool is_idle() const override { return is_reading_head_; }
  void end() override {
    const auto self = shared_from_this();
    if (save_) save_->cancel();
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.socket().close(ignored);
    server_.forget(number_);
  }

 private:
  void read_head(std::chrono::seconds time) {
    parser_.emplace();
    parser_->header_limit(most_head_bytes);
    parser_->body_limit(most_body_bytes);
    is_reading_head_ = true;
    stream_.expires_after(time);
    http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
      self->is_reading_head_ = false;
      self->take_head(error);
    });
  }

  void take_head(error_code error) {
    if (error == http::error::header_limit) return refuse({431, "the head of the request is longer than 16 KiB"});
    if (error == http::error::body_limit) return refuse({413, "a body has at most 1 MiB"});
    // Other failures are those of the connection: its end, or that its time is over.
    const bool is_malformed = error.category() == http::make_error_code(http::error::bad_method).category() &&
                              error != http::error::end_of_stream && error != http::error::partial_message;
    if (error && !is_malformed) return end();
    if (error) return refuse({400, "the request is not HTTP/1.1"});
    const auto& request = parser_->get();
    if (request.version() != 10 && request.version() != 11) return refuse({505, "accepted is HTTP/1.1"});
    const RequestHead head = head_of(request);
    if (const auto refusal = server_.guard().judge(head)) return refuse(*refusal);
    if (head.upgrade) return become_socket();
    if (request.method() == http::verb::post) return read_body();
    // A body that nobody asked for would be read as the next request.
    if (parser_->content_length().value_or(0) > 0 || parser_->chunked()) return refuse({400, "GET has no body"});
    answer_get(head);
  }

  void become_socket() {
    bool offered = false;
    for (const auto& field : parser_->get()) {
      if (field.name() != http::field::sec_websocket_protocol) continue;
      for (const auto& name : http::token_list(field.value())) offered = offered || name == subprotocol;
    }
    if (!offered) return refuse({400, fmt::format("the socket's protocol is {}", subprotocol)});
    error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    const auto socket = std::make_shared<LiveSocket>(server_, number_, std::move(stream_));
    server_.replace(number_, socket);
    socket->start(parser_->release());
  }

  void answer_get(const RequestHead& head) {
    const Target target = read_target(head.target);
    switch (target.kind) {
      case Target::Kind::open: {
        if (!server_.guard().take_key(target.name)) {
          return refuse({403, "this link was used, or is not ours; `cingulum view` prints a new one when it starts"});
        }
        // A page of ours goes on to the next: after a redirection from elsewhere browsers keep a strict cookie back.
        auto response = make_response(http::status::ok, "text/html; charset=utf-8");
        response.set(http::field::set_cookie, server_.guard().cookie() + "; Path=/; HttpOnly; SameSite=Strict");
        response.body() =
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; "
            "url=/\"><title>Cingulum</title><a href=\"/\">Cingulum</a></html>\n";
        return write(std::move(response));
      }
      case Target::Kind::files: {
        auto response = make_response(http::status::ok, "application/json");
        response.body() = server_.host().files_json();
        return write(std::move(response));
      }
      case Target::Kind::state: {
        auto response = make_response(http::status::ok, "application/json");
        response.body() = server_.state_json();
        return write(std::move(response));
      }
      case Target::Kind::data: {
        const ViewFile* const file = server_.host().find_file(target.name);
        if (file == nullptr) return refuse({404, "there is no file of that identifier"});
        return write_file(OpenFile(file->path), {"application/octet-stream", {}, {}, true});
      }
      case Target::Kind::lines:
      case Target::Kind::values: {
        const ViewFile* const file = server_.host().find_file(target.name);
        if (file == nullptr || file->kind != "tractogram")
          return refuse({404, "there is no tractogram of that identifier"});
        const auto number = number_in<std::uint64_t>(target.place);
        if (!number) return refuse({400, "the message of streamlines, or the column, is a whole number"});
        return answer_later([this, file, kind = target.kind, number = *number] {
          ViewHost& host = server_.host();
          return kind == Target::Kind::lines ? host.lines(*file, number) : host.values(*file, number);
        });
      }
      case Target::Kind::glyphs:
      case Target::Kind::peaks: {
        const auto axis = number_in<int>(target.name);
        const auto mm = number_in<double>(target.place);
        if (!axis || !mm) return refuse({400, "a slice is asked for by an axis and a place in mm"});
        return answer_later([this, kind = target.kind, axis = *axis, mm = *mm] {
          ViewHost& host = server_.host();
          return kind == Target::Kind::glyphs ? host.glyphs(axis, mm) : host.peaks(axis, mm);
        });
      }
      default: break;
    }
    const Asset asset = find_asset(target.name);
    if (asset.text.empty()) return refuse({404, "there is nothing of that name"});
    auto response = make_response(http::status::ok, asset.type);
    response.body() = asset.text;
    write(std::move(response));
  }

  // What takes its time is made by another thread.
  void answer_later(std::function<Result<std::vector<std::byte>>()> make) {
    stream_.expires_never();
    server_.work().take([self = shared_from_this(), make = std::move(make)] {
      const auto made = std::make_shared<Result<std::vector<std::byte>>>(catch_out_of_memory(make));
      asio::post(self->server_.io(), [self, made] {
        if (!self->stream_.socket().is_open()) return;
        if (!*made) {
          const ErrorKind kind = made->error().kind();
          const bool absent = kind == ErrorKind::not_found || kind == ErrorKind::unavailable;
          return self->answer_error(absent ? 404 : kind == ErrorKind::invalid_argument ? 400 : 500, made->error());
        }
        auto response = self->make_response(http::status::ok, "application/octet-stream");
        response.body().assign(reinterpret_cast<const char*>((*made)->data()), (*made)->size());
        self->write(std::move(response));
      });
    });
  }

  void read_body() {
    if (!parser_->content_length()) return refuse({411, "POST says how long its body is"});
    stream_.expires_after(body_time);
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->end();
      self->answer_post();
    });
  }

  void answer_post() {
    const Target target = read_target(text_of(parser_->get().target()));
    if (target.kind == Target::Kind::link) {
      const auto link = server_.make_link();
      if (!link) return answer_error(500, link.error());
      auto response = make_response(http::status::ok, "application/json");
      response.body() = fmt::format("{{\"link\":\"{}\"}}\n", *link);
      return write(std::move(response));
    }
    auto arguments = catch_out_of_memory([&] { return parse_track_request(parser_->get().body()); });
    if (!arguments) return answer_error(400, arguments.error());
    if (!server_.begin_save()) {
      return answer_error(503, Error(ErrorKind::full, "another run is being saved; try again when it is done"));
    }
    const bool sidecar = target.kind == Target::Kind::save_sidecar;
    save_.emplace();
    stream_.expires_never();
    server_.saves().take(
        [self = shared_from_this(), arguments = std::move(*arguments), token = save_->token(), sidecar] {
          auto saved = catch_out_of_memory([&] { return self->server_.host().save(arguments, token); });
          // Opened before the next run replaces it.
          auto file =
              std::make_shared<OpenFile>(saved ? OpenFile(sidecar ? saved->sidecar : saved->tractogram) : OpenFile());
          asio::post(self->server_.io(), [self, sidecar, saved = std::move(saved), file] {
            self->server_.end_save();
            self->answer_saved(saved, std::move(*file), sidecar);
          });
        });
    watch_for_end();
  }

  // While a run is saved nothing is read: a page that goes away is noticed by the end of its stream.
  void watch_for_end() {
    stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
      if (error || !self->save_) return;
      char byte = 0;
      const ssize_t got = ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) self->end();
    });
  }

  void answer_saved(const Result<SavedRun>& saved, OpenFile file, bool sidecar) {
    save_.reset();
    if (!stream_.socket().is_open()) return;
    error_code ignored;
    stream_.socket().cancel(ignored);
    if (!saved) return answer_error(saved.error().kind() == ErrorKind::invalid_argument ? 400 : 500, saved.error());
    FileHeaders headers;
    headers.type = sidecar ? "application/json" : "application/octet-stream";
    headers.name = sidecar ? "tracks.trx.json" : "tracks.trx";
    headers.command = one_line(saved->command);
    write_file(std::move(file), headers);
  }

  [[nodiscard]] http::response<http::string_body> make_response(http::status status, std::string_view type) const {
    http::response<http::string_body> response(status, 11);
    add_safety(response);
    response.set(http::field::content_type, beast::string_view(type.data(), type.size()));
    response.keep_alive(parser_ && parser_->is_header_done() && parser_->get().keep_alive());
    return response;
  }

  // The rest of the request was not read: the connection ends.
  void refuse(const Refusal& refusal) {
    auto response =
        make_response(http::int_to_status(static_cast<unsigned>(refusal.status)), "text/plain; charset=utf-8");
    response.body() = refusal.reason + "\n";
    response.keep_alive(false);
    write(std::move(response));
  }

  void answer_error(int status, const Error& error) {
    auto response = make_response(http::int_to_status(static_cast<unsigned>(status)), "application/json");
    response.body() = server_.host().describe(error);
    write(std::move(response));
  }

  [[nodiscard]] bool is_head() const {
    return parser_ && parser_->is_header_done() && parser_->get().method() == http::verb::head;
  }

  void write(http::response<http::string_body> response) {
    response.prepare_payload();
    const bool stays = response.keep_alive();
    if (is_head()) response.body().clear();
    stream_.expires_after(piece_time);
    auto kept = std::make_shared<http::response<http::string_body>>(std::move(response));
    http::async_write(stream_, *kept, [self = shared_from_this(), kept, stays](error_code error, std::size_t) {
      self->after_answer(error, stays);
    });
  }

  void after_answer(error_code error, bool stays) {
    if (error) return end();
    if (stays) return read_head(idle_time);
    stream_.socket().shutdown(tcp::socket::shutdown_send, error);
    is_reading_head_ = true;
    stream_.expires_after(linger_time);
    linger(most_body_bytes);
  }

  // What the other side is still sending is thrown away: closed before, the system would take back the answer as well.
  void linger(std::uint64_t most_bytes) {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this(), most_bytes](error_code error, std::size_t read) {
                              if (error || read >= most_bytes) return self->end();
                              self->linger(most_bytes - read);
                            });
  }

  struct FileAnswer {
    OpenFile file;
    std::uint64_t next = 0;
    std::uint64_t left = 0;
    std::vector<char> piece;
    http::response<http::buffer_body> response;
    std::optional<http::response_serializer<http::buffer_body>> serializer;
    bool stays = false;
  };

  void write_file(OpenFile file, const FileHeaders& headers) {
    const auto bytes = file.bytes();
    if (!bytes) return refuse({404, "the file is not there any more"});
    auto answer = std::make_shared<FileAnswer>();
    ByteRange range = {0, *bytes};
    RangeKind kind = RangeKind::whole;
    const auto wanted = parser_->get().find(http::field::range);
    if (headers.ranges && wanted != parser_->get().end()) kind = read_range(text_of(wanted->value()), *bytes, range);
    if (kind == RangeKind::unsatisfiable) {
      auto response = make_response(http::status::range_not_satisfiable, "text/plain; charset=utf-8");
      response.set(http::field::content_range, fmt::format("bytes */{}", *bytes));
      return write(std::move(response));
    }
    answer->file = std::move(file);
    answer->next = range.first;
    answer->left = is_head() ? 0 : range.count;
    auto& response = answer->response;
    response.result(kind == RangeKind::part ? http::status::partial_content : http::status::ok);
    response.version(11);
    add_safety(response);
    response.set(http::field::content_type, headers.type);
    if (headers.ranges) response.set(http::field::accept_ranges, "bytes");
    if (!headers.name.empty())
      response.set(http::field::content_disposition, "attachment; filename=\"" + headers.name + "\"");
    if (!headers.command.empty()) response.set("X-Cingulum-Command", headers.command);
    if (kind == RangeKind::part) {
      response.set(http::field::content_range,
                   fmt::format("bytes {}-{}/{}", range.first, range.first + range.count - 1, *bytes));
    }
    response.content_length(range.count);
    answer->stays = parser_->get().keep_alive();
    response.keep_alive(answer->stays);
    response.body().data = nullptr;
    response.body().more = true;
    answer->piece.resize(piece_bytes);
    answer->serializer.emplace(response);
    stream_.expires_after(piece_time);
    http::async_write_header(stream_, *answer->serializer,
                             [self = shared_from_this(), answer](error_code error, std::size_t) {
                               if (error) return self->end();
                               self->write_piece(answer);
                             });
  }

  void write_piece(const std::shared_ptr<FileAnswer>& answer) {
    if (answer->left == 0) return after_answer({}, answer->stays);
    const std::size_t got =
        answer->file.read(answer->next, answer->piece.data(),
                          static_cast<std::size_t>(std::min<std::uint64_t>(answer->left, piece_bytes)));
    if (got == 0) return end();  // shorter than it was: the page sees an answer that was cut
    answer->next += got;
    answer->left -= got;
    auto& body = answer->response.body();
    body.data = answer->piece.data();
    body.size = got;
    body.more = answer->left > 0;
    stream_.expires_after(piece_time);
    http::async_write(stream_, *answer->serializer, [self = shared_from_this(), answer](error_code error, std::size_t) {
      if (error && error != http::error::need_buffer) return self->end();
      self->write_piece(answer);
    });
  }

  BeastServer& server_;
  const std::uint64_t number_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<CancelSource> save_;  // of the run that is being saved
  bool is_reading_head_ = true;
};

}  // namespace cingulum::view
