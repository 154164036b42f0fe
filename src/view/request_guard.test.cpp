#include "view/request_guard.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "view/secret.hpp"

namespace cingulum::view::request_guard_tests {
namespace {

std::unique_ptr<RequestGuard> guard_at(std::uint16_t port, std::string_view host = "") {
  return RequestGuard::create(host, port).value();
}

// What a browser sends that opened our page.
RequestHead good(const RequestGuard& guard, const std::string& target = "/api/files",
                 const std::string& method = "GET") {
  RequestHead head;
  head.method = method;
  head.target = target;
  head.hosts = {"127.0.0.1:8123"};
  if (method == "POST") head.origins = {"http://127.0.0.1:8123"};
  head.cookies = {"other=1; " + guard.cookie() + "; more=x"};
  head.fetch_sites = {"same-origin"};
  return head;
}

TEST(request_guard, what_the_page_sends_is_answered) {
  const auto guard = guard_at(8123);
  for (const char* const target : {"/", "/page.js", "/api/files", "/api/state", "/data/f1"}) {
    EXPECT_FALSE(guard->judge(good(*guard, target))) << target;
    EXPECT_FALSE(guard->judge(good(*guard, target, "HEAD"))) << target;
  }
  for (const char* const target : {"/api/save", "/api/save-sidecar", "/api/link"}) {
    EXPECT_FALSE(guard->judge(good(*guard, target, "POST"))) << target;
  }
  RequestHead socket = good(*guard, "/live");
  socket.upgrade = true;
  socket.origins = {"http://127.0.0.1:8123"};
  EXPECT_FALSE(guard->judge(socket));
  for (const char* const host : {"localhost:8123", "LOCALHOST:8123", "[::1]:8123"}) {
    RequestHead head = good(*guard);
    head.hosts = {host};
    EXPECT_FALSE(guard->judge(head)) << host;
  }
}

TEST(request_guard, each_of_these_changes_makes_it_refused) {
  const auto guard = guard_at(8123);
  struct Change {
    const char* what;
    int status;
    std::function<void(RequestHead&)> make;
  };
  const auto host = [](std::string text) { return [text](RequestHead& head) { head.hosts = {text}; }; };
  const auto origin = [](std::string text) { return [text](RequestHead& head) { head.origins = {text}; }; };
  const auto cookie = [](std::string text) { return [text](RequestHead& head) { head.cookies = {text}; }; };
  const auto method = [](std::string text) { return [text](RequestHead& head) { head.method = text; }; };
  const auto site = [](std::string text) { return [text](RequestHead& head) { head.fetch_sites = {text}; }; };
  const std::string own = guard->cookie();
  const std::vector<Change> changes = {
      {"no host", 400, [](RequestHead& head) { head.hosts.clear(); }},
      {"two hosts", 400, [](RequestHead& head) { head.hosts.push_back("evil.example"); }},
      {"the same host twice", 400, [](RequestHead& head) { head.hosts.push_back(head.hosts[0]); }},
      {"a rebound name", 403, host("evil.example:8123")},
      {"without the port", 403, host("127.0.0.1")},
      {"another port", 403, host("127.0.0.1:8124")},
      {"no host's text", 403, host("")},
      {"a name that begins alike", 403, host("localhost.evil.example:8123")},
      {"a name that ends alike", 403, host("evil-localhost:8123")},
      {"user before the host", 403, host("localhost:8123@evil.example")},
      {"a dot at the end", 403, host("localhost.:8123")},
      {"another loopback", 403, host("127.0.0.2:8123")},
      {"everybody's address", 403, host("0.0.0.0:8123")},
      {"decimal address", 403, host("2130706433:8123")},
      {"short address", 403, host("127.1:8123")},
      {"mapped address", 403, host("[::ffff:127.0.0.1]:8123")},
      {"loopback without brackets", 403, host("::1:8123")},
      {"port with zeros", 403, host("127.0.0.1:08123")},
      {"a blank after the host", 403, host("127.0.0.1:8123 ")},
      {"foreign origin", 403, origin("http://evil.example")},
      {"foreign origin with our port", 403, origin("http://evil.example:8123")},
      {"null origin", 403, origin("null")},
      {"empty origin", 403, origin("")},
      {"our host by https", 403, origin("https://127.0.0.1:8123")},
      {"our host at another port", 403, origin("http://127.0.0.1:3000")},
      {"our host without a port", 403, origin("http://127.0.0.1")},
      {"our other name", 403, origin("http://localhost:8123")},
      {"a path in the origin", 403, origin("http://127.0.0.1:8123/")},
      {"a list of origins", 403, origin("http://127.0.0.1:8123, http://evil.example")},
      {"two origins", 400,
       [](RequestHead& head) {
         head.origins = {"http://127.0.0.1:8123", "http://evil.example"};
       }},
      {"file origin", 403, origin("file://")},
      {"no cookie", 401, [](RequestHead& head) { head.cookies.clear(); }},
      {"empty cookie", 401, cookie("")},
      {"wrong value", 401, cookie("cingulum-view-8123=0000")},
      {"value cut", 401, cookie(own.substr(0, own.size() - 1))},
      {"value longer", 401, cookie(own + "0")},
      {"value in capitals", 401, cookie("CINGULUM-VIEW-8123=" + own.substr(own.find('=') + 1))},
      {"name of another port", 401, cookie("cingulum-view-8124=" + own.substr(own.find('=') + 1))},
      {"cookie inside another", 401, cookie("x=\"" + own + "\"")},
      {"value in quotes", 401, cookie("cingulum-view-8123=\"" + own.substr(own.find('=') + 1) + "\"")},
      {"put", 405, method("PUT")},
      {"delete", 405, method("DELETE")},
      {"options, as before a foreign request", 405, method("OPTIONS")},
      {"trace", 405, method("TRACE")},
      {"connect", 405, method("CONNECT")},
      {"patch", 405, method("PATCH")},
      {"get in small letters", 405, method("get")},
      {"no method", 405, method("")},
      {"sent by another site", 403, site("cross-site")},
      {"sent by a neighbour", 403, site("same-site")},
      {"sent by who knows whom", 403, site("")},
      {"two sites", 403,
       [](RequestHead& head) {
         head.fetch_sites = {"same-origin", "cross-site"};
       }},
      {"an upgrade elsewhere", 404,
       [](RequestHead& head) {
         head.upgrade = true;
         head.origins = {"http://127.0.0.1:8123"};
       }},
      {"post to what is got", 405,
       [](RequestHead& head) {
         head.method = "POST";
         head.origins = {"http://127.0.0.1:8123"};
       }},
      {"live without an upgrade", 426, [](RequestHead& head) { head.target = "/live"; }},
      {"save by get", 405, [](RequestHead& head) { head.target = "/api/save"; }},
  };
  EXPECT_GE(changes.size(), 40u);
  std::set<std::string> names;
  for (const Change& change : changes) {
    EXPECT_TRUE(names.insert(change.what).second);
    RequestHead head = good(*guard);
    ASSERT_FALSE(guard->judge(head));
    change.make(head);
    const auto refusal = guard->judge(head);
    ASSERT_TRUE(refusal) << change.what;
    EXPECT_EQ(refusal->status, change.status) << change.what << ": " << refusal->reason;
    EXPECT_EQ(refusal->reason.find(own.substr(own.find('=') + 1)), std::string::npos);
  }
}

TEST(request_guard, posts_and_sockets_need_an_origin) {
  const auto guard = guard_at(8123);
  RequestHead post = good(*guard, "/api/save", "POST");
  post.origins.clear();
  EXPECT_EQ(guard->judge(post)->status, 403);
  RequestHead socket = good(*guard, "/live");
  socket.upgrade = true;
  EXPECT_EQ(guard->judge(socket)->status, 403);
  socket.origins = {"http://127.0.0.1:5173"};
  EXPECT_EQ(guard->judge(socket)->status, 403);
  socket.origins = {"http://127.0.0.1:8123"};
  EXPECT_FALSE(guard->judge(socket));
  socket.cookies.clear();
  EXPECT_EQ(guard->judge(socket)->status, 401);
}

TEST(request_guard, a_key_opens_once_and_without_cookie) {
  const auto guard = guard_at(8123);
  const std::string key = guard->make_key().value();
  RequestHead head = good(*guard, "/open/" + key);
  head.cookies.clear();
  head.fetch_sites = {"cross-site"};
  EXPECT_FALSE(guard->judge(head));
  head.hosts = {"evil.example:8123"};
  EXPECT_TRUE(guard->judge(head));
  EXPECT_FALSE(guard->take_key("x" + key.substr(1)));
  EXPECT_FALSE(guard->take_key(key.substr(1)));
  EXPECT_FALSE(guard->take_key(""));
  EXPECT_TRUE(guard->take_key(key));
  EXPECT_FALSE(guard->take_key(key));
  // 192 bits, none alike.
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    const std::string secret = make_secret().value();
    EXPECT_EQ(secret.size(), 48u);
    EXPECT_TRUE(keys.insert(secret).second);
  }
  EXPECT_EQ(guard->cookie().find(key), std::string::npos);
}

TEST(request_guard, a_host_that_was_named_is_one_more) {
  const auto guard = guard_at(8123, "192.168.1.5");
  RequestHead head = good(*guard);
  head.hosts = {"192.168.1.5:8123"};
  EXPECT_FALSE(guard->judge(head));
  const auto six = guard_at(80, "fd00::5");
  head = good(*six);
  head.hosts = {"[fd00::5]"};
  EXPECT_FALSE(six->judge(head));
  head.hosts = {"fd00::5"};
  EXPECT_TRUE(six->judge(head));
}

TEST(request_guard, targets_are_names_and_never_paths) {
  EXPECT_EQ(read_target("/").name, "index.html");
  EXPECT_EQ(read_target("/data/f12").name, "f12");
  EXPECT_EQ(read_target("/data/f12").kind, Target::Kind::data);
  EXPECT_EQ(read_target("/api/lines/f3/20000").kind, Target::Kind::lines);
  EXPECT_EQ(read_target("/api/lines/f3/20000").name, "f3");
  EXPECT_EQ(read_target("/api/lines/f3/20000").place, "20000");
  EXPECT_EQ(read_target("/api/glyphs/2/-12.5").kind, Target::Kind::glyphs);
  EXPECT_EQ(read_target("/api/glyphs/2/-12.5").place, "-12.5");
  EXPECT_EQ(read_target("/api/peaks/2/-12.5").kind, Target::Kind::peaks);
  EXPECT_EQ(read_target("/api/values/f3/1").kind, Target::Kind::values);
  for (const char* const text : {"",
                                 "//",
                                 "/..",
                                 "/../etc/passwd",
                                 "/data/",
                                 "/data/../f1",
                                 "/data/f1/..",
                                 "/data//etc/passwd",
                                 "/data/%2e%2e",
                                 "/data/f1%00",
                                 "/data/f1?x",
                                 "/?x",
                                 "/index.html?",
                                 "/index.html#x",
                                 "/a/b",
                                 "\\",
                                 "/..\\x",
                                 "/%2e%2e/x",
                                 "http://127.0.0.1/",
                                 "*",
                                 "/open/",
                                 "/open/a/b",
                                 "/api",
                                 "/api/",
                                 "/api/files/",
                                 "/api/lines/f1",
                                 "/api/lines/f1/",
                                 "/api/lines//1",
                                 "/api/lines/f1/1/2",
                                 "/api/lines/../etc/passwd",
                                 "/api/glyphs/2",
                                 "/api/peaks/2",
                                 "/api/values/f1",
                                 "/api/glyphs/2/%2e",
                                 "/API/files"}) {
    const Target target = read_target(text);
    // Two dots are the name of an asset, of which there is none.
    if (std::string(text) == "/.." || std::string(text) == "/api") continue;
    EXPECT_EQ(target.kind, Target::Kind::none) << text;
  }
}

TEST(request_guard, ranges) {
  ByteRange range;
  const auto read = [&](std::string_view text) { return read_range(text, 1000, range); };
  EXPECT_EQ(read("bytes=0-9"), RangeKind::part);
  EXPECT_EQ(range.first, 0u);
  EXPECT_EQ(range.count, 10u);
  EXPECT_EQ(read("bytes=990-"), RangeKind::part);
  EXPECT_EQ(range.first, 990u);
  EXPECT_EQ(range.count, 10u);
  EXPECT_EQ(read("bytes=-1"), RangeKind::part);
  EXPECT_EQ(range.first, 999u);
  EXPECT_EQ(range.count, 1u);
  EXPECT_EQ(read("bytes=-5000"), RangeKind::part);
  EXPECT_EQ(range.count, 1000u);
  EXPECT_EQ(read("bytes=999-18446744073709551615"), RangeKind::part);
  EXPECT_EQ(range.count, 1u);
  for (const char* const text : {"bytes=1000-", "bytes=-0", "bytes=18446744073709551615-"}) {
    EXPECT_EQ(read(text), RangeKind::unsatisfiable) << text;
  }
  for (const char* const text : {"", "bytes=", "bytes=-", "bytes=a-b", "bytes=9-1", "bytes=0-1,3-4", "lines=0-1",
                                 "bytes=99999999999999999999-", "bytes=0-9x"}) {
    EXPECT_EQ(read(text), RangeKind::whole) << text;
    EXPECT_EQ(range.count, 1000u);
  }
  EXPECT_EQ(read_range("bytes=0-", 0, range), RangeKind::unsatisfiable);
}

}  // namespace
}  // namespace cingulum::view::request_guard_tests
