// What a connection and a socket of the viewer's server share: names of Boost.Beast, limits, the headers that every
// answer has, and a request's head for request_guard.hpp. Included by view_server.cpp alone, directly or through the
// headers beside it: the headers of Beast are compiled once.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "view/request_guard.hpp"

namespace cingulum::view {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using tcp = asio::ip::tcp;
using beast::error_code;

// Beyond most_connections the one that has waited longest without saying anything gives way.
inline constexpr std::size_t most_connections = 32;
inline constexpr std::uint32_t most_head_bytes = 16 << 10;
inline constexpr std::uint64_t most_body_bytes = 1 << 20;
inline constexpr std::size_t most_message_bytes = 1 << 20;
inline constexpr std::uint64_t most_waiting_bytes = 64 << 20;  // for one socket that does not read
inline constexpr std::chrono::seconds head_time{5};            // to say all of the first head
inline constexpr std::chrono::seconds idle_time{20};           // between two requests of a connection
inline constexpr std::chrono::seconds body_time{10};
inline constexpr std::chrono::seconds linger_time{2};        // after a last answer
inline constexpr std::chrono::seconds piece_time{30};        // to take a piece of an answer
inline constexpr std::chrono::seconds socket_time{30};       // of silence, pings unanswered
inline constexpr std::chrono::milliseconds cancel_poll{50};  // how soon Ctrl-C is seen
inline constexpr std::size_t piece_bytes = 256 << 10;

inline constexpr std::string_view content_policy =
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

inline std::string text_of(beast::string_view text) {
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
inline std::string one_line(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

}  // namespace cingulum::view
