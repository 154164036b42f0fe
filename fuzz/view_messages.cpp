// What a page sends to `cingulum view`: a message of the socket, the request in it, and the same bytes taken for the
// target and the range of a request. What is accepted must read the same after it was written again.
#include <algorithm>

#include "fuzz/fuzz_target.hpp"
#include "view/request_guard.hpp"
#include "view/view_messages.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cingulum;
  using namespace cingulum::view;
  if (const auto message = parse_client_message(fuzz::as_bytes(data, size))) {
    const auto again = make_message(message->kind, message->request, message->body);
    fuzz::require(std::ranges::equal(again, fuzz::as_bytes(data, size)), "a message written again differs");
    if (const auto request = parse_track_request(message->body)) {
      const std::string text = track_request_json(*request);
      const auto twice = fuzz::expect(parse_track_request(text), "reading a request that was written");
      fuzz::require(twice == *request, "a request written and read again differs", text);
    }
  }
  const std::string_view text = fuzz::as_text(data, size);
  const Target target = read_target(text);
  const auto is_path = [](char c) { return c == '/' || c == '\\' || c == '%' || c == '\0'; };
  fuzz::require(std::none_of(target.name.begin(), target.name.end(), is_path), "a target whose name is a path", text);
  ByteRange range;
  constexpr std::uint64_t bytes = 1000;
  if (read_range(text, bytes, range) != RangeKind::unsatisfiable) {
    fuzz::require(range.first <= bytes && range.count <= bytes - range.first, "a range beyond the file", text);
  }
  return 0;
}
