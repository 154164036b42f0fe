#include "view/request_guard.hpp"

#include <algorithm>
#include <charconv>

#include "view/secret.hpp"

namespace cingulum::view {
namespace {

// More would be links that nobody uses.
constexpr std::size_t most_keys = 8;

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

bool is_plain_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), fits);
}

bool is_get(const RequestHead& head) {
  return head.method == "GET" || head.method == "HEAD";
}

}  // namespace

Target read_target(std::string_view target) {
  using Kind = Target::Kind;
  if (target == "/") return {Kind::page, "index.html", {}};
  if (target == "/api/files") return {Kind::files, {}, {}};
  if (target == "/api/state") return {Kind::state, {}, {}};
  if (target == "/api/link") return {Kind::link, {}, {}};
  if (target == "/api/save") return {Kind::save, {}, {}};
  if (target == "/api/save-sidecar") return {Kind::save_sidecar, {}, {}};
  if (target == "/live") return {Kind::live, {}, {}};
  for (const auto& [before, kind] : {std::pair{std::string_view("/open/"), Kind::open}, {"/data/", Kind::data}}) {
    if (!target.starts_with(before)) continue;
    const std::string_view name = target.substr(before.size());
    return is_plain_name(name) ? Target{kind, name, {}} : Target{};
  }
  for (const auto& [before, kind] : {std::pair{std::string_view("/api/lines/"), Kind::lines},
                                     {"/api/values/", Kind::values},
                                     {"/api/glyphs/", Kind::glyphs},
                                     {"/api/peaks/", Kind::peaks}}) {
    if (!target.starts_with(before)) continue;
    const std::string_view both = target.substr(before.size());
    const std::size_t slash = both.find('/');
    if (slash == std::string_view::npos) return {};
    const Target found{kind, both.substr(0, slash), both.substr(slash + 1)};
    return is_plain_name(found.name) && is_plain_name(found.place) ? found : Target{};
  }
  if (target.starts_with('/') && is_plain_name(target.substr(1))) return {Kind::page, target.substr(1), {}};
  return {};
}

Result<std::unique_ptr<RequestGuard>> RequestGuard::create(std::string_view host, std::uint16_t port) {
  std::unique_ptr<RequestGuard> guard(new RequestGuard);
  std::vector<std::string> names = {"localhost", "127.0.0.1", "[::1]"};
  if (!host.empty())
    names.push_back(host.find(':') != std::string_view::npos ? fmt::format("[{}]", host) : std::string(host));
  for (const std::string& name : names) {
    guard->hosts_.push_back(fmt::format("{}:{}", name, port));
    if (port == 80) guard->hosts_.push_back(name);
  }
  // Cookies know no ports: without it in the name two servers would take each other's away.
  guard->cookie_name_ = fmt::format("cingulum-view-{}", port);
  CGL_TRY_ASSIGN(guard->cookie_value_, make_secret());
  return guard;
}

std::optional<Refusal> RequestGuard::judge(const RequestHead& head) const {
  const auto is_ours = [&](std::string_view host) {
    return std::any_of(hosts_.begin(), hosts_.end(), [&](const std::string& own) { return same_letters(own, host); });
  };
  // A name that an attacker's server resolves to this machine comes with that name.
  if (head.hosts.size() != 1) return Refusal{400, "the request does not name one host"};
  if (!is_ours(head.hosts.front())) return Refusal{403, "the request names another host"};
  if (!is_get(head) && head.method != "POST") return Refusal{405, "accepted are GET, HEAD and POST"};
  const bool needs_origin = head.method == "POST" || head.upgrade;
  if (head.origins.size() > 1) return Refusal{400, "the request has several origins"};
  if (needs_origin && head.origins.empty()) return Refusal{403, "the request says no origin"};
  if (!head.origins.empty()) {
    const std::string_view origin = head.origins.front();
    constexpr std::string_view scheme = "http://";
    // The same host as the request's, not any of ours: localhost and 127.0.0.1 are two origins.
    if (!origin.starts_with(scheme) || !same_letters(origin.substr(scheme.size()), head.hosts.front())) {
      return Refusal{403, "the request comes from another page"};
    }
  }
  const Target target = read_target(head.target);
  const bool opens = target.kind == Target::Kind::open && is_get(head) && !head.upgrade;
  for (const std::string& site : head.fetch_sites) {
    // A link may be opened from anywhere: its key is the permission.
    if (!opens && site != "same-origin" && site != "none") return Refusal{403, "the request comes from another page"};
  }
  if (!opens && !has_cookie(head)) {
    return Refusal{401, "open the link that `cingulum view` printed: without its cookie nothing is shown"};
  }
  if (target.kind == Target::Kind::none) return Refusal{404, "there is nothing of that name"};
  const bool posts = target.kind == Target::Kind::link || target.kind == Target::Kind::save ||
                     target.kind == Target::Kind::save_sidecar;
  if (posts != (head.method == "POST")) return Refusal{405, posts ? "accepted is POST" : "accepted are GET and HEAD"};
  if (head.upgrade != (target.kind == Target::Kind::live)) {
    return Refusal{head.upgrade ? 404 : 426, "/live takes WebSockets, and nothing else does"};
  }
  return std::nullopt;
}

bool RequestGuard::has_cookie(const RequestHead& head) const {
  for (std::string_view rest : head.cookies) {
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      std::string_view pair = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      while (pair.starts_with(' ')) pair.remove_prefix(1);
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos || pair.substr(0, equals) != cookie_name_) continue;
      if (same_secret(pair.substr(equals + 1), cookie_value_)) return true;
    }
  }
  return false;
}

Result<std::string> RequestGuard::make_key() {
  CGL_TRY_ASSIGN(std::string key, make_secret());
  const std::lock_guard lock(mutex_);
  if (keys_.size() == most_keys) keys_.erase(keys_.begin());
  keys_.push_back(key);
  return key;
}

bool RequestGuard::take_key(std::string_view key) {
  const std::lock_guard lock(mutex_);
  for (auto known = keys_.begin(); known != keys_.end(); ++known) {
    if (!same_secret(*known, key)) continue;
    keys_.erase(known);
    return true;
  }
  return false;
}

std::string RequestGuard::cookie() const {
  return fmt::format("{}={}", cookie_name_, cookie_value_);
}

RangeKind read_range(std::string_view header, std::uint64_t bytes, ByteRange& range) {
  range = {0, bytes};
  constexpr std::string_view unit = "bytes=";
  if (!header.starts_with(unit)) return RangeKind::whole;
  header.remove_prefix(unit.size());
  const std::size_t dash = header.find('-');
  if (dash == std::string_view::npos || header.find(',') != std::string_view::npos) return RangeKind::whole;
  const auto number = [](std::string_view text) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
    return value;
  };
  const auto first = number(header.substr(0, dash)), last = number(header.substr(dash + 1));
  const bool has_first = dash > 0, has_last = dash + 1 < header.size();
  if ((has_first && !first) || (has_last && !last) || (!has_first && !has_last)) return RangeKind::whole;
  if (!has_first) {
    if (*last == 0 || bytes == 0) return RangeKind::unsatisfiable;
    range.count = std::min(*last, bytes);
    range.first = bytes - range.count;
    return RangeKind::part;
  }
  if (has_last && *last < *first) return RangeKind::whole;
  if (*first >= bytes) return RangeKind::unsatisfiable;
  range.first = *first;
  range.count = (has_last ? std::min(*last, bytes - 1) : bytes - 1) - *first + 1;
  return RangeKind::part;
}

}  // namespace cingulum::view
