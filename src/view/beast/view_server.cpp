// The only file that includes Boost.Beast. One thread serves all connections; tracking (request_queue.hpp), saving and
// what else takes its time (WorkThread) have threads of their own, so that a slow page or a long run holds up nobody.
#include "view/view_server.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "view/assets.hpp"
#include "view/request_guard.hpp"

namespace cingulum::view {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using tcp = asio::ip::tcp;
using beast::error_code;
using namespace std::chrono_literals;

// Goals R27 and R28. Beyond most_connections the one that has waited longest without saying anything gives way.
constexpr std::size_t most_connections = 32;
constexpr std::uint32_t most_head_bytes = 16 << 10;
constexpr std::uint64_t most_body_bytes = 1 << 20;
constexpr std::size_t most_message_bytes = 1 << 20;
constexpr std::uint64_t most_waiting_bytes = 64 << 20;  // for one socket that does not read
constexpr auto head_time = 5s;                          // to say all of the first head
constexpr auto idle_time = 20s;                         // between two requests of a connection
constexpr auto body_time = 10s;
constexpr auto linger_time = 2s;    // after a last answer
constexpr auto piece_time = 30s;    // to take a piece of an answer
constexpr auto socket_time = 30s;   // of silence, pings unanswered
constexpr auto cancel_poll = 50ms;  // how soon Ctrl-C is seen
constexpr std::size_t piece_bytes = 256 << 10;

constexpr std::string_view content_policy =
    "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

template <class Fields>
void add_safety(Fields& fields) {
  fields.set("Content-Security-Policy", content_policy);
  fields.set("X-Content-Type-Options", "nosniff");
  fields.set("X-Frame-Options", "DENY");
  fields.set("Referrer-Policy", "no-referrer");
  fields.set("Cross-Origin-Resource-Policy", "same-origin");
  fields.set("Cross-Origin-Opener-Policy", "same-origin");
  fields.set(http::field::cache_control, "no-store");
}

std::string text_of(beast::string_view text) {
  return {text.data(), text.size()};
}

template <class Request>
RequestHead head_of(const Request& request) {
  RequestHead head;
  head.method = text_of(request.method_string());
  head.target = text_of(request.target());
  for (const auto& field : request) {
    const std::string value = text_of(field.value());
    if (field.name() == http::field::host) head.hosts.push_back(value);
    if (field.name() == http::field::origin) head.origins.push_back(value);
    if (field.name() == http::field::cookie) head.cookies.push_back(value);
    if (beast::iequals(field.name_string(), "Sec-Fetch-Site")) head.fetch_sites.push_back(value);
  }
  head.upgrade = websocket::is_upgrade(request);
  return head;
}

// What can stand in a header: a file's name may hold any byte.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(const std::filesystem::path& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  // Of a regular file that could be opened.
  [[nodiscard]] std::optional<std::uint64_t> bytes() const {
    struct stat facts {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
    return static_cast<std::uint64_t>(facts.st_size);
  }
  // How many were read; 0 at the end and where reading fails.
  [[nodiscard]] std::size_t read(std::uint64_t first, char* into, std::size_t count) const {
    const ssize_t got = ::pread(descriptor_, into, count, static_cast<off_t>(first));
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

 private:
  int descriptor_ = -1;
};

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

// Does what takes its time, one job after the other. A connection has one request at a time, so few wait.
class WorkThread {
 public:
  WorkThread() : thread_([this] { run(); }) {}
  ~WorkThread() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  void take(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // guarded by mutex_
  bool ending_ = false;                     // guarded by mutex_
  std::thread thread_;
};

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
  // Of runs that are saved. One at a time: begin_save() is false while one is at work.
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
    retry_.expires_after(100ms);
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

}  // namespace

Result<std::unique_ptr<ViewServer>> ViewServer::listen(ViewHost& host, const ViewServerOptions& options) {
  auto server = std::make_unique<BeastServer>(host, options.host);
  CGL_TRY(server->listen_at(options.port));
  return server;
}

}  // namespace cingulum::view
